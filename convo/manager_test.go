package convo_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/weir-run/weir/convo"
)

func TestReadOnlyManagerRejectsEveryChange(t *testing.T) {
	t.Parallel()
	m := convo.NewManager(convo.Context{ID: "c"}, false)
	_, add := m.Add(userMessage("", "x"))
	_, addAll := m.AddAll([]convo.Message{userMessage("", "x")})
	_, upsert := m.Upsert(userMessage("", "x"))
	for name, err := range map[string]error{
		"Add": add, "AddAll": addAll, "Upsert": upsert, "SetSystem": m.SetSystem("s"),
		"SetModel": m.SetModel("p", "m"), "Reset": m.Reset(), "SetOutput": m.SetOutput("o"), "SetSession": m.SetSession("s"),
	} {
		if !errors.Is(err, convo.ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(m.Changes()) != 0 || m.Adds() != 0 {
		t.Errorf("changes are %v", m.Changes())
	}
}

func TestAddAllAddsAllOrNothing(t *testing.T) {
	t.Parallel()
	m := convo.NewManager(convo.Context{ID: "c"}, true)
	_, err := m.AddAll([]convo.Message{userMessage("", "x"), {Role: convo.Tool, Text: "no call"}})
	if !errors.Is(err, convo.ErrNoCallID) || m.Adds() != 0 || len(m.Changes()) != 0 {
		t.Errorf("adds %d, changes %v, %v", m.Adds(), m.Changes(), err)
	}
	got, err := m.Add(userMessage("", "y"))
	if err != nil || got.ID != "c.1" {
		t.Errorf("the first message kept is %q, %v", got.ID, err)
	}
}

func TestGeneratedIDsAreStableAcrossAttempts(t *testing.T) {
	t.Parallel()
	attempt := func(c convo.Context, said string) (*convo.Manager, []convo.Message) {
		m := convo.NewManager(c, true)
		m.SetIDPrefix("r1/reply")
		ms, err := m.AddAll([]convo.Message{userMessage("", said), {Role: convo.Assistant, Text: "hi"}})
		if err != nil {
			t.Fatal(err)
		}
		return m, ms
	}
	_, first := attempt(convo.Context{ID: "c"}, "hello")
	// What the person said was kept of the failed first attempt.
	kept, err := convo.Context{ID: "c"}.Apply(convo.Change{Append: first[:1]})
	if err != nil {
		t.Fatal(err)
	}
	m, second := attempt(kept, "hello")
	if !sameMessages(first, second) || first[0].ID != "r1/reply.1" || first[1].ID != "r1/reply.2" {
		t.Errorf("ids are %q %q, then %q %q", first[0].ID, first[1].ID, second[0].ID, second[1].ID)
	}
	if m.Adds() != 1 || m.Get().History.Len() != 2 {
		t.Errorf("the person's words are doubled: %d messages", m.Get().History.Len())
	}
	m, other := attempt(kept, "something else")
	if other[0].ID == first[0].ID || m.Get().History.Len() != 3 {
		t.Errorf("other words took the id %q, %d messages", other[0].ID, m.Get().History.Len())
	}
}

func TestEqualMessagesWithoutIDsAreDistinct(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "p"} {
		m := convo.NewManager(convo.Context{ID: "c"}, true)
		m.SetIDPrefix(prefix)
		if _, err := m.AddAll([]convo.Message{userMessage("", "yes"), userMessage("", "yes")}); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Add(userMessage("", "yes")); err != nil {
			t.Fatal(err)
		}
		if m.Adds() != 3 {
			t.Errorf("prefix %q: %d messages", prefix, m.Adds())
		}
	}
}

func TestChangesAreMinimal(t *testing.T) {
	t.Parallel()
	m := convo.NewManager(convo.Context{ID: "c", Output: "old"}, true)
	steps := []error{}
	do := func(err error) { steps = append(steps, err) }
	add := func(id string) { _, err := m.Add(userMessage(id, "x")); do(err) }
	add("a")
	do(m.SetSystem("one"))
	add("b")
	do(m.SetSystem("two"))
	do(m.Reset())
	do(m.Reset())
	add("c")
	do(m.SetOutput("new"))
	do(m.SetOutput("newer"))
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	newer := "newer"
	want := []convo.Change{
		{Append: []convo.Message{userMessage("a", "x"), userMessage("b", "x")}},
		{Reset: true},
		{Append: []convo.Message{userMessage("c", "x")}},
		{Set: &convo.Settings{System: "two"}},
		{Output: &newer},
	}
	if got := m.Changes(); !reflect.DeepEqual(got, want) {
		t.Errorf("changes are %+v, want %+v", got, want)
	}
	before := m.Changes()
	add("d")
	if len(before[2].Append) != 1 {
		t.Error("a list of changes that was handed out grew")
	}
}

func TestLiveAndReplayedMessagesAreEqual(t *testing.T) {
	t.Parallel()
	m := convo.NewManager(convo.Context{ID: "c"}, true)
	_, err := m.Add(convo.Message{
		Role: convo.Assistant, Text: "bad \xff\xfe bytes", Calls: []convo.Call{{ID: "1", Name: "f", Arguments: "\xff"}},
		Parts: []convo.Part{}, Native: json.RawMessage(`{ "a" : "<b>" }`),
		Metadata: convo.Metadata{"int": 1, "whole": 2.0, "part": 2.5, "big": int64(1) << 60, "list": []string{"x"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(m.Changes()[0])
	if err != nil {
		t.Fatal(err)
	}
	var back convo.Change
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	replayed, err := convo.Context{ID: "c"}.Apply(back)
	if err != nil {
		t.Fatal(err)
	}
	live, again := m.Get().History.At(0), replayed.History.At(0)
	if !reflect.DeepEqual(live, again) {
		t.Errorf("live  %#v\nagain %#v", live, again)
	}
	if live.Metadata["big"] != int64(1)<<60 {
		t.Errorf("a large integer became %v", live.Metadata["big"])
	}
}

func TestMetadataMustBeJSON(t *testing.T) {
	t.Parallel()
	m := convo.NewManager(convo.Context{ID: "c"}, true)
	if _, err := m.Add(convo.Message{Role: convo.User, Metadata: convo.Metadata{"f": func() {}}}); err == nil {
		t.Error("a function was taken")
	}
	if _, err := m.Add(convo.Message{Role: convo.Assistant, Native: json.RawMessage(`{"open"`)}); err == nil {
		t.Error("broken native blocks were taken")
	}
}

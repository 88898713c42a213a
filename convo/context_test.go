package convo_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/convo"
)

// naiveContext is a context without sharing: a list that is copied at every step.
type naiveContext struct {
	list     []convo.Message
	epoch    int
	settings convo.Settings
	output   string
	session  string
}

func (n naiveContext) find(id string) (convo.Message, bool) {
	for i := len(n.list) - 1; i >= n.epoch; i-- {
		if n.list[i].ID == id {
			return n.list[i], true
		}
	}
	return convo.Message{}, false
}

func (n naiveContext) add(m convo.Message) naiveContext {
	if old, ok := n.find(m.ID); ok && old.Equal(m) {
		return n
	}
	n.list = append(slices.Clone(n.list), m)
	return n
}

func (n naiveContext) messages(from int) []convo.Message {
	out := []convo.Message{}
	for _, m := range n.list[from:] {
		i := slices.IndexFunc(out, func(o convo.Message) bool { return o.ID == m.ID })
		if i >= 0 {
			out[i] = m
			continue
		}
		out = append(out, m)
	}
	return out
}

func checkContext(t *rapid.T, what string, c convo.Context, n naiveContext) {
	if got := allMessages(c.History); !sameMessages(got, n.list) {
		t.Fatalf("%s: history is %v, want %v", what, got, n.list)
	}
	ms, err := c.Messages()
	if err != nil {
		t.Fatal(err)
	}
	if want := n.messages(n.epoch); !sameMessages(ms, want) {
		t.Fatalf("%s: messages are %v, want %v", what, ms, want)
	}
	if c.Epoch != n.epoch || c.Settings != n.settings || c.Output != n.output || c.Session != n.session {
		t.Fatalf("%s: is %+v, want %+v", what, c, n)
	}
	from := rapid.IntRange(0, len(n.list)).Draw(t, "from")
	own, err := c.AddedSince(from)
	if err != nil {
		t.Fatal(err)
	}
	if want := n.messages(from); !sameMessages(own, want) {
		t.Fatalf("%s: own from %d is %v, want %v", what, from, own, want)
	}
}

// transact draws operations on a manager and does the same to the naive model.
func transact(t *rapid.T, m *convo.Manager, n naiveContext) naiveContext {
	may := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range rapid.IntRange(0, 8).Draw(t, "operations") {
		id := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id")
		text := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "text")
		switch rapid.IntRange(0, 6).Draw(t, "operation") {
		case 0, 1:
			_, err := m.Add(userMessage(id, text))
			old, known := n.find(id)
			if known && old.Text != text {
				if !errors.Is(err, convo.ErrDuplicateID) {
					t.Fatalf("adding another message under %q: %v", id, err)
				}
				continue
			}
			may(err)
			n = n.add(userMessage(id, text))
		case 2, 3:
			_, err := m.Upsert(userMessage(id, text))
			may(err)
			n = n.add(userMessage(id, text))
		case 4:
			may(m.Reset())
			if n.epoch != len(n.list) {
				n.epoch, n.session = len(n.list), ""
			}
		case 5:
			may(m.SetSystem(text))
			n.settings.System = text
			may(m.SetModel("p", id))
			n.settings.Provider, n.settings.Model = "p", id
		case 6:
			may(m.SetOutput(text))
			n.output = text
			may(m.SetSession(id))
			n.session = id
		}
	}
	return n
}

// TestTransactionsAndForksMatchANaiveModel also holds the changes of every
// transaction to their promise: applied one by one, also after a round trip
// through JSON, they give what the transaction saw.
func TestTransactionsAndForksMatchANaiveModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first, err := convo.New("main", convo.Change{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		cs, ns := []convo.Context{first}, []naiveContext{{list: []convo.Message{}}}
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			i := rapid.IntRange(0, len(cs)-1).Draw(t, "context")
			if rapid.Bool().Draw(t, "fork") {
				f := cs[i].Fork("fork" + strconv.Itoa(step))
				if f.Parent != cs[i].ID || f.At != cs[i].History.Len() {
					t.Fatalf("the fork says parent %q at %d", f.Parent, f.At)
				}
				n := ns[i]
				n.output, n.session = "", ""
				cs, ns = append(cs, f), append(ns, n)
				continue
			}
			m := convo.NewManager(cs[i], true)
			n := transact(t, m, ns[i])
			checkContext(t, "the transaction", m.Get(), n)
			if m.Adds() != len(n.list)-len(ns[i].list) {
				t.Fatalf("Adds is %d, want %d", m.Adds(), len(n.list)-len(ns[i].list))
			}
			if rapid.Bool().Draw(t, "abandon") {
				continue
			}
			cs[i], ns[i] = applyAll(t, cs[i], m.Changes()), n
		}
		for i := range cs {
			checkContext(t, cs[i].ID, cs[i], ns[i])
		}
	})
}

func applyAll(t *rapid.T, c convo.Context, changes []convo.Change) convo.Context {
	for _, ch := range changes {
		b, err := json.Marshal(ch)
		if err != nil {
			t.Fatal(err)
		}
		var back convo.Change
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if c, err = c.Apply(back); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestEmptyContextDefaults(t *testing.T) {
	t.Parallel()
	c, err := convo.New("c", convo.Change{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]convo.Context{"created": c, "zero": {ID: "c"}} {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"id":"c","kind":"main","settings":{},"messages":[]}`; string(b) != want {
			t.Errorf("%s: JSON is %s, want %s", name, b, want)
		}
		ms, err := c.Messages()
		if err != nil || ms == nil || len(ms) != 0 {
			t.Errorf("%s: messages are %#v, %v", name, ms, err)
		}
	}
}

func TestChangeMustSetExactlyOneGroup(t *testing.T) {
	t.Parallel()
	c := convo.Context{ID: "c"}
	out := "x"
	for name, ch := range map[string]convo.Change{
		"nothing":         {},
		"two groups":      {Reset: true, Output: &out},
		"creation again":  {Create: true},
		"kind without it": {Kind: convo.Main},
	} {
		if _, err := c.Apply(ch); !errors.Is(err, convo.ErrBadChange) {
			t.Errorf("%s: applying it gives %v", name, err)
		}
	}
	for name, ch := range map[string]convo.Change{
		"no creation": {Reset: true}, "bad kind": {Create: true, Kind: "odd"}, "and more": {Create: true, Reset: true},
	} {
		if _, err := convo.New("c", ch); !errors.Is(err, convo.ErrBadChange) {
			t.Errorf("%s: creating by it gives %v", name, err)
		}
	}
}

func TestFailedChangeLeavesTheContextUnchanged(t *testing.T) {
	t.Parallel()
	c := convo.Context{ID: "c"}
	got, err := c.Apply(convo.Change{Append: []convo.Message{userMessage("a", "x"), {Role: "robot"}}})
	if !errors.Is(err, convo.ErrUnknownRole) || got.History.Len() != 0 {
		t.Errorf("got %d messages and %v", got.History.Len(), err)
	}
}

func TestMessageIDsOfEarlierEpochsAreForgotten(t *testing.T) {
	t.Parallel()
	m := convo.NewManager(convo.Context{ID: "c"}, true)
	for range 2 {
		if _, err := m.Add(userMessage("said", "hello")); err != nil {
			t.Fatal(err)
		}
		ms, err := m.Get().Messages()
		if err != nil || len(ms) != 1 {
			t.Fatalf("messages are %v, %v: the person's words must be in the epoch", ms, err)
		}
		if err := m.Reset(); err != nil {
			t.Fatal(err)
		}
	}
	if m.Get().History.Len() != 2 {
		t.Errorf("the history has %d messages", m.Get().History.Len())
	}
}

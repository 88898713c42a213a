// Package trajectorytest is the conformance suite of trajectory storages. It must not know how a storage works.
package trajectorytest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/trajectory"
)

// Run tests a storage. The function opens an empty one.
func Run(t *testing.T, open func(t *testing.T) trajectory.Storage) {
	t.Helper()
	tests := []struct {
		name string
		run  func(t *testing.T, s trajectory.Storage)
	}{
		{"a round is loaded as it was saved", loadsWhatWasSaved},
		{"a round without nodes is kept", keepsAnEmptyRound},
		{"saving again replaces the round", replaces},
		{"what was not saved is not found", notFound},
		{"what no recorder could have made is refused", refuses},
		{"rounds are listed in order by each part of their key", lists},
		{"keys that look alike are kept apart", keepsKeysApart},
		{"what is loaded or was saved can be changed without harm", returnsCopies},
		{"saves and loads at the same time see whole rounds", concurrent},
		{"a context that is over stops everything", honoursCancellation},
		{"the rounds next to one are those of its agent", near},
		{"what is deleted is gone and the rest is as it was", deletes},
		{"deleting what is not there is no error", deletesNothing},
		{"a round that was deleted can be saved again", savesAgain},
		{"saves and deletions in any order leave what a list of them says", leavesWhatAListSays},
		{"agents are listed with the names of their latest rounds", listsAgents},
		{"a recorder goes on from the round before, however many there are", numbersContinue},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// Sample returns a round with an example of everything: its first Action has the given number, and it has n more
// States.
func Sample(t *testing.T, k trajectory.Key, n int) trajectory.Record {
	t.Helper()
	at := time.Date(2026, 11, 21, 4, 5, 6, 789, time.FixedZone("", 3600))
	r, release, err := trajectory.NewRecorderPool(nil, nil).Open(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	defer release(t.Context()) //nolint:errcheck // nothing is stored
	if k.Sub > 0 {
		r.SetAgent("refine/write")
	}
	by := trajectory.Attribution{Run: "r1", Path: "refine#2/draft", Agent: "writer", User: k.User}
	_, err = r.AddMessages(trajectory.MessageOptions{By: by, At: at},
		convo.Message{ID: "1", Role: convo.System, Text: "You are brief."},
		convo.Message{ID: "2", Role: convo.User, Text: "<b>Wie \u2028 geht's?</b> \U0001F600", Metadata: convo.Metadata{"n": int64(1), "f": 1.5}},
		convo.Message{ID: "3", Role: convo.Assistant, Reasoning: "hm", Calls: []convo.Call{
			{ID: "a", Name: "look", Arguments: `{"x": 1}`}, {ID: "b", Name: "look", Arguments: `{}`},
		}},
		convo.Message{ID: "4", Role: convo.Tool, CallID: "b", Name: "look", Text: "", Failed: true},
		convo.Message{ID: "5", Role: convo.Tool, CallID: "a", Name: "look", Text: `"</script>"`},
	)
	if err != nil {
		t.Fatal(err)
	}
	table, err := r.Add(trajectory.NewNode{
		Type: trajectory.Table, Name: "orders", Relation: trajectory.ToolOutput, By: by, At: at,
		Attributes: map[string]any{
			"rows": 12, "mean": 2.0, "big": int64(1) << 60, "none": nil, "ok": true,
			"nested": map[string]any{"list": []any{1, "two", 3.5, nil}}, "$odd": map[string]any{"$context": "main"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	name, description := "Orders", "All orders."
	err = r.Edit(table, trajectory.Edit{
		Name: &name, Description: &description, Set: map[string]any{"rows": 13, "new": 1}, Delete: []string{"ok"},
	}, by, at)
	if err != nil {
		t.Fatal(err)
	}
	for range n + 1 {
		if _, err := r.AddMessages(trajectory.MessageOptions{By: by, At: at}, convo.Message{Role: convo.Assistant, Text: "Well."}); err != nil {
			t.Fatal(err)
		}
	}
	return r.Record()
}

func key(user, session string, round, sub int) trajectory.Key {
	return trajectory.Key{User: user, Session: session, Round: round, Sub: sub}
}

func save(t *testing.T, s trajectory.Storage, r trajectory.Record) {
	t.Helper()
	if err := s.Save(t.Context(), r); err != nil {
		t.Fatalf("save %s: %v", r.Key, err)
	}
}

func expect(t *testing.T, s trajectory.Storage, want trajectory.Record) {
	t.Helper()
	got, err := s.Load(t.Context(), want.Key)
	if err != nil {
		t.Fatalf("load %s: %v", want.Key, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s was loaded as\n%+v\nand not as it was saved\n%+v", want.Key, got, want)
	}
}

func loadsWhatWasSaved(t *testing.T, s trajectory.Storage) {
	r := Sample(t, key("ann", "s1", 3, 2), 2)
	save(t, s, r)
	expect(t, s, r)
}

func keepsAnEmptyRound(t *testing.T, s trajectory.Storage) {
	r := trajectory.Record{Key: key("", "s", 1, 0)}.Clone()
	save(t, s, r)
	expect(t, s, r)
}

func replaces(t *testing.T, s trajectory.Storage) {
	k := key("ann", "s1", 1, 0)
	save(t, s, Sample(t, k, 5))
	r := Sample(t, k, 1)
	save(t, s, r)
	expect(t, s, r)
	keys, err := s.List(t.Context(), trajectory.Filter{})
	if err != nil || len(keys) != 1 {
		t.Errorf("after two saves of one round there are %v, %v", keys, err)
	}
}

func notFound(t *testing.T, s trajectory.Storage) {
	save(t, s, Sample(t, key("ann", "s1", 1, 0), 0))
	for _, k := range []trajectory.Key{
		key("bob", "s1", 1, 0), key("ann", "s2", 1, 0), key("ann", "s1", 2, 0), key("ann", "s1", 1, 1),
	} {
		if _, err := s.Load(t.Context(), k); !errors.Is(err, trajectory.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", k, err)
		}
	}
	if _, err := trajectory.LoadGraph(t.Context(), s, "bob", "s1", 0); !errors.Is(err, trajectory.ErrNotFound) {
		t.Errorf("a session that is not there: got %v, want ErrNotFound", err)
	}
}

func refuses(t *testing.T, s trajectory.Storage) {
	bad := Sample(t, key("ann", "s1", 1, 0), 0)
	bad.Edges = append(bad.Edges, trajectory.Edge{Source: bad.Edges[0].Target, Target: bad.Edges[0].Target, Relationship: "refers_to"})
	if err := s.Save(t.Context(), bad); !errors.Is(err, trajectory.ErrRecord) {
		t.Errorf("a node that leads to itself: got %v, want ErrRecord", err)
	}
	for _, k := range []trajectory.Key{key("ann", "", 1, 0), key("ann", "s1", 0, 0), key("ann", "s1", 1, -1)} {
		if err := s.Save(t.Context(), trajectory.Record{Key: k}); !errors.Is(err, trajectory.ErrKey) {
			t.Errorf("save %+v: got %v, want ErrKey", k, err)
		}
		if _, err := s.Load(t.Context(), k); !errors.Is(err, trajectory.ErrKey) {
			t.Errorf("load %+v: got %v, want ErrKey", k, err)
		}
		if _, _, err := s.Adjacent(t.Context(), k); !errors.Is(err, trajectory.ErrKey) {
			t.Errorf("near %+v: got %v, want ErrKey", k, err)
		}
	}
}

func lists(t *testing.T, s trajectory.Storage) {
	all := []trajectory.Key{
		key("ann", "s1", 1, 0), key("ann", "s1", 2, 0), key("ann", "s1", 10, 0), key("ann", "s1", 2, 1),
		key("ann", "s2", 1, 0), key("bob", "s1", 1, 0),
	}
	for _, i := range []int{4, 2, 0, 5, 3, 1} {
		save(t, s, Sample(t, all[i], 0))
	}
	user, session, round, sub := "ann", "s1", 2, 1
	for _, test := range []struct {
		f    trajectory.Filter
		want []trajectory.Key
	}{
		{trajectory.Filter{}, all},
		{trajectory.Filter{User: &user}, all[:5]},
		{trajectory.Filter{Session: &session}, []trajectory.Key{all[0], all[1], all[2], all[3], all[5]}},
		{trajectory.Filter{Round: &round}, []trajectory.Key{all[1], all[3]}},
		{trajectory.Filter{Sub: &sub}, all[3:4]},
		{trajectory.AgentFilter(user, session, 0), all[:3]},
		{trajectory.AgentFilter("eve", session, 0), nil},
	} {
		got, err := s.List(t.Context(), test.f)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("got %v, %v, want %v", got, err, test.want)
		}
	}
}

func keepsKeysApart(t *testing.T, s trajectory.Storage) {
	long := string(slices.Repeat([]byte("x"), 300))
	names := []string{"a/b", "a", "b", "..", ".", "a%2Fb", "_", "a b", "ä", "a\x00b", "CON", "a.", long, long + "y", "a\\b", "~", "-"}
	var records []trajectory.Record
	for _, name := range names {
		records = append(records, Sample(t, key(name, "s", 1, 0), 0), Sample(t, key("u", name, 1, 0), 1))
	}
	records = append(records, Sample(t, key("", "s", 1, 0), 2))
	for _, r := range records {
		save(t, s, r)
	}
	for _, r := range records {
		expect(t, s, r)
	}
	keys, err := s.List(t.Context(), trajectory.Filter{})
	if err != nil || len(keys) != len(records) {
		t.Errorf("%d rounds are listed, %v, want %d", len(keys), err, len(records))
	}
}

func returnsCopies(t *testing.T, s trajectory.Storage) {
	k := key("ann", "s1", 1, 0)
	want, given := Sample(t, k, 0), Sample(t, k, 0)
	save(t, s, given)
	modify(given)
	got, err := s.Load(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	modify(got)
	expect(t, s, want)
}

func modify(r trajectory.Record) {
	for i := range r.Nodes {
		r.Nodes[i].Attributes["spoilt"] = true
		r.Nodes[i].Name = "spoilt"
	}
	r.Edges[0].Relationship = "spoilt"
	r.Current[0] = "spoilt"
	r.First[trajectory.Query] = 99
}

func concurrent(t *testing.T, s trajectory.Storage) {
	k := key("ann", "s1", 1, 0)
	versions := make([]trajectory.Record, 4)
	for i := range versions {
		versions[i] = Sample(t, k, i)
	}
	save(t, s, versions[0])
	var wg sync.WaitGroup
	for _, r := range versions {
		wg.Go(func() {
			for range 5 {
				if err := s.Save(t.Context(), r); err != nil {
					t.Errorf("save: %v", err)
				}
			}
		})
		wg.Go(func() {
			for range 5 {
				if _, err := s.Load(t.Context(), k); err != nil {
					t.Errorf("load: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got, err := s.Load(t.Context(), k)
	if err != nil || !slices.ContainsFunc(versions, func(r trajectory.Record) bool { return reflect.DeepEqual(r, got) }) {
		t.Errorf("after all saves a round is there that nobody saved: %+v, %v", got, err)
	}
}

func honoursCancellation(t *testing.T, s trajectory.Storage) {
	k := key("ann", "s1", 1, 0)
	save(t, s, Sample(t, k, 0))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, load := s.Load(ctx, k)
	_, list := s.List(ctx, trajectory.Filter{})
	_, _, near := s.Adjacent(ctx, k)
	_, gone := s.Delete(ctx, trajectory.Filter{})
	for _, err := range []error{s.Save(ctx, Sample(t, k, 1)), load, list, near, gone} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want canceled", err)
		}
	}
	expect(t, s, Sample(t, k, 0))
}

package trajectorytest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/weir-run/weir/trajectory"
)

func expectNear(t *testing.T, s trajectory.Storage, k trajectory.Key, before, after int) {
	t.Helper()
	earlier, later, err := s.Adjacent(t.Context(), k)
	if err != nil || earlier != before || later != after {
		t.Errorf("next to %s are %d and %d, %v, want %d and %d", k, earlier, later, err, before, after)
	}
}

func near(t *testing.T, s trajectory.Storage) {
	expectNear(t, s, key("ann", "s1", 1, 0), 0, 0)
	for _, k := range []trajectory.Key{
		key("ann", "s1", 2, 0), key("ann", "s1", 9, 0), key("ann", "s1", 10, 0), key("ann", "s1", 100, 0),
		key("ann", "s1", 5, 1), key("ann", "s2", 6, 0), key("bob", "s1", 7, 0), key("", "s1", 8, 0),
	} {
		save(t, s, trajectory.Record{Key: k})
	}
	for _, test := range []struct {
		k             trajectory.Key
		before, after int
	}{
		{key("ann", "s1", 1, 0), 0, 2},
		{key("ann", "s1", 2, 0), 0, 9},
		{key("ann", "s1", 3, 0), 2, 9},
		{key("ann", "s1", 9, 0), 2, 10},
		{key("ann", "s1", 10, 0), 9, 100},
		{key("ann", "s1", 99, 0), 10, 100},
		{key("ann", "s1", 100, 0), 10, 0},
		{key("ann", "s1", 1000, 0), 100, 0},
		{key("ann", "s1", 6, 1), 5, 0},
		{key("ann", "s1", 6, 2), 0, 0},
		{key("bob", "s1", 1, 0), 0, 7},
		{key("", "s1", 9, 0), 8, 0},
	} {
		expectNear(t, s, test.k, test.before, test.after)
	}
}

func remove(t *testing.T, s trajectory.Storage, f trajectory.Filter, want int) {
	t.Helper()
	if n, err := s.Delete(t.Context(), f); err != nil || n != want {
		t.Errorf("deleted %d rounds, %v, want %d", n, err, want)
	}
}

func deletes(t *testing.T, s trajectory.Storage) {
	var all []trajectory.Record
	for _, k := range []trajectory.Key{
		key("", "s1", 1, 0), key("ann", "s1", 1, 0), key("ann", "s1", 2, 0), key("ann", "s1", 3, 0), key("ann", "s1", 2, 1),
		key("ann", "s1", 3, 1), key("ann", "s2", 1, 0), key("ann", "s2", 2, 0), key("bob", "s1", 1, 0), key("bob", "s1", 2, 0),
	} {
		all = append(all, Sample(t, k, k.Round))
		save(t, s, all[len(all)-1])
	}
	for _, f := range []trajectory.Filter{
		{User: new("ann"), Session: new("s1"), Round: new(2), Sub: new(1)},
		{User: new("ann"), Session: new("s1"), Round: new(2)},
		{User: new("ann"), Session: new("s1"), Sub: new(1)},
		{User: new("ann"), Session: new("s1")},
		{User: new("")},
		{Session: new("s2"), Round: new(2)},
		{Round: new(2)},
		{User: new("ann")},
		{Session: new("s1")},
	} {
		before := len(all)
		var gone []trajectory.Record
		all = slices.DeleteFunc(all, func(r trajectory.Record) bool {
			if f.Match(r.Key) {
				gone = append(gone, r)
			}
			return f.Match(r.Key)
		})
		remove(t, s, f, before-len(all))
		for _, r := range gone {
			if _, err := s.Load(t.Context(), r.Key); !errors.Is(err, trajectory.ErrNotFound) {
				t.Errorf("%s was deleted: got %v, want ErrNotFound", r.Key, err)
			}
		}
		for _, r := range all {
			expect(t, s, r)
		}
		expectKeys(t, s, all)
	}
	if len(all) != 0 {
		t.Errorf("the test deleted all but %d rounds", len(all))
	}
}

func expectKeys(t *testing.T, s trajectory.Storage, want []trajectory.Record) {
	t.Helper()
	var keys []trajectory.Key
	for _, r := range want {
		keys = append(keys, r.Key)
	}
	got, err := s.List(t.Context(), trajectory.Filter{})
	if err != nil || !slices.Equal(got, trajectory.SortKeys(keys)) {
		t.Errorf("listed are %v, %v, want %v", got, err, keys)
	}
}

func deletesNothing(t *testing.T, s trajectory.Storage) {
	remove(t, s, trajectory.Filter{}, 0)
	r := Sample(t, key("ann", "s1", 1, 0), 0)
	save(t, s, r)
	for _, f := range []trajectory.Filter{
		{User: new("eve")},
		{User: new("ann"), Session: new("s2")},
		{User: new("ann"), Session: new("s1"), Round: new(2)},
		{Sub: new(1)},
		{Round: new(-1)},
	} {
		remove(t, s, f, 0)
	}
	expect(t, s, r)
	remove(t, s, trajectory.Filter{}, 1)
	remove(t, s, trajectory.Filter{}, 0)
}

func savesAgain(t *testing.T, s trajectory.Storage) {
	k := key("ann", "s1", 2, 0)
	save(t, s, Sample(t, k, 5))
	remove(t, s, trajectory.Filter{User: new("ann")}, 1)
	expectNear(t, s, key("ann", "s1", 3, 0), 0, 0)
	r := Sample(t, k, 1)
	save(t, s, r)
	expect(t, s, r)
	expectNear(t, s, key("ann", "s1", 3, 0), 2, 0)
}

// expected is a model of the stored rounds.
type expected map[trajectory.Key]trajectory.Record

// remove removes the rounds that match a filter and returns their number.
func (n expected) remove(f trajectory.Filter) int {
	was := len(n)
	maps.DeleteFunc(n, func(k trajectory.Key, _ trajectory.Record) bool { return f.Match(k) })
	return was - len(n)
}

// near returns the expected result of Adjacent.
func (n expected) near(k trajectory.Key) (before, after int) {
	for other := range n { // order: the nearest round wins
		switch at := other.Round; {
		case !trajectory.AgentFilter(k.User, k.Session, k.Sub).Match(other):
		case at < k.Round:
			before = max(before, at)
		case at > k.Round && (after == 0 || at < after):
			after = at
		}
	}
	return before, after
}

func leavesWhatAListSays(t *testing.T, s trajectory.Storage) {
	random := rand.New(rand.NewPCG(7, 7))
	list := expected{}
	for range 150 {
		k := key([]string{"", "ann", "bob"}[random.IntN(3)], fmt.Sprint("s", random.IntN(2)), 1+random.IntN(4), random.IntN(2))
		if random.IntN(4) > 0 {
			list[k] = trajectory.Record{Key: k, Agent: fmt.Sprint("a", random.IntN(9))}.Clone()
			save(t, s, list[k])
			continue
		}
		f := trajectory.Filter{User: &k.User, Session: &k.Session, Round: &k.Round, Sub: &k.Sub}
		for _, leave := range []func(){func() { f.User = nil }, func() { f.Session = nil }, func() { f.Round = nil }, func() { f.Sub = nil }} {
			if random.IntN(3) == 0 {
				leave()
			}
		}
		remove(t, s, f, list.remove(f))
	}
	for _, r := range list { // order: each element is checked
		expect(t, s, r)
		before, after := list.near(r.Key)
		expectNear(t, s, r.Key, before, after)
	}
	if expectKeys(t, s, slices.Collect(maps.Values(list))); len(list) < 5 {
		t.Errorf("the test left %d rounds alone", len(list))
	}
}

func listsAgents(t *testing.T, s trajectory.Storage) {
	if got, err := trajectory.Agents(t.Context(), s, "ann", "s1"); err != nil || len(got) != 0 {
		t.Errorf("of nothing there are %v, %v", got, err)
	}
	for _, r := range []trajectory.Record{
		{Key: key("ann", "s1", 1, 0)},
		{Key: key("ann", "s1", 2, 0)},
		{Key: key("ann", "s1", 10, 0)},
		{Key: key("ann", "s1", 2, 2), Agent: "find"},
		{Key: key("ann", "s1", 10, 2), Agent: "research"},
		{Key: key("ann", "s1", 1, 11), Agent: "refine/write"},
		{Key: key("ann", "s2", 1, 3), Agent: "another session's"},
		{Key: key("bob", "s1", 1, 4), Agent: "another's"},
	} {
		save(t, s, r)
		expect(t, s, r.Clone())
	}
	want := []trajectory.Agent{
		{Sub: 0, Rounds: []int{1, 2, 10}},
		{Sub: 2, Name: "research", Rounds: []int{2, 10}},
		{Sub: 11, Name: "refine/write", Rounds: []int{1}},
	}
	if got, err := trajectory.Agents(t.Context(), s, "ann", "s1"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the agents are %+v, %v, want %+v", got, err, want)
	}
}

// countingStorage counts the reads of a storage.
type countingStorage struct {
	trajectory.Storage
	looks, loads int
}

func numbersContinue(t *testing.T, s trajectory.Storage) {
	const rounds = 30
	for n := 1; n <= rounds; n++ {
		r := trajectory.Record{Key: key("ann", "s1", n, 0)}
		if n != rounds { // the latest round has no nodes
			r = numbered(n)
		}
		save(t, s, r)
	}
	c := &countingStorage{Storage: s}
	pool := trajectory.NewRecorderPool(c, nil)
	r, release, err := pool.Open(t.Context(), key("ann", "s1", rounds+1, 0))
	if err != nil {
		t.Fatal(err)
	}
	id, err := r.Add(trajectory.NewNode{Type: trajectory.Query})
	if err != nil || id != trajectory.MakeID(trajectory.Query, rounds-1) {
		t.Errorf("the first node is %s, %v", id, err)
	}
	g := r.Graph()
	if n := len(g.Rounds); n != 2 || g.Rounds[0].Round != rounds-1 || len(g.Edges) != 1 {
		t.Errorf("it is joined to %+v by %v", g.Rounds, g.Edges)
	}
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
	if c.looks > 2 || c.loads > 3 {
		t.Errorf("to open it took %d looks and %d loads", c.looks, c.loads)
	}
	r, release, err = pool.Open(t.Context(), key("ann", "s1", 7, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer release(t.Context()) //nolint:errcheck // nothing is changed
	if _, err := r.Add(trajectory.NewNode{Type: trajectory.State}); !errors.Is(err, trajectory.ErrLaterRound) {
		t.Errorf("an older round takes nodes: %v", err)
	}
}

// numbered returns a round with only a query, whose number is one less.
func numbered(round int) trajectory.Record {
	id := trajectory.MakeID(trajectory.Query, round-1)
	r := trajectory.Record{
		Key: key("ann", "s1", round, 0), Initial: id, Current: []trajectory.ID{id},
		First: map[trajectory.Type]int{trajectory.Query: round - 1},
	}
	r.Nodes = []trajectory.Node{{ID: id, Type: trajectory.Query, Round: round, Version: 1}}
	return r.Clone()
}

func (c *countingStorage) Adjacent(ctx context.Context, k trajectory.Key) (before, after int, err error) {
	c.looks++
	return c.Storage.Adjacent(ctx, k)
}

func (c *countingStorage) Load(ctx context.Context, k trajectory.Key) (trajectory.Record, error) {
	c.loads++
	return c.Storage.Load(ctx, k)
}

func (c *countingStorage) List(context.Context, trajectory.Filter) ([]trajectory.Key, error) {
	return nil, errors.New("it lists all rounds")
}

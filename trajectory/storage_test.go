package trajectory_test

import (
	"errors"
	"testing"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

func TestMirroredListsAndDeletesFromBoth(t *testing.T) {
	t.Parallel()
	one, two := memory(), memory()
	for _, s := range []struct {
		in     trajectory.Storage
		number int
	}{{one, 2}, {one, 9}, {two, 3}, {two, 8}} {
		if err := s.in.Save(t.Context(), trajectory.Record{Key: round(s.number)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, both := range []trajectory.Mirrored{{First: one, Second: two}, {First: two, Second: one}} {
		before, after, err := both.Adjacent(t.Context(), round(5))
		if err != nil || before != 3 || after != 8 {
			t.Errorf("next to round 5 are %d and %d, %v, want 3 and 8", before, after, err)
		}
	}
	both := trajectory.Mirrored{First: one, Second: two}
	if n, err := both.Delete(t.Context(), trajectory.Filter{}); err != nil || n != 4 {
		t.Errorf("deleted %d rounds, %v, want those of both", n, err)
	}
}

func TestMirroredDeleteReportsPartialFailure(t *testing.T) {
	t.Parallel()
	one, two := memory(), memory()
	gone := errors.New("the disk is gone")
	failing := &broken{Storage: one}
	for _, both := range []trajectory.Mirrored{{First: failing, Second: two}, {First: two, Second: failing}} {
		failing.err = nil
		a, b := trajectorytest.Sample(t, round(1), 0), trajectorytest.Sample(t, round(2), 0)
		b.First = nil
		b.Nodes, b.Edges, b.Current, b.Initial = nil, nil, nil, ""
		if err := errors.Join(both.Save(t.Context(), a), both.First.Save(t.Context(), b)); err != nil {
			t.Fatal(err)
		}
		failing.err = gone
		if _, err := both.Delete(t.Context(), trajectory.Filter{}); !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
		if keys, err := two.List(t.Context(), trajectory.Filter{}); err != nil || len(keys) != 0 {
			t.Errorf("the other still has %v, %v", keys, err)
		}
		failing.err = nil
		if n, err := both.Delete(t.Context(), trajectory.Filter{}); err != nil || n == 0 {
			t.Errorf("again: deleted %d rounds, %v", n, err)
		}
	}
}

func TestAnAgentKeepsItsNameAndIsSavedForItAlone(t *testing.T) {
	t.Parallel()
	s := memory()
	b := trajectory.NewRecorderPool(s, clock)
	k := trajectory.Key{User: "ann", Session: "s", Round: 1, Sub: 2}
	r, release, err := b.Open(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	if r.SetAgent(""); r.Unsaved() {
		t.Error("the name it has is a change")
	}
	r.SetAgent("research")
	if err := release(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, release, err = b.Open(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Record().Agent; got != "research" || r.Unsaved() {
		t.Errorf("it is %q when it is opened again", got)
	}
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
}

package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// A conversation is left and taken again for each answer.
func TestCommitsAfterANewFenceAreStoredAsDeltas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	all := []*Store{openAt(t, path, Options{}), openAt(t, path, Options{})}
	c := newChain(t, all[0], "r")
	var wrote []engine.Commit
	for i := range 40 {
		s := all[i/3%2] // also the other process, whose commits the first did not see
		a := c.next()
		a.Commit.Events[0].(*engine.NodeCompleted).Outputs[0].Value = fmt.Sprint("a text that is not short and is stored once ", i%2)
		if err := s.Append(t.Context(), []store.Append{a})[0]; err != nil {
			t.Fatal(err)
		}
		wrote = append(wrote, a.Commit)
		if err := s.Release(t.Context(), store.Lease{Run: "r", Owner: "me", Fence: c.fence}); err != nil {
			t.Fatal(err)
		}
		l, err := all[(i+1)/3%2].Acquire(t.Context(), "r", "me", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		c.fence = l.Fence
	}
	var whole, values int
	if err := all[0].reader.QueryRowContext(t.Context(),
		"SELECT (SELECT count(*) FROM run_commit WHERE base IS NULL), (SELECT count(*) FROM value)").Scan(&whole, &values); err != nil {
		t.Fatal(err)
	}
	if whole > 2 || values > 4 {
		t.Errorf("%d of 40 commits are kept whole and %d values; each of two processes should keep one and two", whole, values)
	}
	i := 0
	for got, err := range all[1].Commits(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%v", got.Events[0]) != fmt.Sprintf("%v", wrote[i].Events[0]) {
			t.Errorf("commit %d is %v, and was %v", i+1, got.Events[0], wrote[i].Events[0])
		}
		i++
	}
	if i != 40 {
		t.Errorf("%d commits came back", i)
	}
}

package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// A database of before message_page was there has pages without a row.
func TestFindMessageInPagesWithoutIndexRow(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closedSize(t, s) })
	c := newChain(t, s, "r")
	a := c.next()
	ch := &convo.Change{Create: true}
	for i := range 5 * pagePositions {
		ch.Append = append(ch.Append, convo.Message{ID: "m" + string(rune('A'+i/pagePositions)), Role: convo.User, Text: "said"})
	}
	a.Commit.Events[0] = &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{
		{ID: "long", Create: true, Adds: len(ch.Append), Body: ch},
	}}
	if err := s.Append(t.Context(), []store.Append{a})[0]; err != nil {
		t.Fatal(err)
	}
	check := func(pages int) {
		t.Helper()
		var n int
		if err := s.reader.QueryRowContext(t.Context(), "SELECT count(*) FROM message_page").Scan(&n); err != nil || n != pages {
			t.Fatalf("%d pages have a row, want %d (%v)", n, pages, err)
		}
		for i := range 6 {
			want := (i+1)*pagePositions - 1
			if i == 5 {
				want = -1
			}
			at, err := s.FindMessage(t.Context(), "r", "long", "m"+string(rune('A'+i)), len(ch.Append))
			if err != nil || at != want {
				t.Errorf("the last message of page %d is found at %d, want %d (%v)", i, at, want, err)
			}
		}
	}
	check(5)
	if _, err := s.exec(t.Context(), "forget", "DELETE FROM message_page WHERE id & 0xffffffff IN (0, 3)"); err != nil {
		t.Fatal(err)
	}
	check(3)
	if _, err := s.exec(t.Context(), "forget", "DELETE FROM message_page"); err != nil {
		t.Fatal(err)
	}
	check(0)
}

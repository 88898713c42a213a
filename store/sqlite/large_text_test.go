package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// TestLargeTextOfManyPortsIsStoredAndWrittenAsJSONOnce passes one text through the ports of ten
// nodes. A commit that writes the text as JSON, to hash it, has had room for all of it.
func TestLargeTextOfManyPortsIsStoredAndWrittenAsJSONOnce(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "weir.db"), Options{})
	c := newChain(t, s, "r")
	text := strings.Repeat("all of the ledgers ", 1<<16)
	passed := func(text string) store.Append {
		a := c.next()
		for _, e := range a.Commit.Events {
			if done, ok := e.(*engine.NodeCompleted); ok {
				done.Outputs = engine.Values{
					{Name: "object", Value: map[string]any{"text": text}}, {Name: "out", Value: text}, {Name: "list", Value: []any{text, int64(c.seq)}},
				}
			}
		}
		return a
	}
	for i := range 10 { // the last is an equal text in another place
		in := text
		if i == 9 {
			in = strings.Clone(text)
		}
		a := passed(in)
		if i > 0 && i < 9 {
			p := packer{w: &writeTx{s: s, ctx: t.Context()}, run: s.runs.byID["r"], seq: c.seq}
			if refused, failed := p.pack(a.Commit.Events); refused != nil || failed != nil {
				t.Fatal(refused, failed)
			}
			if cap(p.text) >= len(text) {
				t.Errorf("commit %d had room for %d bytes", i, cap(p.text))
			}
		}
		if err := s.Append(t.Context(), []store.Append{a})[0]; err != nil {
			t.Fatal(i, err)
		}
	}
	checkStoredOnce(t, s, text)
}

// checkStoredOnce checks that a text is the one stored value, and the output of all commits.
func checkStoredOnce(t *testing.T, s *Store, text string) {
	t.Helper()
	var values, bytes int
	err := s.reader.QueryRowContext(t.Context(), "SELECT count(*), sum(length(body)) FROM value").Scan(&values, &bytes)
	if err != nil || values != 1 || bytes != len(text)+2 {
		t.Errorf("%d values of %d bytes are stored (%v)", values, bytes, err)
	}
	for read, err := range s.Commits(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		done := read.Events[0].(*engine.NodeCompleted)
		if out, _ := done.Outputs.Get("out"); out != text {
			t.Errorf("commit %d has another text", read.Seq)
		}
	}
}

// TestPlaceOfATextIsThatTextAlone compares the places of a text, of its beginning, and of an
// equal text elsewhere.
func TestPlaceOfATextIsThatTextAlone(t *testing.T) {
	text := strings.Repeat("x", largeText)
	again := text
	if placeOf(text) != placeOf(again) {
		t.Error("a text that was passed on has another place")
	}
	if placeOf(text) == placeOf(text[:len(text)-1]) || placeOf(text) == placeOf(text[1:]) {
		t.Error("a part of a text has the place of all of it")
	}
	if placeOf(text) == placeOf(strings.Clone(text)) {
		t.Error("an equal text elsewhere has the same place")
	}
}

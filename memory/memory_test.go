package memory_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/memory"
)

func TestBestMatchRanksFirst(t *testing.T) {
	at := func(n int) time.Time { return time.UnixMilli(int64(n)) }
	terms := memory.SearchTerms("boat the xy")
	stats := memory.Stats{Items: 100, Words: 500, With: []int{5, 90, 1}}
	list := []memory.Candidate{
		{Seq: 1, Terms: []string{"the", "the", "the"}, At: at(1)},
		{Seq: 2, Terms: []string{"a", "boat", "of", "some", "length", "and", "more", "words"}, At: at(1)},
		{Seq: 3, Terms: []string{"boat"}, At: at(1)},
		{Seq: 4, Terms: []string{"boats"}, At: at(1)},
		{Seq: 5, Terms: []string{"boat"}, At: at(2)},
		{Seq: 6, Terms: []string{"boat"}, At: at(2)},
		{Seq: 7, Terms: []string{"xy"}, At: at(1)},
		{Seq: 8, Terms: []string{"xyz"}, At: at(9)}, // two letters are no prefix
	}
	memory.Rank(terms, stats, list)
	var got []int64
	for _, c := range list {
		got = append(got, c.Seq)
	}
	for i, want := range []int64{7, 6, 5, 3, 4, 2, 1, 8} {
		if got[i] != want {
			t.Fatalf("ranked %v", got)
		}
	}
	memory.Rank(memory.SearchTerms("a"), memory.Stats{With: []int{3}}, []memory.Candidate{{Terms: []string{"a"}}, {}}) // no statistics
}

func TestWriteIsNormalizedOrRefused(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 123_456_789, time.UTC)
	good := memory.Write{Scope: memory.Scope{Namespace: "n", User: "u"}, Kind: memory.Fact, Key: " Größe \n ＡＢ ", Text: " x ", Now: now, Call: "c"}
	w, err := good.Normalized()
	if err != nil || w.Key != "grösse ab" || w.Text != " x " || !w.At.Equal(w.Now) || w.Now.Nanosecond() != 123_000_000 {
		t.Errorf("%+v (%v)", w, err)
	}
	again, err := good.Normalized()
	if err != nil || again.ID != w.ID || len(w.ID) != 17 {
		t.Errorf("ids of one call: %q and %q", w.ID, again.ID)
	}
	good.Call = ""
	other, err := good.Normalized()
	if last, _ := good.Normalized(); err != nil || last.ID == other.ID {
		t.Errorf("ids without a call: %q twice", last.ID)
	}
	good.Kind, good.Key, good.At = memory.Episode, "", now.AddDate(-1, 0, 0)
	if w, err := good.Normalized(); err != nil || w.At.Year() != 2025 {
		t.Errorf("%v (%v)", w.At, err)
	}
	for what, change := range map[string]func(w *memory.Write){
		"no namespace":    func(w *memory.Write) { w.Scope.Namespace = "" },
		"nobody":          func(w *memory.Write) { w.Scope.User = "" },
		"two":             func(w *memory.Write) { w.Scope.Session = "s" },
		"a long name":     func(w *memory.Write) { w.Scope.User = strings.Repeat("u", memory.MaxName+1) },
		"a name of bytes": func(w *memory.Write) { w.Scope.User = "\xff" },
		"a name of lines": func(w *memory.Write) { w.Scope.Namespace = "a\nb" },
		"another kind":    func(w *memory.Write) { w.Kind = "rumour" },
		"an episode's key": func(w *memory.Write) {
			w.Kind, w.Key = memory.Episode, "k"
		},
		"no text":     func(w *memory.Write) { w.Text = " \n" },
		"a long text": func(w *memory.Write) { w.Text = strings.Repeat("x", memory.MaxText+1) },
		"bytes":       func(w *memory.Write) { w.Text = "\xff" },
		"a long key":  func(w *memory.Write) { w.Kind, w.Key = memory.Fact, strings.Repeat("k", memory.MaxKey+1) },
		"a long tag":  func(w *memory.Write) { w.Tags = []string{strings.Repeat("t", memory.MaxTag+1)} },
		"many tags":   func(w *memory.Write) { w.Tags = strings.Split("abcdefghijklmnopqrst", "") },
		"no time":     func(w *memory.Write) { w.Now = time.Time{} },
		"far off":     func(w *memory.Write) { w.At = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		w := good
		change(&w)
		if _, err := w.Normalized(); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

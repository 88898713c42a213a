package recall_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/recall"
)

func TestBestMatchRanksFirst(t *testing.T) {
	at := func(n int) time.Time { return time.UnixMilli(int64(n)) }
	terms := recall.SearchTerms("boat the xy")
	stats := recall.Stats{Items: 100, Words: 500, With: []int{5, 90, 1}}
	list := []recall.Candidate{
		{Seq: 1, Terms: []string{"the", "the", "the"}, At: at(1)},
		{Seq: 2, Terms: []string{"a", "boat", "of", "some", "length", "and", "more", "words"}, At: at(1)},
		{Seq: 3, Terms: []string{"boat"}, At: at(1)},
		{Seq: 4, Terms: []string{"boats"}, At: at(1)},
		{Seq: 5, Terms: []string{"boat"}, At: at(2)},
		{Seq: 6, Terms: []string{"boat"}, At: at(2)},
		{Seq: 7, Terms: []string{"xy"}, At: at(1)},
		{Seq: 8, Terms: []string{"xyz"}, At: at(9)}, // two letters are no prefix
	}
	recall.Rank(terms, stats, list)
	var got []int64
	for _, c := range list {
		got = append(got, c.Seq)
	}
	for i, want := range []int64{7, 6, 5, 3, 4, 2, 1, 8} {
		if got[i] != want {
			t.Fatalf("ranked %v", got)
		}
	}
	recall.Rank(recall.SearchTerms("a"), recall.Stats{With: []int{3}}, []recall.Candidate{{Terms: []string{"a"}}, {}}) // no statistics
}

func TestWriteIsNormalizedOrRefused(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 123_456_789, time.UTC)
	good := recall.Write{Scope: recall.Scope{Namespace: "n", User: "u"}, Kind: recall.Fact, Key: " Größe \n ＡＢ ", Text: " x ", Now: now, Call: "c"}
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
	good.Kind, good.Key, good.At = recall.Episode, "", now.AddDate(-1, 0, 0)
	if w, err := good.Normalized(); err != nil || w.At.Year() != 2025 {
		t.Errorf("%v (%v)", w.At, err)
	}
	for what, change := range map[string]func(w *recall.Write){
		"no namespace":    func(w *recall.Write) { w.Scope.Namespace = "" },
		"nobody":          func(w *recall.Write) { w.Scope.User = "" },
		"two":             func(w *recall.Write) { w.Scope.Session = "s" },
		"a long name":     func(w *recall.Write) { w.Scope.User = strings.Repeat("u", recall.MaxName+1) },
		"a name of bytes": func(w *recall.Write) { w.Scope.User = "\xff" },
		"a name of lines": func(w *recall.Write) { w.Scope.Namespace = "a\nb" },
		"another kind":    func(w *recall.Write) { w.Kind = "rumour" },
		"an episode's key": func(w *recall.Write) {
			w.Kind, w.Key = recall.Episode, "k"
		},
		"no text":     func(w *recall.Write) { w.Text = " \n" },
		"a long text": func(w *recall.Write) { w.Text = strings.Repeat("x", recall.MaxText+1) },
		"bytes":       func(w *recall.Write) { w.Text = "\xff" },
		"a long key":  func(w *recall.Write) { w.Kind, w.Key = recall.Fact, strings.Repeat("k", recall.MaxKey+1) },
		"a long tag":  func(w *recall.Write) { w.Tags = []string{strings.Repeat("t", recall.MaxTag+1)} },
		"many tags":   func(w *recall.Write) { w.Tags = strings.Split("abcdefghijklmnopqrst", "") },
		"no time":     func(w *recall.Write) { w.Now = time.Time{} },
		"far off":     func(w *recall.Write) { w.At = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		w := good
		change(&w)
		if _, err := w.Normalized(); !errors.Is(err, recall.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

package livetext_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/server/livetext"
)

// answered is the event of a model call that has a text.
func answered(path string, n int, text string) weir.Item {
	return weir.Item{Event: &engine.EffectCompleted{
		Key: fmt.Sprintf("%s/model#%d", path, n), Result: map[string]any{"message": map[string]any{"role": string(convo.Assistant), "text": text}},
	}}
}

// piecesOf reads all pieces of a text that has become known step by step.
func piecesOf(t *rapid.T, steps []livetext.Spoken) (out []string) {
	sent := ""
	for i := range steps {
		whole := i == len(steps)-1
		if !strings.HasPrefix(steps[i].Text, sent) {
			t.Fatalf("%q does not begin with %q", steps[i].Text, sent)
		}
		for {
			n := livetext.Piece(&steps[i], len(sent), whole)
			if n == 0 || len(sent) == len(steps[i].Text) {
				break
			}
			out = append(out, steps[i].Text[len(sent):len(sent)+n])
			sent = steps[i].Text[:len(sent)+n]
		}
	}
	return out
}

// twoReaders are a reader that sees two nodes speak at the same time, in pieces, and one that reads the journal alone.
type twoReaders struct {
	live, journal *livetext.Ordered
	steps         []livetext.Spoken // what the first has, in order
}

func (r *twoReaders) both(it weir.Item) {
	r.live.Next(&it)
	r.journal.Next(&it)
}

// speak has a node make its model calls; seen is how much of the present one is live.
func (r *twoReaders) speak(t *rapid.T, texts map[string][]string) {
	at, seen := map[string]int{}, map[string]int{}
	for len(texts["a"]) > at["a"] || len(texts["n"]) > at["n"] {
		path := rapid.SampledFrom([]string{"a", "n"}).Draw(t, "next")
		if len(texts[path]) == at[path] {
			continue
		}
		whole := texts[path][at[path]]
		n := rapid.IntRange(0, len(whole)-seen[path]).Draw(t, "bytes") // may cut a character
		if n > 0 {
			r.live.Next(&weir.Item{Path: path, Effect: fmt.Sprintf("%s/model#%d", path, at[path]+1), Chunk: &llm.Chunk{Text: whole[seen[path] : seen[path]+n]}})
			seen[path] += n
		} else {
			seen[path] = 0
			at[path]++
			r.both(answered(path, at[path], whole))
			if len(texts[path]) == at[path] {
				r.both(weir.Item{Event: &engine.NodeCompleted{Path: path}})
			}
		}
		r.steps = append(r.steps, r.live.Spoken())
	}
}

// TestEveryReaderGetsTheSamePieces compares two readers: what the first has at any time is the beginning of the same text, and its
// pieces are the same.
func TestEveryReaderGetsTheSamePieces(t *testing.T) {
	t.Parallel()
	f := parse(t, twoNodes)
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab \n\u00e9\u4e2d")), 0, 90, -1)
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.Permutation([]string{"a", "n"}).Draw(t, "order")
		r := &twoReaders{live: livetext.NewOrdered(f), journal: livetext.NewOrdered(f)}
		for _, path := range order {
			r.both(weir.Item{Event: &engine.NodeStarted{Path: path}})
		}
		texts := map[string][]string{"a": {text.Draw(t, "a1"), text.Draw(t, "a2")}, "n": {text.Draw(t, "n1")}}
		r.speak(t, texts)
		last := texts[order[1]][len(texts[order[1]])-1]
		end := r.journal.End(last, "A question?")
		if got := r.live.End(last, "A question?"); got.Text != end.Text || !slices.Equal(got.Ends, end.Ends) {
			t.Fatalf("%+v, the journal has %+v", got, end)
		}
		got, want := piecesOf(t, append(r.steps, end)), piecesOf(t, []livetext.Spoken{end})
		if !slices.Equal(got, want) || strings.Join(got, "") != end.Text {
			t.Fatalf("%q, expected %q", got, want)
		}
	})
}

func TestOutputThatIsVoidOrNoAnswerIsNotSpoken(t *testing.T) {
	t.Parallel()
	f := parse(t, twoNodes)
	start := weir.Item{Event: &engine.NodeStarted{Path: "a"}}
	piece := func(effect, s string) weir.Item {
		return weir.Item{Path: "a", Effect: "a/" + effect, Chunk: &llm.Chunk{Text: s}}
	}
	child := piece("model#1", "no")
	child.PathPrefix = "x>"
	failed := answered("a", 1, "He")
	failed.Event.(*engine.EffectCompleted).Error = &engine.Error{Code: engine.CodeModelAnswer} //nolint:forcetypeassert // it was made so
	snapshot := piece("model#1", "Ho")
	snapshot.Snapshot = true
	for name, c := range map[string]struct {
		items []weir.Item
		want  string
	}{
		"a piece":            {[]weir.Item{start, piece("model#1", "He")}, "He"},
		"a summary":          {[]weir.Item{start, piece("summary#1", "He")}, ""},
		"a child run":        {[]weir.Item{start, child}, ""},
		"retracted":          {[]weir.Item{start, piece("model#1", "He"), {Path: "a", Effect: "a/model#1", Retracted: true}}, ""},
		"another retracted":  {[]weir.Item{start, piece("model#2", "He"), {Path: "a", Effect: "a/model#1", Retracted: true}}, "He"},
		"a rejected answer":  {[]weir.Item{start, piece("model#1", "He"), failed}, ""},
		"a gap":              {[]weir.Item{start, piece("model#1", "He"), {Gap: true}}, ""},
		"a snapshot":         {[]weir.Item{start, piece("model#1", "He"), snapshot}, "Ho"},
		"the next call":      {[]weir.Item{start, piece("model#1", "He"), piece("model#2", "Ho")}, "Ho"},
		"a failed attempt":   {[]weir.Item{start, piece("model#1", "He"), {Event: &engine.NodeFailed{Path: "a"}}}, ""},
		"before its start":   {[]weir.Item{piece("model#1", "He")}, ""},
		"a node that waits":  {[]weir.Item{start, answered("a", 1, "He"), {Event: &engine.NodeWaiting{Path: "a"}}, start, piece("model#2", "Ho")}, "He\n\nHo"},
		"a node after a gap": {[]weir.Item{start, answered("a", 1, "He"), {Gap: true}}, "He"},
	} {
		o := livetext.NewOrdered(f)
		for i := range c.items {
			o.Next(&c.items[i])
		}
		if got := o.Spoken().Text; got != c.want {
			t.Errorf("%s: %q, expected %q", name, got, c.want)
		}
	}
}

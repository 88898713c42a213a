package convo_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/convo"
)

// canStartAt reports whether a history may begin at a position: not with the result
// of a tool.
func canStartAt(ms []convo.Message, at int) bool { return at == len(ms) || ms[at].Role != convo.Tool }

func TestCapKeepsTheNewestAndNeverStartsWithAToolResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := drawMessages(t, rapid.IntRange(1, 60).Draw(t, "messages"))
		for i := range ms {
			ms[i].ID = string(rune('a' + i))
		}
		c := convo.Restore(convo.Context{ID: "c"}, len(ms), false, &countingSource{ms: ms})
		most := rapid.IntRange(0, 30).Draw(t, "most")
		tokens := rapid.IntRange(0, 1500).Draw(t, "tokens")
		capped, err := c.Cap(most, tokens, wordCounter{})
		if err != nil {
			t.Fatal(err)
		}
		checkCap(t, ms, capped.Epoch, func(rest []convo.Message) bool {
			return (most == 0 || len(rest) <= most) && (tokens == 0 || tokensOf(rest) <= tokens)
		})
		checkCappedView(t, ms, capped)
	})
}

// checkCap holds the place where a capped history begins to what fits.
func checkCap(t *rapid.T, ms []convo.Message, epoch int, fits func([]convo.Message) bool) {
	t.Helper()
	if !canStartAt(ms, epoch) && epoch > 0 {
		t.Fatalf("begins at %d with the result of a tool", epoch)
	}
	if rest := ms[epoch:]; !fits(rest) {
		t.Fatalf("%d messages with %d tokens are too many", len(rest), tokensOf(rest))
	}
	before := epoch - 1 // the last place before it where it might have begun
	for before > 0 && !canStartAt(ms, before) {
		before--
	}
	if epoch > 0 && fits(ms[max(before, 0):]) {
		t.Fatalf("begins at %d where %d would do", epoch, before)
	}
}

// checkCappedView holds the view of a capped history to what must be in it.
func checkCappedView(t *rapid.T, ms []convo.Message, capped convo.Context) {
	t.Helper()
	v, err := capped.View(convo.ViewSpec{Room: 1_000_000, Count: wordCounter{}})
	if err != nil || convo.Validate(v.Messages) != nil {
		t.Fatalf("%v %v", err, convo.Validate(v.Messages))
	}
	for i, m := range ms {
		if m.Role != convo.System && (m.Role != convo.User || !m.Pinned) {
			continue
		}
		if !slices.ContainsFunc(v.Messages, func(o convo.Message) bool { return o.ID == m.ID }) {
			t.Fatalf("message %d is to stay and is not in the view from %d on", i, capped.Epoch)
		}
	}
	if v.Manifest.Omitted != 0 {
		t.Fatalf("%+v", v.Manifest)
	}
}

func TestCapKeepsMarksWhenLooseAndSummaryWhenTight(t *testing.T) {
	t.Parallel()
	ms := numberedMessages(40)
	marks := convo.Marks{Cut: 10, Summary: &convo.Summary{To: 10, Text: "ten numbers"}, Factor: 120}
	c := convo.Restore(convo.Context{ID: "c", Marks: marks, Session: "kept"}, len(ms), false, &countingSource{ms: ms})
	same, err := c.Cap(40, 0, wordCounter{})
	if err != nil || same.Epoch != 0 || same.Session != "kept" || !same.Marks.Equal(marks) {
		t.Fatalf("%+v %v", same, err)
	}
	inside, err := c.Cap(35, 0, wordCounter{})
	if err != nil || inside.Epoch != 5 || inside.Session != "kept" || !inside.Marks.Equal(marks) {
		t.Fatalf("what views left out before: %+v %v", inside, err)
	}
	less, err := c.Cap(3, 0, wordCounter{})
	if err != nil || less.Epoch != 37 || less.Session != "" || less.Marks.Cut != 37 || less.Marks.Summary == nil {
		t.Fatalf("%+v %v", less, err)
	}
	v, err := less.View(convo.ViewSpec{Room: 1000, Count: wordCounter{}})
	if err != nil || len(v.Messages) != 4 || v.Messages[1].Text != "37" {
		t.Fatalf("%+v %v", v, err)
	}
}

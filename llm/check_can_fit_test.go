package llm

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/token"
)

// TestAMessageThatCanNeverFitIsRefusedBeforeItIsCounted has lengths on both sides of
// every bound. A counter that counts a message which can never fit fails the test.
func TestAMessageThatCanNeverFitIsRefusedBeforeItIsCounted(t *testing.T) {
	const room = 100
	counter, err := token.NewCounter(token.O200k, "openai")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text    string
		refused bool
	}{
		"fits":                                  {"hello", false},
		"may fit, and is counted":               {strings.Repeat("word ", room), false},
		"has tokens as long as there are":       {strings.Repeat(" ", maxBytesPerToken*room+1), false},
		"is one word":                           {strings.Repeat("a", 1<<20), true},
		"is long":                               {strings.Repeat("A sentence of some words. ", 1<<12), true},
		"cannot fit with the longest of tokens": {strings.Repeat(" ", token.LongestToken*(room+1)), true},
		"has one rune a token or more":          {strings.Repeat("漢", maxBytesPerToken*room), true},
	} {
		t.Run(name, func(t *testing.T) {
			turn := turnAsked(t, counter, c.text)
			err := turn.checkCanFit(room)
			if (err != nil) != c.refused {
				t.Fatalf("got %v", err)
			}
			if c.refused && !errors.Is(err, convo.ErrTooLarge) {
				t.Error(err)
			}
			if n := counter.Text(c.text); c.refused && n <= room {
				t.Errorf("a message of %d tokens is refused for a room of %d", n, room)
			}
		})
	}
}

func turnAsked(t *testing.T, c token.Counter, text string) *turn {
	t.Helper()
	mgr := convo.NewManager(convo.Context{ID: "main"}, true)
	for _, m := range []convo.Message{{Role: convo.User, Text: text}, {Role: convo.Assistant, Text: "So."}} {
		if _, err := mgr.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	out := &turn{lane: mgr.Get()}
	out.window.counter, out.window.loaded, out.window.model = counter{c, "openai"}, true, Model{Encoding: token.O200k}
	return out
}

package session_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store/sqlite"
)

func TestTurnTakesTwoCommitsOrOneWithoutQuestion(t *testing.T) {
	for _, c := range []struct {
		name, ask string
		want      int // commits of five turns
	}{
		{"userInput", "{type: userInput, with: {history: true}}", 1 + 2*5},
		{"manualInput", `{type: manualInput, with: {history: true, text: "And then?"}}`, 1 + 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			talkFiveTurns(t, weirkit.Open(t, weir.Options{Store: s, Providers: map[string]weir.Provider{"p": &weirkit.LastRequestModel{}}}), c.ask)
			if n := commitsOf(t, s, "r"); n != c.want {
				t.Errorf("5 turns took %d commits, want %d", n, c.want)
			}
		})
	}
}

// talkFiveTurns has a conversation of five turns as the run r.
func talkFiveTurns(t *testing.T, w *weir.Weir, ask string) {
	t.Helper()
	run, err := w.Start(t.Context(), weirkit.Parse(t, w, fmt.Sprintf(`
weir: 1
name: talk
context: {model: p/m}
nodes:
  chat:
    type: loop
    with:
      until: outputs.n == 5
      body:
        nodes:
          ask: %s
          reply: {type: llmRequest, after: ask}
        outputs: {said: "{{ reply.text }}", n: "{{ inputs.index + 1 }}"}
`, ask)), weir.Start{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	for ; err == nil && r.Status == engine.Paused; r, err = run.Wait(t.Context()) {
		if run, err = w.Answer(t.Context(), "r", r.Interrupts[0].ID, "And then?", ""); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil || r.Status != engine.Completed || r.Usage.Calls != 5 {
		t.Fatalf("%s after %d calls: %v %v", r.Status, r.Usage.Calls, r.Error, err)
	}
}

// commitsOf counts the commits of a run.
func commitsOf(t *testing.T, s weir.Store, run string) int {
	t.Helper()
	n := 0
	for _, err := range s.Commits(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

package session_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

func TestRoundContinuesFromCheckpointInAnotherProcess(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("weir: 1\nname: talk\ncontext: {model: echo/m}\ninputs:\n  message: {type: text, required: true}\nnodes:\n")
	after := ""
	for i := range 40 { // enough events for a checkpoint
		fmt.Fprintf(&b, "  n%d: {type: template, %swith: {text: x}}\n", i, after)
		after = fmt.Sprintf("after: n%d, ", i)
	}
	fmt.Fprintf(&b, "  hear: {type: llmRequest, %sin: {message: \"{{ run.inputs.message }}\"}}\n", after)
	b.WriteString("  ask: {type: userInput, after: hear, with: {prompt: \"And?\", schema: {enum: [\"yes\"]}}}\n" +
		"  answer: {type: llmRequest, after: ask, in: {message: \"{{ ask.text }}\"}}\noutputs: {answer: \"{{ answer.text }}\"}\n")
	path := filepath.Join(t.TempDir(), "weir.db")
	var said []string
	first := &weirkit.RepeatingModel{Sent: func(r *llm.Request) {
		said = nil
		for _, m := range r.Messages {
			said = append(said, m.Text)
		}
	}}
	w, f := weirkit.OpenTalk(t, path, first, b.String())
	s := weirkit.OpenSession(t, w, f)
	await(t, send(t, s, "one", weir.SendOptions{}))
	await(t, send(t, s, "yes", weir.SendOptions{}))
	state := await(t, send(t, s, "two", weir.SendOptions{}))
	if state.Status != engine.Paused {
		t.Fatalf("the round is %s: %v", state.Status, state.Error)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Checkpoint(t.Context(), state.Run); err != nil {
		t.Fatalf("no checkpoint of the round: %v", err)
	}
	_ = db.Close()
	second, f := weirkit.OpenTalk(t, path, first, b.String())
	state = await(t, send(t, weirkit.OpenSession(t, second, f), "yes", weir.SendOptions{}))
	if state.Status != engine.Completed {
		t.Fatalf("the round is %s: %v", state.Status, state.Error)
	}
	// Two rounds, each a message, an answer, a "yes" and the answer to that.
	if got := strings.Join(said, "|"); strings.Count(got, "|") != 6 || !strings.HasPrefix(got, "one|") || !strings.HasSuffix(got, "|yes") {
		t.Errorf("the round's last call was sent %s", got)
	}
	runs, err := second.Runs(t.Context(), store.Filter{})
	if err != nil || len(runs) != 2 {
		t.Errorf("%d runs: %v", len(runs), err)
	}
}

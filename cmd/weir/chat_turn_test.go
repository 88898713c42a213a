package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

func TestACancelledTurnSaysWhetherTheHistoryHasSomethingOfIt(t *testing.T) {
	t.Parallel()
	for n, want := range []string{"the message is not in the history", "what was said stays"} {
		p, screen := typing("")
		v := &turnView{p: p}
		v.closing(&weir.TurnState{Result: weir.Result{Status: engine.Cancelled}, Messages: make([]store.SessionMessage, n)})
		if !strings.Contains(screen.String(), want) {
			t.Errorf("with %d messages: %q", n, screen)
		}
	}
}

// talking is a view of turns whose stdout and stderr are the same terminal, or whose
// stdout is a pipe.
func talking(terminal bool) (v *turnView, out *strings.Builder, screen *bytes.Buffer) {
	p, screen := typing("")
	out = new(strings.Builder)
	p.out = out
	v = &turnView{p: p}
	v.begin()
	v.held = !terminal
	return v, out, screen
}

func piece(effect, text string) runner.Item {
	return runner.Item{Path: "a", Attempt: 1, Effect: effect, Chunk: &llm.Chunk{Text: text}}
}

func completedWith(effect, text string) runner.Item {
	return runner.Item{Number: 1, Event: &engine.EffectCompleted{Key: effect, Result: map[string]any{"message": map[string]any{"text": text}}}}
}

func TestAChatThatLagsShowsTheTextOnce(t *testing.T) {
	t.Parallel()
	gap := runner.Item{Gap: true}
	snapshot := piece("a/model#1", "A low dam, that ")
	snapshot.Snapshot = true
	for name, items := range map[string][]runner.Item{
		"a snapshot goes on from what was shown":    {piece("a/model#1", "A low "), gap, snapshot, piece("a/model#1", "is a weir."), completedWith("a/model#1", "A low dam, that is a weir.")},
		"the end of the text comes with the result": {piece("a/model#1", "A low "), gap, completedWith("a/model#1", "A low dam, that is a weir.")},
		"the reader comes late":                     {snapshot, piece("a/model#1", "is a weir."), completedWith("a/model#1", "A low dam, that is a weir.")},
	} {
		for _, terminal := range []bool{true, false} {
			v, out, screen := talking(terminal)
			for _, it := range items {
				v.item(it)
			}
			v.end(&weir.TurnState{Result: weir.Result{Status: engine.Completed}, Text: "A low dam, that is a weir."})
			if got := strings.TrimSpace(out.String()); got != "A low dam, that is a weir." || strings.Contains(screen.String(), "repeated") {
				t.Errorf("%s, terminal %v: stdout has %q, stderr %q", name, terminal, out, screen)
			}
		}
	}
}

func TestAPipeHasTheAnswerWithoutVoidOrInterimWords(t *testing.T) {
	t.Parallel()
	v, out, screen := talking(false)
	void, aside := runner.Item{Path: "a", Effect: "a/model#1", Retracted: true}, piece("a/summary#1", "A summary.")
	aside.Interim = true
	below := piece("b/model#1", "Words of a child.")
	below.Above = "sub>"
	call := runner.Item{Path: "a", Attempt: 1, Effect: "a/model#1", Interim: true, Chunk: &llm.Chunk{Call: &convo.Call{Name: "look"}}}
	for _, it := range []runner.Item{
		piece("a/model#1", "Void"), void, piece("a/model#1", "Let me look."), call, completedWith("a/model#1", "Let me look."),
		aside, below, piece("a/model#2", "It is "), piece("a/model#2", "a dam."), completedWith("a/model#2", "It is a dam."),
	} {
		v.item(it)
	}
	v.end(&weir.TurnState{Result: weir.Result{Status: engine.Completed}, Text: "It is a dam."})
	if got := out.String(); got != "It is a dam.\n" {
		t.Errorf("stdout has %q", got)
	}
	for _, want := range []string{"Let me look.", "calls look", "A summary.", "Words of a child."} {
		if !strings.Contains(screen.String(), want) {
			t.Errorf("stderr lacks %q: %q", want, screen)
		}
	}
}

func TestATerminalSaysThatWhatWasShownIsVoid(t *testing.T) {
	t.Parallel()
	v, out, screen := talking(true)
	void := runner.Item{Path: "a", Effect: "a/model#1", Retracted: true}
	for _, it := range []runner.Item{piece("a/model#1", "Vo"), void, piece("a/model#1", "A dam."), completedWith("a/model#1", "A dam.")} {
		v.item(it)
	}
	v.end(&weir.TurnState{Result: weir.Result{Status: engine.Completed}, Text: "A dam."})
	if out.String() != "Vo\nA dam.\n" || !strings.Contains(screen.String(), "the text above was withdrawn") {
		t.Errorf("stdout has %q, stderr %q", out, screen)
	}
}

func TestTheAnswerOfACancelledTurnIsSaidToBeCutOffAndNotVoid(t *testing.T) {
	t.Parallel()
	v, _, screen := talking(true)
	for _, it := range []runner.Item{
		piece("a/model#1", "A low d"),
		{Number: 3, Event: &engine.NoteRecorded{Path: "a", Key: "a/partial:model#1", Value: map[string]any{"text": "A low d"}}},
		{Path: "a", Effect: "a/model#1", Retracted: true},
	} {
		v.item(it)
	}
	v.end(&weir.TurnState{Result: weir.Result{Run: "r", Status: engine.Cancelled}, Messages: make([]store.SessionMessage, 1)})
	if got := screen.String(); strings.Contains(got, "withdrawn") || !strings.Contains(got, "the partial answer: weir show r --node a") {
		t.Errorf("stderr has %q", got)
	}
}

func TestALogLineBeginsALineBesideTheTextOfATurn(t *testing.T) {
	t.Parallel()
	v, out, screen := talking(true)
	v.p.out = screen // one terminal
	v.begin()
	v.held = false
	v.item(piece("a/model#1", "A low"))
	v.p.logger().Warn("busy")
	v.notice("cancelling")
	if got := screen.String(); !strings.HasPrefix(got, "A low\ntime=") || !strings.Contains(got, "\ncancelling\n") {
		t.Errorf("the terminal has %q, and %q", got, out)
	}
}

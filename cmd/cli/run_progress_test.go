package cli

import (
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
)

func TestProgressPrintsEndedAndRunningNodes(t *testing.T) {
	t.Parallel()
	p, screen := newTypingCLI("")
	w := newProgress(p, nil)
	items := make(chan runner.Item, 16)
	for n, e := range []engine.Event{
		&engine.NodeStarted{Path: "ask"},
		&engine.NodeStarted{Path: "other"},
		&engine.NodeCompleted{Path: "other", Outputs: engine.Values{{Name: "text", Value: "42"}}, Micros: 1500},
	} {
		items <- runner.Item{Number: int64(n + 1), Event: e}
	}
	items <- runner.Item{Path: "ask", Chunk: &llm.Chunk{Text: "void"}}
	items <- runner.Item{Path: "ask", Chunk: &llm.Chunk{Wait: 1e9}}
	items <- runner.Item{Path: "ask", Chunk: &llm.Chunk{Text: "A low \x1b[2Jdam."}}
	items <- runner.Item{Path: "ask", Chunk: &llm.Chunk{Text: " Words before a call."}}
	items <- runner.Item{Path: "ask", Effect: "ask/model#2", Chunk: &llm.Chunk{Text: "A low dam, says a try that fails."}}
	items <- runner.Item{Path: "ask", Effect: "ask/model#2", Retracted: true}
	items <- runner.Item{Path: "ask", Effect: "ask/model#2", Chunk: &llm.Chunk{Text: "A weir: a low \x1b[2Jdam."}}
	items <- runner.Item{Gap: true}
	items <- runner.Item{Path: "ask", Effect: "ask/model#2", Snapshot: true, Chunk: &llm.Chunk{Text: "A low "}}
	items <- runner.Item{Path: "ask", Effect: "ask/model#2", Chunk: &llm.Chunk{Text: "\x1b[2Jdam."}}
	items <- runner.Item{Path: "ask", Effect: "ask/summary#1", Interim: true, Chunk: &llm.Chunk{Text: "void: a summary"}}
	items <- runner.Item{Number: 4, Event: &engine.EffectCompleted{Key: "ask/model#1", Usage: &engine.Usage{Calls: 1, Input: 3, Output: 4, CostMicros: 1200}}}
	close(items)
	if err := w.watch(items); err != nil {
		t.Fatal(err)
	}
	w.findRunning("ask").note = ""
	if !strings.Contains(screen.String(), "✓ other 1ms  42\n") {
		t.Errorf("the node that ended is not there:\n%s", screen)
	}
	w.draw()
	for _, want := range []string{" ask ", "A low [2Jdam.", "1 node done · 3 tokens in, 4 out · $0.0012"} {
		if !strings.Contains(screen.String(), want) {
			t.Errorf("the screen lacks %q:\n%q", want, screen)
		}
	}
	if strings.Contains(screen.String(), "void") || strings.Contains(screen.String(), "Words before") || strings.Contains(screen.String(), "fails") || strings.Contains(screen.String(), "\x1b[2J") {
		t.Errorf("what was taken back, or a control of the terminal, is on the screen:\n%q", screen)
	}
	w.complete(weir.Result{Run: "r1", Status: engine.Running})
	if !strings.Contains(screen.String(), "\r\x1b[2A\x1b[J‖ stopped") {
		t.Errorf("what was drawn is not taken away:\n%q", screen)
	}
}

func TestDurationOfWaitingNodeCountsFromItsStart(t *testing.T) {
	t.Parallel()
	p, screen := newTypingCLI("")
	w := newProgress(p, nil)
	for _, e := range []struct {
		at int64
		e  engine.Event
	}{
		{1000, &engine.NodeStarted{Path: "review"}},
		{1001, &engine.NodeWaiting{Path: "review"}},
		{3500, &engine.NodeResumed{Path: "review"}},
		{3500, &engine.NodeCompleted{Path: "review", Micros: 60}},
	} {
		w.event(e.e, "", e.at)
	}
	if !strings.Contains(screen.String(), "✓ review 2.5s") {
		t.Errorf("the time is not that since the start:\n%s", screen)
	}
}

func TestNodeContinuedFromAnotherProcessIsDrawn(t *testing.T) {
	t.Parallel()
	p, screen := newTypingCLI("")
	w := newProgress(p, []string{"ask"})
	items := make(chan runner.Item, 1)
	items <- runner.Item{Path: "ask", Chunk: &llm.Chunk{Text: "A low dam."}}
	close(items)
	if err := w.watch(items); err != nil {
		t.Fatal(err)
	}
	w.draw()
	for _, want := range []string{" ask 0.", "A low dam.", "0 nodes done · 0."} {
		if !strings.Contains(screen.String(), want) {
			t.Errorf("the screen lacks %q:\n%q", want, screen)
		}
	}
}

func TestProgressRowsFitTheLine(t *testing.T) {
	t.Parallel()
	p, _ := newTypingCLI("")
	var out strings.Builder
	p.out = &out
	t1 := p.table("NODE RESULT")
	t1.width = 30
	t1.row("ask", "a long answer that goes on")
	t1.print()
	if want := "NODE  RESULT\nask   a long answer that goes\n      on\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestLogLineDoesNotBreakProgress(t *testing.T) {
	t.Parallel()
	p, screen := newTypingCLI("")
	w := newProgress(p, []string{"ask"})
	w.draw()
	before := screen.Len()
	p.logger().Warn("the model is busy")
	w.draw()
	added := screen.String()[before:]
	if !strings.HasPrefix(added, "\r\x1b[2A\x1b[Jtime=") || strings.Count(added, "\x1b[J") != 1 {
		t.Errorf("the line was written over what was drawn:\n%q", added)
	}
}

func TestProgressFitsTheTerminal(t *testing.T) {
	t.Parallel()
	p, screen := newTypingCLI("")
	w := newProgress(p, []string{strings.Repeat("long/", 40) + "path"})
	w.draw()
	for line := range strings.Lines(screen.String()) {
		if n := lipgloss.Width(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

func TestWaitingCallShowsRemainingTime(t *testing.T) {
	t.Parallel()
	p, screen := newTypingCLI("")
	w := newProgress(p, []string{"ask"})
	w.showItem(runner.Item{Path: "ask", Chunk: &llm.Chunk{Text: "half an answ"}})
	w.showItem(runner.Item{Path: "ask", Chunk: &llm.Chunk{Wait: time.Minute}})
	w.draw()
	if got := screen.String(); !strings.Contains(got, "waits, ") || !strings.Contains(got, "s at least") || strings.Contains(got, "answ") {
		t.Errorf("drew %q", got)
	}
	for why, want := range map[string]string{llm.WaitLimit: "waits for the limit p/m, ", "model_overloaded": "waits (model_overloaded), "} {
		w.showItem(runner.Item{Path: "ask", Chunk: &llm.Chunk{Wait: time.Minute, WaitReason: why, WaitDetail: "p/m"}})
		w.draw()
		if got := screen.String(); !strings.Contains(got, want) {
			t.Errorf("drew %q, want %q", got, want)
		}
	}
	w.showItem(runner.Item{Path: "ask", Chunk: &llm.Chunk{Text: "an answer"}})
	w.draw()
	if got := screen.String(); !strings.Contains(got, "an answer") {
		t.Errorf("drew %q", got)
	}
}

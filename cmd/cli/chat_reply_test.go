package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

func TestCancelledReplySaysWhichMessagesStay(t *testing.T) {
	t.Parallel()
	for n, want := range []string{"the message is not in the history", "the messages so far stay"} {
		p, screen := newTypingCLI("")
		v := &replyView{p: p}
		v.printStatus(&session.ReplyState{Result: weir.Result{Status: engine.Cancelled}, Messages: make([]store.SessionMessage, n)})
		if !strings.Contains(screen.String(), want) {
			t.Errorf("with %d messages: %q", n, screen)
		}
	}
}

// newReplyView returns a view of turns whose stdout and stderr are the same terminal, or whose
// stdout is a pipe.
func newReplyView(terminal bool) (v *replyView, out *strings.Builder, screen *bytes.Buffer) {
	p, screen := newTypingCLI("")
	out = new(strings.Builder)
	p.out = out
	v = &replyView{p: p}
	v.start()
	v.buffered = !terminal
	return v, out, screen
}

func textChunk(effect, text string) runner.Item {
	return runner.Item{Path: "a", Attempt: 1, Effect: effect, Chunk: &llm.Chunk{Text: text}}
}

func completedWith(effect, text string) runner.Item {
	return runner.Item{Number: 1, Event: &engine.EffectCompleted{Key: effect, Result: map[string]any{"message": map[string]any{"text": text}}}}
}

func TestLaggingChatPrintsTextOnce(t *testing.T) {
	t.Parallel()
	gap := runner.Item{Gap: true}
	snapshot := textChunk("a/model#1", "A low dam, that ")
	snapshot.Snapshot = true
	for name, items := range map[string][]runner.Item{
		"a snapshot goes on from what was shown":    {textChunk("a/model#1", "A low "), gap, snapshot, textChunk("a/model#1", "is a weir."), completedWith("a/model#1", "A low dam, that is a weir.")},
		"the end of the text comes with the result": {textChunk("a/model#1", "A low "), gap, completedWith("a/model#1", "A low dam, that is a weir.")},
		"the reader comes late":                     {snapshot, textChunk("a/model#1", "is a weir."), completedWith("a/model#1", "A low dam, that is a weir.")},
	} {
		for _, terminal := range []bool{true, false} {
			v, out, screen := newReplyView(terminal)
			for _, it := range items {
				v.item(it)
			}
			v.complete(&session.ReplyState{Result: weir.Result{Status: engine.Completed}, Text: "A low dam, that is a weir."})
			if got := strings.TrimSpace(out.String()); got != "A low dam, that is a weir." || strings.Contains(screen.String(), "repeated") {
				t.Errorf("%s, terminal %v: stdout has %q, stderr %q", name, terminal, out, screen)
			}
		}
	}
}

func TestPipedChatPrintsOnlyTheFinalAnswer(t *testing.T) {
	t.Parallel()
	v, out, screen := newReplyView(false)
	void, aside := runner.Item{Path: "a", Effect: "a/model#1", Retracted: true}, textChunk("a/summary#1", "A summary.")
	aside.Interim = true
	below := textChunk("b/model#1", "Words of a child.")
	below.PathPrefix = "sub>"
	call := runner.Item{Path: "a", Attempt: 1, Effect: "a/model#1", Interim: true, Chunk: &llm.Chunk{Call: &convo.Call{Name: "look"}}}
	for _, it := range []runner.Item{
		textChunk("a/model#1", "Void"), void, textChunk("a/model#1", "Let me look."), call, completedWith("a/model#1", "Let me look."),
		aside, below, textChunk("a/model#2", "It is "), textChunk("a/model#2", "a dam."), completedWith("a/model#2", "It is a dam."),
	} {
		v.item(it)
	}
	v.complete(&session.ReplyState{Result: weir.Result{Status: engine.Completed}, Text: "It is a dam."})
	if got := out.String(); got != "It is a dam.\n" {
		t.Errorf("stdout has %q", got)
	}
	for _, want := range []string{"Let me look.", "calls look", "A summary.", "Words of a child."} {
		if !strings.Contains(screen.String(), want) {
			t.Errorf("stderr lacks %q: %q", want, screen)
		}
	}
}

func TestTerminalMarksWithdrawnText(t *testing.T) {
	t.Parallel()
	v, out, screen := newReplyView(true)
	void := runner.Item{Path: "a", Effect: "a/model#1", Retracted: true}
	for _, it := range []runner.Item{textChunk("a/model#1", "Vo"), void, textChunk("a/model#1", "A dam."), completedWith("a/model#1", "A dam.")} {
		v.item(it)
	}
	v.complete(&session.ReplyState{Result: weir.Result{Status: engine.Completed}, Text: "A dam."})
	if out.String() != "Vo\nA dam.\n" || !strings.Contains(screen.String(), "the text above was withdrawn") {
		t.Errorf("stdout has %q, stderr %q", out, screen)
	}
}

func TestCancelledAnswerIsMarkedCutOff(t *testing.T) {
	t.Parallel()
	v, _, screen := newReplyView(true)
	for _, it := range []runner.Item{
		textChunk("a/model#1", "A low d"),
		{Number: 3, Event: &engine.NoteRecorded{Path: "a", Key: "a/partial:model#1", Value: map[string]any{"text": "A low d"}}},
		{Path: "a", Effect: "a/model#1", Retracted: true},
	} {
		v.item(it)
	}
	v.complete(&session.ReplyState{Result: weir.Result{Run: "r", Status: engine.Cancelled}, Messages: make([]store.SessionMessage, 1)})
	if got := screen.String(); strings.Contains(got, "withdrawn") || !strings.Contains(got, "the partial answer: weir show r --node a") {
		t.Errorf("stderr has %q", got)
	}
}

func TestLogLineStartsOnItsOwnLine(t *testing.T) {
	t.Parallel()
	v, out, screen := newReplyView(true)
	v.p.out = screen // one terminal
	v.start()
	v.buffered = false
	v.item(textChunk("a/model#1", "A low"))
	v.p.logger().Warn("busy")
	v.notice("cancelling")
	if got := screen.String(); !strings.HasPrefix(got, "A low\ntime=") || !strings.Contains(got, "\ncancelling\n") {
		t.Errorf("the terminal has %q, and %q", got, out)
	}
}

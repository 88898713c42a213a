package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/session"
)

// replyReport is a turn as `weir chat --json` prints it.
type replyReport struct {
	Session    string           `json:"session"`
	Round      int              `json:"round"`
	Run        string           `json:"run"`
	Message    string           `json:"message"` // the id
	Status     string           `json:"status"`
	Text       string           `json:"text"` // what the model said last
	Outputs    engine.Values    `json:"outputs"`
	Messages   []app.MessageRow `json:"messages"` // that the turn added
	Interrupts []app.Interrupt  `json:"interrupts"`
	Usage      app.Usage        `json:"usage"`   // of the turn
	SentTokens int              `json:"sent"`    // tokens that the last model call was sent
	View       *convo.Manifest  `json:"view"`    // of it; null is the whole history that the round began with
	Omitted    int              `json:"earlier"` // messages before that
	Took       int64            `json:"took_ms"` // milliseconds
	Error      *engine.Error    `json:"error"`
}

func replyReportOf(s *session.ReplyState) replyReport {
	return replyReport{
		Session: s.Session, Round: s.Round, Run: s.Run, Message: s.Message, Status: s.Status.String(), Text: s.Text,
		Outputs: app.OrEmpty(s.Outputs), Messages: app.MessageRows(s.Messages), Interrupts: app.InterruptsOf(s.Interrupts),
		Usage: app.UsageOf(s.Spent), SentTokens: s.SentTokens, View: s.View, Omitted: s.Omitted, Took: s.Took.Milliseconds(), Error: s.Error,
	}
}

// replyView shows a turn as it goes: what models say on stdout, what else they do
// dimly on stderr.
type replyView struct {
	p           *cli
	mu          sync.Mutex          // held while something is shown
	last        *session.ReplyState // the last that has ended
	path        string              // of the node that speaks, from the root
	key         string              // of its effect
	answer      strings.Builder     // by it, since it began
	calledTools bool                // and it called tools, so that this is no answer
	buffered    bool                // answers are shown once they are whole: stdout is no terminal
	kind        string              // of what was shown last
	whole       string              // what was shown last of an effect that has ended
	cut         string              // the node whose answer was cut off, and is kept in the record

	text, thought lineWrapper // what is shown of the answer, and of what the model thinks
}

func (v *replyView) start() {
	v.path, v.key, v.calledTools, v.kind, v.whole, v.cut = "", "", false, "", "", ""
	v.answer.Reset()
	v.text, v.thought = lineWrapper{}, lineWrapper{}
	v.buffered = !isTerminal(v.p.out)
	v.p.screen().setInterruptLine(v.breakLine)
}

// breakLine ends the line that is being written; also while others log.
func (v *replyView) breakLine() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.switchOutput("")
}

// notice writes a line of its own, also while the turn is shown.
func (v *replyView) notice(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.switchOutput("")
	v.p.notef("%s", v.p.style().dim.Render(text))
}

// item shows one thing.
func (v *replyView) item(it runner.Item) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.p.json {
		return
	}
	switch {
	case it.Event != nil:
		v.event(it.Event, it.PathPrefix)
	case it.Retracted:
		v.retract(&it)
	case it.Snapshot:
		v.switchEffect(&it)
		v.catchUp(it.Chunk.Text, it.Interim || it.PathPrefix != "")
	case it.Chunk != nil:
		v.chunk(&it)
	}
}

// switchEffect settles what another effect said.
func (v *replyView) switchEffect(it *runner.Item) {
	if path := it.PathPrefix + it.Path; path != v.path || it.Effect != v.key {
		v.endEffect()
		v.path, v.key = path, it.Effect
	}
}

// retract says that what was shown of an effect is void.
func (v *replyView) retract(it *runner.Item) {
	if v.path != it.PathPrefix+it.Path || v.key != it.Effect || v.answer.Len() == 0 {
		return
	}
	v.answer.Reset()
	if !v.buffered && v.cut == "" {
		v.note("(the text above was withdrawn)")
	}
}

// note writes a line on stderr.
func (v *replyView) note(format string, args ...any) {
	v.switchOutput("note")
	fmt.Fprintln(v.p.err, v.p.style().dim.Render(fmt.Sprintf(format, args...)))
	v.kind = ""
}

// catchUp shows what of the text of an effect is not shown yet: all of it, where
// something else was.
func (v *replyView) catchUp(text string, aside bool) {
	rest, more := strings.CutPrefix(text, v.answer.String())
	if !more {
		v.answer.Reset()
		if rest = text; !v.buffered {
			v.note("(repeated from the beginning)")
		}
	}
	v.write(rest, aside)
}

// write shows a piece of text: on stdout what may be an answer, aside what is none.
func (v *replyView) write(s string, aside bool) {
	switch {
	case s == "":
	case aside:
		v.switchOutput("reasoning")
		v.thought.write(app.Printable(s))
	default:
		v.answer.WriteString(s)
		if !v.buffered {
			v.switchOutput("text")
			v.text.write(app.Printable(s))
		}
	}
}

func (v *replyView) chunk(it *runner.Item) {
	v.switchEffect(it)
	st := v.p.style()
	switch c := it.Chunk; {
	case c.Wait > 0:
		v.switchOutput("note")
		fmt.Fprintln(v.p.err, st.dim.Render(fmt.Sprintf("waits %s: %s", took(c.Wait), strings.TrimSpace(c.WaitReason+" "+shorten(c.WaitDetail, 80)))))
		v.kind = ""
	case c.Call != nil:
		v.calledTools = true
		v.switchOutput("note")
		fmt.Fprintln(v.p.err, st.dim.Render("calls "+app.Printable(c.Call.Name)+" "+shorten(c.Call.Arguments, 100)))
		v.kind = ""
	case c.Reasoning != "":
		v.switchOutput("reasoning")
		v.thought.write(app.Printable(c.Reasoning))
	case c.Text != "":
		v.write(c.Text, it.Interim || it.PathPrefix != "")
	case c.Stdout+c.Stderr != "":
		v.switchOutput("reasoning")
		v.thought.write(app.Printable(c.Stdout + c.Stderr))
	}
}

// switchOutput begins another kind of output on a line of its own.
func (v *replyView) switchOutput(kind string) {
	v.startOutput(kind)
	if v.kind != "" && v.kind != kind {
		if v.kind == "text" {
			fmt.Fprintln(v.p.out)
		} else {
			fmt.Fprintln(v.p.err)
		}
	}
	v.kind = kind
}

// startOutput writes what is begun of another kind of output.
func (v *replyView) startOutput(kind string) {
	if v.kind == kind {
		return
	}
	v.text.endLine()
	v.thought.endLine()
	v.text = lineWrapper{out: v.p.out, width: widthOf(v.p.out)}
	dim := v.p.style().dim
	v.thought = lineWrapper{out: v.p.err, width: widthOf(v.p.err), style: func(s string) string { return dim.Render(s) }}
}

// endEffect ends the lines of the effect that spoke. Of one that called tools the words are
// no answer.
func (v *replyView) endEffect() {
	if said := v.answer.String(); said != "" && v.buffered {
		v.answer.Reset()
		if v.calledTools {
			v.write(said, true)
		} else {
			v.buffered = false
			v.write(said, false)
			v.buffered = true
		}
	}
	v.switchOutput("")
	if v.answer.Len() > 0 {
		v.whole = strings.TrimSpace(v.answer.String())
		v.answer.Reset()
	}
	v.path, v.key, v.calledTools = "", "", false
}

// completed shows what is not shown yet of an effect that has completed.
func (v *replyView) completed(e *engine.EffectCompleted, above string) {
	if above != "" || v.key != e.Key || v.answer.Len() == 0 {
		return
	}
	if text, ok := textOfAnswer(e.Result); ok && e.Error == nil {
		v.catchUp(text, false)
	}
	v.endEffect()
}

// textOfAnswer returns the text of a model's answer as the journal has it.
func textOfAnswer(result engine.Value) (text string, ok bool) {
	o, _ := result.(map[string]any)
	m, _ := o["message"].(map[string]any)
	text, ok = m["text"].(string)
	return text, ok
}

func (v *replyView) event(e engine.Event, above string) {
	st := v.p.style()
	switch e := e.(type) {
	case *engine.EffectCompleted:
		v.completed(e, above)
	case *engine.NoteRecorded:
		if _, ok := runner.PartialOf(e); ok && above == "" {
			v.cut = e.Path
		}
	case *engine.NodeRetrying:
		v.endEffect()
		v.p.notef("%s", st.dim.Render(above+e.Path+" is retried"))
	case *engine.NodeFailed:
		v.endEffect()
		v.p.notef("%s", st.dim.Render(above+e.Path+" failed: "+shorten(e.Error.Message, 120)))
	}
}

// complete shows the result of the turn, nil if it is unknown.
func (v *replyView) complete(s *session.ReplyState) {
	v.p.screen().setInterruptLine(nil)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.endEffect()
	if s == nil {
		return
	}
	v.last = s
	if v.p.json {
		writeJSON(v.p.out, replyReportOf(s))
		return
	}
	switch {
	case s.Text != "" && strings.TrimSpace(s.Text) != v.whole:
		v.p.printf("%s", app.Printable(strings.TrimSpace(s.Text)))
	case s.Text == "" && s.Status == engine.Completed && v.whole == "":
		v.p.printOutputs(s.Outputs)
	}
	v.printStatus(s)
}

// printStatus is the line below a turn.
func (v *replyView) printStatus(s *session.ReplyState) {
	st := v.p.style()
	switch s.Status {
	case engine.Failed:
		v.p.notef("%s", st.bad.Render("the round failed: "+app.Printable(s.Error.Error())))
		if h := remedyOf(s.Error); h != "" {
			v.p.notef("  %s", h)
		}
		if s.Error.Node != "" {
			v.p.notef("  %s", st.dim.Render("retry it with: "+v.p.commandLine("retry", s.Run, s.Error.Node)))
		}
	case engine.Cancelled:
		left := "the messages so far stay"
		if len(s.Messages) == 0 {
			left = "no answer had begun, and the message is not in the history"
		}
		v.p.notef("%s", st.dim.Render("the round was cancelled; "+left))
		if v.cut != "" {
			v.p.notef("  %s", st.dim.Render("the partial answer: "+v.p.commandLine("show", s.Run, "--node", v.cut)))
		}
	default:
	}
	var parts []string
	if s.Spent.Calls > 0 {
		parts = append(parts, usageText(s.Spent))
	}
	switch {
	case s.View != nil && s.View.Omitted > 0:
		parts = append(parts, fmt.Sprintf("%s of %d not sent", count(s.View.Omitted+s.Omitted, "message"), s.View.To))
	case s.Omitted > 0 && s.Spent.Calls > 0:
		parts = append(parts, "the first "+count(s.Omitted, "message")+" not sent")
	}
	if s.Took > 0 {
		parts = append(parts, took(s.Took.Round(time.Millisecond)))
	}
	if len(parts) > 0 && isTerminal(v.p.err) {
		v.p.notef("%s", st.dim.Render(strings.Join(parts, " · ")))
	}
}

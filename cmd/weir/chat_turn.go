package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// turnReport is a turn as `weir chat --json` prints it.
type turnReport struct {
	Session    string          `json:"session"`
	Round      int             `json:"round"`
	Run        string          `json:"run"`
	Message    string          `json:"message"` // the id
	Status     string          `json:"status"`
	Text       string          `json:"text"` // what the model said last
	Outputs    engine.Values   `json:"outputs"`
	Messages   []saidRow       `json:"messages"` // that the turn added
	Interrupts []interrupt     `json:"interrupts"`
	Usage      usage           `json:"usage"`   // of the turn
	Sent       int             `json:"sent"`    // tokens that the last model call was sent
	View       *convo.Manifest `json:"view"`    // of it; null is the whole history that the round began with
	Earlier    int             `json:"earlier"` // messages before that
	Took       int64           `json:"took_ms"` // milliseconds
	Error      *engine.Error   `json:"error"`
}

func turnReportOf(s *weir.TurnState) turnReport {
	return turnReport{
		Session: s.Session, Round: s.Round, Run: s.Run, Message: s.Message, Status: s.Status.String(), Text: s.Text,
		Outputs: orEmpty(s.Outputs), Messages: saidRows(s.Messages), Interrupts: interruptsOf(s.Interrupts),
		Usage: usageOf(s.Spent), Sent: s.Sent, View: s.View, Earlier: s.Earlier, Took: s.Took.Milliseconds(), Error: s.Error,
	}
}

// turnView shows a turn as it goes: what models say on stdout, what else they do
// dimly on stderr.
type turnView struct {
	p     *program
	mu    sync.Mutex      // held while something is shown
	last  *weir.TurnState // the last that has ended
	path  string          // of the node that speaks, from the root
	key   string          // of its effect
	said  strings.Builder // by it, since it began
	asked bool            // and it called tools, so that this is no answer
	held  bool            // answers are shown once they are whole: stdout is no terminal
	kind  string          // of what was shown last
	whole string          // what was shown last of an effect that has ended
	cut   string          // the node whose answer was cut off, and is kept in the record

	text, thought flowing // what is shown of the answer, and of what the model thinks
}

func (v *turnView) begin() {
	v.path, v.key, v.asked, v.kind, v.whole, v.cut = "", "", false, "", "", ""
	v.said.Reset()
	v.text, v.thought = flowing{}, flowing{}
	v.held = !isTerminal(v.p.out)
	v.p.screen().beside(v.breakLine)
}

// breakLine ends the line that is being written; also while others log.
func (v *turnView) breakLine() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.show("")
}

// notice writes a line of its own, also while the turn is shown.
func (v *turnView) notice(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.show("")
	v.p.say("%s", v.p.style().dim.Render(text))
}

// item shows one thing.
func (v *turnView) item(it runner.Item) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.p.json {
		return
	}
	switch {
	case it.Event != nil:
		v.event(it.Event, it.Above)
	case it.Retracted:
		v.retract(&it)
	case it.Snapshot:
		v.turnTo(&it)
		v.catchUp(it.Chunk.Text, it.Interim || it.Above != "")
	case it.Chunk != nil:
		v.chunk(&it)
	}
}

// turnTo settles what another effect said.
func (v *turnView) turnTo(it *runner.Item) {
	if path := it.Above + it.Path; path != v.path || it.Effect != v.key {
		v.settle()
		v.path, v.key = path, it.Effect
	}
}

// retract says that what was shown of an effect is void.
func (v *turnView) retract(it *runner.Item) {
	if v.path != it.Above+it.Path || v.key != it.Effect || v.said.Len() == 0 {
		return
	}
	v.said.Reset()
	if !v.held && v.cut == "" {
		v.note("(the text above was withdrawn)")
	}
}

// note writes a line on stderr.
func (v *turnView) note(format string, args ...any) {
	v.show("note")
	fmt.Fprintln(v.p.err, v.p.style().dim.Render(fmt.Sprintf(format, args...)))
	v.kind = ""
}

// catchUp shows what of the text of an effect is not shown yet: all of it, where
// something else was.
func (v *turnView) catchUp(text string, aside bool) {
	rest, more := strings.CutPrefix(text, v.said.String())
	if !more {
		v.said.Reset()
		if rest = text; !v.held {
			v.note("(repeated from the beginning)")
		}
	}
	v.put(rest, aside)
}

// put shows a piece of text: on stdout what may be an answer, aside what is none.
func (v *turnView) put(s string, aside bool) {
	switch {
	case s == "":
	case aside:
		v.show("reasoning")
		v.thought.write(printable(s))
	default:
		v.said.WriteString(s)
		if !v.held {
			v.show("text")
			v.text.write(printable(s))
		}
	}
}

func (v *turnView) chunk(it *runner.Item) {
	v.turnTo(it)
	st := v.p.style()
	switch c := it.Chunk; {
	case c.Wait > 0:
		v.show("note")
		fmt.Fprintln(v.p.err, st.dim.Render(fmt.Sprintf("waits %s: %s", took(c.Wait), strings.TrimSpace(c.Why+" "+shorten(c.About, 80)))))
		v.kind = ""
	case c.Call != nil:
		v.asked = true
		v.show("note")
		fmt.Fprintln(v.p.err, st.dim.Render("calls "+printable(c.Call.Name)+" "+shorten(c.Call.Arguments, 100)))
		v.kind = ""
	case c.Reasoning != "":
		v.show("reasoning")
		v.thought.write(printable(c.Reasoning))
	case c.Text != "":
		v.put(c.Text, it.Interim || it.Above != "")
	case c.Stdout+c.Stderr != "":
		v.show("reasoning")
		v.thought.write(printable(c.Stdout + c.Stderr))
	}
}

// show begins another kind of output on a line of its own.
func (v *turnView) show(kind string) {
	v.flow(kind)
	if v.kind != "" && v.kind != kind {
		if v.kind == "text" {
			fmt.Fprintln(v.p.out)
		} else {
			fmt.Fprintln(v.p.err)
		}
	}
	v.kind = kind
}

// flow writes what is begun of another kind of output.
func (v *turnView) flow(kind string) {
	if v.kind == kind {
		return
	}
	v.text.end()
	v.thought.end()
	v.text = flowing{out: v.p.out, width: widthOf(v.p.out)}
	dim := v.p.style().dim
	v.thought = flowing{out: v.p.err, width: widthOf(v.p.err), look: func(s string) string { return dim.Render(s) }}
}

// settle ends the lines of the effect that spoke. Of one that called tools the words are
// no answer.
func (v *turnView) settle() {
	if said := v.said.String(); said != "" && v.held {
		v.said.Reset()
		if v.asked {
			v.put(said, true)
		} else {
			v.held = false
			v.put(said, false)
			v.held = true
		}
	}
	v.show("")
	if v.said.Len() > 0 {
		v.whole = strings.TrimSpace(v.said.String())
		v.said.Reset()
	}
	v.path, v.key, v.asked = "", "", false
}

// completed shows what is not shown yet of an effect that has completed.
func (v *turnView) completed(e *engine.EffectCompleted, above string) {
	if above != "" || v.key != e.Key || v.said.Len() == 0 {
		return
	}
	if text, ok := textOfAnswer(e.Result); ok && e.Error == nil {
		v.catchUp(text, false)
	}
	v.settle()
}

// textOfAnswer is the text of a model's answer as the journal has it.
func textOfAnswer(result engine.Value) (text string, ok bool) {
	o, _ := result.(map[string]any)
	m, _ := o["message"].(map[string]any)
	text, ok = m["text"].(string)
	return text, ok
}

func (v *turnView) event(e engine.Event, above string) {
	st := v.p.style()
	switch e := e.(type) {
	case *engine.EffectCompleted:
		v.completed(e, above)
	case *engine.NoteRecorded:
		if _, ok := runner.PartialOf(e); ok && above == "" {
			v.cut = e.Path
		}
	case *engine.NodeRetrying:
		v.settle()
		v.p.say("%s", st.dim.Render(above+e.Path+" is retried"))
	case *engine.NodeFailed:
		v.settle()
		v.p.say("%s", st.dim.Render(above+e.Path+" failed: "+shorten(e.Error.Message, 120)))
	}
}

// end shows what has come of the turn, nil where nobody knows.
func (v *turnView) end(s *weir.TurnState) {
	v.p.screen().beside(nil)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.settle()
	if s == nil {
		return
	}
	v.last = s
	if v.p.json {
		writeJSON(v.p.out, turnReportOf(s))
		return
	}
	switch {
	case s.Text != "" && strings.TrimSpace(s.Text) != v.whole:
		v.p.tell("%s", printable(strings.TrimSpace(s.Text)))
	case s.Text == "" && s.Status == engine.Completed && v.whole == "":
		v.p.printOutputs(s.Outputs)
	}
	v.closing(s)
}

// closing is the line below a turn.
func (v *turnView) closing(s *weir.TurnState) {
	st := v.p.style()
	switch s.Status {
	case engine.Failed:
		v.p.say("%s", st.bad.Render("the round failed: "+printable(s.Error.Error())))
		if h := wayOut(s.Error); h != "" {
			v.p.say("  %s", h)
		}
		if s.Error.Node != "" {
			v.p.say("  %s", st.dim.Render("retry it with: "+v.p.self("retry", s.Run, s.Error.Node)))
		}
	case engine.Cancelled:
		left := "what was said stays"
		if len(s.Messages) == 0 {
			left = "nothing had been said yet, and the message is not in the history"
		}
		v.p.say("%s", st.dim.Render("the round was cancelled; "+left))
		if v.cut != "" {
			v.p.say("  %s", st.dim.Render("the partial answer: "+v.p.self("show", s.Run, "--node", v.cut)))
		}
	default:
	}
	var parts []string
	if s.Spent.Calls > 0 {
		parts = append(parts, usedUp(s.Spent))
	}
	switch {
	case s.View != nil && s.View.Left > 0:
		parts = append(parts, fmt.Sprintf("%s of %d not sent", count(s.View.Left+s.Earlier, "message"), s.View.To))
	case s.Earlier > 0 && s.Spent.Calls > 0:
		parts = append(parts, "the first "+count(s.Earlier, "message")+" not sent")
	}
	if s.Took > 0 {
		parts = append(parts, took(s.Took.Round(time.Millisecond)))
	}
	if len(parts) > 0 && isTerminal(v.p.err) {
		v.p.say("%s", st.dim.Render(strings.Join(parts, " · ")))
	}
}

package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/trajectory/follow"
)

// progress shows a run in a terminal as it goes: a line for each node that has
// ended, which stays, and below them those that are running, which are drawn
// again and again.
type progress struct {
	p       *cli
	st      style
	start   time.Time
	running []*runningNode // in the order they started
	// suspended are the nodes that have started and wait for something, a body or a
	// child run among it: when they started, Unix milliseconds.
	suspended  map[string]int64
	ended      int  // nodes
	describing bool // the run has ended, and what it found is being described
	usage      engine.Usage
	screen     *screen
	frame      int
}

// runningNode is a node at work.
type runningNode struct {
	path string
	from time.Time
	// effect is the effect whose text is shown, and text what it has emitted: an earlier effect's
	// words, before the calls of tools, are no part of the answer.
	effect string
	text   strings.Builder
	note   string
	until  time.Time // until when it waits, for its turn or before it tries again
}

// frameInterval is how often what is running is drawn.
const frameInterval = 100 * time.Millisecond

// maxRunningLines bounds how many running nodes are drawn.
const maxRunningLines = 8

// newProgress makes one. atWork are the nodes that are executing where another process
// has left them, and do not start again.
func newProgress(p *cli, atWork []string) *progress {
	w := &progress{p: p, st: p.style(), start: time.Now(), screen: p.screen(), suspended: map[string]int64{}}
	for _, path := range atWork {
		w.startNode(path, w.start.UnixMilli())
	}
	return w
}

// watch implements watcher.
func (w *progress) watch(items <-chan runner.Item) error {
	tick := time.NewTicker(frameInterval)
	defer tick.Stop()
	for {
		select {
		case it, ok := <-items:
			if !ok {
				w.screen.erase()
				return nil
			}
			if it.Event != nil {
				w.event(it.Event, it.PathPrefix, it.At)
			} else {
				w.showItem(it)
			}
		case <-tick.C:
			w.frame++
			w.draw()
		}
	}
}

// event takes one event; above stands before the paths of a child run's nodes.
func (w *progress) event(e engine.Event, above string, at int64) {
	switch e := e.(type) {
	case *engine.NodeStarted:
		w.startNode(above+e.Path, at)
	case *engine.NodeResumed:
		w.startNode(above+e.Path, at)
	case *engine.EffectCompleted:
		if e.Usage != nil {
			w.usage = w.usage.Add(*e.Usage)
		}
	case *engine.NodeCompleted:
		mark := w.st.good.Render("✓")
		note := ""
		if e.Cached {
			note = "cached"
		}
		w.ended++
		w.endNode(above+e.Path, mark, note, w.sinceStart(above+e.Path, e.Micros, at), summaryOf(e.Outputs))
	case *engine.StepRecorded:
		w.step(above, e)
	case *engine.NodeErrored:
		w.ended++
	case *engine.NodeFailed:
		w.endNode(above+e.Path, w.st.bad.Render("✗"), "", w.sinceStart(above+e.Path, e.Micros, at), w.st.bad.Render(shorten(e.Error.Message, w.width()-30)))
	case *engine.NodeRetrying:
		w.line("%s %s tries again %s", w.st.ask.Render("↻"), above+e.Path, dueIn(e.Due, at))
	case *engine.NodeWaiting, *engine.NodePulling, *engine.NodeExpanded:
		w.waitNode(e, above, at)
	case *engine.NodeCancelled:
		w.ended++
		w.endNode(above+e.Path, w.st.bad.Render("✗"), "cancelled", 0, "")
	case *engine.NoteRecorded:
		w.countDescription(e)
	case *engine.RunCompleted, *engine.RunFailed:
		w.describing = above == ""
	}
}

// countDescription shows that a model has described what the run found.
func (w *progress) countDescription(e *engine.NoteRecorded) {
	if p, ok := follow.DescriptionOf(e); ok {
		mark, text := w.st.good.Render("·"), p.Text
		if p.Error != "" {
			mark, text = w.st.bad.Render("·"), p.Error
		}
		head := fmt.Sprintf("  %s %s", mark, p.ID)
		w.line("%s  %s", head, w.st.dim.Render(shorten(app.Printable(text), max(w.width()-lipgloss.Width(head)-3, 10))))
	}
	if e.Usage != nil {
		w.usage = w.usage.Add(*e.Usage)
	}
}

func (w *progress) startNode(path string, at int64) {
	if w.findRunning(path) == nil {
		w.running = append(w.running, &runningNode{path: path, from: time.UnixMilli(at)})
	}
}

// waitNode removes a node that cannot continue by itself from the board; one that waits
// for a timer says so.
func (w *progress) waitNode(e engine.Event, above string, at int64) {
	switch e := e.(type) {
	case *engine.NodeWaiting:
		w.suspendNode(above + e.Path)
		for _, i := range e.Interrupts {
			if i.Kind == engine.AwaitTimer {
				w.line("%s %s continues %s", w.st.ask.Render("◷"), above+e.Path, dueIn(i.Due, at))
			}
		}
	case *engine.NodePulling:
		w.suspendNode(above + e.Path)
	case *engine.NodeExpanded:
		w.suspendNode(above + e.Path)
	}
}

// step shows what one of the agents of a node did.
func (w *progress) step(above string, e *engine.StepRecorded) {
	mark, more := w.st.good.Render("·"), ""
	switch e.Status {
	case engine.StepFailed:
		mark, more = w.st.bad.Render("·"), e.Error
	case engine.StepSkipped:
		mark, more = w.st.dim.Render("·"), e.Status
	}
	name := fmt.Sprintf("%d %s", e.Number, e.Name)
	if e.Attempt > 1 {
		name += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	about := e.Model
	if e.Micros > 0 {
		about = strings.TrimSpace(about + " " + micros(e.Micros))
	}
	line := fmt.Sprintf("  %s %s %s %s", mark, above+e.Path, name, w.st.dim.Render(about))
	if more != "" {
		more = shorten(strings.Join(strings.Fields(app.Printable(more)), " "), max(w.width()-lipgloss.Width(line)-3, 10))
		line += "  " + w.st.dim.Render(more)
	}
	w.line("%s", line)
}

// suspendNode takes a node off the board that will be entered again.
func (w *progress) suspendNode(path string) {
	if r := w.removeRunning(path); r != nil && w.suspended[path] == 0 {
		w.suspended[path] = r.from.UnixMilli()
	}
}

// sinceStart returns how long a node took that ended at a moment, in microseconds: us
// of its function alone is little of it where others worked for it.
func (w *progress) sinceStart(path string, us, at int64) int64 {
	if from, ok := w.suspended[path]; ok {
		delete(w.suspended, path)
		us = max(us, (at-from)*1000)
	}
	return us
}

func (w *progress) findRunning(path string) *runningNode {
	for _, r := range w.running {
		if r.path == path {
			return r
		}
	}
	return nil
}

func (w *progress) removeRunning(path string) *runningNode {
	r := w.findRunning(path)
	w.running = slices.DeleteFunc(w.running, func(x *runningNode) bool { return x == r })
	return r
}

// endNode puts a node's line where it stays.
func (w *progress) endNode(path, mark, note string, us int64, summary string) {
	r := w.removeRunning(path)
	if note == "" && us > 0 {
		note = micros(us)
	}
	if r != nil && r.text.Len() > 0 {
		w.line("%s %s %s", mark, path, w.st.dim.Render(note))
		text := lipgloss.Wrap(app.Printable(strings.TrimSpace(r.text.String())), max(w.width()-4, 20), "")
		w.line("%s", indent(text, "    "))
		return
	}
	left := w.width() - lipgloss.Width(path) - lipgloss.Width(note) - 8
	if lipgloss.Width(summary) > left {
		summary = shorten(summary, max(left, 10))
	}
	w.line("%s %s %s  %s", mark, path, w.st.dim.Render(note), summary)
}

// showItem takes what is no event.
func (w *progress) showItem(it runner.Item) {
	if it.Gap {
		for _, r := range w.running {
			r.text.Reset()
		}
		return
	}
	r := w.findRunning(it.PathPrefix + it.Path)
	switch {
	case r == nil:
	case it.Retracted:
		if r.effect == it.Effect {
			r.text.Reset()
		}
	case it.Snapshot && !it.Interim:
		r.effect = it.Effect
		r.text.Reset()
		r.text.WriteString(it.Chunk.Text)
	case it.Chunk != nil:
		w.chunk(r, it)
	}
}

func (w *progress) chunk(r *runningNode, it runner.Item) {
	if it.Chunk.Wait == 0 {
		r.until = time.Time{}
	}
	switch c := it.Chunk; {
	case c.Wait > 0: // what came so far is void
		r.text.Reset()
		r.note, r.until = waitNote(c), time.Now().Add(c.Wait)
	case c.Call != nil:
		r.note = "calls " + c.Call.Name
	case c.Reasoning != "":
		r.note = "thinks"
	case c.Stdout+c.Stderr != "":
		printed := strings.TrimSpace(c.Stdout + c.Stderr)
		if line := printed[strings.LastIndexByte(printed, '\n')+1:]; line != "" {
			r.note = "prints " + shorten(app.Printable(line), 60)
		}
	case c.Text != "" && it.Interim:
		r.note = "works"
	case c.Text != "":
		if r.effect != it.Effect {
			r.effect = it.Effect
			r.text.Reset()
		}
		r.note = ""
		r.text.WriteString(c.Text)
	}
}

// waitNote says what a model call waits for.
func waitNote(c *llm.Chunk) string {
	switch c.WaitReason {
	case "":
		return "waits"
	case llm.WaitLimit:
		return "waits for the limit " + app.Printable(c.WaitDetail)
	case llm.WaitStopped:
		return "waits: " + app.Printable(c.WaitDetail)
	}
	return "waits (" + c.WaitReason + ")"
}

// line writes a line that stays.
func (w *progress) line(format string, args ...any) {
	fmt.Fprintln(w.screen, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// draw shows what is running, and the sum of it all.
func (w *progress) draw() {
	const spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
	frames := []rune(spinner)
	var lines []string
	for _, r := range w.running[:min(len(w.running), maxRunningLines)] {
		head := fmt.Sprintf("%s %s %s", w.st.busy.Render(string(frames[w.frame%len(frames)])), r.path,
			w.st.dim.Render(elapsed(r.from)))
		lines = append(lines, head+"  "+w.tail(r, w.width()-lipgloss.Width(head)-3))
	}
	if more := len(w.running) - maxRunningLines; more > 0 {
		lines = append(lines, w.st.dim.Render(fmt.Sprintf("  and %d more", more)))
	}
	if w.describing && len(w.running) == 0 {
		lines = append(lines, w.st.dim.Render(fmt.Sprintf("%c what was found is being described", frames[w.frame%len(frames)])))
	}
	lines = append(lines, w.st.dim.Render(w.summary()))
	fit := lipgloss.NewStyle().MaxWidth(w.width()) // a line that wraps could not be taken away
	for i := range lines {
		lines[i] = fit.Render(lines[i])
	}
	w.screen.draw(lines)
}

// tail returns the end of what a node says, on part of a line.
func (w *progress) tail(r *runningNode, room int) string {
	if left := time.Until(r.until); r.note != "" && left > 100*time.Millisecond {
		return w.st.ask.Render(fmt.Sprintf("%s, %.1fs at least", r.note, left.Seconds()))
	}
	if r.note != "" {
		return w.st.dim.Render(r.note)
	}
	text := []rune(strings.Join(strings.Fields(app.Printable(r.text.String())), " "))
	if room < 10 {
		return ""
	}
	for lipgloss.Width(string(text)) > room {
		text = text[len(text)-min(len(text)-1, room):]
		if lipgloss.Width(string(text)) > room {
			room--
		}
	}
	return string(text)
}

// summary returns the line below: nodes, tokens, money, time.
func (w *progress) summary() string {
	parts := []string{count(w.ended, "node") + " done"}
	if u := w.usage; u.Input+u.Output > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens in, %d out", u.Input, u.Output))
	}
	if w.usage.CostMicros > 0 {
		parts = append(parts, dollars(w.usage.CostMicros))
	}
	if n := len(parts); n > 0 {
		parts[n-1] += estimated(w.usage)
	}
	return strings.Join(append(parts, elapsed(w.start)), " · ")
}

// elapsed returns how long ago a moment was, in tenths of a second: it is drawn
// again and again, and should not flicker.
func elapsed(from time.Time) string {
	d := time.Since(from)
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", max(d, 0).Truncate(100*time.Millisecond).Seconds())
	}
	return d.Truncate(time.Second).String()
}

// complete implements watcher.
func (w *progress) complete(r weir.Result) {
	w.usage = r.Usage
	mark, word := w.st.good.Render("✓"), r.Status.String()
	switch r.Status {
	case engine.Completed:
	case engine.Failed, engine.Cancelled:
		mark = w.st.bad.Render("✗")
	case engine.Paused:
		mark = w.st.ask.Render("‖")
	default: // its journal says that it runs, and no process executes it
		mark, word = w.st.ask.Render("‖"), "stopped"
	}
	w.line("%s %s %s", mark, w.st.bold.Render(word), w.st.dim.Render(w.summary()+" · "+r.Run))
}

func (w *progress) width() int {
	if n := widthOf(w.p.err); n > 0 {
		return n
	}
	return 80
}

// dueIn returns how long it is from one moment to another, both Unix milliseconds.
func dueIn(due, at int64) string {
	return "in " + took(time.Duration(max(due-at, 0))*time.Millisecond)
}

// summaryOf returns what a node gave as its answer, or the first output that says
// something where it names none so.
func summaryOf(vs engine.Values) string {
	var first string
	for _, o := range vs {
		text := plain(o.Value)
		if o.Name == "context" || text == "" || text == "{}" || text == "[]" {
			continue
		}
		switch o.Name {
		case "text", "result", "value":
			return shorten(text, 200)
		}
		if first == "" {
			first = shorten(text, 200)
		}
	}
	return first
}

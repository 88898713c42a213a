package follow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/trajectory"
)

// work is what the attempts of a node of the flow have done so far.
type work struct {
	path    string
	attempt int
	// answers are the answers of models, and tools the results of tool calls, by the
	// ordinals of their effects.
	answers map[int]convo.Message
	tools   map[int]toolResult
	effects int
	scripts []script              // code that was written
	asks    map[string]bool       // interrupts that people or outside events answer
	said    []string              // their answers
	child   string                // the child run
	place   string                // its path
	notes   []noted               // artifacts that it declared
	beside  []trajectory.Artifact // that tools declared whose calls are in no message
	// byHand are the nodes that it made itself, and ends those that what it does
	// next follows from.
	byHand bool
	ends   []trajectory.ID
	failed *engine.NodeFailed
	slips  []slip // earlier failures that are not in the graph yet
	saying
	marks map[string]any // attributes of what it makes in the graph from now on
}

// toolResult is what the journal has of a tool call.
type toolResult struct {
	Text      string                `json:"text"`
	Failed    bool                  `json:"failed"`
	Artifacts []trajectory.Artifact `json:"artifacts"`
}

func (f *Follower) start(e *engine.NodeStarted) {
	w := f.open[e.Path]
	if w == nil && f.stuck[e.Path] != nil {
		w = f.stuck[e.Path]
		delete(f.stuck, e.Path)
		f.open[e.Path] = w
	}
	if w == nil {
		w = &work{path: e.Path, answers: map[int]convo.Message{}, tools: map[int]toolResult{}}
		f.open[e.Path] = w
	}
	w.attempt, w.failed, w.notes = max(1, e.Attempt), nil, nil
	w.child, w.place = "", ""
}

// effect notes what an effect brought.
func (f *Follower) effect(e *engine.EffectCompleted) {
	i := strings.LastIndexByte(e.Key, '/')
	w := f.open[e.Key[:max(i, 0)]]
	if w == nil || e.Error != nil {
		return
	}
	w.effects++
	name, number, _ := strings.Cut(e.Key[i+1:], "#")
	n, err := strconv.Atoi(number)
	if err != nil {
		return
	}
	switch name {
	case "model":
		var answer struct {
			Message convo.Message `json:"message"`
		}
		if fill(e.Result, &answer) == nil {
			if _, again := w.answers[n]; again { // all is done anew
				w.saying = saying{}
			}
			w.answers[n] = answer.Message
		}
	case "tool":
		var r toolResult
		if fill(e.Result, &r) == nil {
			w.tools[n] = r
		}
		f.called = true
	default:
		var r toolResult
		if strings.HasSuffix(name, ".tool") && fill(e.Result, &r) == nil {
			w.beside, f.called = append(w.beside, r.Artifacts...), true
		}
	}
}

// fill reads a value of the journal.
func fill(v engine.Value, into any) error {
	b, err := engine.AppendValue(nil, v)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // what is whole stays so
	return d.Decode(into)
}

// script is code that a node ran.
type script struct {
	name, code string
	relation   trajectory.Relation
}

// dataAnalysis is the step that looks at data by code of its own.
const dataAnalysis = "data_analysis"

// step notes code that models wrote, or that was learned earlier, of which the newest
// is what the node ran; and that of the analysis before it.
func (f *Follower) step(e *engine.StepRecorded) {
	w := f.open[e.Path]
	if w == nil || e.Code == "" || e.Status == engine.StepFailed {
		return
	}
	c := script{static(w.path), e.Code, trajectory.Generates}
	switch {
	case e.Status == engine.StepSkipped:
		c.relation = trajectory.HasScript // nobody wrote it now
	case e.Name == dataAnalysis:
		c.name += " " + dataAnalysis
	}
	if i := slices.IndexFunc(w.scripts, func(old script) bool { return old.name == c.name }); i < 0 {
		w.scripts = append(w.scripts, c)
	} else if w.scripts[i].code != c.code { // else it is checked or run
		w.scripts[i] = c
	}
}

// wait notes what is asked of people and waited for from outside.
func (f *Follower) wait(e *engine.NodeWaiting) {
	w := f.open[e.Path]
	for _, i := range e.Interrupts {
		f.called = f.called || i.Child != nil
		if w != nil && (i.Kind == engine.AwaitInput || i.Kind == engine.AwaitEvent) {
			if w.asks == nil {
				w.asks = map[string]bool{}
			}
			w.asks[i.ID] = true
		}
	}
}

func (f *Follower) answer(e *engine.InterruptAnswered) {
	i := strings.LastIndexByte(e.ID, ':')
	if w := f.open[e.ID[:max(i, 0)]]; w != nil && w.asks[e.ID] {
		w.said = append(w.said, node.TextOf(e.Value))
	}
}

func (f *Follower) child(e *engine.ChildReported) {
	i := strings.LastIndexByte(e.ID, ':')
	if w := f.open[e.ID[:max(i, 0)]]; w != nil {
		w.child, w.place = e.Run, Below(f.o.Above, &engine.RunStarted{Node: e.ID})
	}
}

func (f *Follower) failed(e *engine.NodeFailed) {
	if w := f.open[e.Path]; w != nil {
		w.failed = e
	}
}

// retrying notes an attempt that is tried again: what comes next follows from why. What
// a node says is known when it has ended, and the failure has its place in that.
func (f *Follower) retrying(at time.Time, e *engine.NodeRetrying) error {
	w := f.open[e.Path]
	if w == nil || w.failed == nil {
		return nil
	}
	l := f.loops[e.Path]
	w.slips = append(w.slips, slip{w.failed, w.attempt, len(w.answers), at})
	if l == nil && !w.byHand && w.child == "" {
		return nil
	}
	if err := f.begat(at, w, trajectory.Failed); err != nil {
		return err
	}
	if l != nil {
		w.ends = l.ends()
		delete(f.loops, e.Path)
	}
	return f.slipped(w)
}

// slip is a failure of an attempt, after so many answers.
type slip struct {
	failed  *engine.NodeFailed
	attempt int
	answers int
	at      time.Time
}

// slipped concludes what failed so far.
func (f *Follower) slipped(w *work) error {
	for _, s := range w.slips {
		if err := f.conclude(w, s); err != nil {
			return err
		}
	}
	w.slips = nil
	return nil
}

func (f *Follower) conclude(w *work, s slip) error {
	why := reason(s.failed.Error)
	id, err := f.main.recorder.Add(trajectory.New{
		Type: trajectory.State, Name: w.path, Relation: trajectory.HasConclusion, After: f.after(w), At: s.at, By: f.by(w.path, ""),
		Attributes: map[string]any{
			trajectory.Kind: Failure, trajectory.Text: why.Message, trajectory.Failed: true, "code": why.Code, "attempt": s.attempt,
		},
	})
	if err == nil {
		w.ends = []trajectory.ID{id}
	}
	return err
}

// Failure is the kind of a State that says why an attempt of a node failed.
const Failure = "failure"

// errored records a node that failed for good: what it did until then, and why.
func (f *Follower) errored(ctx context.Context, at time.Time, e *engine.NodeErrored) error {
	w := f.open[e.Path]
	if w == nil || w.failed == nil {
		return nil
	}
	if l := f.loops[e.Path]; l != nil {
		w.ends = l.ends()
		delete(f.loops, e.Path)
	}
	err := f.unfinished(ctx, at, w, w.failed.Contexts, trajectory.Failed)
	if err == nil {
		err = f.conclude(w, slip{w.failed, w.attempt, len(w.answers), at})
	}
	switch e.Handled {
	case "port":
		f.close(w, names(e.Outputs))
	case "value":
		f.close(w, completed(e.Outputs))
	default:
		f.close(w, nil)
		f.stuck[w.path] = w
	}
	return err
}

func (f *Follower) cancelled(ctx context.Context, at time.Time, e *engine.NodeCancelled) error {
	w := f.open[e.Path]
	if w == nil {
		return nil
	}
	err := f.unfinished(ctx, at, w, e.Contexts, trajectory.Failed)
	f.close(w, nil)
	f.stuck[w.path] = w
	return err
}

// forced records that a person moved a stuck node.
func (f *Follower) forced(at time.Time, e *engine.NodeForced) error {
	if f.over = false; e.Op == "retry" {
		return nil
	}
	w := f.open[e.Path]
	if w == nil {
		w = &work{path: e.Path}
		if stuck := f.stuck[e.Path]; stuck != nil {
			w.ends = stuck.ends
		}
	}
	err := f.slipped(w)
	if err != nil {
		return err
	}
	err = f.act(at, w, map[string]any{trajectory.Kind: Step, "forced": e.Op, "outputs": shorten(e.Outputs)}, e.By)
	if delete(f.stuck, e.Path); e.Op == "skip" {
		f.close(w, nil)
	} else {
		f.close(w, completed(e.Outputs))
	}
	return err
}

// close ends the work of a node; what follows it goes on from its ends.
func (f *Follower) close(w *work, ports []string) {
	delete(f.open, w.path)
	f.ends[w.path], f.ports[w.path] = f.after(w), ports
	prefix, composite := scope(w.path)
	if l := f.loops[composite]; l != nil && prefix != "" {
		l.reach(prefix, f.before(w.path), f.ends[w.path])
	}
}

// after is what the next node of the graph that the work makes follows from.
func (f *Follower) after(w *work) []trajectory.ID {
	if len(w.ends) > 0 {
		return w.ends
	}
	return f.before(w.path)
}

// before is where the work ends that a node of the flow follows from: that of the
// sources of the edges into it that were taken, else what its iteration follows
// from, else the query.
func (f *Follower) before(path string) []trajectory.ID {
	prefix, composite := scope(path)
	var out []trajectory.ID
	for _, e := range f.edges(path) {
		if source := prefix + e.From; f.took(source, e.FromPort) {
			out = append(out, f.ends[source]...)
		}
	}
	if len(out) == 0 && prefix != "" {
		if l := f.loops[composite]; l != nil {
			out = l.base
		}
	}
	if len(out) == 0 {
		return []trajectory.ID{f.main.recorder.Initial()}
	}
	return f.main.recorder.Newest(out)
}

// edges are those that lead to a node of the flow.
func (f *Follower) edges(path string) []*flow.Edge {
	_, g := definition(f.o.Flow, path)
	if g == nil {
		return nil
	}
	into := f.into[g]
	if into == nil {
		into = inward{}
		for _, e := range g.Edges {
			into[e.To] = append(into[e.To], e)
		}
		f.into[g] = into
	}
	return into[leaf(path)]
}

func (f *Follower) took(source, port string) bool {
	return slices.Contains(f.ports[source], port)
}

// completed are the ports that a node gives which completed.
func completed(outputs engine.Values) []string { return append(names(outputs), "") }

func names(vs engine.Values) []string {
	out := make([]string, len(vs))
	for i := range vs {
		out[i] = vs[i].Name
	}
	return out
}

// iterations are those of a composite that goes on.
type iterations struct {
	// base is what iterations that begin now follow from, and reached where those of
	// the newest expansion have come to.
	base    []trajectory.ID
	reached map[string][]trajectory.ID // by prefix
	order   []string
}

// expand has the iterations of a composite follow from what is before it, or,
// where it had others before, from these.
func (f *Follower) expand(e *engine.NodeExpanded) {
	l := f.loops[e.Path]
	for path := range f.stuck { // order: each is looked at alone
		if strings.HasPrefix(path, e.Path+"#") {
			delete(f.stuck, path)
		}
	}
	if l == nil {
		l = &iterations{base: f.before(e.Path)}
		if w := f.open[e.Path]; w != nil {
			l.base = f.after(w)
		}
		f.loops[e.Path] = l
	} else if ends := l.ends(); len(ends) > 0 {
		l.base = ends
	}
	l.reached, l.order = map[string][]trajectory.ID{}, nil
}

// reach notes that a node has ended in an iteration: what it followed from is no
// end any more.
func (l *iterations) reach(prefix string, before, ends []trajectory.ID) {
	if _, known := l.reached[prefix]; !known {
		l.order = append(l.order, prefix)
	}
	now := slices.DeleteFunc(slices.Clone(l.reached[prefix]), func(id trajectory.ID) bool { return slices.Contains(before, id) })
	l.reached[prefix] = trajectory.Distinct(append(now, ends...))
}

// ends are where the iterations of the newest expansion have come to.
func (l *iterations) ends() []trajectory.ID {
	var out []trajectory.ID
	for _, prefix := range l.order {
		out = append(out, l.reached[prefix]...)
	}
	return trajectory.Distinct(out)
}

// asked is what a run was given, as text, and whether that is all of it.
func asked(e *engine.RunStarted) (text string, whole bool) {
	for _, in := range e.Inputs {
		if len(e.Inputs) > 1 && in.Name != "message" {
			continue
		}
		switch v := in.Value.(type) {
		case string:
			return v, len(e.Inputs) == 1
		case map[string]any:
			if v["role"] != nil {
				return node.TextOf(v), len(e.Inputs) == 1
			}
		}
	}
	if len(e.Inputs) == 0 {
		return e.Flow, true
	}
	return shortText(e.Inputs.Map()), false
}

// outcome is what a run came to, as text.
func outcome(vs engine.Values) string {
	if len(vs) == 1 {
		return node.TextOf(vs[0].Value)
	}
	return shortText(vs.Map())
}

// most is how many bytes of values are kept in the graph; the journal has all.
const most = 4096

// shorten is the values as they are, or their beginning where they are long.
func shorten(vs engine.Values) any {
	m := vs.Map()
	if text := node.TextOf(m); len(text) > most {
		return fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(text[:most], ""), len(text))
	}
	return m
}

func shortText(v any) string {
	text := node.TextOf(v)
	if len(text) > most {
		return fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(text[:most], ""), len(text))
	}
	return text
}

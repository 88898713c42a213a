package follow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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

// nodeWork is the work of a node's attempts so far.
type nodeWork struct {
	path    string
	attempt int
	// answers are the model answers, and tools the results of tool calls, by the ordinals of their effects.
	answers       map[int]convo.Message
	tools         map[int]toolResult
	effects       int
	scripts       []script              // generated code
	questions     map[string]bool       // interrupts for people or outside events
	humanAnswers  []string              // their answers
	child         string                // the child run
	childPath     string                // its path
	artifactNotes []artifactNote        // declared artifacts
	toolArtifacts []trajectory.Artifact // artifacts of tool calls that are in no message
	// addedNodes are the nodes that its operations added, and ends the predecessors of its next nodes.
	addedNodes bool
	ends       []trajectory.ID
	failed     *engine.NodeFailed
	failures   []attemptFailure // earlier failures that are not in the graph yet
	recordedMessages
	attributes map[string]any // attributes of further graph nodes
}

// toolResult is the record of a tool call in the journal.
type toolResult struct {
	Text      string                `json:"text"`
	Failed    bool                  `json:"failed"`
	Artifacts []trajectory.Artifact `json:"artifacts"`
}

func (f *Follower) nodeStarted(e *engine.NodeStarted) {
	w := f.running[e.Path]
	if w == nil && f.failedWork[e.Path] != nil {
		w = f.failedWork[e.Path]
		delete(f.failedWork, e.Path)
		f.running[e.Path] = w
	}
	if w == nil {
		w = &nodeWork{path: e.Path, answers: map[int]convo.Message{}, tools: map[int]toolResult{}}
		f.running[e.Path] = w
	}
	w.attempt, w.failed, w.artifactNotes = max(1, e.Attempt), nil, nil
	w.child, w.childPath = "", ""
}

// effectCompleted reads the result of an effect.
func (f *Follower) effectCompleted(e *engine.EffectCompleted) {
	path, effect := engine.SplitEffectKey(e.Key)
	w := f.running[path]
	if w == nil || e.Error != nil {
		return
	}
	w.effects++
	name, number, _ := strings.Cut(effect, "#")
	continued := false
	if name == "tool" { // the call with a person's answers continues the one that asked
		number, _, continued = strings.Cut(number, ".")
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return
	}
	switch name {
	case "model":
		var answer struct {
			Message convo.Message `json:"message"`
		}
		if decodeValue(e.Result, &answer) == nil {
			if _, again := w.answers[n]; again { // everything is repeated
				w.recordedMessages = recordedMessages{}
			}
			w.answers[n] = answer.Message
		}
	case "tool":
		var r toolResult
		if decodeValue(e.Result, &r) == nil {
			if continued {
				r.Artifacts = append(w.tools[n].Artifacts, r.Artifacts...)
			}
			w.tools[n] = r
		}
		f.mayHaveChildren = true
	default:
		var r toolResult
		if strings.HasSuffix(name, ".tool") && decodeValue(e.Result, &r) == nil {
			w.toolArtifacts, f.mayHaveChildren = append(w.toolArtifacts, r.Artifacts...), true
		}
	}
}

// decodeValue decodes a value of the journal.
func decodeValue(v engine.Value, into any) error {
	b, err := engine.AppendValue(nil, v)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // integers stay integers
	return d.Decode(into)
}

// script is code that a node ran.
type script struct {
	name, code string
	relation   trajectory.Relation
}

// dataAnalysisStep is the step that analyses data with code of its own.
const dataAnalysisStep = "data_analysis"

// stepRecorded reads generated or learned code, of which the newest is what the node ran, and the code of the
// preceding analysis.
func (f *Follower) stepRecorded(e *engine.StepRecorded) {
	w := f.running[e.Path]
	if w == nil || e.Code == "" || e.Status == engine.StepFailed {
		return
	}
	c := script{flow.WithoutIterations(w.path), e.Code, trajectory.Generates}
	switch {
	case e.Status == engine.StepSkipped:
		c.relation = trajectory.HasScript // it was not generated now
	case e.Name == dataAnalysisStep:
		c.name += " " + dataAnalysisStep
	}
	if i := slices.IndexFunc(w.scripts, func(old script) bool { return old.name == c.name }); i < 0 {
		w.scripts = append(w.scripts, c)
	} else if w.scripts[i].code != c.code { // other steps check or run it
		w.scripts[i] = c
	}
}

// nodeWaiting reads the questions to people and the events that are waited for.
func (f *Follower) nodeWaiting(e *engine.NodeWaiting) {
	w := f.running[e.Path]
	for _, i := range e.Interrupts {
		f.mayHaveChildren = f.mayHaveChildren || i.Child != nil
		if w != nil && (i.Kind == engine.AwaitInput || i.Kind == engine.AwaitEvent) {
			if w.questions == nil {
				w.questions = map[string]bool{}
			}
			w.questions[i.ID] = true
		}
	}
}

func (f *Follower) interruptAnswered(e *engine.InterruptAnswered) {
	path, _ := engine.SplitInterruptID(e.ID)
	if w := f.running[path]; w != nil && w.questions[e.ID] {
		w.humanAnswers = append(w.humanAnswers, node.TextOf(e.Value))
	}
}

func (f *Follower) childReported(e *engine.ChildReported) {
	path, _ := engine.SplitInterruptID(e.ID)
	if w := f.running[path]; w != nil {
		w.child, w.childPath = e.Run, ChildPath(f.options.RootPath, &engine.RunStarted{Node: e.ID})
	}
}

func (f *Follower) nodeFailed(e *engine.NodeFailed) {
	if w := f.running[e.Path]; w != nil {
		w.failed = e
	}
}

// nodeRetrying reads a failed attempt that is retried: the following nodes have the failure as predecessor. The
// messages of a node are known when it ends, and the failure is placed among them then.
func (f *Follower) nodeRetrying(at time.Time, e *engine.NodeRetrying) error {
	w := f.running[e.Path]
	if w == nil || w.failed == nil {
		return nil
	}
	l := f.composites[e.Path]
	w.failures = append(w.failures, attemptFailure{w.failed, w.attempt, len(w.answers), at})
	if l == nil && !w.addedNodes && w.child == "" {
		return nil
	}
	if err := f.recordChild(at, w, trajectory.AttrFailed); err != nil {
		return err
	}
	if l != nil {
		w.ends = l.ends()
		delete(f.composites, e.Path)
	}
	return f.recordFailures(w)
}

// attemptFailure is a failure of an attempt, with the number of answers before it.
type attemptFailure struct {
	failed  *engine.NodeFailed
	attempt int
	answers int
	at      time.Time
}

// recordFailures adds States for the failures so far.
func (f *Follower) recordFailures(w *nodeWork) error {
	for _, s := range w.failures {
		if err := f.recordFailure(w, s); err != nil {
			return err
		}
	}
	w.failures = nil
	return nil
}

func (f *Follower) recordFailure(w *nodeWork, s attemptFailure) error {
	why := reason(s.failed.Error)
	id, err := f.main.recorder.Add(trajectory.NewNode{
		Type: trajectory.State, Name: w.path, Relation: trajectory.HasConclusion, After: f.nextPredecessors(w), At: s.at, By: f.attribution(w.path, ""),
		Attributes: map[string]any{
			trajectory.AttrKind: KindFailure, trajectory.AttrText: why.Message, trajectory.AttrFailed: true, "code": why.Code, "attempt": s.attempt,
		},
	})
	if err == nil {
		w.ends = []trajectory.ID{id}
	}
	return err
}

// KindFailure is the kind of a State for the failure of an attempt.
const KindFailure = "failure"

// nodeErrored records a node that failed finally: its work and the reason.
func (f *Follower) nodeErrored(ctx context.Context, at time.Time, e *engine.NodeErrored) error {
	w := f.running[e.Path]
	if w == nil || w.failed == nil {
		return nil
	}
	if l := f.composites[e.Path]; l != nil {
		w.ends = l.ends()
		delete(f.composites, e.Path)
	}
	err := f.recordUnfinished(ctx, at, w, w.failed.Contexts, trajectory.AttrFailed)
	if err == nil {
		err = f.recordFailure(w, attemptFailure{w.failed, w.attempt, len(w.answers), at})
	}
	switch e.Handled {
	case "port":
		f.completeWork(w, names(e.Outputs))
	case "value":
		f.completeWork(w, completedPorts(e.Outputs))
	default:
		f.completeWork(w, nil)
		f.failedWork[w.path] = w
	}
	return err
}

func (f *Follower) nodeCancelled(ctx context.Context, at time.Time, e *engine.NodeCancelled) error {
	w := f.running[e.Path]
	if w == nil {
		return nil
	}
	err := f.recordUnfinished(ctx, at, w, e.Contexts, trajectory.AttrFailed)
	f.completeWork(w, nil)
	f.failedWork[w.path] = w
	return err
}

// nodeForced records that a person overrode a stuck node.
func (f *Follower) nodeForced(at time.Time, e *engine.NodeOverridden) error {
	if f.runEnded = false; e.Op == "retry" {
		return nil
	}
	w := f.running[e.Path]
	if w == nil {
		w = &nodeWork{path: e.Path}
		if stuck := f.failedWork[e.Path]; stuck != nil {
			w.ends = stuck.ends
		}
	}
	err := f.recordFailures(w)
	if err != nil {
		return err
	}
	err = f.addAction(at, w, map[string]any{trajectory.AttrKind: KindStep, "forced": e.Op, "outputs": shorten(e.Outputs)}, e.By)
	if delete(f.failedWork, e.Path); e.Op == "skip" {
		f.completeWork(w, nil)
	} else {
		f.completeWork(w, completedPorts(e.Outputs))
	}
	return err
}

// completeWork ends the work of a node; its ends become the predecessors of the following nodes.
func (f *Follower) completeWork(w *nodeWork, ports []string) {
	delete(f.running, w.path)
	f.ends[w.path], f.ports[w.path] = f.nextPredecessors(w), ports
	prefix, composite := splitIteration(w.path)
	if l := f.composites[composite]; l != nil && prefix != "" {
		l.nodeEnded(prefix, f.predecessorsOf(w.path), f.ends[w.path])
	}
}

// nextPredecessors returns the predecessors of the next graph node of the work.
func (f *Follower) nextPredecessors(w *nodeWork) []trajectory.ID {
	if len(w.ends) > 0 {
		return w.ends
	}
	return f.predecessorsOf(w.path)
}

// predecessorsOf returns the predecessors for a node of the flow: the ends of the sources of its taken edges,
// otherwise the predecessors of its iteration, otherwise the query.
func (f *Follower) predecessorsOf(path string) []trajectory.ID {
	prefix, composite := splitIteration(path)
	var out []trajectory.ID
	for _, e := range f.edgesInto(path) {
		if source := prefix + e.From; f.wasTaken(source, e.FromPort) {
			out = append(out, f.ends[source]...)
		}
	}
	if len(out) == 0 && prefix != "" {
		if l := f.composites[composite]; l != nil {
			out = l.base
		}
	}
	if len(out) == 0 {
		return []trajectory.ID{f.main.recorder.Initial()}
	}
	return f.main.recorder.DropAncestors(out)
}

// edgesInto returns the edges to a node of the flow.
func (f *Follower) edgesInto(path string) []*flow.Edge {
	_, g := f.options.Flow.NodeAt(path)
	if g == nil {
		return nil
	}
	into := f.incoming[g]
	if into == nil {
		into = edgesByTarget{}
		for _, e := range g.Edges {
			into[e.To] = append(into[e.To], e)
		}
		f.incoming[g] = into
	}
	return into[lastPart(path)]
}

func (f *Follower) wasTaken(source, port string) bool {
	return slices.Contains(f.ports[source], port)
}

// completedPorts returns the ports of a completed node.
func completedPorts(outputs engine.Values) []string { return append(names(outputs), "") }

func names(vs engine.Values) []string {
	out := make([]string, len(vs))
	for i := range vs {
		out[i] = vs[i].Name
	}
	return out
}

// iterationEnds are the ends of an open composite.
type iterationEnds struct {
	// base are the predecessors of new iterations, and reached the ends of those of the newest expansion.
	base         []trajectory.ID
	endsByPrefix map[string]map[trajectory.ID]bool
	order        []string // prefixes
}

// nodeExpanded sets the predecessors of a composite's iterations: those of the composite, or the ends of its earlier
// iterations.
func (f *Follower) nodeExpanded(e *engine.NodeExpanded) {
	l := f.composites[e.Path]
	for path := range f.failedWork { // order: each is handled alone
		if strings.HasPrefix(path, e.Path+"#") {
			delete(f.failedWork, path)
		}
	}
	if l == nil {
		l = &iterationEnds{base: f.predecessorsOf(e.Path)}
		if w := f.running[e.Path]; w != nil {
			l.base = f.nextPredecessors(w)
		}
		f.composites[e.Path] = l
	} else if ends := l.ends(); len(ends) > 0 {
		l.base = ends
	}
	l.endsByPrefix, l.order = map[string]map[trajectory.ID]bool{}, nil
}

// nodeEnded reads the end of a node in an iteration: its predecessors are no longer ends.
func (l *iterationEnds) nodeEnded(prefix string, before, ends []trajectory.ID) {
	now := l.endsByPrefix[prefix]
	if now == nil {
		now = make(map[trajectory.ID]bool, len(ends))
		l.endsByPrefix[prefix] = now
		l.order = append(l.order, prefix)
	}
	for _, id := range before {
		delete(now, id)
	}
	for _, id := range ends {
		now[id] = true
	}
}

// drop forgets an iteration that came to nothing.
func (l *iterationEnds) drop(prefix string) {
	delete(l.endsByPrefix, prefix)
	l.order = slices.DeleteFunc(l.order, func(p string) bool { return p == prefix })
}

// ends returns the ends of the iterations of the newest expansion.
func (l *iterationEnds) ends() []trajectory.ID {
	var out []trajectory.ID
	for _, prefix := range l.order {
		out = slices.AppendSeq(out, maps.Keys(l.endsByPrefix[prefix]))
	}
	return trajectory.Distinct(out)
}

// runInput returns the input of a run as text, and whether that is all of it.
func runInput(e *engine.RunStarted) (text string, whole bool) {
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

// runOutcome returns the outcome of a run as text.
func runOutcome(vs engine.Values) string {
	if len(vs) == 1 {
		return node.TextOf(vs[0].Value)
	}
	return shortText(vs.Map())
}

// maxValueBytes is the maximum size of values in the graph, in bytes; the journal has the whole values.
const maxValueBytes = 4096

// shorten returns the values with long ones cut.
func shorten(vs engine.Values) any {
	m := vs.Map()
	if text := node.TextOf(m); len(text) > maxValueBytes {
		return fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(text[:maxValueBytes], ""), len(text))
	}
	return m
}

func shortText(v any) string {
	text := node.TextOf(v)
	if len(text) > maxValueBytes {
		return fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(text[:maxValueBytes], ""), len(text))
	}
	return text
}

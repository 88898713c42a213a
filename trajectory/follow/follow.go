package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/trajectory"
)

// Options describe the run to follow.
type Options struct {
	// Flow is the flow of the run.
	Flow *flow.Flow
	// Run is its id.
	Run string
	// Types has the node types of the flow.
	Types flow.Catalogue
	// Recorders returns recorders; Key is the key of the run's own trajectory.
	Recorders *trajectory.RecorderPool
	Key       trajectory.Key
	// RootPath is the position of the run in a tree of runs: the path from the root to the node that started it, such
	// as "review"; "" for the root.
	RootPath string
	// Agents number the sub-agents of the tree.
	Agents *Agents
	// Describe returns the description of a tool, "" if unknown; it may be nil.
	Describe func(tool string) string
}

// Follower records one run. It is safe for concurrent use.
type Follower struct {
	options Options

	mu             sync.Mutex
	main           *agentRecorder            // mu
	agentRecorders map[string]*agentRecorder // mu; of agents, by static path
	// ends are the last graph nodes of the work of a node of the flow, and ports its completed output ports, with ""
	// for the completion itself.
	ends        map[string][]trajectory.ID    // mu
	ports       map[string][]string           // mu
	running     map[string]*nodeWork          // mu; open attempts
	composites  map[string]*iterationEnds     // mu; open composites
	noteResults map[string]NoteResult         // mu; results of notes, by key
	failedWork  map[string]*nodeWork          // mu; failed or cancelled nodes, which a person may retry
	undescribed map[DataRef]bool              // mu; data without description
	returned    map[DataRef]bool              // mu; data that Undescribed has returned, or that has a description
	incoming    map[*flow.Graph]edgesByTarget // mu; the edges of graphs, by target node
	errs        []error                       // mu
	at          time.Time                     // mu; time of the newest commit
	runEnded    bool                          // mu; the run has ended
	// mayHaveChildren: a node waited for a child run, or a tool was called, which may be a flow.
	mayHaveChildren bool // mu
}

// edgesByTarget indexes edges by their target node.
type edgesByTarget map[string][]*flow.Edge

// agentRecorder is the recorder of one agent.
type agentRecorder struct {
	recorder *trajectory.Recorder
	release  func(context.Context) error
}

// NoteResult is the result of a note.
type NoteResult struct {
	ID  trajectory.ID // the created node, if there is one
	Err error         // the reason of a failure
}

// New starts to follow a run from its first event. It replaces what is stored of the round.
func New(ctx context.Context, o Options) (*Follower, error) {
	f := &Follower{
		options: o, agentRecorders: map[string]*agentRecorder{}, ends: map[string][]trajectory.ID{}, ports: map[string][]string{}, running: map[string]*nodeWork{},
		composites: map[string]*iterationEnds{}, noteResults: map[string]NoteResult{}, failedWork: map[string]*nodeWork{},
		undescribed: map[DataRef]bool{}, returned: map[DataRef]bool{}, incoming: map[*flow.Graph]edgesByTarget{},
	}
	main, err := f.openRecorder(ctx, o.Key, o.RootPath)
	if err != nil {
		return nil, err
	}
	f.main = main
	return f, nil
}

func (f *Follower) openRecorder(ctx context.Context, k trajectory.Key, agent string) (*agentRecorder, error) {
	r, release, err := f.options.Recorders.Open(ctx, k)
	if err != nil {
		return nil, fmt.Errorf("follow run: %w", err)
	}
	r.Clear()
	r.SetAgent(agent)
	return &agentRecorder{r, release}, nil
}

// Recorder returns the recorder of the run's own trajectory.
func (f *Follower) Recorder() *trajectory.Recorder {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.main.recorder
}

// Recorders returns the recorders of the run and of its sub-agents, without child runs.
func (f *Follower) Recorders() []*trajectory.Recorder {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []*trajectory.Recorder{f.main.recorder}
	for _, s := range f.agentRecorders { // order: they are sorted
		out = append(out, s.recorder)
	}
	slices.SortFunc(out[1:], func(a, b *trajectory.Recorder) int { return cmp.Compare(a.Key().Sub, b.Key().Sub) })
	return out
}

// MayHaveChildren reports whether the run has, or may have, child runs.
func (f *Follower) MayHaveChildren() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mayHaveChildren
}

// NoteResult returns the result of the note with a key, and whether there is one.
func (f *Follower) NoteResult(key string) (NoteResult, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.noteResults[key]
	return m, ok
}

// Err returns what could not be recorded; everything else was.
func (f *Follower) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.errs...)
}

// Close releases the recorders, which saves those that no other caller has open.
func (f *Follower) Close(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.main.release(ctx)
	for _, s := range f.agentRecorders {
		err = errors.Join(err, s.release(ctx))
	}
	return err
}

// CloseUnsaved releases the recorders without saving them, because another process continues the run.
func (f *Follower) CloseUnsaved(ctx context.Context) error {
	for _, r := range f.Recorders() {
		r.Discard()
	}
	return f.Close(ctx)
}

// RecordUnfinished records the work of nodes that have not ended, for a trajectory of a running or waiting run. The
// nodes that it adds have the attribute Unfinished. No commit may be read after it.
func (f *Follower) RecordUnfinished(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runEnded {
		return
	}
	for _, path := range slices.Sorted(maps.Keys(f.running)) {
		w := f.running[path]
		if err := f.recordUnfinished(ctx, f.at, w, nil, AttrUnfinished); err != nil {
			f.errs = append(f.errs, fmt.Errorf("record the unfinished work of %s: %w", path, err))
		}
		f.completeWork(w, nil)
	}
}

// AttrUnfinished is the attribute of nodes for unfinished work. They are recorded again when the run continues,
// possibly as other graph nodes.
const AttrUnfinished = "unfinished"

// Commit reads a commit. Commits must be passed in order, each once. An error is kept for Err and stops nothing.
func (f *Follower) Commit(ctx context.Context, c *engine.Commit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := time.UnixMilli(c.At)
	f.at = at
	for i, e := range c.Events {
		if err := f.handleEvent(ctx, at, e); err != nil && len(f.errs) < 100 {
			f.errs = append(f.errs, fmt.Errorf("record event %d, %s, of run %s: %w", c.First+int64(i), e.Kind(), c.Run, err))
		}
	}
}

func (f *Follower) handleEvent(ctx context.Context, at time.Time, e engine.Event) error {
	switch e := e.(type) {
	case *engine.RunStarted:
		return f.addQuery(at, e)
	case *engine.RunForked:
		return f.updateQuery(at, e)
	case *engine.NodeStarted:
		f.nodeStarted(e)
	case *engine.NodeExpanded:
		f.nodeExpanded(e)
	case *engine.IterationCancelled:
		if l := f.composites[compositeOf(e.Path)]; l != nil {
			l.drop(e.Path + "/")
		}
	case *engine.NodeWaiting:
		f.nodeWaiting(e)
	case *engine.EffectCompleted:
		f.effectCompleted(e)
	case *engine.StepRecorded:
		f.stepRecorded(e)
	case *engine.NoteRecorded:
		return f.handleNote(at, e)
	case *engine.InterruptAnswered:
		f.interruptAnswered(e)
	case *engine.ChildReported:
		f.childReported(e)
	default:
		return f.handleEnd(ctx, at, e)
	}
	return nil
}

// handleEnd reads an event that ends an attempt or the run.
func (f *Follower) handleEnd(ctx context.Context, at time.Time, e engine.Event) error {
	switch e := e.(type) {
	case *engine.NodeCompleted:
		return f.recordCompleted(ctx, at, e)
	case *engine.NodeFailed:
		f.nodeFailed(e)
	case *engine.NodeRetrying:
		return f.nodeRetrying(at, e)
	case *engine.NodeErrored:
		return f.nodeErrored(ctx, at, e)
	case *engine.NodeCancelled:
		return f.nodeCancelled(ctx, at, e)
	case *engine.NodeOverridden:
		return f.nodeForced(at, e)
	}
	return f.addConclusion(at, e)
}

// addQuery adds the query of the round: the input of the run.
func (f *Follower) addQuery(at time.Time, e *engine.RunStarted) error {
	text, whole := runInput(e)
	attrs := map[string]any{trajectory.AttrText: text}
	if !whole {
		attrs["inputs"] = e.Inputs.Map()
	}
	_, err := f.main.recorder.Add(trajectory.NewNode{
		Type: trajectory.Query, Name: e.Flow, Attributes: attrs, At: at, By: f.attribution("", e.User),
	})
	return err
}

// updateQuery replaces the query with the input of the fork, if the original's query has no message.
func (f *Follower) updateQuery(at time.Time, e *engine.RunForked) error {
	r := f.main.recorder
	query, err := r.Node(r.Initial())
	if _, said := query.Attributes[trajectory.AttrPosition]; err != nil || said || query.Type != trajectory.Query {
		return nil //nolint:nilerr // there is no query to speak of
	}
	text, whole := runInput(&engine.RunStarted{Flow: e.Flow, Inputs: e.Inputs})
	edit := trajectory.Edit{Name: &e.Flow, Set: map[string]any{trajectory.AttrText: text}, Delete: []string{"inputs"}}
	if !whole {
		edit.Set["inputs"], edit.Delete = e.Inputs.Map(), nil
	}
	return r.Edit(query.ID, edit, f.attribution("", e.By), at)
}

// addConclusion adds the conclusion of a run if the graph has none.
func (f *Follower) addConclusion(at time.Time, e engine.Event) error {
	attrs := map[string]any{trajectory.AttrKind: KindOutcome}
	switch e.(type) {
	case *engine.RunCompleted, *engine.RunFailed, *engine.RunCancelled:
		f.runEnded = true
	}
	switch e := e.(type) {
	case *engine.RunCompleted:
		if f.isConcluded(false) {
			return nil
		}
		attrs[trajectory.AttrText] = runOutcome(e.Outputs)
	case *engine.RunFailed:
		if f.isConcluded(true) { // the reason is recorded already
			return nil
		}
		why := reason(e.Error)
		attrs[trajectory.AttrText], attrs[trajectory.AttrFailed], attrs["code"] = why.Error(), true, why.Code
	case *engine.RunCancelled:
		attrs[trajectory.AttrText], attrs[trajectory.AttrFailed] = "The run was cancelled.", true
	default:
		return nil
	}
	_, err := f.main.recorder.Add(trajectory.NewNode{
		Type: trajectory.State, Name: "end", Relation: trajectory.HasConclusion, Attributes: attrs, At: at, By: f.attribution("", ""),
	})
	return err
}

// reason returns the reason of a failure, or a text that says that the journal has none.
func reason(e *engine.Error) *engine.Error {
	if e == nil {
		return &engine.Error{Message: "the journal does not say why"}
	}
	return e
}

// KindOutcome is the kind of a State for the outcome of a run that no model concluded.
const KindOutcome = "outcome"

// isConcluded reports whether all active branches end in a conclusion; if failed, in the reason of the failure.
func (f *Follower) isConcluded(failed bool) bool {
	current := f.main.recorder.Current()
	for _, id := range current {
		n, err := f.main.recorder.Node(id)
		if err != nil || id.Type() != trajectory.State || !failed && n.Attributes[trajectory.AttrFailed] == true {
			return false
		}
	}
	return len(current) > 0
}

// attribution returns the run and the node of the flow at the path as the author of a graph node.
func (f *Follower) attribution(path, user string) trajectory.Attribution {
	return trajectory.Attribution{Run: f.options.Run, Path: path, Agent: f.options.RootPath, User: user}
}

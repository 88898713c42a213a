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

// Options say what run is followed.
type Options struct {
	// Flow is what the run runs.
	Flow *flow.Flow
	// Run is its id.
	Run string
	// Types knows the node types of the flow.
	Types flow.Catalogue
	// Book hands out the recorders, for Key: where the run's own trajectory goes.
	Book *trajectory.Book
	Key  trajectory.Key
	// Above is where the run is in a tree of runs: the path of the node that began
	// it, down from the root, as "review"; "" for the root.
	Above string
	// Agents number the sub-agents of the tree.
	Agents *Agents
	// Describe says what a tool does, "" where that is not known; may be nil.
	Describe func(tool string) string
}

// Follower writes what one run does into recorders. It is safe for concurrent use.
type Follower struct {
	o Options

	mu   sync.Mutex
	main *sub            // mu
	subs map[string]*sub // mu; of agents, by static path
	// ends are the nodes of the graph in which the work of a node of the flow ends, and
	// ports the output ports that it gave, "" for that it completed.
	ends  map[string][]trajectory.ID // mu
	ports map[string][]string        // mu
	open  map[string]*work           // mu; attempts under way
	loops map[string]*iterations     // mu; composites under way
	made  map[string]Made            // mu; what notes became, by key
	stuck map[string]*work           // mu; what failed or was stopped: a person may have it tried again
	plain map[Datum]bool             // mu; data that nothing describes
	given map[Datum]bool             // mu; that which Plain has given, or that has a portrait
	into  map[*flow.Graph]inward     // mu; the edges of graphs, by the nodes that they lead to
	errs  []error                    // mu
	at    time.Time                  // mu; of the newest commit
	over  bool                       // mu; the run has ended
	// called: a node waited for a child run, or a tool was called, which may be a flow.
	called bool // mu
}

// inward are edges by the node that they lead to.
type inward map[string][]*flow.Edge

// sub is the recorder of one agent.
type sub struct {
	recorder *trajectory.Recorder
	release  func(context.Context) error
}

// Made is what became of a note.
type Made struct {
	ID  trajectory.ID // of the node, where one was made
	Err error         // why nothing came of it
}

// New begins to follow a run, from its first event on: what the book's storage has
// of the round is replaced.
func New(ctx context.Context, o Options) (*Follower, error) {
	f := &Follower{
		o: o, subs: map[string]*sub{}, ends: map[string][]trajectory.ID{}, ports: map[string][]string{}, open: map[string]*work{},
		loops: map[string]*iterations{}, made: map[string]Made{}, stuck: map[string]*work{},
		plain: map[Datum]bool{}, given: map[Datum]bool{}, into: map[*flow.Graph]inward{},
	}
	main, err := f.recorder(ctx, o.Key, o.Above)
	if err != nil {
		return nil, err
	}
	f.main = main
	return f, nil
}

func (f *Follower) recorder(ctx context.Context, k trajectory.Key, agent string) (*sub, error) {
	r, release, err := f.o.Book.Open(ctx, k)
	if err != nil {
		return nil, fmt.Errorf("follow run: %w", err)
	}
	r.Clear()
	r.SetAgent(agent)
	return &sub{r, release}, nil
}

// Recorder is that of the run's own trajectory.
func (f *Follower) Recorder() *trajectory.Recorder {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.main.recorder
}

// Recorders are the run's own and those of its sub-agents; not of its child runs.
func (f *Follower) Recorders() []*trajectory.Recorder {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []*trajectory.Recorder{f.main.recorder}
	for _, s := range f.subs { // order: they are sorted
		out = append(out, s.recorder)
	}
	slices.SortFunc(out[1:], func(a, b *trajectory.Recorder) int { return cmp.Compare(a.Key().Sub, b.Key().Sub) })
	return out
}

// Parental reports whether the run has, or may have, child runs.
func (f *Follower) Parental() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.called
}

// Made is what became of the note with a key, and whether there was one.
func (f *Follower) Made(key string) (Made, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.made[key]
	return m, ok
}

// Err is what could not be recorded; the rest was.
func (f *Follower) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.errs...)
}

// Close lets go of the recorders; the last who holds one saves it.
func (f *Follower) Close(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.main.release(ctx)
	for _, s := range f.subs {
		err = errors.Join(err, s.release(ctx))
	}
	return err
}

// Abandon lets go of the recorders and has nothing of them saved: another process
// goes on with the run.
func (f *Follower) Abandon(ctx context.Context) error {
	for _, r := range f.Recorders() {
		r.Discard()
	}
	return f.Close(ctx)
}

// Unfinished records what nodes have done that have not ended, for whoever reads the
// trajectory of a run that goes on or waits; what it makes has the attribute
// Unfinished. No commit may be read after it.
func (f *Follower) Unfinished(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	for _, path := range slices.Sorted(maps.Keys(f.open)) {
		w := f.open[path]
		if err := f.unfinished(ctx, f.at, w, nil, Unfinished); err != nil {
			f.errs = append(f.errs, fmt.Errorf("record the unfinished work of %s: %w", path, err))
		}
		f.close(w, nil)
	}
}

// Unfinished is the attribute of what a node did that has not ended: it is made again,
// perhaps as another node of the graph, when the run goes on.
const Unfinished = "unfinished"

// Commit reads a commit. Commits come in order, each once; an error is kept for
// Err and ends nothing.
func (f *Follower) Commit(ctx context.Context, c *engine.Commit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := time.UnixMilli(c.At)
	f.at = at
	for i, e := range c.Events {
		if err := f.event(ctx, at, e); err != nil && len(f.errs) < 100 {
			f.errs = append(f.errs, fmt.Errorf("record event %d, %s, of run %s: %w", c.First+int64(i), e.Kind(), c.Run, err))
		}
	}
}

func (f *Follower) event(ctx context.Context, at time.Time, e engine.Event) error {
	switch e := e.(type) {
	case *engine.RunStarted:
		return f.begin(at, e)
	case *engine.RunForked:
		return f.forked(at, e)
	case *engine.NodeStarted:
		f.start(e)
	case *engine.NodeExpanded:
		f.expand(e)
	case *engine.NodeWaiting:
		f.wait(e)
	case *engine.EffectCompleted:
		f.effect(e)
	case *engine.StepRecorded:
		f.step(e)
	case *engine.NoteRecorded:
		return f.note(at, e)
	case *engine.InterruptAnswered:
		f.answer(e)
	case *engine.ChildReported:
		f.child(e)
	default:
		return f.ended(ctx, at, e)
	}
	return nil
}

// ended reads an event that ends an attempt or the run.
func (f *Follower) ended(ctx context.Context, at time.Time, e engine.Event) error {
	switch e := e.(type) {
	case *engine.NodeCompleted:
		return f.completed(ctx, at, e)
	case *engine.NodeFailed:
		f.failed(e)
	case *engine.NodeRetrying:
		return f.retrying(at, e)
	case *engine.NodeErrored:
		return f.errored(ctx, at, e)
	case *engine.NodeCancelled:
		return f.cancelled(ctx, at, e)
	case *engine.NodeForced:
		return f.forced(at, e)
	}
	return f.end(at, e)
}

// begin makes the query of the round: what the run was given.
func (f *Follower) begin(at time.Time, e *engine.RunStarted) error {
	text, whole := asked(e)
	attrs := map[string]any{trajectory.Text: text}
	if !whole {
		attrs["inputs"] = e.Inputs.Map()
	}
	_, err := f.main.recorder.Add(trajectory.New{
		Type: trajectory.Query, Name: e.Flow, Attributes: attrs, At: at, By: f.by("", e.User),
	})
	return err
}

// forked has the query be what the fork was given, where nothing has been said of
// the original's.
func (f *Follower) forked(at time.Time, e *engine.RunForked) error {
	r := f.main.recorder
	query, err := r.Node(r.Initial())
	if _, said := query.Attributes[trajectory.Position]; err != nil || said || query.Type != trajectory.Query {
		return nil //nolint:nilerr // there is no query to speak of
	}
	text, whole := asked(&engine.RunStarted{Flow: e.Flow, Inputs: e.Inputs})
	edit := trajectory.Edit{Name: &e.Flow, Set: map[string]any{trajectory.Text: text}, Delete: []string{"inputs"}}
	if !whole {
		edit.Set["inputs"], edit.Delete = e.Inputs.Map(), nil
	}
	return r.Edit(query.ID, edit, f.by("", e.By), at)
}

// end makes the conclusion of a run that came to none that is in the graph.
func (f *Follower) end(at time.Time, e engine.Event) error {
	attrs := map[string]any{trajectory.Kind: Outcome}
	switch e.(type) {
	case *engine.RunCompleted, *engine.RunFailed, *engine.RunCancelled:
		f.over = true
	}
	switch e := e.(type) {
	case *engine.RunCompleted:
		if f.concluded(false) {
			return nil
		}
		attrs[trajectory.Text] = outcome(e.Outputs)
	case *engine.RunFailed:
		if f.concluded(true) { // why is there already
			return nil
		}
		why := reason(e.Error)
		attrs[trajectory.Text], attrs[trajectory.Failed], attrs["code"] = why.Error(), true, why.Code
	case *engine.RunCancelled:
		attrs[trajectory.Text], attrs[trajectory.Failed] = "The run was cancelled.", true
	default:
		return nil
	}
	_, err := f.main.recorder.Add(trajectory.New{
		Type: trajectory.State, Name: "end", Relation: trajectory.HasConclusion, Attributes: attrs, At: at, By: f.by("", ""),
	})
	return err
}

// reason is why something failed, also where a journal does not say.
func reason(e *engine.Error) *engine.Error {
	if e == nil {
		return &engine.Error{Message: "the journal does not say why"}
	}
	return e
}

// Outcome is the kind of a State that says how a run ended, where no model said it.
const Outcome = "outcome"

// concluded reports whether all active branches end in a conclusion, be it why
// something failed where failed says so.
func (f *Follower) concluded(failed bool) bool {
	current := f.main.recorder.Current()
	for _, id := range current {
		n, err := f.main.recorder.Node(id)
		if err != nil || id.Type() != trajectory.State || !failed && n.Attributes[trajectory.Failed] == true {
			return false
		}
	}
	return len(current) > 0
}

// by says who made a node of the graph: the run, and the node of the flow at the
// path.
func (f *Follower) by(path, user string) trajectory.Attribution {
	return trajectory.Attribution{Run: f.o.Run, Path: path, Agent: f.o.Above, User: user}
}

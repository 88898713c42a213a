package weir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/follow"
)

// TrajectoryOptions say how trajectories are kept.
type TrajectoryOptions struct {
	// Storage keeps each round when it ends, and whenever its run pauses: files.New,
	// tables.New, trajectory.Both; nil keeps none.
	Storage trajectory.Storage
	// Describer has a model describe the data that nothing describes; nil does not.
	Describer *Describer
}

// Describer have a model describe data in the background of the run that found or
// made it, under the run's budget; see runner.Describer.
type Describer = runner.DescriptionOptions

// Trajectory returns the graph of what an agent did in a session and why, its
// rounds joined: of the main agent where sub is 0, else of the sub-agent with that
// number. The session may be the id of a run: that of its session, or of the run
// itself, which is then the one round of a session of that name. The graph is made
// from the journal, whatever is stored of it elsewhere; what tools do, which no
// journal has, is said of those of this process.
//
// store.ErrNotFound says that there is no such session or run, and
// trajectory.ErrNotFound that the agent did nothing in it.
func (w *Weir) Trajectory(ctx context.Context, session string, sub int) (*trajectory.Graph, error) {
	return w.newTrajectoryBuilder().graphOf(ctx, session, sub)
}

// Agents lists who worked in a session, the main agent first. The session may be
// the id of a run, as for Trajectory.
func (w *Weir) Agents(ctx context.Context, session string) ([]trajectory.Agent, error) {
	return w.newTrajectoryBuilder().agentsOf(ctx, session)
}

// graphOf is that of one agent.
func (t *trajectoryBuilder) graphOf(ctx context.Context, session string, sub int) (*trajectory.Graph, error) {
	if err := t.addSession(ctx, session); err != nil {
		return nil, err
	}
	var records []trajectory.Record
	for _, r := range t.records() {
		if r.Sub == sub {
			records = append(records, r)
		}
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("session %s, sub-agent %d: %w", session, sub, trajectory.ErrNotFound)
	}
	return trajectory.JoinRounds(records...)
}

// agentsOf are the agents, the main one first.
func (t *trajectoryBuilder) agentsOf(ctx context.Context, session string) ([]trajectory.Agent, error) {
	if err := t.addSession(ctx, session); err != nil {
		return nil, err
	}
	var out []trajectory.Agent
	for _, r := range t.records() {
		if len(out) == 0 || out[len(out)-1].Sub != r.Sub {
			out = append(out, trajectory.Agent{Sub: r.Sub})
		}
		a := &out[len(out)-1]
		a.Name, a.Rounds = r.Agent, append(a.Rounds, r.Round)
	}
	return out, nil
}

// trajectoryBuilder makes trajectories from journals.
type trajectoryBuilder struct {
	store   *store.Full
	types   flow.Catalogue
	changes *trajectory.RecorderPool
	flows   map[string]*Flow // as recorded, by fingerprint and specs
	// followers are the recorders of all rounds so far: a round goes on with the numbers of
	// those before it.
	followers []*follow.Follower
	// agents are the paths of the sub-agents by the last round.
	agents        []string
	maxRounds     int  // rounds, 0 for all
	completedOnly bool // only rounds that have ended
	// describe says what a tool does; nil where there are none.
	describe func(tool string) string
}

func newTrajectoryBuilder(s *store.Full, types flow.Catalogue) *trajectoryBuilder {
	return &trajectoryBuilder{store: s, types: types, flows: make(map[string]*Flow), changes: trajectory.NewRecorderPool(nil, nil)}
}

// newTrajectoryBuilder makes trajectories of the store, with what this process's tools do.
func (w *Weir) newTrajectoryBuilder() *trajectoryBuilder {
	t := newTrajectoryBuilder(w.store, w.catalogue)
	t.describe = func(name string) string {
		if known := w.tools.Get(name); known != nil {
			return known.Description
		}
		return ""
	}
	return t
}

// records are those of all agents and rounds, in order.
func (t *trajectoryBuilder) records() []trajectory.Record {
	var out []trajectory.Record
	seen := map[trajectory.Key]bool{}
	for _, f := range t.followers {
		for _, r := range f.Recorders() {
			if k := r.Key(); !seen[k] {
				seen[k] = true
				out = append(out, r.Record())
			}
		}
	}
	slices.SortFunc(out, func(a, b trajectory.Record) int {
		return cmp.Or(cmp.Compare(a.Sub, b.Sub), cmp.Compare(a.Round, b.Round))
	})
	return out
}

// addSession follows all rounds of a session, or a run that is none.
func (t *trajectoryBuilder) addSession(ctx context.Context, id string) error {
	_, err := t.store.Session(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return t.addRunTree(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("trajectory of session %s: %w", id, err)
	}
	rounds, err := t.rounds(ctx, id)
	if err != nil {
		return err
	}
	for _, r := range rounds {
		if err := t.addRound(ctx, &r); err != nil {
			return err
		}
	}
	return nil
}

// rounds are those of a session, in order.
func (t *trajectoryBuilder) rounds(ctx context.Context, session string) ([]store.Run, error) {
	out, err := t.list(ctx, store.Filter{Session: session})
	if err != nil {
		return nil, fmt.Errorf("rounds of session %s: %w", session, err)
	}
	slices.SortFunc(out, func(a, b store.Run) int { return cmp.Compare(a.Round, b.Round) })
	if t.maxRounds > 0 {
		out = slices.DeleteFunc(out, func(r store.Run) bool { return r.Round > t.maxRounds })
	}
	return out, nil
}

// list are all runs that fit a filter, the newest first.
func (t *trajectoryBuilder) list(ctx context.Context, f store.Filter) (out []store.Run, err error) {
	f.Limit = 1000
	for {
		page, err := t.store.Runs(ctx, f)
		if err != nil {
			return nil, err
		}
		out = append(out, page...)
		if len(page) < f.Limit {
			return out, nil
		}
		f.Before = page[len(page)-1].ID
	}
}

// addRunTree follows the tree that a run is in, or the session that it is a round of.
func (t *trajectoryBuilder) addRunTree(ctx context.Context, id string) error {
	for {
		r, err := t.store.Run(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("there is no session and no run %s: %w", id, store.ErrNotFound)
		case err != nil:
			return fmt.Errorf("trajectory of run %s: %w", id, err)
		case r.Parent != "":
			id = r.Parent
		case r.Session != "":
			return t.addSession(ctx, r.Session)
		default:
			return t.addRound(ctx, &r)
		}
	}
}

// addRound follows a run at the root of its tree, and those below.
func (t *trajectoryBuilder) addRound(ctx context.Context, r *store.Run) error {
	if t.completedOnly && !r.Head.Status.Ended() {
		return nil
	}
	k := trajectory.Key{User: r.User, Session: cmp.Or(r.Session, r.ID), Round: max(r.Round, 1)}
	return t.addRun(ctx, r, func(start *engine.RunStarted, f *Flow) follow.Options {
		t.agents = agentsOf(f, start, t.agents)
		return follow.Options{Key: k, Agents: follow.NewAgents(t.agents)}
	})
}

// agentsOf are the sub-agents of a round: as its journal has them, else those before
// and those of its flow.
func agentsOf(f *Flow, start *engine.RunStarted, before []string) []string {
	if len(start.Agents) > 0 {
		return start.Agents
	}
	return follow.AgentsOf(f, before)
}

// addRun follows a run and those below it; place says whose trajectory its own is.
func (t *trajectoryBuilder) addRun(ctx context.Context, r *store.Run, place func(*engine.RunStarted, *Flow) follow.Options) error {
	if r.Commits == 0 {
		return nil
	}
	fo, o, err := t.readJournal(ctx, r, place)
	if err != nil {
		return fmt.Errorf("trajectory of run %s: %w", r.ID, err)
	}
	if !fo.MayHaveChildren() {
		return nil
	}
	children, err := t.list(ctx, store.Filter{Parent: r.ID})
	if err != nil {
		return fmt.Errorf("runs below %s: %w", r.ID, err)
	}
	for _, c := range slices.Backward(children) {
		err := t.addRun(ctx, &c, func(start *engine.RunStarted, _ *Flow) follow.Options {
			below := follow.Options{Key: o.Key, RootPath: follow.ChildPath(o.RootPath, start), Agents: o.Agents}
			below.Key.Sub = o.Agents.Number(below.RootPath)
			return below
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readJournal has a follower read a run's journal.
func (t *trajectoryBuilder) readJournal(ctx context.Context, r *store.Run, place func(*engine.RunStarted, *Flow) follow.Options) (*follow.Follower, follow.Options, error) {
	var fo *follow.Follower
	var o follow.Options
	f, err := t.flowOf(ctx, r)
	if err != nil {
		return nil, o, err
	}
	for c, err := range t.store.Commits(ctx, r.ID, 0) {
		if err != nil {
			return nil, o, err
		}
		if fo == nil {
			start, ok := c.Events[0].(*engine.RunStarted)
			if !ok {
				return nil, o, fmt.Errorf("its journal begins with %s", c.Events[0].Kind())
			}
			o = place(start, f)
			o.Flow, o.Run, o.Types, o.Recorders, o.Describe = f, r.ID, t.types, t.changes, t.describe
			if fo, err = follow.New(ctx, o); err != nil {
				return nil, o, err
			}
			t.followers = append(t.followers, fo)
		}
		fo.Commit(ctx, &c)
	}
	if fo == nil {
		return nil, o, errors.New("its journal is empty")
	}
	fo.RecordUnfinished(ctx)
	return fo, o, fo.Err()
}

// flowOf is that of a run as it was recorded, read once.
func (t *trajectoryBuilder) flowOf(ctx context.Context, r *store.Run) (*Flow, error) {
	start, err := runner.EffectiveStartIn(ctx, t.store, r.ID)
	if err != nil {
		return nil, err
	}
	key := r.Fingerprint + " " + start.Specs
	if f := t.flows[key]; f != nil {
		return f, nil
	}
	f, _, err := RecordedFlow(ctx, t.store, t.types, r.Fingerprint, start.Specs)
	if err == nil {
		t.flows[key] = f
	}
	return f, err
}

package history

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

// Trajectories derives the trajectories of agents from journals, and keeps copies of them
// in a storage if there is one.
type Trajectories struct {
	store *store.Full
	types flow.Catalogue
	// describe returns what a tool does, "" if that is unknown.
	describe func(tool string) string
	storage  trajectory.Storage // nil keeps nothing
}

// NewTrajectories returns the trajectories of the runs in a store. Types are the node types
// of runs that did not record theirs, describe returns what a tool does, and storage,
// unless it is nil, keeps copies.
func NewTrajectories(s *store.Full, types flow.Catalogue, describe func(tool string) string, storage trajectory.Storage) *Trajectories {
	return &Trajectories{store: s, types: types, describe: describe, storage: storage}
}

// Graph returns the trajectory of one agent of a session, its rounds joined: of the main
// agent if sub is 0, else of the sub-agent with that number. The session may be the id of
// a run: then it is the session of that run, or the run itself as the only round. The
// graph is derived from the journal, whatever is stored.
//
// The error is store.ErrNotFound if there is no such session or run, and
// trajectory.ErrNotFound if the agent did nothing in it.
func (t *Trajectories) Graph(ctx context.Context, session string, sub int) (*trajectory.Graph, error) {
	return t.newBuilder().graphOf(ctx, session, sub)
}

// Agents lists the agents of a session, the main agent first. The session may be the id of
// a run, as for Graph.
func (t *Trajectories) Agents(ctx context.Context, session string) ([]trajectory.Agent, error) {
	return t.newBuilder().agentsOf(ctx, session)
}

func (t *Trajectories) newBuilder() *trajectoryBuilder {
	return &trajectoryBuilder{
		store: t.store, types: t.types, describe: t.describe,
		flows: make(map[string]*flow.Flow), changes: trajectory.NewRecorderPool(nil, nil),
	}
}

// graphOf returns the graph of one agent.
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

// agentsOf returns the agents, the main one first.
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

// trajectoryBuilder derives trajectories from journals.
type trajectoryBuilder struct {
	store   *store.Full
	types   flow.Catalogue
	changes *trajectory.RecorderPool
	flows   map[string]*flow.Flow // as recorded, by fingerprint and specs
	// followers are the recorders of all rounds so far: a round continues the numbering of
	// the earlier ones.
	followers []*follow.Follower
	// agents are the paths of the sub-agents by the last round.
	agents        []string
	maxRounds     int  // 0 for all
	completedOnly bool // omit rounds that have not ended
	// describe says what a tool does; nil if there are none.
	describe func(tool string) string
}

// records returns those of all agents and rounds, in order.
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

// addSession adds all rounds of a session, or a run that belongs to no session.
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

// rounds returns the rounds of a session, in order.
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

// list returns all runs that a filter selects, newest first.
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

// addRunTree adds the tree that a run belongs to, or the session of which it is a round.
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

// addRound adds the run at the root of a tree and its child runs.
func (t *trajectoryBuilder) addRound(ctx context.Context, r *store.Run) error {
	if t.completedOnly && !r.Head.Status.Ended() {
		return nil
	}
	k := trajectory.Key{User: r.User, Session: cmp.Or(r.Session, r.ID), Round: max(r.Round, 1)}
	return t.addRun(ctx, r, func(start *engine.RunStarted, f *flow.Flow) follow.Options {
		t.agents = agentsOf(f, start, t.agents)
		return follow.Options{Key: k, Agents: follow.NewAgents(t.agents)}
	})
}

// agentsOf returns the sub-agents of a round: those in its journal, else those of earlier
// rounds and of its flow.
func agentsOf(f *flow.Flow, start *engine.RunStarted, before []string) []string {
	if len(start.Agents) > 0 {
		return start.Agents
	}
	return follow.AgentsOf(f, before)
}

// addRun adds a run and its child runs; place returns the options under which it is
// recorded.
func (t *trajectoryBuilder) addRun(ctx context.Context, r *store.Run, place func(*engine.RunStarted, *flow.Flow) follow.Options) error {
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
		err := t.addRun(ctx, &c, func(start *engine.RunStarted, _ *flow.Flow) follow.Options {
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

// readJournal records the journal of a run.
func (t *trajectoryBuilder) readJournal(ctx context.Context, r *store.Run, place func(*engine.RunStarted, *flow.Flow) follow.Options) (*follow.Follower, follow.Options, error) {
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

// flowOf returns the recorded flow of a run. Each flow is read once.
func (t *trajectoryBuilder) flowOf(ctx context.Context, r *store.Run) (*flow.Flow, error) {
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

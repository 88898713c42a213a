package runner

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/tool"
)

// Services are the services of nodes; see node.Services.
type Services struct {
	LLM   *llm.Service
	Tools *tool.Set
	// Executors run the code of nodes.
	Executors *sandbox.Set
	Cache     node.Cache
	HTTP      node.HTTPDoer
	Secret    func(name string) (string, bool)
	// Grants returns what the runs of a flow may use, by its fingerprint; nil is everything.
	// It is asked before each effect that uses something outside the run.
	Grants func(ctx context.Context, fingerprint string) (*Grants, error)
	// Quotas reserves the usage of model calls; nil is none.
	Quotas Quotas

	maxDepth int // of child runs; 0 means MaxDepth
	// toolFlow is Options.ToolFlow.
	toolFlow func(ctx context.Context, tool string) (*Program, string, error)
	history  func(run string) convo.Source // the messages of a run's contexts
}

// machine is one run in memory. It belongs to one goroutine at a time.
type machine struct {
	run         *engine.Run
	program     *Program
	services    *Services
	contexts    map[string]convo.Context
	vars        *runVars               // `run` in expressions
	laneOrigins map[string]*laneOrigin // by path of the expanding composite

	pendingFork    *ForkPlan   // to become a fork of this one, which is not staged yet
	forkBaseCommit *store.Base // the shared past of a run that was read from its beginning

	seq    int64          // of the last commit taken
	fence  int64          // the run's, if it was released with that commit; 0 if unknown
	first  int64          // number of the first staged event
	staged []engine.Event // applied, not yet committed
	// starts are attempts to start when the staged events are durable.
	starts   []*attempt
	launched []*attempt // reusable space
	// direct are attempts to run now, before their start is durable.
	direct   []*attempt
	reducers func(key string) flow.Reducer
	// checkpointEvents is the number of events that the last checkpoint includes, checkpointSize its size in bytes.
	checkpointEvents, checkpointSize int64
	freeAttempt                      *attempt // reused for the next direct attempt
	active                           map[string]*attempt
	// checkChildren: the children must be supervised. asked: the open questions may have changed. warm: nothing has
	// happened to the run or its children since this process released it.
	checkChildren, questionsChanged, unchangedSinceRelease bool
	// mainUnread: the messages with which the main context starts can be read only after the first commit.
	mainUnread bool
	// unmade: the first commit makes a run that shares another's past. Nodes with contexts wait for it, because these can
	// be read only afterwards.
	unmade bool
	ledger budgetLedger
	// snapshots are the contexts as attempts saw them, by path; see keepContextSnapshots.
	snapshots map[string]map[string]convo.Context
	// journal reads histories that started before the run; past is the history of the session of which the run is a
	// round, nil if it is none.
	journal     historyReader
	users       store.UserStateStore // nil if the store keeps no state of users
	sessionPast *sessionPast
}

func newMachine(id string, p *Program, s *Services) *machine {
	m := &machine{
		run: engine.NewRun(id, p.Plan), program: p, services: s, first: 1, reducers: p.Plan.Reducer,
		contexts: make(map[string]convo.Context), active: make(map[string]*attempt),
	}
	m.ledger.costGuard = p.costGuard
	return m
}

// step applies an event and its consequences, one at a time, and queues the attempts that they start. All events of a
// commit have the time of the first, so that a replay sees what the run saw.
func (m *machine) step(at int64, e engine.Event) error {
	if len(m.staged) == 0 {
		m.run.Tick(at)
		if cap(m.staged) < 4 { // space for many commits at once, more for a longer run
			m.staged = make([]engine.Event, 0, min(max(8, m.first), 512))
		}
	}
	for e != nil {
		from := len(m.staged)
		var err error
		if m.staged, err = m.run.Step(m.staged, e); err != nil {
			return fmt.Errorf("run %s: %w", m.run.ID, err)
		}
		for _, s := range m.staged[from:] {
			if err := m.afterApply(s); err != nil {
				return err
			}
		}
		if err := m.settleBudgetQuestions(at, m.staged[from:]); err != nil {
			return err
		}
		e = m.collectOutputs()
	}
	return nil
}

// collectOutputs evaluates the outputs of a finished scope, if there is one.
func (m *machine) collectOutputs() engine.Event {
	path, ok := m.run.FinishedScope()
	if !ok || m.program.recorded {
		return nil
	}
	scope, _ := m.run.ScopeAt(path)
	out, absent, err := evalOutputs(&scopeVars{
		scope: scope, state: m.run.ScopeState(scope), run: m.vars.get(),
		now: time.UnixMilli(m.run.Now()), seed: node.UUIDSeed(m.run.ID, path, 0),
	})
	switch {
	case err != nil && path == "":
		return &engine.RunFailed{Error: &engine.Error{
			Code: engine.CodeOutput, Message: err.Error(),
			Hint: "correct the flow's outputs and run it again",
		}}
	case err != nil && scope.EndsAlone():
		return &engine.IterationCancelled{Path: path, Error: &engine.Error{
			Code: engine.CodeOutput, Node: scope.Owner(), Message: path + ": " + err.Error(), Permanent: true,
		}}
	case err != nil:
		return &engine.NodeFailed{Path: scope.Owner(), Error: &engine.Error{
			Code: engine.CodeOutput,
			Node: scope.Owner(), Message: path + ": " + err.Error(), Permanent: true,
		}}
	case path == "":
		return m.completedEvent(out, absent)
	}
	for i := range out {
		out[i].Value = unmapLaneHandles(out[i].Value, "@"+path)
	}
	return &engine.IterationCompleted{Path: path, Outputs: out}
}

// completedEvent ends the run with its outputs.
func (m *machine) completedEvent(out, absent engine.Values) engine.Event {
	changes, err := m.run.SessionChanges()
	if err != nil {
		return &engine.RunFailed{Error: err}
	}
	ofUser, failed := m.userChanges()
	if failed != nil {
		return failed
	}
	return &engine.RunCompleted{Outputs: out, Absent: absent, Session: changes, UserState: ofUser}
}

// unmapLaneHandles renames handles of a lane's own contexts to the names outside the lane.
func unmapLaneHandles(v engine.Value, lane string) engine.Value {
	switch t := v.(type) {
	case engine.Handle:
		return engine.Handle{ID: strings.TrimSuffix(t.ID, lane)}
	case []any:
		for i := range t {
			t[i] = unmapLaneHandles(t[i], lane)
		}
	case map[string]any:
		for k := range t {
			t[k] = unmapLaneHandles(t[k], lane)
		}
	}
	return v
}

// afterApply updates the contexts after an applied event and creates the attempts that it starts.
func (m *machine) afterApply(e engine.Event) error {
	switch e := e.(type) {
	case *engine.NodeStarted:
		return m.newAttempt(e.Path, e.Forks)
	case *engine.NodeResumed:
		return m.newAttempt(e.Path, e.Forks)
	case *engine.NodeCompleted:
		m.closeLanes(e.Path)
		m.dropContextSnapshots(e.Path, true)
		return m.applyContextChanges(e.Contexts)
	case *engine.ChildReported:
		m.checkChildren, m.questionsChanged = true, true
		m.ledger.applyReport(e)
	case *engine.CancelRequested, *engine.InterruptAnswered, *engine.TimerFired:
		m.checkChildren, m.questionsChanged = true, true
	case *engine.NodeWaiting:
		m.checkChildren, m.questionsChanged = true, true
		if len(e.Interrupts) > 0 && e.Interrupts[0].Kind != engine.AwaitBreak { // before its start or after its end
			m.keepContextSnapshots(e.Path)
		}
	case *engine.NodePulling:
		m.keepContextSnapshots(e.Path)
	case *engine.NodeCancelled: // it may continue after a person has retried another node
		m.keepContextSnapshots(e.Path)
		return m.applyContextChanges(e.Contexts)
	case *engine.NodeFailed:
		m.checkChildren = true
		m.keepContextSnapshots(e.Path)
		return m.applyContextChanges(e.Contexts)
	case *engine.NodeRetrying:
		m.closeLanes(e.Path)
		m.dropContextSnapshots(e.Path, false)
	case *engine.IterationCompleted: // the winner of a race cancels the children of the other branches
		if m.run.Cancelling() {
			m.checkChildren, m.questionsChanged = true, true
		}
	case *engine.NodeErrored:
		m.checkChildren = true
		if e.Handled != "" {
			m.closeLanes(e.Path)
			m.dropContextSnapshots(e.Path, true)
		}
	case *engine.NodeOverridden:
		m.closeLanes(e.Path)
		m.dropContextSnapshots(e.Path, e.Op != "retry")
	case *engine.NodeExpanded:
		if e.Fork {
			m.openLanes(e.Path)
		}
	case *engine.RunStarted:
		m.vars = &runVars{run: m.run.ID, start: e}
		return m.applyContextChanges(e.Contexts)
	case *engine.RunForked:
		return m.applyFork(e)
	}
	return nil
}

// runVars are the values of a run's first event for expressions. Most runs read none of them.
type runVars struct {
	once  sync.Once
	run   string
	start *engine.RunStarted
	all   map[string]any
}

// get returns the values. It may be called by any goroutine.
func (v *runVars) get() map[string]any {
	if v == nil {
		return nil
	}
	v.once.Do(func() {
		e := v.start
		v.all = map[string]any{
			"id": v.run, "flow": e.Flow, "user": e.User, "inputs": e.Inputs.Map(), "session": nil, "round": nil,
		}
		if session := cmp.Or(e.Session, e.TreeSession); session != "" {
			v.all["session"], v.all["round"] = session, int64(cmp.Or(e.Round, e.TreeRound))
		}
	})
	return v.all
}

// applyContextChanges applies changes to the contexts.
func (m *machine) applyContextChanges(changes []engine.ContextChange) error {
	for i := range changes {
		if err := m.applyContextChange(&changes[i]); err != nil {
			return fmt.Errorf("context %s: %w", changes[i].ID, err)
		}
	}
	return nil
}

func (m *machine) applyContextChange(ch *engine.ContextChange) error {
	if ch.Create && ch.Session != "" {
		return m.continueSession(ch)
	}
	if ch.Create && ch.Parent != "" && ch.Run == "" {
		return m.addForkedContext(ch.ID, ch.Parent, ch.At)
	}
	body, err := changeOf(ch.Body)
	if err != nil {
		return err
	}
	if ch.Create {
		c, err := convo.New(ch.ID, body)
		if err != nil {
			return err
		}
		if ch.Run != "" {
			c = convo.Restore(c, ch.At, body.Versions, m.childHistorySource(ch))
		}
		m.contexts[ch.ID] = c
		return nil
	}
	c := m.contexts[ch.ID]
	if ch.Adds > 0 && ch.Adds == len(body.Append) {
		c, err = c.Extend(body.Append, body.Versions) // does not read the store
	} else {
		c, err = c.Apply(body)
	}
	if err != nil {
		return err
	}
	m.contexts[ch.ID] = c
	return nil
}

// childHistorySource returns the source of the messages with which a child run's context starts. A lane of the parent
// has only its own messages under its name, so the run itself is the source; the store resolves lanes once the first
// commit exists.
func (m *machine) childHistorySource(ch *engine.ContextChange) convo.Source {
	if strings.Contains(ch.Parent, "@") {
		m.mainUnread = true
		return &renamedSource{m.services.history(m.run.ID), ch.ID}
	}
	return &renamedSource{m.services.history(ch.Run), ch.Parent}
}

// newAttempt creates the attempt that an event starts. Its inputs are those as of this event.
func (m *machine) newAttempt(path string, forks []engine.ContextChange) error {
	if err := m.applyContextChanges(forks); err != nil {
		return err
	}
	m.snapshotContexts(path)
	e, ok := m.run.Entry(path)
	if !ok {
		return fmt.Errorf("run %s: node %s was started and is not executing", m.run.ID, path)
	}
	if m.program.recorded {
		return nil
	}
	h := e.Plan.Host.(*preparedNode)
	a := m.freeAttempt
	m.freeAttempt = nil
	if a == nil {
		a = &attempt{}
	}
	m.initAttempt(a, e, h)
	if h.startsEarly && (!m.unmade || len(e.Contexts) == 0) && (!m.mainUnread || m.seq > 0) {
		m.direct = append(m.direct, a)
	} else {
		m.starts = append(m.starts, a)
	}
	return nil
}

// takeCommit returns the staged events as the run's next commit; ok is false if there are none.
func (m *machine) takeCommit() (c engine.Commit, ok bool) {
	if len(m.staged) == 0 {
		return c, false
	}
	m.seq++
	c = engine.Commit{Run: m.run.ID, Seq: m.seq, First: m.first, At: m.run.Now(), Events: slices.Clip(m.staged)}
	m.first += int64(len(m.staged))
	m.staged = m.staged[len(m.staged):] // the rest of the space is for later commits
	return c, true
}

// replay applies an existing commit.
func (m *machine) replay(c engine.Commit) error {
	if c.Seq != m.seq+1 {
		return fmt.Errorf("run %s: commit %d follows %d", m.run.ID, c.Seq, m.seq)
	}
	m.run.Tick(c.At)
	for _, e := range c.Events {
		if err := m.run.Apply(e); err != nil {
			if s := m.run.Start; s.Fingerprint != m.program.Fingerprint {
				return m.checkFlow(s)
			}
			return fmt.Errorf("run %s, commit %d: %w", m.run.ID, c.Seq, err)
		}
		if err := m.replayEvent(e); err != nil {
			return fmt.Errorf("run %s, commit %d: %w", m.run.ID, c.Seq, err)
		}
	}
	m.seq = c.Seq
	m.first = c.First + int64(len(c.Events))
	return nil
}

// replayEvent is step without starting anything.
func (m *machine) replayEvent(e engine.Event) error {
	switch e := e.(type) {
	case *engine.NodeStarted:
		return m.restoreContextSnapshots(e.Path, e.Forks)
	case *engine.NodeResumed:
		return m.restoreContextSnapshots(e.Path, e.Forks)
	}
	return m.afterApply(e)
}

// relaunch queues every attempt that was executing when the run was released or its process died, and continues with
// decisions that were not journaled. If the run stops, the attempts have ended with the process.
func (m *machine) relaunch(at int64) error {
	if m.program.recorded && !m.run.Cancelling() {
		return nil
	}
	for _, path := range m.run.Executing() {
		var err error
		if m.run.Aborted(path) {
			err = m.step(at, m.cancelledEvent(path, m.hasUnknownEffect(path)))
		} else {
			err = m.newAttempt(path, nil)
			if a := m.active[path]; a != nil {
				a.markInterrupted()
			}
		}
		if err != nil {
			return err
		}
	}
	if e := m.run.Decide(); e != nil {
		return m.step(at, e)
	}
	if e := m.collectOutputs(); e != nil {
		return m.step(at, e)
	}
	return nil
}

// hasUnknownEffect reports whether an effect of the node was announced and has no
// result.
func (m *machine) hasUnknownEffect(path string) bool {
	done := m.run.Effects(path)
	for key := range m.run.StartedEffects(path) {
		if done[key] == nil {
			return true
		}
	}
	return false
}

// takeLaunchable returns the attempts whose start is durable. Those that the run no longer needs are cancelled
// instead.
func (m *machine) takeLaunchable(at int64) ([]*attempt, error) {
	starts := m.starts
	m.starts, m.launched = m.launched[:0], starts
	if !m.run.Cancelling() {
		return starts, nil
	}
	var out []*attempt
	for _, a := range starts {
		if !m.run.Aborted(a.Path) {
			out = append(out, a)
			continue
		}
		delete(m.active, a.Path)
		if err := m.step(at, m.cancelledEvent(a.Path, m.hasUnknownEffect(a.Path))); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// checkFlow returns an error if the run was started with another flow.
func (m *machine) checkFlow(s *engine.RunStarted) error {
	return fmt.Errorf("run %s was started under flow %s and this is %s: %w", m.run.ID, s.Fingerprint, m.program.Fingerprint, ErrDependenciesChanged)
}

// checkDependencies returns the node types and tools that differ from those with which the run was started; nil if
// none do. Tools are ignored for a run that has ended.
func (m *machine) checkDependencies(s *engine.RunStarted) error {
	if m.program.recorded || m.program.allowChanges {
		return nil
	}
	status := m.run.Status()
	anyhow := m.program.ignoreToolChanges || status == engine.Completed || status == engine.Cancelled
	diff := m.program.missingDependencies(s.Pinned, anyhow)
	if diff == nil {
		return nil
	}
	return &DependenciesChanged{Run: m.run.ID, Changes: diff}
}

// MissingDependencies lists the node types and tools of a run's pinned dependencies that differ or are missing.
func (p *Program) MissingDependencies(pinned map[string]string) []string {
	return p.missingDependencies(pinned, false)
}

// missingDependencies is MissingDependencies; anyhow ignores tools.
func (p *Program) missingDependencies(pinned map[string]string, anyhow bool) []string {
	var diff []string
	for _, name := range slices.Sorted(maps.Keys(pinned)) {
		was, is := pinned[name], p.Pinned[name]
		if was == is {
			continue
		}
		switch tool, ok := strings.CutPrefix(name, toolPinPrefix); {
		case !ok && is == "":
			diff = append(diff, fmt.Sprintf("there is no node type %s, whose version was %s", name, was))
		case !ok:
			diff = append(diff, fmt.Sprintf("%s was version %s and is %s", name, was, is))
		case anyhow:
		case is == "":
			diff = append(diff, fmt.Sprintf("the tool %s is no longer offered", tool))
		default:
			diff = append(diff, fmt.Sprintf("the tool %s is defined otherwise (was %.8s, is %.8s)", tool, was, is))
		}
	}
	return diff
}

package runner

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// PlanFork plans a fork of a run that continues with the program to; from is the run's program. It writes nothing and
// takes no lease. An error with the code fork_point says why the fork point does not exist.
func (l *Local) PlanFork(ctx context.Context, from, to *Program, run string, f ForkOptions) (*ForkPlan, error) {
	row, err := l.store.Run(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	start, err := l.EffectiveStart(ctx, run)
	if err != nil {
		return nil, err
	}
	e := &forkEdits{from: from, to: to, targets: start.Targets}
	explicit := f.At > 0 || f.From != ""
	if !explicit {
		e.pinned = start.Pinned
		e.inputs = ChangedInputs(start.Inputs, f.Inputs)
		e.model = f.Settings != nil || f.Model != ""
	}
	s := &forkScan{
		local: l, program: to, id: run, options: &f, stale: e.stale(),
		whole: explicit && from.Fingerprint == to.Fingerprint, started: make(map[string]bool),
	}
	if !explicit && len(s.stale) == 0 && from.Fingerprint == to.Fingerprint && len(e.inputs) == 0 {
		return nil, nothingChanged(run, row.Head.Error)
	}
	if err := s.findPoint(ctx, row); err != nil {
		return nil, err
	}
	p := &ForkPlan{
		Run: run, At: s.last.at, Events: row.Events, fork: f, user: start.User, program: to,
		sharedTail: s.last.sharedTail,
		event: &engine.RunForked{
			From: run, At: s.last.at, AtTime: s.last.time, Flow: to.Flow.Name, Fingerprint: to.Fingerprint, Pinned: to.Pinned, Specs: to.Specs,
			Inputs: f.Inputs, State: f.State, Breaks: f.Breaks, Origin: f.Origin, By: f.By, Runner: l.o.Runner,
			Edited: len(f.State) > 0 || len(ChangedInputs(start.Inputs, f.Inputs)) > 0 || f.Settings != nil || f.Model != "",
		},
	}
	p.base = store.Base{Run: run, Seq: s.last.seq}
	if f.At > 0 && f.At != s.last.at {
		p.RequestedAt = f.At
	}
	return p, s.listNodes(p, from)
}

// ChangedInputs returns the names of the inputs that differ, in order.
func ChangedInputs(a, b engine.Values) []string {
	names := make(map[string]bool)
	for _, list := range []engine.Values{a, b} {
		for _, v := range list {
			x, inA := a.Get(v.Name)
			y, inB := b.Get(v.Name)
			if inA != inB || !reflect.DeepEqual(x, y) {
				names[v.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func forkError(hint, format string, args ...any) error {
	return &engine.Error{Code: engine.CodeFork, Permanent: true, Message: fmt.Sprintf(format, args...), Hint: hint}
}

func nothingChanged(run string, failure *engine.Error) error {
	hint := "say where it begins anew (--from NODE or --at EVENT), or what is different (-i NAME=VALUE, --flow FILE, --model)"
	if failure != nil && failure.Node != "" {
		hint += "; the node that failed is " + failure.Node
	}
	return forkError(hint, "a fork of run %s with nothing changed would be the same run", run)
}

// journalPoint is a position in a journal: the last shared event.
type journalPoint struct {
	at, time int64 // the event's number, the time of its commit
	// seq is the last commit that is shared as a whole, carried are the shared events of the next one.
	seq        int64
	sharedTail []engine.Event
}

// forkScan searches the journal of a run for the fork point.
type forkScan struct {
	local   *Local
	program *Program
	id      string
	options *ForkOptions
	// stale are the nodes of which no events can be shared; with whole all events can.
	stale map[string]string
	whole bool

	run       *engine.Run
	last      *journalPoint
	started   map[string]bool // nodes that were started after the point, or were executing
	executing map[string]bool // nodes that were executing at the point
	stopped   string          // the stale node before whose first event the scan stopped
	found     bool            // At or From was found
}

// findPoint leaves run as it was after the last possible point.
func (s *forkScan) findPoint(ctx context.Context, row store.Run) error {
	if s.options.At > row.Events {
		return forkError("`"+engine.CommandLine("show", s.id, "--events")+"` lists them", "run %s has %d events, and none is number %d", s.id, row.Events, s.options.At)
	}
	if !s.scanFromCheckpoint(ctx, row) {
		s.run, s.last = engine.NewRun(s.id, s.program.Plan), nil
		s.started, s.stopped, s.found = make(map[string]bool), "", false
		if err := s.scan(ctx, 0, 0); err != nil {
			return err
		}
	}
	if err := s.checkFound(row); err != nil {
		return err
	}
	if s.run.Events() == s.last.at {
		return nil
	}
	begun := s.started // the point is before the end of the scan
	to := s.last.at
	s.run, s.last, s.started = engine.NewRun(s.id, s.program.Plan), nil, make(map[string]bool)
	if err := s.scan(ctx, 0, to); err != nil {
		return err
	}
	maps.Copy(s.started, begun)
	return nil
}

// checkFound returns why there is no such point.
func (s *forkScan) checkFound(row store.Run) error {
	switch {
	case s.options.From != "" && !s.found && s.stopped == "":
		return s.noStartError()
	case s.last == nil:
		return forkError("", "run %s has no event that could be shared", s.id)
	case s.stopped != "" && (s.options.From != "" && !s.found || s.options.At > s.last.at && !s.whole):
		return forkError(fmt.Sprintf("leave --at and --from out, or give --at %d or one before it", s.last.at),
			"node %s, which %s, had started by then: the past can be shared up to event %d of %d", s.stopped, s.stale[s.stopped], s.last.at, row.Events)
	}
	return nil
}

// noStartError returns why the events of a node are not a possible start.
func (s *forkScan) noStartError() error {
	path := s.options.From
	if n := s.program.Plan.Find(path); n == nil {
		return forkError("", "the flow of run %s has no node %q", s.id, path)
	}
	if strings.Contains(path, "#") {
		return forkError("the path of a node in an iteration is as refine#2/draft; `"+engine.CommandLine("show", s.id)+"` lists them",
			"node %s was not started in run %s", path, s.id)
	}
	if st := s.run.StatusOf(path); st.Ended() {
		return forkError("give a node that was started, or --at EVENT", "node %s was %s in run %s, and never started", path, st, s.id)
	}
	return forkError("give a node that was started, or --at EVENT", "run %s has not come to node %s", s.id, path)
}

// scanFromCheckpoint scans from the run's newest checkpoint if the point cannot be before it; otherwise it returns
// false.
func (s *forkScan) scanFromCheckpoint(ctx context.Context, row store.Run) bool {
	if row.Fingerprint != s.program.Fingerprint {
		return false
	}
	cp, err := s.local.store.Checkpoint(ctx, s.id)
	if err != nil {
		return false
	}
	m, err := restoreMachine(s.id, s.program, &s.local.o.Services, cp, &messageSource{s.local.store, s.id})
	if err != nil || m.run.Start.Fingerprint != s.program.Fingerprint || !s.beforePoint(m.run) {
		return false
	}
	s.run, s.last = m.run, &journalPoint{at: m.run.Events(), time: m.run.Now(), seq: cp.Seq}
	for _, path := range m.run.Executing() {
		s.started[path] = true
	}
	return s.scan(ctx, cp.Seq, 0) == nil && s.last != nil
}

// beforePoint reports whether the scan has not reached the point yet.
func (s *forkScan) beforePoint(r *engine.Run) bool {
	if !r.Forkable() || s.options.At > 0 && r.Events() > s.options.At {
		return false
	}
	if s.options.From != "" {
		return r.Unstarted(s.options.From)
	}
	for id := range s.stale {
		if !s.whole && !r.Unstarted(id) {
			return false
		}
	}
	return true
}

// scan applies events up to the point, and after it only records which nodes are started. It ends after event number
// to, if that is not 0.
func (s *forkScan) scan(ctx context.Context, after, to int64) error {
	open := true
	for c, err := range s.local.store.Commits(ctx, s.id, after) {
		if err != nil {
			return fmt.Errorf("read run %s: %w", s.id, err)
		}
		if open {
			s.run.Tick(c.At)
		}
		for i, e := range c.Events {
			n := c.First + int64(i)
			if to > 0 && n > to {
				return nil
			}
			if open = open && !s.stopsAt(e, n); !open {
				s.noteStart(e)
				continue
			}
			if err := s.apply(c, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteStart records what is started after the point.
func (s *forkScan) noteStart(e engine.Event) {
	if st, ok := e.(*engine.NodeStarted); ok {
		s.started[st.Path] = true
	}
}

// apply applies event i of a commit.
func (s *forkScan) apply(c engine.Commit, i int) error {
	if err := s.run.Apply(c.Events[i]); err != nil {
		return fmt.Errorf("run %s, commit %d: %w", s.id, c.Seq, err)
	}
	if s.run.Forkable() {
		s.markPoint(c, i)
	}
	return nil
}

// markPoint records that the past can end with event i of a commit.
func (s *forkScan) markPoint(c engine.Commit, i int) {
	s.last = &journalPoint{at: c.First + int64(i), time: c.At, seq: c.Seq}
	if i+1 < len(c.Events) {
		s.last.seq, s.last.sharedTail = c.Seq-1, c.Events[:i+1:i+1]
	}
}

// stopsAt reports whether an event is the first that is not shared.
func (s *forkScan) stopsAt(e engine.Event, number int64) bool {
	path := engine.EventPath(e)
	switch {
	case s.options.At > 0 && number > s.options.At:
		s.found = true
		return true
	case s.options.From != "" && startedPath(e) == s.options.From:
		s.found = true
		return true
	case s.whole:
		return false
	}
	root := path
	if i := strings.IndexByte(root, '#'); i >= 0 {
		root = root[:i]
	}
	if s.stale[root] != "" {
		s.stopped = root
		return true
	}
	switch e := e.(type) {
	case *engine.NodeNotNeeded:
		return !strings.Contains(e.Path, "#")
	case *engine.RunCompleted:
		return true
	}
	return false
}

// startedPath returns the path of what an event starts.
func startedPath(e engine.Event) string {
	switch e := e.(type) {
	case *engine.NodeStarted:
		return e.Path
	case *engine.IterationStarted:
		return e.Path
	}
	return "\x00"
}

// listNodes lists the uses of the nodes.
func (s *forkScan) listNodes(p *ForkPlan, from *Program) error {
	p.Shared = s.run.SharedUsage().Add(s.run.Usage())
	s.executing = make(map[string]bool)
	for _, path := range s.run.Executing() {
		s.started[path], s.executing[path] = true, true
	}
	if err := s.run.Apply(p.event); err != nil {
		return fmt.Errorf("fork run %s: %w", s.id, err)
	}
	for _, n := range s.run.Nodes() {
		p.Nodes = append(p.Nodes, s.planNode(n, from))
	}
	for _, n := range from.Flow.Nodes {
		if p.program.Flow.Node(n.ID) == nil {
			p.Removed = append(p.Removed, n.ID)
		}
	}
	return nil
}

func (s *forkScan) planNode(n engine.Node, from *Program) ForkedNode {
	f := ForkedNode{Path: n.Path, Type: n.Type}
	root := !strings.Contains(n.Path, "/")
	switch {
	case n.Status.Ended():
		f.Reuse = NodeReused
	case n.Status == engine.Waiting, n.Status == engine.Running:
		f.Reuse = NodeContinues
	case root && from.Flow.Node(n.Path) == nil:
		f.Reuse = NodeAdded
	case s.started[n.Path]:
		f.Reuse = NodeRestarts
	default:
		f.Reuse = NodeNotReached
	}
	switch {
	case f.Reuse == NodeReused || f.Reuse == NodeContinues || f.Reuse == NodeAdded:
	case root && !s.whole && s.stale[n.Path] != "":
		f.Reason = s.stale[n.Path]
	case n.Path == s.options.From:
		f.Reason = "is where the fork begins"
	case f.Reuse == NodeRestarts && s.executing[n.Path]:
		f.Reason = "was at work then"
	case f.Reuse == NodeRestarts:
		f.Reason = "comes later"
	}
	return f
}

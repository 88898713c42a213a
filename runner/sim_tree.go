package runner

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner/childrun"
)

// SimTree drives a run and all its child runs in one goroutine from a seed, as Sim drives one run: which run and
// which attempt continues, when children are started, report to their parents and leave memory, when commits are
// written, timers fire and questions are answered, at the root or in the child, and when the process dies. After a
// crash any run may be the first that is resumed. The same seed gives the same tree.
type SimTree struct {
	Seed uint64
	// Crash is the probability, at each step, that the process dies; Fault that a commit fails, half of the time
	// although it was written, and the process with it.
	Crash, Fault float64
	// Flow finds the program of a flow by fingerprint.
	Flow func(fingerprint string) (*Program, error)
	// Answer returns the answer to an interrupt, and false to leave it open.
	Answer func(i engine.Interrupt) (engine.Value, bool)
	// Cancel is the probability, at each step, that the root is cancelled; Stray that a child run is cancelled.
	Cancel, CancelChild float64
	// SkipTime is the probability, at each step, that time advances to the next timer although there are other steps.
	SkipTime float64
	// Committed is called after each written commit of a run, Crashed after each crash, and Acknowledged when a
	// cancellation of the root is acknowledged.
	Committed    func(c engine.Commit, r *engine.Run) error
	Crashed      func()
	Acknowledged func()
	// MaxSteps limits the simulation; 0 means 1,000,000.
	MaxSteps int
}

// SimTreeReport is the result of a simulated tree: Runs are in the order of creation, the root first.
type SimTreeReport struct {
	Steps, Crashes, Faults int
	Runs                   []SimReport
}

// simTree is the state of one SimTree.
type simTree struct {
	*SimTree
	rng             *rand.Rand
	services        Services
	parallel        int
	clock           int64
	runs            []*simRun
	byID            map[string]*simRun
	report          SimTreeReport
	idle            int  // how often the root was resumed since the last commit
	cancelRequested bool // a caller waits for the acknowledgement of a cancellation
}

// simRun is a run of a tree.
type simRun struct {
	simulation

	tree        *simTree
	parent      *simRun
	options     StartOptions
	driven      bool     // in memory, and driven
	lastMachine *machine // the cached machine of a run that left memory
	link        childrun.Link
	children    childrun.Children

	interrupts []engine.Interrupt // the interrupts in the run's row
	status     engine.Status      // and its status
	cancelled  bool               // durably so
}

// Run simulates the tree until its root has ended or nothing can happen.
func (s *SimTree) Run(p *Program, services Services, b StartOptions) (SimTreeReport, error) {
	rng := rand.New(rand.NewPCG(s.Seed, 0x51ed270b0a1f39c1))
	t := &simTree{
		SimTree: s, rng: rng, services: services, parallel: 1 + rng.IntN(6), clock: simEpoch, byID: make(map[string]*simRun),
	}
	t.services.history = func(run string) convo.Source { return simSource{t.journal, run} }
	err := t.resume(t.add(p, b, nil))
	if err == nil {
		err = t.loop()
	}
	for _, x := range t.runs {
		if x.driven {
			x.kill()
		}
		if e := t.addReport(x); err == nil {
			err = e
		}
	}
	if err != nil {
		err = fmt.Errorf("seed %d, step %d: %w", s.Seed, t.report.Steps, err)
	}
	return t.report, err
}

func (t *simTree) journal(run string) []engine.Commit {
	if x := t.byID[run]; x != nil {
		return x.journal
	}
	return nil
}

// add creates the row of a run.
func (t *simTree) add(p *Program, b StartOptions, parent *simRun) *simRun {
	x := &simRun{tree: t, parent: parent, options: b}
	x.simulation = simulation{
		Sim: &Sim{Seed: t.Seed, Fault: t.Fault, Committed: x.committed}, rng: t.rng, program: p, services: &t.services, id: b.ID,
		clock: &t.clock, journalOf: t.journal, onFault: t.crash,
		onStart: func() error { return x.m.step(t.clock, b.startedEvent(p, t.parallel)) },
	}
	t.runs = append(t.runs, x)
	t.byID[b.ID] = x
	return x
}

// committed updates the row of a run.
func (x *simRun) committed(c engine.Commit, r *engine.Run, _ map[string]convo.Context) error {
	x.interrupts, x.status, x.tree.idle = r.Interrupts(), r.Status(), 0
	for _, e := range c.Events {
		if _, ok := e.(*engine.CancelRequested); ok {
			x.cancelled = true
		}
	}
	if x.tree.Committed != nil {
		return x.tree.Committed(c, r)
	}
	return nil
}

// addReport adds the result of a run, from its journal, to the report.
func (t *simTree) addReport(x *simRun) error {
	m := newMachine(x.id, x.program, x.services)
	for _, c := range x.journal {
		if err := m.replay(c); err != nil {
			return err
		}
	}
	x.m = m
	x.fillReport()
	t.report.Runs = append(t.report.Runs, x.report)
	return nil
}

// loop takes steps until the root has ended and nothing is left to do.
func (t *simTree) loop() error {
	limit := t.MaxSteps
	if limit == 0 {
		limit = 1_000_000
	}
	for ; t.report.Steps < limit; t.report.Steps++ {
		if t.rng.Float64() < t.Crash {
			if err := t.crash(); err != nil {
				return err
			}
		}
		if err := t.maybeCancel(); err != nil {
			return err
		}
		done, err := t.takeStep()
		if done || err != nil {
			return err
		}
		t.acknowledge()
	}
	return fmt.Errorf("%w: no end after %d steps", ErrSimStuck, limit)
}

// takeStep chooses one possible step in the tree and takes it.
func (t *simTree) takeStep() (done bool, err error) {
	var choices []func() error
	for _, x := range t.runs {
		if x.driven {
			choices = append(choices, x.treeChoices()...)
		}
	}
	choices = append(choices, t.possibleAnswers()...)
	if len(choices) == 0 || t.rng.Float64() < t.SkipTime {
		if fire := t.timer(); fire != nil {
			choices = []func() error{fire}
		}
	}
	if len(choices) == 0 {
		return t.resumeRoot()
	}
	t.clock += int64(t.rng.IntN(3))
	err = choices[t.rng.IntN(len(choices))]()
	for _, x := range t.runs {
		if x.driven {
			x.abort()
		}
	}
	return false, err
}

// timer fires the timer that is due first.
func (t *simTree) timer() func() error {
	var next *simRun
	var id string
	var due int64
	for _, x := range t.runs {
		if !x.driven || len(x.m.direct) > 0 {
			continue
		}
		if i, at, ok := x.m.run.NextTimer(); ok && (next == nil || at < due) {
			next, id, due = x, i, at
		}
	}
	if next == nil {
		return nil
	}
	return func() error {
		t.clock = max(t.clock, due)
		return next.m.step(t.clock, &engine.TimerFired{ID: id})
	}
}

// resumeRoot resumes the root if nothing else can happen and it has not ended.
func (t *simTree) resumeRoot() (done bool, err error) {
	root := t.runs[0]
	if root.status.Ended() {
		return true, nil
	}
	if t.idle++; t.idle > 3 || root.driven {
		return false, fmt.Errorf("%w: %s", ErrSimStuck, t)
	}
	return false, t.resume(root)
}

// String describes the runs that have not ended.
func (t *simTree) String() string {
	var b strings.Builder
	for _, x := range t.runs {
		if x.status.Ended() && !x.driven {
			continue
		}
		fmt.Fprintf(&b, "run %s (parent %s) is %s, in memory %t, %s, waits for", x.id, x.options.Parent, x.status, x.driven, x.link.State())
		for _, i := range x.interrupts {
			b.WriteString(" " + i.ID)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// crash ends the process. The first resumed run may be any that has not ended, or is the root.
func (t *simTree) crash() error {
	t.report.Crashes++
	var open []*simRun
	for _, x := range t.runs {
		t.report.Faults += x.report.Faults
		x.report.Faults, x.lastMachine = 0, nil
		if x.driven {
			x.kill()
			x.driven = false
		}
		if len(x.journal) > 0 && !x.status.Ended() {
			open = append(open, x)
		}
	}
	t.cancelRequested, t.idle = false, 0 // no caller waits
	if t.Crashed != nil {
		t.Crashed()
	}
	if len(open) > 0 && t.rng.IntN(3) == 0 {
		return t.resume(open[t.rng.IntN(len(open))])
	}
	return nil
}

// resume loads a run into memory and drives it.
func (t *simTree) resume(x *simRun) error {
	if x.driven {
		return nil
	}
	x.driven, x.link, x.children = true, childrun.Link{}, childrun.Children{}
	if x.parent == nil {
		x.link.Continue(childrun.Root, false, nil)
	}
	x.launchHeld = !x.link.MayLaunch(x.origin())
	left := x.lastMachine
	x.lastMachine = nil
	if left != nil && t.rng.IntN(2) == 0 {
		x.m = left
		x.m.unchangedSinceRelease = true
		return x.m.relaunch(t.clock)
	}
	return x.restart()
}

// maybeCancel may cancel a run.
func (t *simTree) maybeCancel() error {
	var x *simRun
	switch p := t.rng.Float64(); {
	case p < t.Cancel:
		x = t.runs[0]
	case p < t.Cancel+t.CancelChild && len(t.runs) > 1:
		x = t.runs[1+t.rng.IntN(len(t.runs)-1)]
	}
	if x == nil || len(x.journal) == 0 || x.status.Ended() {
		return nil
	}
	err := t.do(x, Cancel("somebody", ""))
	if x.parent == nil && err == nil {
		t.cancelRequested = true
	}
	return ignoreRefusal(err)
}

// acknowledge acknowledges the cancellation of the root when it is durable in all runs below it.
func (t *simTree) acknowledge() {
	if t.cancelRequested && t.runs[0].treeCancelled() {
		t.cancelRequested = false
		if t.Acknowledged != nil {
			t.Acknowledged()
		}
	}
}

// do carries out a command on a run, which is resumed first if necessary; one for a child is carried out there.
func (t *simTree) do(x *simRun, c Command) error {
	if err := t.resume(x); err != nil {
		return err
	}
	if len(x.m.direct) > 0 {
		return errSimBusy
	}
	e, err := c(x.m.run)
	if w, ok := errors.AsType[*childCommand](err); ok {
		if below := t.byID[w.child.Run]; below != nil {
			return t.do(below, w.command)
		}
		return ErrNoInterrupt
	}
	if err != nil || e == nil {
		return err
	}
	return x.m.step(t.clock, e)
}

// errSimBusy: the run's driver has not processed its messages yet.
var errSimBusy = errors.New("the run is at work")

// ignoreRefusal ignores the errors with which a late command is refused, as in a real process.
func ignoreRefusal(err error) error {
	for _, late := range []error{ErrNoInterrupt, ErrStatus, errSimBusy, errCancelling} {
		if errors.Is(err, late) {
			return nil
		}
	}
	return err
}

// possibleAnswers returns the questions that may be answered now, by the root's name for them or in the child.
func (t *simTree) possibleAnswers() (out []func() error) {
	if t.Answer == nil {
		return nil
	}
	for _, x := range t.runs {
		if x.status.Ended() || x.driven && len(x.m.direct) > 0 {
			continue
		}
		list := x.interrupts
		if x.driven {
			list = x.m.run.Interrupts()
		}
		for _, i := range list {
			if v, ok := t.Answer(i); ok && (x.parent == nil || !childrun.AsksBelow([]engine.Interrupt{i})) {
				out = append(out, func() error { return ignoreRefusal(t.do(x, Answer(i.ID, v, "sim"))) })
			}
		}
	}
	return out
}

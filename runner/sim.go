package runner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
)

// Sim drives one run in one goroutine from a seed: which attempt continues, when commits are written, when timers
// fire and questions are answered, and when the process crashes. The same seed gives the same run.
type Sim struct {
	Seed uint64
	// Parallel is the maximum number of running nodes; 0 derives it from the seed.
	Parallel int
	// Crash is the probability, at each step, that the process dies and restarts from the durable state; Fault that a
	// commit fails, half of the time although it was written.
	Crash, Fault float64
	// Answer returns the answer to an interrupt, and false to leave it open.
	Answer func(i engine.Interrupt) (engine.Value, bool)
	// Command may return a command, before a step; nil means none. A refused command is not an error.
	Command func(r *engine.Run) Command
	// BeforeStep is called before each step, Committed after each written commit, with the run after it (also if the
	// process dies with it), and Crashed after each crash; an error ends the simulation.
	BeforeStep func(r *engine.Run) error
	Committed  func(c engine.Commit, r *engine.Run, contexts map[string]convo.Context) error
	Crashed    func()
	// MaxSteps limits the simulation; 0 means 1,000,000.
	MaxSteps int
}

// SimReport is the result of a simulation.
type SimReport struct {
	Result
	Steps, Crashes, Faults int
	// Commits is the journal.
	Commits []engine.Commit
	// Contexts are the run's contexts at the end.
	Contexts map[string]convo.Context
}

// ErrSimStuck: the simulation could not continue, or took too many steps.
var ErrSimStuck = errors.New("simulation stuck")

// simulation is the state of one Sim.
type simulation struct {
	*Sim
	rng        *rand.Rand
	program    *Program
	services   *Services
	id         string
	m          *machine
	running    []*coroutine
	waiting    []*coroutine // their events are staged
	journal    []engine.Commit
	checkpoint store.Checkpoint // the newest; Body is nil if there is none
	clock      *int64
	report     SimReport
	journalOf  func(run string) []engine.Commit // the journals that histories are read from
	// onStart starts the run if it does not exist yet, and fall is called when a commit failed.
	onStart, onFault func() error
	launchHeld       bool // no attempt is launched yet
}

// coroutine is an attempt that runs until it needs the machine.
type coroutine struct {
	a      *attempt
	next   func() ([]engine.Event, bool)
	stop   func()
	err    error
	refuse error // what flush returns
}

// Run simulates a run of the program until it ends or nothing can happen.
func (s *Sim) Run(p *Program, services Services, b StartOptions) (SimReport, error) {
	rng := rand.New(rand.NewPCG(s.Seed, 0x9e3779b97f4a7c15))
	sim := &simulation{Sim: s, rng: rng, program: p, services: &services, id: b.ID, clock: new(simEpoch)}
	parallel := s.parallel(rng)
	sim.onStart = func() error { return sim.m.step(*sim.clock, b.startedEvent(p, parallel)) }
	sim.onFault = sim.crash
	sim.journalOf = func(string) []engine.Commit { return sim.journal }
	sim.m = newMachine(b.ID, p, sim.services)
	err := sim.onStart()
	if err == nil {
		err = sim.loop()
	}
	sim.kill()
	sim.fillReport()
	if err != nil {
		err = fmt.Errorf("seed %d, step %d: %w", s.Seed, sim.report.Steps, err)
	}
	return sim.report, err
}

// simEpoch is the start time of simulations, Unix milliseconds.
const simEpoch int64 = 1_700_000_000_000

// parallel returns how many nodes may run at once.
func (s *Sim) parallel(rng *rand.Rand) int {
	if s.Parallel > 0 {
		return s.Parallel
	}
	return 1 + rng.IntN(8)
}

// fillReport sets the result of the run.
func (s *simulation) fillReport() {
	s.report.Result = resultOf(s.m.run)
	s.report.Commits, s.report.Contexts = s.journal, s.m.contexts
}

// loop takes steps until the run has ended durably.
func (s *simulation) loop() error {
	limit := s.MaxSteps
	if limit == 0 {
		limit = 1_000_000
	}
	for ; s.report.Steps < limit; s.report.Steps++ {
		if s.BeforeStep != nil {
			if err := s.BeforeStep(s.m.run); err != nil {
				return err
			}
		}
		if err := s.sendCommand(); err != nil {
			return err
		}
		if s.rng.Float64() < s.Crash {
			if err := s.crash(); err != nil {
				return err
			}
			continue
		}
		done, err := s.takeStep()
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: no end after %d steps", ErrSimStuck, limit)
}

// sendCommand sends the command for this step, if there is one.
func (s *simulation) sendCommand() error {
	if s.Command == nil || s.m.run.Start == nil || len(s.m.direct) > 0 {
		return nil
	}
	c := s.Command(s.m.run)
	if c == nil {
		return nil
	}
	e, err := c(s.m.run)
	if err != nil || e == nil {
		return nil //nolint:nilerr // a late command is refused, as in a real process
	}
	err = s.m.step(*s.clock, e)
	s.abort()
	return err
}

// abort stops the attempts that the run no longer needs: they start no effect, and their next request is refused.
func (s *simulation) abort() {
	if !s.m.run.Cancelling() {
		return
	}
	for _, list := range [][]*coroutine{s.running, s.waiting} {
		for _, c := range list {
			if !c.a.stopping.Load() && s.m.run.Aborted(c.a.Path) {
				c.a.stopping.Store(true)
				c.a.cancel(errAborted)
			}
		}
	}
}

// takeStep chooses one possible step and takes it.
func (s *simulation) takeStep() (done bool, err error) {
	choices := s.choices()
	ended := s.m.run.Status().Ended()
	if !ended && len(s.m.direct) == 0 {
		choices = append(choices, s.possibleAnswers()...)
	}
	if len(choices) == 0 && !ended {
		if id, at, ok := s.m.run.NextTimer(); ok {
			*s.clock = max(*s.clock, at)
			return false, s.m.step(*s.clock, &engine.TimerFired{ID: id})
		}
	}
	if len(choices) == 0 {
		return true, nil
	}
	*s.clock += int64(s.rng.IntN(3))
	err = choices[s.rng.IntN(len(choices))]()
	s.abort()
	return false, err
}

// choices returns the next steps of the run itself.
func (s *simulation) choices() (out []func() error) {
	for i := range s.m.direct {
		out = append(out, func() error { return s.runDirect(i) })
	}
	for i := range s.running {
		out = append(out, func() error { return s.advance(i) })
	}
	if len(s.m.staged) > 0 { // also between direct attempts, as a full commit is written
		out = append(out, s.commit)
	}
	return out
}

// possibleAnswers returns the questions that may be answered now.
func (s *simulation) possibleAnswers() []func() error {
	if s.Answer == nil {
		return nil
	}
	var out []func() error
	for _, i := range s.m.run.Interrupts() {
		if v, ok := s.Answer(i); ok {
			out = append(out, func() error {
				e, err := Answer(i.ID, v, "sim")(s.m.run)
				if err != nil {
					return err
				}
				return s.m.step(*s.clock, e)
			})
		}
	}
	return out
}

func (s *simulation) runDirect(i int) error {
	a := s.m.direct[i]
	s.m.direct = slices.Delete(s.m.direct, i, i+1)
	a.io = refusingIO{}
	_, err := a.runNode()
	return s.m.applyOutcome(*s.clock, a, err, 0)
}

// advance continues an attempt until it needs a flush, yields, or ends.
func (s *simulation) advance(i int) error {
	c := s.running[i]
	events, more := c.next()
	if !more {
		s.running = slices.Delete(s.running, i, i+1)
		c.a.cancel(nil)
		withoutTime(c.a.pending)
		return s.m.applyOutcome(*s.clock, c.a, c.err, 0)
	}
	if len(events) == 0 {
		return nil
	}
	withoutTime(events)
	refused := false
	for _, e := range events {
		if _, begins := e.(*engine.EffectStarted); begins && c.a.stopping.Load() {
			refused = true
			continue
		}
		if err := s.m.step(*s.clock, e); err != nil {
			return err
		}
	}
	if refused { // it continues at once, to its end
		c.refuse = errAborted
		return nil
	}
	s.running = slices.Delete(s.running, i, i+1)
	s.waiting = append(s.waiting, c)
	return nil
}

// withoutTime removes the real durations from effects.
func withoutTime(events []engine.Event) {
	for _, e := range events {
		if done, ok := e.(*engine.EffectCompleted); ok {
			done.Micros = 0
		}
	}
}

// commit writes the staged events, or fails to.
func (s *simulation) commit() error {
	c, _ := s.m.takeCommit()
	fault := s.rng.Float64() < s.Fault
	if !fault || s.rng.IntN(2) == 0 {
		s.journal = append(s.journal, c)
		if s.Committed != nil {
			if err := s.Committed(c, s.m.run, s.m.contexts); err != nil {
				return err
			}
		}
	}
	if fault {
		s.report.Faults++
		return s.onFault()
	}
	if err := s.keepCheckpoint(); err != nil {
		return err
	}
	s.running = append(s.running, s.waiting...)
	s.waiting = nil
	return s.launch()
}

// launch starts the attempts whose start is durable.
func (s *simulation) launch() error {
	if s.launchHeld {
		return nil
	}
	starts, err := s.m.takeLaunchable(*s.clock)
	for _, a := range starts {
		s.running = append(s.running, s.newCoroutine(a))
	}
	return err
}

// newCoroutine creates the coroutine of an attempt.
func (s *simulation) newCoroutine(a *attempt) *coroutine {
	c := &coroutine{a: a}
	ctx, cancel := context.WithCancelCause(context.Background())
	a.cancel = cancel
	a.ctx.Bind(ctx)
	c.next, c.stop = iter.Pull(func(yield func([]engine.Event) bool) {
		a.io = &simIO{c, yield}
		_, c.err = a.runNode()
	})
	return c
}

// crash loses everything that is not durable and restarts from the journal.
func (s *simulation) crash() error {
	s.report.Crashes++
	s.kill()
	if s.Crashed != nil {
		s.Crashed()
	}
	return s.restart()
}

// restart loads the run, whose journal is read back from its encoding.
func (s *simulation) restart() error {
	m, err := s.reload()
	if err != nil {
		return err
	}
	s.m = m
	for _, c := range s.journal[m.seq:] {
		b, err := engine.EncodeEvents(nil, c.Events)
		if err != nil {
			return fmt.Errorf("encode commit %d: %w", c.Seq, err)
		}
		if c.Events, err = engine.DecodeEvents(b); err != nil {
			return fmt.Errorf("decode commit %d: %w", c.Seq, err)
		}
		if err := s.m.replay(c); err != nil {
			return err
		}
	}
	if s.m.run.Start == nil {
		return s.onStart()
	}
	if err := s.m.relaunch(*s.clock); err != nil || len(s.m.staged) > 0 {
		return err
	}
	return s.launch()
}

// kill ends all coroutines.
func (s *simulation) kill() {
	for _, c := range append(s.running, s.waiting...) {
		c.refuse = errClosing
		c.stop()
		c.a.cancel(errClosing)
	}
	s.running, s.waiting = nil, nil
}

// simIO is the attemptIO of a simulated attempt.
type simIO struct {
	c     *coroutine
	yield func([]engine.Event) bool
}

func (d *simIO) flush(_ *attempt, events []engine.Event) error {
	if d.c.refuse != nil {
		return d.c.refuse
	}
	if !d.yield(slices.Clone(events)) {
		return errClosing
	}
	return d.c.refuse
}

func (d *simIO) emit(*attempt, llm.Chunk) {
	if d.c.refuse == nil && !d.yield(nil) {
		d.c.refuse = errClosing
	}
}

// refusingIO is the attemptIO of attempts without effects.
type refusingIO struct{}

func (refusingIO) flush(*attempt, []engine.Event) error {
	return errors.New("a pure inline node has no effects")
}
func (refusingIO) emit(*attempt, llm.Chunk) {}

package runner_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

var (
	treesN    = flag.Int("trees.n", 100, "how many trees TestTreesOfFiveLevels cancels or kills")
	treesSeed = flag.Uint64("trees.seed", 0, "the one tree to run; 0 is all")
)

// errKilled is what a dead process's store says.
var errKilled = errors.New("the process is dead")

// killableStore is a store as one process has it: from some commit on it is dead to that
// process, as if it had been killed there.
type killableStore struct {
	*memory.Store
	dead        atomic.Bool
	commitsLeft atomic.Int64 // commits until then; negative is never
	log         *commitLog
	mu          sync.Mutex
	held        map[string]store.Lease
}

// commitLog is the order in which the commits of all runs became durable.
type commitLog struct {
	mu   sync.Mutex
	list []engine.Commit
}

func newKillableStore(s *memory.Store, log *commitLog) *killableStore {
	m := &killableStore{Store: s, log: log, held: make(map[string]store.Lease)}
	m.commitsLeft.Store(-1)
	return m
}

func (m *killableStore) checkAlive() error {
	if m.dead.Load() {
		return errKilled
	}
	return nil
}

// Append commits while the process lives.
func (m *killableStore) Append(ctx context.Context, as []store.Append) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if left := m.commitsLeft.Load(); left == 0 {
		m.dead.Store(true)
	} else if left > 0 {
		m.commitsLeft.Add(-1)
	}
	if m.dead.Load() {
		errs := make([]error, len(as))
		for i := range errs {
			errs[i] = errKilled
		}
		return errs
	}
	errs := m.Store.Append(ctx, as)
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	for i := range as {
		if errs[i] == nil {
			m.log.list = append(m.log.list, as[i].Commit)
			if as[i].Acquire != nil {
				m.held[as[i].Commit.Run] = *as[i].Acquire
			}
		}
	}
	return errs
}

// Create and the other methods are the store's while the process lives.
func (m *killableStore) Create(ctx context.Context, r store.NewRun) error {
	if err := m.checkAlive(); err != nil {
		return err
	}
	return m.Store.Create(ctx, r)
}

// Run reads a row.
func (m *killableStore) Run(ctx context.Context, id string) (store.Run, error) {
	if err := m.checkAlive(); err != nil {
		return store.Run{}, err
	}
	return m.Store.Run(ctx, id)
}

// Commits reads a journal.
func (m *killableStore) Commits(ctx context.Context, run string, after int64) iter.Seq2[engine.Commit, error] {
	if err := m.checkAlive(); err != nil {
		return func(yield func(engine.Commit, error) bool) { yield(engine.Commit{}, err) }
	}
	return m.Store.Commits(ctx, run, after)
}

// Acquire takes a lease and remembers it.
func (m *killableStore) Acquire(ctx context.Context, run, owner string, ttl time.Duration) (store.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkAlive(); err != nil {
		return store.Lease{}, err
	}
	l, err := m.Store.Acquire(ctx, run, owner, ttl)
	if err == nil {
		m.held[run] = l
	}
	return l, err
}

// Release gives a lease back.
func (m *killableStore) Release(ctx context.Context, l store.Lease) error {
	if err := m.checkAlive(); err != nil {
		return err
	}
	return m.Store.Release(ctx, l)
}

// Do makes it known to its nodes whether the process lives.
func (m *killableStore) Do(*http.Request) (*http.Response, error) {
	return &http.Response{Body: http.NoBody}, m.checkAlive()
}

// kill ends the process: what it held is free, as once its leases have run out.
func (m *killableStore) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead.Store(true)
	for _, l := range m.held {
		_ = m.Store.Release(context.Background(), l)
	}
}

// effectLog is the world outside: what effects there were.
type effectLog struct {
	mu         sync.Mutex
	started    int
	endedCount int
	cancelled  bool                  // the cancellation was acknowledged
	at         int                   // after so many commits
	reached    map[int]chan struct{} // closed when so many effects have begun
}

func (l *effectLog) effectStarted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started++
	if c := l.reached[l.started]; c != nil {
		close(c)
	}
}

func (l *effectLog) effectEnded() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endedCount++
}

// afterStarted is closed once n effects have begun.
func (l *effectLog) afterStarted(n int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan struct{})
	if l.started >= n {
		close(c)
		return c
	}
	l.reached[n] = c
	return c
}

// workType is a node type with one effect, which takes a moment.
type workType struct {
	spec   flow.TypeSpec
	ledger *effectLog
	pause  time.Duration
}

func newWorkType(l *effectLog, pause time.Duration) *workType {
	return &workType{flow.TypeSpec{
		Name: "work", Version: 1, Ports: flow.Ports{Out: []flow.Port{{Name: "out", Type: flow.TypeAny}}},
	}, l, pause}
}

// Spec describes the type.
func (w *workType) Spec() *flow.TypeSpec { return &w.spec }

// Prepare makes the node.
func (w *workType) Prepare(map[string]any) (node.Node, error) {
	return node.NodeFunc(func(ctx *node.Ctx) error {
		took := engine.Usage{Calls: 1, Input: 10}
		_, err := ctx.Do(node.Effect{
			Name: "work", Request: ctx.Info().Path, Reserve: &node.Reserve{Usage: took},
			Do: func(context.Context, string) (node.Outcome, error) {
				if _, err := ctx.HTTP().Do(nil); err != nil { //nolint:bodyclose // it is empty
					return node.Outcome{}, err // the dead do nothing
				}
				w.ledger.effectStarted()
				defer w.ledger.effectEnded()
				<-time.After(w.pause) // what is in flight ends by itself, soon
				return node.Outcome{Value: int64(1), Usage: &took}, nil
			},
		})
		if err == nil {
			ctx.Output("out", int64(1))
		}
		return err
	}), nil
}

// fiveLevelTree makes a tree of five levels under a root: runs that work, run others
// beside each other, and ask.
func fiveLevelTree(tr *tree, rng *rand.Rand) *runner.Program {
	var p *runner.Program
	for level := range 6 {
		text := "nodes:\n  before: {type: work}\n"
		switch {
		case level == 0 && rng.IntN(3) == 0:
			text += "  ask: {type: userInput, after: before, with: {prompt: \"Go on?\"}}\n  last: {type: work, after: ask}\n"
		case level == 0:
			text += "  last: {type: work, after: before}\n"
		default:
			for i := range 1 + rng.IntN(2) {
				after := ""
				if rng.IntN(2) == 0 {
					after = "after: before, "
				}
				text += fmt.Sprintf("  sub%d: {type: sub, %swith: {flow: level%d}}\n", i, after, level-1)
			}
			text += "  after: {type: work, after: sub0}\n"
		}
		if level == 5 {
			text = "budget: {maxCalls: 1000000}\n" + text
		}
		p = tr.add(fmt.Sprintf("level%d", level), text)
	}
	return p
}

// TestTreesOfFiveLevels cancels trees of runs and kills the process that drives
// them, at random, and holds what is left to what was promised.
func TestTreesOfFiveLevels(t *testing.T) {
	if *treesSeed != 0 {
		checkTree(t, *treesSeed)
		return
	}
	for seed := uint64(1); seed <= uint64(*treesN); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			checkTree(t, seed)
		})
	}
}

func checkTree(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	l := &effectLog{reached: make(map[int]chan struct{})}
	tr := newTree(t, newWorkType(l, time.Duration(rng.IntN(2000))*time.Microsecond))
	p := fiveLevelTree(tr, rng)
	s, log := memory.New(), &commitLog{}
	kills := rng.IntN(4)
	for range kills {
		m := tr.process(s, log)
		m.commitsLeft.Store(int64(rng.IntN(60)))
		x, err := tr.local.Start(t.Context(), p, runner.StartOptions{ID: "r"})
		if err == nil {
			_, _ = x.Wait(t.Context())
		}
		m.kill()
		_ = tr.local.Close(t.Context())
	}
	tr.process(s, log)
	x, err := tr.local.Start(t.Context(), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if rng.IntN(4) > 0 {
		select {
		case <-l.afterStarted(1 + rng.IntN(30)):
		case <-x.Done():
		}
		cancelTree(t, tr, p, l, log)
	}
	tr.answerAll(p)
	l.check(t, s, log, kills)
}

// process starts another process on the store.
func (t *tree) process(s *memory.Store, log *commitLog) *killableStore {
	m := newKillableStore(s, log)
	t.store, t.services.HTTP = m, m
	t.open()
	return m
}

// cancelTree cancels the tree and has the ledger know when that is certain.
func cancelTree(t *testing.T, tr *tree, p *runner.Program, l *effectLog, log *commitLog) {
	t.Helper()
	_, err := tr.local.Do(t.Context(), p, "r", runner.Cancel("me", "enough"))
	if err != nil && !errors.Is(err, runner.ErrStatus) {
		t.Fatalf("cancel: %v", err)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancelled, l.at = err == nil, len(log.list)
}

// answerAll answers what the tree asks until it has ended.
func (t *tree) answerAll(p *runner.Program) {
	t.tb.Helper()
	for range 1000 {
		x, err := t.local.Resume(t.tb.Context(), p, "r")
		if err != nil {
			t.tb.Fatal(err)
		}
		r := t.wait(x)
		if r.Status.Ended() {
			return
		}
		for _, i := range r.Interrupts {
			_, err := t.local.Do(t.tb.Context(), p, "r", runner.Answer(i.ID, "yes", "me"))
			if err != nil && !errors.Is(err, runner.ErrNoInterrupt) {
				t.tb.Fatalf("answer %s: %v", i.ID, err)
			}
		}
		if len(r.Interrupts) == 0 {
			t.tb.Fatalf("the tree is %s and asks nothing", r.Status)
		}
	}
	for _, r := range t.runs() {
		t.tb.Logf("%s of %s: %s, %s, owner %q", r.ID, r.Parent, r.Head.Status, ids(r.Head.Waiting), r.Owner)
	}
	t.tb.Fatal("no end after 1,000 rounds")
}

// check holds the record to what was promised.
func (l *effectLog) check(t *testing.T, s *memory.Store, log *commitLog, kills int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancelled {
		checkNoStarts(t, log.list[l.at:])
	}
	list, err := s.Runs(t.Context(), store.Filter{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	last, where := map[string]engine.Event{}, map[string]int{}
	for i, c := range log.list {
		last[c.Run], where[c.Run] = c.Events[len(c.Events)-1], i
	}
	for _, r := range list {
		want := map[engine.Status]string{engine.Completed: "run.completed", engine.Cancelled: "run.cancelled"}[r.Head.Status]
		if got := last[r.ID]; got == nil || got.Kind() != want {
			t.Errorf("run %s is %s, and its last event is %v", r.ID, r.Head.Status, got)
		}
		eventually(t, func() bool { // the last reader has released it
			r, err := s.Run(t.Context(), r.ID)
			return err == nil && r.Owner == ""
		})
		if r.Parent != "" && where[r.ID] > where[r.Parent] {
			t.Errorf("run %s ended after its parent %s", r.ID, r.Parent)
		}
		if r.Parent == "" {
			l.checkUsage(t, &r, kills)
		}
	}
}

// checkNoStarts holds what came after an acknowledgement to it.
func checkNoStarts(t *testing.T, after []engine.Commit) {
	t.Helper()
	for _, c := range after {
		for _, e := range c.Events {
			switch e := e.(type) {
			case *engine.RunStarted:
				t.Errorf("run %s began after the cancellation was acknowledged", c.Run)
			case *engine.EffectStarted:
				t.Errorf("effect %s of run %s began after the cancellation was acknowledged", e.Key, c.Run)
			}
		}
	}
}

func (l *effectLog) checkUsage(t *testing.T, root *store.Run, kills int) {
	t.Helper()
	if kills == 0 && l.started != l.endedCount {
		t.Errorf("%d effects began and %d ended", l.started, l.endedCount)
	}
	// Announced calls that never started are charged too.
	used := root.Head.Usage
	exact := kills == 0 && !l.cancelled
	if used.Calls < l.started || exact && used.Calls != l.started || used.Input != used.Calls*10 {
		t.Errorf("the tree's usage is %+v, and %d calls were begun", used, l.started)
	}
}

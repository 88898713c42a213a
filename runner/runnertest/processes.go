package runnertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// testProcesses is what subjects do whose runs outlive a process.
func testProcesses(t *testing.T, s Subject) {
	t.Run("a paused run is resumed by another process", func(t *testing.T) { testResume(t, s) })
	t.Run("a second process is refused while the first holds the run", func(t *testing.T) { testRefusal(t, s) })
	t.Run("a lost lease stops the first process", func(t *testing.T) { testLostLease(t, s) })
	t.Run("another process cancels through the inbox", func(t *testing.T) { testInbox(t, s) })
	t.Run("closing leaves runs resumable and repeats no effect", func(t *testing.T) { testClose(t, s) })
	t.Run("a slow reader misses no event and delays no other", func(t *testing.T) { testReading(t, s) })
	t.Run("64 runs at once keep apart", func(t *testing.T) { testManyRuns(t, s) })
	t.Run("starting an id again joins the run", func(t *testing.T) { testJoin(t, s) })
	t.Run("starting an id again in another way is refused", func(t *testing.T) { testReusedID(t, s) })
	t.Run("a process with recovery fires the due timer of a run without an owner", func(t *testing.T) { testSweeper(t, s) })
	t.Run("after a crash only what came after the last checkpoint is read", func(t *testing.T) { testCrash(t, s) })
	t.Run("a long loop leaves a small checkpoint", func(t *testing.T) { testLongLoop(t, s) })
	t.Run("a run whose flow has changed is refused", func(t *testing.T) { testChangedDependencies(t, s) })
}

func testResume(t *testing.T, s Subject) {
	st, p := s.Store(t), program(t, asking, nil)
	first := Open(t, st)
	x, err := first.Start(t.Context(), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if r := drive(t, first, p, x, Script{}); r.Status != engine.Paused {
		t.Fatalf("got %+v", r)
	}
	second := Open(t, st)
	if _, err := second.Do(t.Context(), p, "r", runner.Answer("ask:ask#1", "many", "")); !errors.Is(err, runner.ErrAnswer) {
		t.Errorf("an answer that does not fit: %v", err)
	}
	x, err = second.Do(t.Context(), p, "r", runner.Answer("ask:ask#1", int64(1), "somebody"))
	if err != nil {
		t.Fatal(err)
	}
	r := drive(t, second, p, x, Script{})
	if v, _ := r.Outputs.Get("n"); r.Status != engine.Completed || v != int64(2) {
		t.Fatalf("got %+v", r)
	}
	if _, err := first.Do(t.Context(), p, "r", runner.Answer("ask:ask#1", int64(1), "")); !errors.Is(err, runner.ErrNoInterrupt) {
		t.Errorf("answering twice: %v", err)
	}
}

// gateNode is a node that is held until it is opened.
type gateNode struct {
	reached chan string
	open    chan struct{}
}

func newGate() *gateNode { return &gateNode{make(chan string, 100), make(chan struct{})} }

func (g *gateNode) pass(c *node.Ctx) error {
	g.reached <- c.Info().Path
	select {
	case <-g.open:
		c.Output("value", "through")
		return nil
	case <-c.Done():
		return c.Err()
	}
}

const gated = `
weir: 1
name: gated
nodes:
  before: {type: do, with: {call: pay}}
  a: {type: do, in: {x: "{{ before.value }}"}, with: {call: gate}}
outputs: {v: "{{ a.value }}"}
`

func (g *gateNode) program(t *testing.T, l *effectLog) *runner.Program {
	t.Helper()
	return program(t, gated, funcType{"gate": g.pass, "pay": func(c *node.Ctx) error {
		v, err := l.runEffect(c, "pay")
		c.Output("value", v)
		return err
	}})
}

func testRefusal(t *testing.T, s Subject) {
	st, g := s.Store(t), newGate()
	p := g.program(t, &effectLog{})
	first, second := Open(t, st), Open(t, st)
	x, err := first.Start(t.Context(), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	<-g.reached
	for name, try := range map[string]func() error{
		"start":  func() error { _, err := second.Start(t.Context(), p, runner.StartOptions{ID: "r"}); return err },
		"resume": func() error { _, err := second.Resume(t.Context(), p, "r"); return err },
		"cancel": func() error { _, err := second.Do(t.Context(), p, "r", runner.Cancel("", "")); return err },
	} {
		if err := try(); !errors.Is(err, store.ErrOwned) {
			t.Errorf("%s by the second process: %v", name, err)
		}
	}
	close(g.open)
	if r := drive(t, first, p, x, Script{}); r.Status != engine.Completed {
		t.Fatalf("got %+v", r)
	}
}

func testLostLease(t *testing.T, s Subject) {
	st, g := s.Store(t), newGate()
	p := g.program(t, &effectLog{})
	l := Open(t, st)
	x, err := l.Start(t.Context(), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	<-g.reached
	// Somebody whose clock is an hour ahead takes the run.
	lease, err := st.Seize(t.Context(), "r", ownerOf(t, st, "r"), "thief", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	commits := len(journal(t, st, "r"))
	if _, err := x.Wait(t.Context()); !errors.Is(err, store.ErrFenced) { // by the lease that cannot be renewed
		t.Fatalf("the first process ended with %v", err)
	}
	if n := len(journal(t, st, "r")); n != commits {
		t.Errorf("the first process made %d commits more", n-commits)
	}
	if err := st.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	close(g.open)
	x, err = l.Resume(t.Context(), p, "r")
	if err != nil {
		t.Fatal(err)
	}
	if r := drive(t, l, p, x, Script{}); r.Status != engine.Completed {
		t.Fatalf("got %+v", r)
	}
}

func testInbox(t *testing.T, s Subject) {
	st, g := s.Store(t), newGate()
	p := g.program(t, &effectLog{})
	l := Open(t, st)
	x, err := l.Start(t.Context(), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	<-g.reached
	if err := st.Post(t.Context(), store.Post{Run: "r", Kind: "cancel", By: "elsewhere", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if r := drive(t, l, p, x, Script{}); r.Status != engine.Cancelled {
		t.Fatalf("got %+v", r)
	}
	left := 1
	for until := time.Now().Add(5 * time.Second); left > 0 && time.Now().Before(until); {
		ps, err := st.Inbox(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		left = len(ps)
	}
	if left > 0 {
		t.Error("the message is still in the inbox")
	}
}

func testClose(t *testing.T, s Subject) {
	st, g := s.Store(t), newGate()
	var l effectLog
	p := g.program(t, &l)
	first := runner.NewLocal(runner.Options{Store: st})
	x, err := first.Start(t.Context(), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	<-g.reached
	closeLocal(t, first)
	if r, err := x.Wait(t.Context()); !errors.Is(err, runner.ErrStopped) || r.Status != engine.Running {
		t.Fatalf("got %+v, %v", r, err)
	}
	if _, err := first.Start(t.Context(), p, runner.StartOptions{ID: "other"}); !errors.Is(err, runner.ErrClosed) {
		t.Errorf("starting on a closed runner: %v", err)
	}
	close(g.open)
	second := Open(t, st)
	if x, err = second.Resume(t.Context(), p, "r"); err != nil {
		t.Fatal(err)
	}
	if r := drive(t, second, p, x, Script{}); r.Status != engine.Completed {
		t.Fatalf("got %+v", r)
	}
	if n := l.count("r/before/pay#1"); n != 1 {
		t.Errorf("paid %d times", n)
	}
}

func testReading(t *testing.T, s Subject) {
	const chunks = 20_000 // far more than a reader may lag behind
	st, g := s.Store(t), newGate()
	p := program(t, `
weir: 1
name: noisy
nodes:
  wait: {type: do, with: {call: gate}}
  a: {type: do, in: {x: "{{ wait.value }}"}, with: {call: noise}}
  b: {type: do, in: {x: "{{ a.value }}"}, with: {call: noise}}
outputs: {v: "{{ b.value }}"}
`, funcType{"gate": g.pass, "noise": func(c *node.Ctx) error {
		for range chunks {
			c.Emit(llm.Chunk{Text: "x"})
		}
		c.Output("value", 1)
		return nil
	}})
	l := Open(t, st)
	x, err := l.Start(t.Context(), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	<-g.reached
	var numbers []int64
	for it, err := range x.Items(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if it.Event == nil {
			continue
		}
		if len(numbers) == 0 { // read one, then sleep until all is over
			close(g.open)
			if r, err := x.Wait(t.Context()); err != nil || r.Status != engine.Completed {
				t.Fatalf("got %+v, %v", r, err)
			}
		}
		numbers = append(numbers, it.Number)
	}
	if want := len(allEvents(journal(t, st, "r"))); len(numbers) != want {
		t.Errorf("%d events were read, the journal has %d", len(numbers), want)
	}
	for i, n := range numbers {
		if n != int64(i+1) {
			t.Fatalf("event %d has number %d", i+1, n)
		}
	}
}

func testManyRuns(t *testing.T, s Subject) {
	p := program(t, `
weir: 1
name: counting
inputs: {n: {type: number, required: true}}
nodes:
  a: {type: do, in: {n: "{{ run.inputs.n }}"}, with: {call: echo}}
  b: {type: do, in: {n: "{{ a.value }}"}, with: {call: echo}}
outputs: {n: "{{ b.value }}"}
`, funcType{"echo": func(c *node.Ctx) error {
		v, _ := c.Input("n")
		c.Output("value", v)
		return nil
	}})
	st := s.Store(t)
	l := Open(t, st)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			id := fmt.Sprintf("r%d", i)
			x, err := l.Start(t.Context(), p, runner.StartOptions{ID: id, Inputs: engine.Values{{Name: "n", Value: int64(i)}}})
			if err != nil {
				t.Error(err)
				return
			}
			r, err := x.Wait(t.Context())
			if v, _ := r.Outputs.Get("n"); err != nil || r.Status != engine.Completed || v != int64(i) {
				t.Errorf("run %s: %+v, %v", id, r, err)
			}
		})
	}
	wg.Wait()
}

func testJoin(t *testing.T, s Subject) {
	st, g := s.Store(t), newGate()
	var l effectLog
	p := g.program(t, &l)
	loc := Open(t, st)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			x, err := loc.Start(t.Context(), p, runner.StartOptions{ID: "r"})
			if err != nil {
				t.Error(err)
				return
			}
			if i == 0 {
				<-g.reached
				close(g.open)
			}
			if r, err := x.Wait(t.Context()); err != nil || r.Status != engine.Completed {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
	wg.Wait()
	x, err := loc.Start(context.WithoutCancel(t.Context()), p, runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := x.Wait(t.Context()); err != nil || r.Status != engine.Completed {
		t.Errorf("started again when it was over: %+v, %v", r, err)
	}
	if n := l.count("r/before/pay#1"); n != 1 {
		t.Errorf("paid %d times", n)
	}
}

func testReusedID(t *testing.T, s Subject) {
	st, p := s.Store(t), program(t, asking, nil)
	start := runner.StartOptions{
		ID: "r", User: "ada", Targets: []string{"ask"}, Inputs: engine.Values{{Name: "a", Value: int64(1)}}, State: engine.Values{{Name: "k", Value: "v"}},
	}
	for _, process := range []string{"the first", "another"} {
		l := Open(t, st)
		x, err := l.Start(t.Context(), p, start)
		if err != nil {
			t.Fatalf("%s process: %v", process, err)
		}
		if r, err := x.Wait(t.Context()); err != nil || r.Status != engine.Paused {
			t.Fatalf("%s process: %+v, %v", process, r, err)
		}
		for what, change := range map[string]func(b *runner.StartOptions){
			"input":    func(b *runner.StartOptions) { b.Inputs = engine.Values{{Name: "a", Value: int64(2)}} },
			"no input": func(b *runner.StartOptions) { b.Inputs = nil },
			"more":     func(b *runner.StartOptions) { b.Inputs = append(engine.Values{{Name: "b", Value: true}}, b.Inputs...) },
			"state":    func(b *runner.StartOptions) { b.State = engine.Values{{Name: "k", Value: "w"}} },
			"key":      func(b *runner.StartOptions) { b.State = engine.Values{{Name: "l", Value: "v"}} },
			"user":     func(b *runner.StartOptions) { b.User = "bert" },
			"targets":  func(b *runner.StartOptions) { b.Targets = nil },
			"breaks":   func(b *runner.StartOptions) { b.Breaks = []string{"ask"} },
			"no state": func(b *runner.StartOptions) { b.State = nil },
			"model":    func(b *runner.StartOptions) { b.Settings.Model = "other" },
			"provider": func(b *runner.StartOptions) { b.Settings.Provider = "other" },
			"system":   func(b *runner.StartOptions) { b.Settings.System = "Be brief." },
			"parent":   func(b *runner.StartOptions) { b.Parent = "other" },
		} {
			b := start
			change(&b)
			_, err := l.Start(t.Context(), p, b)
			if e, ok := errors.AsType[*engine.Error](err); !ok || e.Code != engine.CodeRequestReused {
				t.Errorf("%s process, another %s: %v", process, what, err)
			}
		}
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func testChangedDependencies(t *testing.T, s Subject) {
	st := s.Store(t)
	l := Open(t, st)
	x, err := l.Start(t.Context(), program(t, asking, nil), runner.StartOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := x.Wait(t.Context()); err != nil || r.Status != engine.Paused {
		t.Fatalf("got %+v, %v", r, err)
	}
	if _, err := l.Resume(t.Context(), program(t, gated, funcType{"gate": nil, "pay": nil}.withStubs()), "r"); !errors.Is(err, runner.ErrDependenciesChanged) {
		t.Errorf("resumed under another flow: %v", err)
	}
}

// withStubs gives every name a function that does nothing.
func (f funcType) withStubs() funcType {
	for name := range f {
		f[name] = func(*node.Ctx) error { return nil }
	}
	return f
}

// ownerOf returns the owner of a run.
func ownerOf(t *testing.T, st Store, run string) string {
	t.Helper()
	r, err := st.Run(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	return r.Owner
}

package weirtest

import (
	"context"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// caseRunner runs one flow in its own Weir.
type caseRunner struct {
	tb    testing.TB
	c     Case
	w     *weir.Weir
	model *modelRecorder
}

func newCaseRunner(tb testing.TB, c Case) *caseRunner {
	tb.Helper()
	p := &caseRunner{tb: tb, c: c, model: newModelRecorder(&c)}
	w, err := weir.Open(weir.Options{
		Types: c.Types, Replay: p.model, Tools: c.Tools, HTTP: c.HTTP, Executors: c.Executors,
		Secrets: func(name string) (string, bool) { s, ok := c.Secrets[name]; return s, ok },
	})
	if err != nil {
		tb.Fatal(err)
	}
	p.w = w
	return p
}

// close ends the runs that still execute. A test may have thousands of cases, so they are not closed at its end.
func (p *caseRunner) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := p.w.Close(ctx); err != nil {
		p.tb.Error(err)
	}
}

// seedHistory adds messages to the main context.
func seedHistory(ms []convo.Message) weir.Type {
	return weir.Func(seedNodeID, func(ctx weir.Ctx, _ struct{}) (struct{}, error) {
		m, err := ctx.Context()
		if err == nil {
			_, err = m.AddAll(ms)
		}
		return struct{}{}, err
	}).WritesContext()
}

// run starts the flow, answers its questions, and reads the result.
func (p *caseRunner) run(f *weir.Flow, single bool) Result {
	p.tb.Helper()
	timeout := p.c.Timeout
	if timeout == 0 {
		timeout = 20 * time.Second
	}
	ctx, cancel := context.WithTimeout(p.tb.Context(), timeout)
	defer cancel()
	run, err := p.w.Start(ctx, f, weir.Start{ID: "run", Inputs: p.c.In, State: p.c.State, User: p.c.User, Origin: "test"})
	if err != nil {
		p.tb.Fatal(err)
	}
	for {
		r, err := run.Wait(ctx)
		if err != nil {
			p.tb.Fatal(err)
		}
		if r.Status != engine.Paused || !p.answer(ctx, run, r.Interrupts) {
			return p.result(r, single)
		}
	}
}

// answer gives the available answers, and reports whether it gave any.
func (p *caseRunner) answer(ctx context.Context, run *weir.Run, open []engine.Interrupt) bool {
	p.tb.Helper()
	given := false
	for _, i := range open {
		v, ok := p.c.Answers[i.ID]
		if !ok {
			path, _ := engine.SplitInterruptID(i.ID)
			v, ok = p.c.Answers[path]
		}
		if !ok {
			continue
		}
		if err := run.Answer(ctx, i.ID, v); err != nil {
			p.tb.Fatalf("answer %s: %v", i.ID, err)
		}
		given = true
	}
	return given
}

// result reads the journal of the run.
func (p *caseRunner) result(r weir.Result, single bool) Result {
	p.tb.Helper()
	out := Result{
		Status: r.Status, Waiting: r.Interrupts, Error: r.Error, Usage: r.Usage,
		Outputs: r.Outputs.Map(), Requests: p.model.requests(),
	}
	view, err := p.w.Inspect(context.WithoutCancel(p.tb.Context()), r.Run, 0)
	if err != nil {
		p.tb.Fatal(err)
	}
	out.Contexts = view.Contexts
	if out.Messages, err = view.Contexts[engine.MainContext].Messages(); err != nil {
		p.tb.Fatal(err)
	}
	state := view.Run.State()
	out.State = make(map[string]any)
	for _, k := range state.Keys() {
		out.State[k], _ = state.Get(k)
	}
	for _, c := range view.Commits {
		for _, e := range c.Events {
			out.addEvent(e, single)
		}
	}
	return out
}

// addEvent reads an event.
func (r *Result) addEvent(e engine.Event, single bool) {
	r.Events = append(r.Events, e)
	switch e := e.(type) {
	case *engine.EffectCompleted:
		r.Effects = append(r.Effects, Effect{Key: e.Key, Result: e.Result, Error: e.Error})
	case *engine.NodeCompleted:
		if single && e.Path == nodeID {
			r.Outputs = e.Outputs.Map()
		}
	}
}

package flowtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store/memory"
)

// runID is the id of the run of every test, so that a repeated test does the same.
const runID = "test"

// testRunner runs one test in its own Weir.
type testRunner struct {
	test    *Test
	w       *weir.Weir
	store   *memory.Store
	paths   *runPaths
	mocks   *mockSet
	answers *answerSet
	tools   *toolRecorder
	model   *scriptedModel
	cancel  context.CancelCauseFunc

	mu        sync.Mutex
	run       string    // the present root run
	failures  []Failure // failures besides those of the expectations
	answering bool      // an answer is about to be given while the run continues
}

// execute runs the test and lists the failures. An error is an internal one, or that of ctx.
func (t *Test) execute(ctx context.Context, f *File, o *Options) (*outcome, []Failure, error) {
	at := newRunPaths(runID)
	p := &testRunner{
		test: t, run: runID, paths: at, mocks: newMockSet(at, t.mocks), answers: newAnswerSet(t.answers),
		tools: &toolRecorder{places: at}, model: newScriptedModel(t.script, at),
	}
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.cancel, p.store = cancel, memory.New()
	wo := weir.Options{
		Store: p.store,
		Types: o.Types, Replay: p.model, Models: o.Models, Tools: p.tools.tools(t.tools), Flows: flowTools(t.tools), HTTP: p.network(o), Executors: o.Executors,
		Secrets: func(name string) (string, bool) { s, ok := t.secrets[name]; return s, ok },
		Wrap:    p.mocks.wrap, Skip: func(open map[string][]engine.Interrupt) bool { return p.maySkipWait(bounded, open[p.root()]) },
	}
	var err error
	if p.w, err = weir.Open(wo); err != nil {
		return nil, nil, err
	}
	at.w = p.w
	seen, err := p.runTest(bounded, f)
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer stop()
	if err != nil && errors.Is(context.Cause(bounded), errTimeout) {
		p.failTimeout(closing)
	}
	if cerr := p.w.Close(closing); err == nil {
		err = cerr
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if err != nil && len(p.failures) == 0 {
		return nil, nil, err
	}
	return seen, p.check(seen), nil
}

// closeTimeout limits the time in which the nodes of a test must stop.
const closeTimeout = 15 * time.Second

// root returns the id of the present root run.
func (p *testRunner) root() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// runTest runs the flow once, or the turns of a conversation with it.
func (p *testRunner) runTest(ctx context.Context, f *File) (*outcome, error) {
	timer := time.AfterFunc(p.test.timeout, func() { p.cancel(errTimeout) })
	defer timer.Stop()
	tested, err := p.w.Load(f.FlowPath)
	if err != nil {
		return nil, err
	}
	model := p.test.model
	if model == "" {
		model = tested.Context.Model
	}
	if model, err = absoluteScript(model, f.FlowPath); err != nil {
		return nil, err
	}
	if p.test.turns != nil {
		c := &conversation{testRunner: p, flow: tested, model: model, sessions: make(map[string]*weir.Session), asked: make(map[string]openQuestion)}
		return nil, c.run(ctx)
	}
	return p.runOnce(ctx, tested, model)
}

// runOnce starts the flow and answers its questions until the run rests.
func (p *testRunner) runOnce(ctx context.Context, tested *weir.Flow, model string) (*outcome, error) {
	t := p.test
	run, err := p.w.Start(ctx, tested, weir.Start{
		ID: runID, Inputs: t.inputs, State: t.state, User: t.user, Origin: "test", Targets: t.targets, Model: model,
	})
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return refusedOutcome(e), nil
	}
	if err != nil {
		return nil, err
	}
	return p.answerAll(ctx, run)
}

// refusedOutcome returns the outcome where no run was started.
func refusedOutcome(e *engine.Error) *outcome {
	return &outcome{status: failed, err: e, outputs: map[string]any{}, state: map[string]any{}}
}

// answerAll answers the questions of a run until it rests.
func (p *testRunner) answerAll(ctx context.Context, run *weir.Run) (*outcome, error) {
	for {
		r, err := run.Wait(ctx)
		if err != nil {
			return nil, err
		}
		if r.Status != engine.Paused {
			return p.readOutcome(ctx, r)
		}
		answered, ok := p.answer(ctx, run.ID, r.Interrupts)
		switch {
		case !ok:
			return nil, nil
		case answered == nil:
			return p.readOutcome(ctx, r)
		}
		run = answered
	}
}

var errTimeout = errors.New("the test took too long")

// failTimeout returns the failure of a run that did not end.
func (p *testRunner) failTimeout(ctx context.Context) {
	f := Failure{Pos: p.test.Pos, Message: fmt.Sprintf("the run did not end within %v; `timeout` sets another bound", p.test.timeout)}
	if v, err := p.w.Inspect(ctx, p.root(), 0); err == nil {
		for _, n := range v.Run.Nodes() {
			if n.Status == engine.Running || n.Status == engine.Waiting {
				f.Diff = append(f.Diff, Line{' ', n.Path + " is " + n.Status.String()})
			}
		}
	}
	p.fail(f)
}

func (p *testRunner) readOutcome(ctx context.Context, r weir.Result) (*outcome, error) {
	o, err := readOutcome(ctx, p.w, r)
	if err != nil {
		return nil, err
	}
	o.toolCalls, o.requests = p.tools.called(), plainRequests(p.model.requests())
	return o, nil
}

// answer gives a root run the first available answer, nil if there is none; ok is false if it was refused.
func (p *testRunner) answer(ctx context.Context, root string, open []engine.Interrupt) (run *weir.Run, ok bool) {
	for _, i := range open {
		a, nth := p.answers.find(i)
		if a == nil {
			continue
		}
		p.answers.markGiven(a)
		run, err := p.w.Answer(ctx, root, i.ID, a.values[nth], "test")
		if err != nil {
			p.failAnswer(root, a, nth, i, err)
			return nil, false
		}
		return run, true
	}
	return nil, true
}

// failAnswer adds the failure for an answer that a root run refused.
func (p *testRunner) failAnswer(root string, a *answer, nth int, i engine.Interrupt, err error) {
	msg := strings.TrimPrefix(err.Error(), "run "+root+": "+i.ID+": ")
	p.fail(Failure{Pos: a.places[nth], Where: "answers." + a.key, Message: msg, Diff: []Line{{' ', interruptText(i)}}})
}

// maySkipWait skips a wait, unless an answer is about to be given. In a conversation, turns move the clock.
func (p *testRunner) maySkipWait(ctx context.Context, open []engine.Interrupt) bool {
	if p.test.turns != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answering {
		return false
	}
	for _, i := range open {
		a, nth := p.answers.find(i)
		if a == nil {
			continue
		}
		p.answers.markGiven(a)
		p.answering = true
		go p.answerNow(ctx, a, nth, i)
		return false
	}
	return true
}

// answerNow gives an answer while the run continues. An answer to a child run may already be given, because the root
// run is informed later.
func (p *testRunner) answerNow(ctx context.Context, a *answer, nth int, i engine.Interrupt) {
	_, err := p.w.Answer(ctx, p.root(), i.ID, a.values[nth], "test")
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, runner.ErrNoInterrupt) && strings.Contains(i.ID, ">"):
		p.answers.unmarkGiven(a)
	default:
		p.failAnswer(p.root(), a, nth, i, err)
		p.cancel(errAnswerRejected)
	}
	p.mu.Lock()
	p.answering = false
	p.mu.Unlock()
}

var errAnswerRejected = errors.New("an answer was refused")

func (p *testRunner) fail(f Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, f)
}

// check lists the failures.
func (p *testRunner) check(o *outcome) []Failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.failures
	switch {
	case p.test.turns != nil && len(out) > 0:
		return out // unused parts are a consequence of that
	case p.test.turns != nil:
		return p.appendUnused(out)
	case o == nil:
		return out
	}
	checked := p.test.expect.check(o)
	out = append(out, checked...)
	if o.status != p.test.expect.status {
		return p.appendUnusedMocks(out) // other unused parts are a consequence of that
	}
	return p.appendUnused(out)
}

func (p *testRunner) appendUnusedMocks(out []Failure) []Failure {
	for _, m := range p.mocks.unused() {
		out = append(out, Failure{Pos: m.pos, Where: "mocks." + m.key, Message: "the node is mocked and never ran"})
	}
	return out
}

// appendUnused adds a failure for each part of the test that was not used.
func (p *testRunner) appendUnused(out []Failure) []Failure {
	out = p.appendUnusedMocks(out)
	for _, a := range p.answers.unused(p.test.answers) {
		n := p.answers.given[a]
		msg := "no question used the answer"
		if n > 0 {
			msg = fmt.Sprintf("%d answers were given and %d asked for", len(a.values), n)
		}
		out = append(out, Failure{Pos: a.places[min(n, len(a.places)-1)], Where: "answers." + a.key, Message: msg})
	}
	for _, s := range p.model.unusedTurns() {
		out = append(out, Failure{Pos: p.test.script.pos, Where: "script", Message: s})
	}
	return out
}

// network returns the network access of nodes: none, unless the test enables it.
func (p *testRunner) network(o *Options) node.HTTPDoer {
	if p.test.network {
		return o.HTTP // nil means the library's default
	}
	return offline{p}
}

// offline refuses requests, and fails the test that makes one.
type offline struct{ p *testRunner }

// Do implements node.HTTPDoer.
func (n offline) Do(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	n.p.fail(Failure{
		Pos: n.p.test.Pos, Message: fmt.Sprintf("a node made the request %s %s", req.Method, req.URL),
		Diff: []Line{{' ', "tests make no requests: mock the node, or set network: true"}},
	})
	return nil, errors.New("tests make no requests")
}

// scriptedModel answers the model calls of a test.
type scriptedModel struct {
	turns  *recorded.ScriptedTurns
	own    bool
	answer weir.Provider
	places *runPaths
	files  *recorded.ScriptFiles

	mu    sync.Mutex
	asked []*llm.Request
}

func newScriptedModel(s *script, p *runPaths) *scriptedModel {
	m := &scriptedModel{files: recorded.NewScriptFiles(), places: p}
	switch {
	case s == nil:
	case s.replay != nil:
		m.answer = s.replay
	default:
		m.turns, m.own = recorded.NewScriptedTurns(s.inOrder, s.byNode), s.inTest
	}
	return m
}

// scriptProvider is the provider of models "script/FILE".
const scriptProvider = "script"

// Generate implements weir.Provider.
func (m *scriptedModel) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	here := *req
	here.Key = m.places.effectKey(req.Key)
	m.mu.Lock()
	m.asked = append(m.asked, &here)
	m.mu.Unlock()
	switch {
	case m.turns != nil:
		return m.turns.Generate(ctx, &here, emit)
	case m.answer != nil:
		return m.answer.Generate(ctx, req, emit)
	case req.Provider == scriptProvider:
		return m.files.Generate(ctx, req, emit)
	}
	return nil, &llm.Error{
		Code: engine.CodeReplayDivergence, Message: fmt.Sprintf(
			"%s calls the model, and the test says nothing of what it answers: add script: or replay:, or mock the node", recorded.NodeOf(here.Key)),
	}
}

func (m *scriptedModel) requests() []*llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*llm.Request(nil), m.asked...)
}

func (m *scriptedModel) unusedTurns() []string {
	if m.turns == nil || !m.own {
		return nil
	}
	return m.turns.Unused()
}

// absoluteScript resolves a model "script/FILE" relative to the flow's folder.
func absoluteScript(model, flowPath string) (string, error) {
	name, ok := strings.CutPrefix(model, scriptProvider+"/")
	if !ok || filepath.IsAbs(name) {
		return model, nil
	}
	path, err := filepath.Abs(filepath.Join(filepath.Dir(flowPath), name))
	return scriptProvider + "/" + path, err
}

// problemsIn returns the problems of an invalid flow or test file.
func problemsIn(err error) ([]flow.Problem, bool) {
	if e, ok := errors.AsType[*flow.Invalid](err); ok {
		return e.Problems, true
	}
	return nil, false
}

package flowtest

import (
	"sync"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/node"
)

// mockSet has the mocks of one test, and which of them were used.
type mockSet struct {
	paths *runPaths
	mocks map[string]*mock

	mu   sync.Mutex
	used map[*mock]bool
}

func newMockSet(p *runPaths, mocks []*mock) *mockSet {
	s := &mockSet{paths: p, mocks: make(map[string]*mock, len(mocks)), used: make(map[*mock]bool)}
	for _, m := range mocks {
		s.mocks[m.key] = m
	}
	return s
}

// wrap is weir.Options.Wrap: it mocks the nodes of the type that the test names.
func (s *mockSet) wrap(t weir.Type) weir.Type { return mockableType{t, s} }

// mockFor returns the mock of a node, nil if there is none.
func (s *mockSet) mockFor(info node.Info) *mock {
	if len(s.mocks) == 0 {
		return nil
	}
	path := s.paths.prefixOf(info.Run) + info.Path
	m := s.mocks[path]
	if m == nil {
		m = s.mocks[recorded.PathWithoutIterations(path)]
	}
	if m != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.used[m] = true
	}
	return m
}

// unused returns the test's own mocks whose nodes did not run.
func (s *mockSet) unused() []*mock {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*mock
	for _, m := range s.mocks {
		if m.inTest && !s.used[m] {
			out = append(out, m)
		}
	}
	return out
}

// mockableType wraps a node type of which some nodes may be mocked.
type mockableType struct {
	weir.Type
	stage *mockSet
}

// Prepare implements weir.Type.
func (t mockableType) Prepare(with map[string]any) (node.Node, error) {
	inner, err := t.Type.Prepare(with)
	if err != nil {
		return nil, err
	}
	ports := t.Spec().Ports
	if t.Spec().PortsFor != nil {
		ports = t.Spec().PortsFor(with)
	}
	return &mockedNode{inner: inner, stage: t.stage, ports: ports, spec: t.Spec()}, nil
}

// mockedNode runs a node's own function or its mock.
type mockedNode struct {
	inner node.Node
	stage *mockSet
	ports flow.Ports
	spec  *flow.TypeSpec
}

// Run implements node.Node.
func (n *mockedNode) Run(ctx *node.Ctx) error {
	m := n.stage.mockFor(ctx.Info())
	if m == nil {
		return n.inner.Run(ctx)
	}
	a := m.actionFor(ctx.Info().Attempt)
	if err := waitDelay(ctx, a.delay, m.node.Timeout); err != nil {
		return err
	}
	switch {
	case a.real:
		return n.inner.Run(ctx)
	case a.err != nil:
		e := *a.err
		return &e
	}
	return n.perform(ctx, a)
}

// waitDelay waits for the delay, or for as much of it as the node's timeout allows. It is a durable wait, which takes
// no time in a test.
func waitDelay(ctx *node.Ctx, delay time.Duration, t flow.Timeout) error {
	if delay <= 0 {
		return nil
	}
	limit, how := t.Total, "in total"
	if limit == 0 || t.Idle > 0 && t.Idle < limit {
		limit, how = t.Idle, "without progress"
	}
	late := limit > 0 && delay > limit
	if late {
		delay = limit
	}
	due := ctx.Now().Add(delay)
	if _, _, err := ctx.Wait("mock", engine.Interrupt{Kind: engine.AwaitTimer, Due: due.UnixMilli()}); err != nil {
		return err
	}
	if late {
		return engine.NewTimeoutError("", 0, limit.String(), how)
	}
	return nil
}

// outputsPort is the port with all outputs of a flow node.
const outputsPort = "outputs"

// perform returns the result of the action.
func (n *mockedNode) perform(ctx *node.Ctx, a *mockAction) error {
	for _, o := range a.outputs {
		ctx.Output(o.Name, engine.Copy(o.Value))
	}
	if _, given := a.outputs.Get(outputsPort); n.spec.Uses != nil && !given {
		ctx.Output(outputsPort, a.outputs.Map())
	}
	if err := ctx.State().Update(a.state); err != nil {
		return err
	}
	h, there, err := n.context(ctx)
	if err != nil {
		return err
	}
	if len(a.messages) > 0 {
		m, err := ctx.ContextOf(h)
		if err != nil {
			return err
		}
		if _, err := m.AddAll(a.messages); err != nil {
			return err
		}
	}
	for _, p := range n.ports.Out {
		if p.Type == flow.TypeContext && there {
			ctx.Output(p.Name, h)
		}
	}
	return nil
}

// context returns the context that the node passes on: its own, a new one if it makes one, or its input.
func (n *mockedNode) context(ctx *node.Ctx) (h engine.Handle, there bool, err error) {
	switch {
	case n.spec.NewContext:
		own, err := ctx.Context()
		if err != nil {
			return h, false, err
		}
		s := own.Get().Settings
		h, err = ctx.NewContext(convo.Change{Create: true, Kind: convo.Isolated, Settings: &s})
		return h, err == nil, err
	case n.spec.Context != flow.ContextNone:
		own, err := ctx.Context()
		if err != nil {
			return h, false, err
		}
		return engine.Handle{ID: own.ID()}, true, nil
	}
	for _, p := range n.ports.Out {
		if p.Type != flow.TypeContext {
			continue
		}
		if v, ok := ctx.Input(p.Name); ok {
			h, there = v.(engine.Handle)
		}
	}
	return h, there, nil
}

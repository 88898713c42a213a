package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/guard"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/tool"
)

// attemptIO connects an attempt to the driver of its machine.
type attemptIO interface {
	// flush makes events durable and returns when they are.
	flush(a *attempt, events []engine.Event) error
	// emit passes on live output.
	emit(a *attempt, c llm.Chunk)
}

// attempt is one entry into an attempt of a node; it implements node.Host. Its inputs are fixed; what it collects
// becomes part of the event that ends it.
type attempt struct {
	engine.Entry
	host           *preparedNode
	m              *machine // only for its constant fields: services, run vars
	ctx            node.Ctx
	io             attemptIO
	cancel         context.CancelCauseFunc
	inputError     *engine.Error // the reason why the inputs could not be evaluated
	hasLaneCommits bool          // a composite whose lanes must be committed
	cacheHit       bool          // the outputs came from the cache
	onlyReads      bool          // in a branch of a race, where effects must be read-only

	manager        *convo.Manager
	otherManagers  []*convo.Manager
	created        []engine.ContextChange
	contexts       []convo.Context   // snapshots, as Entry.Contexts
	accounts       []string          // the budgets that bind it
	usage          engine.Usage      // of the run at the start of the entry
	mainSettings   *convo.Settings   // of the main context, for a node that may run a flow
	inspection     *promptInspection // set for an attempt that is only inspected
	effects        map[string]*engine.EffectCompleted
	startedEffects map[string]*engine.EffectStarted
	answers        map[string]*engine.Answer
	steps          []string // keys of the recorded steps and notes
	approvals      map[string]engine.Answer
	pulled         map[string]pulledPort
	origins        map[string]string
	declared       *engine.NoteRecorded // declared by the node's key `artifacts`

	steered     bool // people may send messages to it
	interrupted bool // it was executing when the process that executed it stopped

	mu                 sync.Mutex // guards what parallel effects share
	steering           steering
	ordinals           ordinals
	partial            []byte             // the output of the current model call so far
	partialKey         string             // the effect that it belongs to
	pending            []engine.Event     // effects that are not durable yet
	recorded, replayed int                // the effects that an interrupted attempt had completed or announced, and how many of them this entry has requested
	executed           bool               // this entry has executed an effect
	mayHaveLost        bool               // its process ended without releasing the run, and this entry has completed no effect yet
	unreserved         []unreservedEffect // effects in flight that no budget binds
	interrupts         []engine.Interrupt
	tooSmall           map[string]engine.Usage // limits of the run's budgets that questions are about, by interrupt
	pullPort           string
	expand             *engine.NodeExpanded

	enteredAt       time.Time    // when its function was called
	abandoned       bool         // its function has not returned and is not waited for; guarded by mu
	returned        bool         // its function has returned; guarded by mu
	stopping        atomic.Bool  // no further effect may start
	effectsInFlight atomic.Int32 // effects in flight
	total           *time.Timer
	idle            *time.Timer
}

type pulledPort struct {
	value      engine.Value
	ok         bool
	inputError *engine.Error // the template could not be evaluated
}

// initAttempt prepares an attempt that starts now; called by the machine's goroutine only.
func (m *machine) initAttempt(a *attempt, e engine.Entry, h *preparedNode) {
	a.Entry, a.host, a.m = e, h, m
	s := m.run.Start
	inputs, unfit := m.inputs(&e, h)
	a.inputError = unfit
	info := node.Info{
		Run: m.run.ID, Flow: s.Flow, User: s.User, Path: e.Path, Attempt: e.Attempt,
		Started: time.UnixMilli(e.Started), Session: s.Session, Round: s.Round, Prefix: messagePrefix(s), Folder: s.Folder,
	}
	a.ctx = node.NewCtx(context.Background(), info, inputs, node.NewState(e.State, m.reducers), a)
	m.active[e.Path] = a
	a.onlyReads = slices.ContainsFunc(m.run.RacesAround(e.Path), func(p *engine.NodePlan) bool { return p.Def.With[flow.AllowEffects] != true })
	a.accounts, a.approvals, a.usage = nil, m.run.Approvals(), m.run.CommittedUsage()
	if bound := m.run.Accounts(e.Path); bound != nil {
		a.accounts = m.ledger.register(bound)
	}
	if e.Plan.Def.Uses != nil || len(e.Plan.Def.Runs) > 0 || m.services.toolFlow != nil {
		main := m.contexts[engine.MainContext].Settings
		a.mainSettings = &main
	}
	for _, id := range e.Contexts {
		c, ok := m.snapshots[e.Path][id]
		if !ok {
			c = m.contexts[id]
		}
		a.contexts = append(a.contexts, c)
	}
	if len(h.lazy) > 0 {
		a.pulled = make(map[string]pulledPort)
		for _, port := range h.lazy {
			if v, ok, done := m.run.Pulled(e.Path, port); done {
				a.pulled[port] = m.pulledInput(&e, h, port, v, ok)
			}
		}
	}
	a.hasLaneCommits = h.cache != nil && len(m.run.Lanes(e.Path))+len(m.run.LaneChanges(e.Path)) > 0
	if len(e.Contexts) > 0 {
		if o := m.run.Origin(e.Path, "message"); o != "" {
			a.origins = map[string]string{"message": o}
		}
	}
	if a.steered = acceptsSteering(e.Plan); a.steered {
		a.steering.restore(m.run.Steering(e.Path))
	}
	if e.Resumed {
		a.effects = maps.Clone(m.run.Effects(e.Path))
		a.startedEffects = maps.Clone(m.run.StartedEffects(e.Path))
		a.answers = maps.Clone(m.run.Answers(e.Path))
		a.steps = slices.Clone(m.run.Steps(e.Path))
	}
}

// inputs evaluates the values of the node's ports, and converts them to the ports' types.
func (m *machine) inputs(e *engine.Entry, h *preparedNode) (engine.Values, *engine.Error) {
	in, unfit := m.boundInputs(e, h)
	if unfit != nil {
		return nil, unfit
	}
	for i := range in {
		t, ok := h.types[in[i].Name]
		if !ok {
			continue
		}
		v, err := node.Coerce(t, in[i].Value)
		if err != nil {
			return nil, &engine.Error{
				Code: engine.CodeValue, Node: e.Path, Attempt: e.Attempt, Permanent: true,
				Message: fmt.Sprintf("input %s: %v", in[i].Name, err),
			}
		}
		in[i].Value = v
		if given, ok := v.(engine.Handle); ok && t == flow.TypeContext && !usesContext(e, given) {
			return nil, &engine.Error{
				Code: engine.CodeContext, Node: e.Path, Attempt: e.Attempt, Permanent: true,
				Message: fmt.Sprintf("input %s: the context %s cannot be known before the node starts", in[i].Name, given.ID),
				Hint:    "write the port as one reference to a port, or to inputs.NAME, that carries the handle",
			}
		}
	}
	return in, nil
}

// usesContext reports whether the node's inputs include the context or the lane's fork of it. A node that does not
// use a context only passes the handle on.
func usesContext(e *engine.Entry, h engine.Handle) bool {
	if len(e.Contexts) == 0 {
		return true
	}
	for _, id := range e.Contexts {
		if id == h.ID || strings.HasPrefix(id, h.ID+"@") {
			return true
		}
	}
	return false
}

// boundInputs returns the values of edges and of the node's templates.
func (m *machine) boundInputs(e *engine.Entry, h *preparedNode) (engine.Values, *engine.Error) {
	in := e.Inputs
	if len(h.bindings) == 0 {
		return in, nil
	}
	var vars *scopeVars
	for i := range h.bindings {
		b := &h.bindings[i]
		v := b.literal
		if !b.isLiteral {
			if slices.Contains(h.lazy, b.name) || b.singleRef && !slices.Contains(e.Bound, b.name) {
				continue
			}
			if vars == nil {
				vars = m.templateVars(e)
			}
			var given bool
			var unfit *engine.Error
			if v, given, unfit = b.evalInput(vars, e); unfit != nil {
				return nil, unfit
			}
			if !given {
				continue
			}
		}
		in = append(in, engine.Named{Name: b.name, Value: v})
	}
	return in, nil
}

// templateVars returns the names that the node's templates may read.
func (m *machine) templateVars(e *engine.Entry) *scopeVars {
	scope, _ := m.run.ScopeOf(e.Path)
	return &scopeVars{
		scope: scope, state: e.State, run: m.vars.get(),
		now: time.UnixMilli(e.Started), seed: node.UUIDSeed(m.run.ID, e.Path, e.Attempt) + "/in",
	}
}

// evalInput evaluates the template of a port. The second result is false if it is an optional
// value without a value, which leaves a port without a value that need not have one.
func (b *binding) evalInput(vars *scopeVars, e *engine.Entry) (engine.Value, bool, *engine.Error) {
	v, err := b.eval(vars, "input")
	if b.isAbsent(err) && !e.Plan.Requires(b.name) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, &engine.Error{
			Code: engine.CodeUnresolved, Node: e.Path, Attempt: e.Attempt,
			Message: err.Error(), Permanent: true,
		}
	}
	return v, true, nil
}

// pulledInput returns the value of a lazy port after its sources have completed.
func (m *machine) pulledInput(e *engine.Entry, h *preparedNode, port string, v engine.Value, ok bool) pulledPort {
	p := pulledPort{value: v, ok: ok}
	for i := range h.bindings {
		if b := &h.bindings[i]; b.name == port && b.isLiteral {
			p.value, p.ok = b.literal, true
		} else if b.name == port && (ok || !b.singleRef) {
			p.value, p.ok, p.inputError = b.evalInput(m.templateVars(e), e)
			p.ok = p.ok || p.inputError != nil
		}
	}
	return p
}

// runNode runs the node's function. It returns the function's error and its duration.
func (a *attempt) runNode() (micros int64, err error) {
	if a.inputError != nil {
		return 0, a.inputError
	}
	defer func() {
		if p := recover(); p != nil {
			err = a.toError(guard.Recovered(p))
		}
		a.mu.Lock()
		a.returned = true
		a.mu.Unlock()
	}()
	begin := time.Now()
	if a.host.cache != nil && a.m.services.Cache != nil && a.inspection == nil {
		err = a.runCached()
	} else {
		err = a.host.node.Run(&a.ctx)
	}
	micros = time.Since(begin).Microseconds()
	if err == nil {
		err = a.normalizeOutputs()
	}
	err = plainErrorOf(err)
	if a.host.artifacts != nil && err == nil && a.inspection == nil {
		a.declareArtifacts()
	}
	return micros, err
}

// normalizeOutputs converts the node's outputs to values that can be stored.
func (a *attempt) normalizeOutputs() error {
	out, meta, _ := a.ctx.Result()
	for i := range out {
		if isContext(out[i].Value) {
			return &engine.Error{
				Code: engine.CodeContext, Permanent: true,
				Message: fmt.Sprintf("output %s is a conversation context", out[i].Name),
				Hint:    "change the context through its manager, and return its handle: engine.Handle{ID: m.ID()}",
			}
		}
	}
	for what, list := range map[string]engine.Values{"output": out, "metadata": meta} {
		for i := range list {
			v, err := engine.Normalize(list[i].Value)
			if err != nil {
				return &engine.Error{Code: engine.CodeValue, Permanent: true, Message: fmt.Sprintf("%s %s: %v", what, list[i].Name, err)}
			}
			list[i].Value = v
		}
	}
	return nil
}

// exitError returns the failure of a node whose function ended its goroutine.
func (a *attempt) exitError() *engine.Error {
	return a.toError(&engine.Error{
		Code: engine.CodeNodePanic, Permanent: true, Message: "the node's function did not return: " + guard.ErrExited.Error(),
	})
}

// firstFrames returns the part of a stack that is needed to find the fault.
func firstFrames(stack []byte) string {
	if len(stack) > 1500 {
		stack = stack[:1500]
	}
	return string(stack)
}

// Emit passes on live output.
func (a *attempt) Emit(c llm.Chunk) {
	a.resetIdleTimeout()
	a.mu.Lock()
	late := a.abandoned || a.returned
	a.mu.Unlock()
	if late {
		return
	}
	a.addPartial(c.Text, c.Wait > 0)
	a.io.emit(a, c)
}

// Wait implements node.Waits.
func (a *attempt) Wait(name string, i engine.Interrupt) (engine.Answer, error) {
	a.mu.Lock()
	i.ID = a.Path + ":" + name + "#" + strconv.Itoa(a.ordinal(":"+name))
	a.mu.Unlock()
	return a.wait(i)
}

// wait is Wait for an interrupt with an id. An answer to the interrupt itself has precedence over one that was given
// for the whole run, which may be newer.
func (a *attempt) wait(i engine.Interrupt) (engine.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ans := a.answers[i.ID]; ans != nil && (ans.Given || ans.Child == nil) {
		return *ans, nil
	}
	if approval, given := a.approvals[i.Event]; given && i.Kind == engine.AwaitApproval {
		return approval, nil
	}
	a.interrupts = append(a.interrupts, i)
	return engine.Answer{}, node.ErrSuspended
}

// ordinal counts the uses of a name, from 1; a.mu is held.
func (a *attempt) ordinal(name string) int { return a.ordinals.next(name) }

// ordinals counts by name. There are few names, for which a map takes ten times as much.
type ordinals []struct {
	name string
	n    int
}

// of returns the count of a name.
func (o ordinals) of(name string) int {
	for i := range o {
		if o[i].name == name {
			return o[i].n
		}
	}
	return 0
}

// next adds one to the count of a name, and returns it.
func (o *ordinals) next(name string) int {
	for i := range *o {
		if c := &(*o)[i]; c.name == name {
			c.n++
			return c.n
		}
	}
	*o = append(*o, struct {
		name string
		n    int
	}{name, 1})
	return 1
}

// Pull implements node.Graph.
func (a *attempt) Pull(port string) (engine.Value, bool, error) {
	if p, ok := a.pulled[port]; ok {
		if p.inputError != nil {
			return nil, false, p.inputError
		}
		return engine.Copy(p.value), p.ok, nil
	}
	if !slices.Contains(a.host.lazy, port) {
		v, ok := a.ctx.Input(port)
		return v, ok, nil
	}
	if v, ok := a.ctx.Input(port); ok { // a literal
		return v, true, nil
	}
	a.pullPort = port
	return nil, false, node.ErrSuspended
}

// Expand implements node.Graph.
func (a *attempt) Expand(items []engine.Values, concurrency int) error {
	if a.Plan.Body == nil {
		return fmt.Errorf("node type %s has no body to run", a.Plan.Def.Type)
	}
	mode := a.Plan.Def.Isolation
	if mode == "" && (concurrency > 1 || a.Plan.Spec.NeedsLanes(a.Plan.Def.With)) {
		mode = isolationFork
	}
	a.expand = &engine.NodeExpanded{
		Path: a.Path, Items: items, Concurrency: concurrency, Fork: mode == isolationFork || mode == "fresh", Fresh: mode == "fresh",
	}
	return node.ErrSuspended
}

// ExpandTolerant implements node.Graph.
func (a *attempt) ExpandTolerant(items []engine.Values, concurrency int) error {
	if a.Plan.Body == nil || !a.Plan.Spec.NeedsLanes(a.Plan.Def.With) {
		return fmt.Errorf("node type %s has no body whose iterations have lanes", a.Plan.Def.Type)
	}
	err := a.Expand(items, concurrency)
	a.expand.Tolerant = true
	return err
}

// ItemErrors implements node.Graph.
func (a *attempt) ItemErrors() []*engine.Error { return a.Entry.ItemErrors }

// Race implements node.Graph.
func (a *attempt) Race(inputs engine.Values) error {
	branches := a.Plan.Def.Branches
	if len(branches) == 0 {
		return fmt.Errorf("node type %s has no branches to run", a.Plan.Def.Type)
	}
	items := make([]engine.Values, len(branches))
	for i := range items {
		items[i] = slices.Clone(inputs)
	}
	a.expand = &engine.NodeExpanded{
		Path: a.Path, Items: items, Concurrency: len(items), Fork: true, Fresh: a.Plan.Def.Isolation == "fresh", Race: true,
	}
	return node.ErrSuspended
}

// RaceOutcome implements node.Graph.
func (a *attempt) RaceOutcome() *engine.RaceOutcome { return a.Entry.Race }

// Iterations implements node.Graph.
func (a *attempt) Iterations() []engine.Values { return a.Entry.Iterations }

// Iterated implements node.Graph.
func (a *attempt) Iterated() int { return a.EarlierIterations + len(a.Entry.Iterations) }

// BodyOutputs implements node.Graph.
func (a *attempt) BodyOutputs() []string {
	if a.Plan.Body == nil {
		return nil
	}
	names := make([]string, len(a.Plan.Body.Def.Outputs))
	for i, b := range a.Plan.Body.Def.Outputs {
		names[i] = b.Name
	}
	return names
}

// Origin implements node.Graph; it is known for the port `message` only.
func (a *attempt) Origin(port string) string { return a.origins[port] }

// Own implements node.Contexts.
func (a *attempt) Own() (*convo.Manager, error) {
	if len(a.contexts) == 0 {
		return nil, &engine.Error{
			Code: engine.CodeContext, Permanent: true,
			Message: fmt.Sprintf("node type %s uses no context", a.Plan.Def.Type),
			Hint:    "set Context in the node type's spec",
		}
	}
	if a.manager == nil {
		a.manager = a.manage(a.contexts[0])
	}
	return a.manager, nil
}

func (a *attempt) manage(c convo.Context) *convo.Manager {
	m := convo.NewManager(c, slices.Contains(a.Grants, c.ID))
	m.SetIDPrefix(a.ctx.MessageID(a.Path))
	return m
}

// Of implements node.Contexts.
func (a *attempt) Of(h engine.Handle) (*convo.Manager, error) {
	own, err := a.Own()
	if err == nil && own.ID() == h.ID {
		return own, nil
	}
	for _, m := range a.otherManagers {
		if m.ID() == h.ID {
			return m, nil
		}
	}
	for _, c := range a.contexts {
		if c.ID == h.ID {
			a.otherManagers = append(a.otherManagers, a.manage(c))
			return a.otherManagers[len(a.otherManagers)-1], nil
		}
	}
	return nil, &engine.Error{
		Code: engine.CodeContext, Permanent: true,
		Message: fmt.Sprintf("context %s was not granted to this node", h.ID),
		Hint:    "bring its handle in on a port of type context",
	}
}

// New implements node.Contexts.
func (a *attempt) New(init convo.Change) (engine.Handle, error) {
	id := a.Path
	if n := len(a.created); n > 0 {
		id += "." + strconv.Itoa(n+1)
	}
	init.Create = true
	if init.Kind == "" {
		init.Kind = convo.Isolated
	}
	c, err := convo.New(id, init)
	if err != nil {
		return engine.Handle{}, err
	}
	a.created = append(a.created, engine.ContextChange{ID: id, Create: true, Adds: c.History.Len(), Body: &init})
	a.otherManagers = append(a.otherManagers, convo.NewManager(c, true))
	return engine.Handle{ID: id}, nil
}

// LLM implements node.Services, as do the following methods.
func (a *attempt) LLM() *llm.Service { return a.m.services.LLM }

// Tools returns those of the process.
func (a *attempt) Tools() *tool.Set { return a.m.services.Tools }

// Executors implements node.Services.
func (a *attempt) Executors() *sandbox.Set { return a.m.services.Executors }

// Cache keeps values across runs.
func (a *attempt) Cache() node.Cache { return a.m.services.Cache }

// Usage implements node.Services.
func (a *attempt) Usage() engine.Usage { return a.usage }

// HTTP reaches the network.
func (a *attempt) HTTP() node.HTTPDoer {
	if a.m.services.HTTP == nil {
		return nil
	}
	return guardedHTTP{a.m.services.HTTP}
}

// RunVars is `run` in expressions.
func (a *attempt) RunVars() map[string]any { return a.m.vars.get() }

// Secret resolves a secret.
func (a *attempt) Secret(name string) (string, bool) {
	if a.m.services.Secret == nil || !a.grants().Allows(node.Use{Kind: node.UseSecret, Name: name}) {
		return "", false
	}
	return a.m.services.Secret(name)
}

// decodeChange reads a context change from a journal.
func decodeChange(body any) (convo.Change, error) {
	var c convo.Change
	switch b := body.(type) {
	case nil:
		return c, errors.New("a context change says nothing")
	case json.RawMessage:
		err := json.Unmarshal(b, &c)
		return c, err
	}
	return c, fmt.Errorf("a context change of type %T", body)
}

package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/tool"
)

// Ctx is one entry into one attempt of one node. It belongs to the goroutine
// that runs the node; only Emit, Do and Wait may be called from goroutines the node
// starts itself, and those must have ended when Run returns. The embedded
// context ends when the run is cancelled or the attempt times out.
type Ctx struct {
	goContext
	info    Info
	inputs  engine.Values
	outputs engine.Values
	meta    engine.Values
	state   State
	host    Host
}

// goContext lets Ctx be a context.Context and have a method Context as well.
type goContext = context.Context

// Info says which attempt this is.
type Info struct {
	Run, Flow, User string
	Path            string // "refine#2/draft"
	Attempt         int    // from 1
	// Started is the time of the attempt's first start as the journal has it.
	Started time.Time
	// Session is the session that the run is a round of, and Round its number, from
	// 1; both are zero for a run that is none.
	Session string
	Round   int
	// Prefix begins the ids of messages that the run says in a session, or as a child run.
	Prefix string
	// Folder is that of the flow's file, as it was when the run was started; "" where
	// no node of the flow names files.
	Folder string
}

// Host is what runs a node; the runner implements it.
type Host interface {
	Effects
	Waits
	Contexts
	Graph
	Services
}

// Effects runs effects.
type Effects interface {
	// Do runs e, or returns its recorded result: of one that failed the error, and
	// the value that came with it.
	Do(e Effect) (engine.Value, error)
	// Record notes a step the node took, with the effects before it. One that is
	// recorded is not again.
	Record(s engine.Step) error
	// Emit passes a piece of live output to whoever watches; it never blocks
	// and is not part of the journal.
	Emit(c llm.Chunk)
}

// Waits suspends a node.
type Waits interface {
	// Wait opens an interrupt, or returns its answer, which is not Given where the
	// wait was given up at Due without one.
	Wait(name string, i engine.Interrupt) (engine.Answer, error)
}

// Contexts gives access to conversation contexts.
type Contexts interface {
	// Own returns the manager of the node's own context.
	Own() (*convo.Manager, error)
	// Of returns the manager of a context whose handle came in on a port.
	Of(h engine.Handle) (*convo.Manager, error)
	// New makes an isolated context.
	New(init convo.Change) (engine.Handle, error)
}

// Graph is what composites and lazy ports need of the graph around the node.
type Graph interface {
	// Pull returns the value of a lazy port; ok is false where its sources
	// were skipped.
	Pull(port string) (v engine.Value, ok bool, err error)
	// Expand asks for iterations of the body, one an item. It always returns
	// ErrSuspended or an error: the node runs again once they are done.
	Expand(items []engine.Values, concurrency int) error
	// Iterations returns the outputs of the newest expansion's iterations, in
	// order; Iterated is how many iterations there were, all expansions counted.
	Iterations() []engine.Values
	Iterated() int
	// BodyOutputs are the names of the outputs that the body of a composite
	// declares; an iteration may have left some without a value.
	BodyOutputs() []string
	// Origin names the port a single unchanged value came from: "ask.text".
	Origin(port string) string
}

// Services are what the process offers to all nodes.
type Services interface {
	LLM() *llm.Service
	Tools() *tool.Set
	Executors() *sandbox.Set
	Cache() Cache
	// Secret resolves a secret's name; ok is false where there is none.
	Secret(name string) (value string, ok bool)
	// RunVars is `run` in expressions: id, flow, user, inputs. Not to be changed.
	RunVars() map[string]any
	// HTTP is how a node reaches the network; see Options of the runner.
	HTTP() HTTPDoer
}

// Cache keeps values across runs.
type Cache interface {
	// Get returns what Put stored under key and has not expired.
	Get(ctx context.Context, key string) (v engine.Value, ok bool, err error)
	// Put stores v for ttl; 0 is for ever.
	Put(ctx context.Context, key string, v engine.Value, ttl time.Duration) error
	// Change replaces what is stored under key, which ok says, by what change returns
	// with true, and stores it for ever. No other change comes between.
	Change(ctx context.Context, key string, change func(v engine.Value, ok bool) (engine.Value, bool)) error
}

// UnknownPolicy says what happens to an effect that was in flight at a crash.
type UnknownPolicy int

// The policies for effects of unknown outcome.
const (
	UnknownRetry UnknownPolicy = iota // ask again with the same key
	UnknownAsk                        // a person decides
	UnknownFail                       // fail the node
)

// Effect is one thing done outside.
type Effect struct {
	// Name and the ordinal of its use make the key: run/path/name#ordinal.
	Name string
	// Index is the ordinal for effects that run in parallel, from 1: their
	// place in the request and never their order of arrival. 0 takes the next.
	Index int
	// Request identifies what is asked; its digest is compared on re-entry.
	Request engine.Value
	// Text gives a Request that is a text, which is nil then, where making it takes
	// long, and Digest the SHA-256 of its JSON, which does not.
	Text   func() ([]byte, error)
	Digest []byte
	// Unknown is the policy for an effect in flight at a crash.
	Unknown UnknownPolicy
	// Reserve is what a model call may spend, nil for what spends nothing. Where
	// a budget leaves less for its answer, the runner lowers Output before Do.
	Reserve *Reserve
	// Do does it. Key is the idempotency key to send along.
	Do func(ctx context.Context, key string) (Outcome, error)
}

// Reserve is what a model call may spend at most.
type Reserve struct {
	engine.Usage
	// OutputCost is what the Output costs of CostMicros.
	OutputCost int64
	// Unpriced names the model of a call whose cost is not known, "" where it is.
	Unpriced string
	// HasBudget is set where a budget binds the effect: Output is then what the budget
	// leaves for it. More is then what reserves as much for another try when one has
	// failed, beside what that has cost; it fails where a budget has no room.
	HasBudget    bool
	ReserveRetry func(spent engine.Usage) error
	// RetryUsage is the sum of what More was given.
	RetryUsage engine.Usage
}

// Outcome is what an effect returned.
type Outcome struct {
	// Value is the result. Beside an error it is what was rejected, such as a model's
	// answer that cannot be read.
	Value    engine.Value
	Usage    *engine.Usage
	Manifest engine.Value
}

// NewCtx is for those who run nodes.
func NewCtx(ctx context.Context, info Info, inputs engine.Values, state State, host Host) Ctx {
	return Ctx{goContext: ctx, info: info, inputs: inputs, state: state, host: host}
}

// Bind puts the entry under another context.Context, before it runs.
func (c *Ctx) Bind(ctx context.Context) { c.goContext = ctx }

// Info says which attempt this is.
func (c *Ctx) Info() Info { return c.info }

// Input returns the value on a port and whether there is one. Lists and
// objects are the node's own to change.
func (c *Ctx) Input(port string) (engine.Value, bool) {
	v, ok := c.inputs.Get(port)
	return engine.Copy(v), ok
}

// Inputs returns all inputs as a fresh map.
func (c *Ctx) Inputs() map[string]any {
	m := make(map[string]any, len(c.inputs))
	for _, n := range c.inputs {
		m[n.Name] = engine.Copy(n.Value)
	}
	return m
}

// Text returns the value on a port as text, "" where there is none: strings as
// they are, messages by their content, everything else as JSON.
func (c *Ctx) Text(port string) string {
	v, _ := c.inputs.Get(port)
	return TextOf(v)
}

// Output sets the value of an output port; edges from ports that are not set
// are skipped. The value must not be changed afterwards.
func (c *Ctx) Output(port string, v engine.Value) {
	for i := range c.outputs {
		if c.outputs[i].Name == port {
			c.outputs[i].Value = v
			return
		}
	}
	c.outputs = append(c.outputs, engine.Named{Name: port, Value: v})
}

// Meta adds free metadata to the result, shown by `weir show`.
func (c *Ctx) Meta(name string, v engine.Value) {
	c.meta = append(c.meta, engine.Named{Name: name, Value: v})
}

// State is the run's state inside this node's transaction.
func (c *Ctx) State() *State { return &c.state }

// Context returns the manager of the node's context. A type whose spec does
// not use contexts gets an error.
func (c *Ctx) Context() (*convo.Manager, error) { return c.host.Own() }

// ContextOf returns the manager of the context behind a handle that came in on
// one of the node's context ports.
func (c *Ctx) ContextOf(h engine.Handle) (*convo.Manager, error) { return c.host.Of(h) }

// NewContext makes an isolated context and returns its handle.
func (c *Ctx) NewContext(init convo.Change) (engine.Handle, error) { return c.host.New(init) }

// Do runs an effect, or returns the result it had before.
func (c *Ctx) Do(e Effect) (engine.Value, error) { return c.host.Do(e) }

// Record notes a step the node took; see Effects.
func (c *Ctx) Record(s engine.Step) error { return c.host.Record(s) }

// Emit streams a piece of output to whoever watches.
func (c *Ctx) Emit(ch llm.Chunk) { c.host.Emit(ch) }

// Wait suspends the node until a person, timer or event resolves the
// interrupt; see Waits.
func (c *Ctx) Wait(name string, i engine.Interrupt) (engine.Value, bool, error) {
	a, err := c.host.Wait(name, i)
	return a.Value, a.Given, err
}

// Ask is Wait that says as well who answered.
func (c *Ctx) Ask(name string, i engine.Interrupt) (engine.Answer, error) {
	return c.host.Wait(name, i)
}

// Pull asks for a lazy port.
func (c *Ctx) Pull(port string) (engine.Value, bool, error) { return c.host.Pull(port) }

// Expand and Iterations are for composites; see Graph.
func (c *Ctx) Expand(items []engine.Values, concurrency int) error {
	return c.host.Expand(items, concurrency)
}

// Iterated is how many iterations of the body there were so far.
func (c *Ctx) Iterated() int { return c.host.Iterated() }

// BodyOutputs are the names of the outputs that the body declares.
func (c *Ctx) BodyOutputs() []string { return c.host.BodyOutputs() }

// Iterations returns the outputs of the newest expansion's iterations.
func (c *Ctx) Iterations() []engine.Values { return c.host.Iterations() }

// Origin names the output port whose value came in on port unchanged.
func (c *Ctx) Origin(port string) string { return c.host.Origin(port) }

// LLM is the service all model calls go through.
func (c *Ctx) LLM() *llm.Service { return c.host.LLM() }

// Tools are the tools this process offers.
func (c *Ctx) Tools() *tool.Set { return c.host.Tools() }

// Executors run code; use them inside an effect.
func (c *Ctx) Executors() *sandbox.Set { return c.host.Executors() }

// Cache keeps values across runs; use it inside an effect.
func (c *Ctx) Cache() Cache { return c.host.Cache() }

// HTTP reaches the network; use it inside an effect.
func (c *Ctx) HTTP() HTTPDoer { return c.host.HTTP() }

// Now is the time the attempt started, the same on every re-entry.
func (c *Ctx) Now() time.Time { return c.info.Started }

// Rand is a source of chance that repeats on re-entry and differs between
// nodes, runs and attempts.
func (c *Ctx) Rand() *rand.Rand {
	k := fmt.Sprintf("%s/%s@%d", c.info.Run, c.info.Path, c.info.Attempt)
	return rand.New(rand.NewPCG(hash(k, 1), hash(k, 2)))
}

// hash is FNV-1a over a salt and s.
func hash(s string, salt uint64) uint64 {
	h := uint64(14695981039346656037) ^ salt
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// Result is what a run of the node left behind, for those who run nodes.
func (c *Ctx) Result() (outputs, meta engine.Values, state []engine.StateChange) {
	return c.outputs, c.meta, c.state.Changes()
}

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

// Ctx is one entry into one attempt of one node. It belongs to the goroutine that runs the
// node; only Emit, Do and Wait may be called from goroutines that the node starts itself,
// and those must have ended when Run returns. The embedded context ends when the run is
// cancelled or the attempt times out.
type Ctx struct {
	goContext
	info    Info
	inputs  engine.Values
	outputs engine.Values
	meta    engine.Values
	state   State
	host    Host
}

// goContext lets Ctx embed a context.Context and also have a method Context.
type goContext = context.Context

// Info identifies the attempt.
type Info struct {
	Run, Flow, User string
	Path            string // "refine#2/draft"
	Attempt         int    // from 1
	// Started is the journaled time of the attempt's first start.
	Started time.Time
	// Session is the session of which the run is a round, and Round the round's number,
	// from 1. Both are zero outside of sessions.
	Session string
	Round   int
	// Prefix is the prefix of the ids of messages that the run adds, in a session or as a
	// child run.
	Prefix string
	// Folder is the folder of the flow's file at the start of the run; "" if no node of the
	// flow names files.
	Folder string
}

// Host is the environment of a node; the runner implements it.
type Host interface {
	Effects
	Waits
	Contexts
	Graph
	Services
	Steering
}

// Effects runs and records effects.
type Effects interface {
	// Do runs e, or returns its recorded result: for a failed effect the error, and the
	// value that came with it. It keeps e, and may change it.
	Do(e *Effect) (engine.Value, error)
	// Record records a step of the node, together with the effects before it. A recorded
	// step is not recorded again.
	Record(s engine.Step) error
	// Emit sends a piece of live output to observers. It never blocks, and its output is
	// not part of the journal.
	Emit(c llm.Chunk)
}

// Waits suspends a node.
type Waits interface {
	// Wait opens an interrupt, or returns its answer. The answer is not Given if the wait
	// ended at Due without one.
	Wait(name string, i engine.Interrupt) (engine.Answer, error)
}

// Contexts gives access to conversation contexts.
type Contexts interface {
	// Own returns the manager of the node's own context.
	Own() (*convo.Manager, error)
	// Of returns the manager of a context whose handle is the value of an input port.
	Of(h engine.Handle) (*convo.Manager, error)
	// New creates an isolated context.
	New(init convo.Change) (engine.Handle, error)
}

// Graph provides what composites and lazy ports need of the graph around the node.
type Graph interface {
	// Pull returns the value of a lazy port; ok is false if its sources were skipped.
	Pull(port string) (v engine.Value, ok bool, err error)
	// Expand requests iterations of the body, one for each item. It always returns
	// ErrSuspended or an error: the node runs again after they are done.
	Expand(items []engine.Values, concurrency int) error
	// ExpandTolerant is Expand for a node whose iterations have lanes; each iteration fails
	// alone. ItemErrors returns the failures, one for each iteration of the newest
	// expansion, nil for those that completed.
	ExpandTolerant(items []engine.Values, concurrency int) error
	ItemErrors() []*engine.Error
	// Race requests that all branches of the body run at the same time, each with the
	// inputs. It always returns ErrSuspended or an error. RaceOutcome returns how the race
	// ended, nil before.
	Race(inputs engine.Values) error
	RaceOutcome() *engine.RaceOutcome
	// Iterations returns the outputs of the newest expansion's iterations, in order;
	// Iterated the number of iterations in all expansions.
	Iterations() []engine.Values
	Iterated() int
	// BodyOutputs returns the names of the outputs that the body of a composite declares.
	// An iteration may have left some without a value.
	BodyOutputs() []string
	// Origin names the port that a single unchanged value came from: "ask.text".
	Origin(port string) string
}

// Steering gives a node the messages that people send to it while it works. Calls are those
// of the effect with the name; see Effect.
type Steering interface {
	// TakeSteering returns the messages that the next call takes, and records that. A call
	// that is made again takes the same ones.
	TakeSteering(name string) []SteeringMessage
	// MoreSteering reports whether the next call takes messages. If not and last is true,
	// later messages to the attempt are refused; with record, so they are when the attempt is
	// entered again.
	MoreSteering(name string, last, record bool) bool
}

// SteeringMessage is a message of a person to a node that works. Number counts those of the
// node, from 1.
type SteeringMessage struct {
	Number   int
	Text, By string
}

// Services are the services of the process.
type Services interface {
	LLM() *llm.Service
	Tools() *tool.Set
	Executors() *sandbox.Set
	Cache() Cache
	// Secret returns the value of a secret; ok is false if it does not exist.
	Secret(name string) (value string, ok bool)
	// RunVars is `run` in expressions: id, flow, user, inputs. It must not be changed.
	RunVars() map[string]any
	// Usage returns what the run had spent when this entry into the node began, child runs
	// included, with the reservations of calls in flight.
	Usage() engine.Usage
	// HTTP performs network requests; see Options of the runner.
	HTTP() HTTPDoer
}

// Cache stores values across runs.
type Cache interface {
	// Get returns what Put stored under key and has not expired.
	Get(ctx context.Context, key string) (v engine.Value, ok bool, err error)
	// Put stores v for ttl; 0 means for ever.
	Put(ctx context.Context, key string, v engine.Value, ttl time.Duration) error
	// Change atomically replaces the value under key, which exists if ok, by the one that
	// change returns with true, and stores it for ever.
	Change(ctx context.Context, key string, change func(v engine.Value, ok bool) (engine.Value, bool)) error
}

// UnknownPolicy says what happens to an effect that was in flight at a crash.
type UnknownPolicy int

// The policies for effects with an unknown outcome.
const (
	UnknownRetry UnknownPolicy = iota // repeat the request with the same key
	UnknownAsk                        // a person decides
	UnknownFail                       // fail the node
)

// Effect is one operation outside the engine.
type Effect struct {
	// Name and the ordinal of its use are the key: run/path/name#ordinal.
	Name string
	// Index is the ordinal for parallel effects, from 1: their position in the request,
	// never their order of arrival. 0 takes the next ordinal.
	Index int
	// Try repeats the effect of the Index, or else the newest effect of the name, by other
	// means, from 2: the key is run/path/name#ordinal.try. 0 and 1 take the next ordinal.
	Try int
	// Request identifies the request; its digest is compared on re-entry.
	Request engine.Value
	// Text returns a Request that is a text and takes long to build; Request is nil then,
	// and Digest is the SHA-256 of its JSON.
	Text   func() ([]byte, error)
	Digest []byte
	// Unknown is the policy for an effect in flight at a crash.
	Unknown UnknownPolicy
	// ReadOnly: the effect changes nothing outside the run that anything else could notice,
	// apart from its cost. A branch of a race may start no other effect.
	ReadOnly bool
	// Uses is what it uses outside the run, if a flow may need a grant for that.
	Uses Use
	// Interruptible: a person may end the effect early. Its context then ends with the cause
	// llm.ErrInterrupted, and what Do returns is its result.
	Interruptible bool
	// Guarded: Do calls foreign code on goroutines of its own only, and waits for them. It is
	// then called on the node's goroutine and not on one of its own, which a run that waits
	// would keep. A function that ends the goroutine ends the node with node_panicked.
	Guarded bool
	// Reserve is the maximum spending of a model call, nil for effects that spend nothing.
	// If a budget leaves less for its answer, the runner lowers Output before Do.
	Reserve *Reserve
	// OnlyRecorded: Do is not called. Without a recorded result, the error is ErrNotRecorded.
	OnlyRecorded bool
	// Do performs the effect. Key is the idempotency key to send with the request.
	Do func(ctx context.Context, key string) (Outcome, error)
}

// Reserve is the maximum that a model call may spend.
type Reserve struct {
	engine.Usage
	// OutputCost is the part of CostMicros for the Output.
	OutputCost int64
	// Unpriced names the model of a call with unknown cost, "" otherwise.
	Unpriced string
	// HasBudget is set if a budget binds the effect; Output is then what the budget leaves
	// for it. More then reserves the same amount for another try after a failed one, besides
	// what that has cost; it fails if a budget has no room.
	HasBudget    bool
	ReserveRetry func(spent engine.Usage) error
	// RetryUsage is the sum of the usages passed to More.
	RetryUsage engine.Usage
}

// Outcome is the result of an effect.
type Outcome struct {
	// Value is the result. With an error it is the rejected result, such as an invalid
	// answer of a model.
	Value    engine.Value
	Usage    *engine.Usage
	Manifest engine.Value
	// Unknown says, with an error, that the effect may have happened. Its Unknown policy
	// then applies, as if the process had ended during the effect.
	Unknown bool
}

// NewCtx is for runners.
func NewCtx(ctx context.Context, info Info, inputs engine.Values, state State, host Host) Ctx {
	return Ctx{goContext: ctx, info: info, inputs: inputs, state: state, host: host}
}

// Bind sets the context.Context of the entry, before it runs.
func (c *Ctx) Bind(ctx context.Context) { c.goContext = ctx }

// Bound returns the context.Context of the entry. An effect that outlives its node keeps it, and not the Ctx.
func (c *Ctx) Bound() context.Context { return c.goContext }

// Info identifies the attempt.
func (c *Ctx) Info() Info { return c.info }

// Input returns the value of a port and whether it has one. Lists and objects belong to the
// node and may be changed.
func (c *Ctx) Input(port string) (engine.Value, bool) {
	v, ok := c.inputs.Get(port)
	return engine.Copy(v), ok
}

// Inputs returns all inputs in a new map.
func (c *Ctx) Inputs() map[string]any {
	m := make(map[string]any, len(c.inputs))
	for _, n := range c.inputs {
		m[n.Name] = engine.Copy(n.Value)
	}
	return m
}

// Text returns the value of a port as text, "" if it has none: strings unchanged, messages
// by their content, everything else as JSON.
func (c *Ctx) Text(port string) string {
	v, _ := c.inputs.Get(port)
	return TextOf(v)
}

// Output sets the value of an output port. Edges from ports that are not set are skipped.
// The value must not be changed afterwards.
func (c *Ctx) Output(port string, v engine.Value) {
	for i := range c.outputs {
		if c.outputs[i].Name == port {
			c.outputs[i].Value = v
			return
		}
	}
	c.outputs = append(c.outputs, engine.Named{Name: port, Value: v})
}

// Meta adds metadata to the result, which `weir show` displays.
func (c *Ctx) Meta(name string, v engine.Value) {
	c.meta = append(c.meta, engine.Named{Name: name, Value: v})
}

// State returns the run's state inside this node's transaction.
func (c *Ctx) State() *State { return &c.state }

// Context returns the manager of the node's context. If the type's spec does not use
// contexts, it returns an error.
func (c *Ctx) Context() (*convo.Manager, error) { return c.host.Own() }

// ContextOf returns the manager of the context of a handle from one of the node's context
// ports.
func (c *Ctx) ContextOf(h engine.Handle) (*convo.Manager, error) { return c.host.Of(h) }

// NewContext creates an isolated context and returns its handle.
func (c *Ctx) NewContext(init convo.Change) (engine.Handle, error) { return c.host.New(init) }

// Do runs an effect, or returns its recorded result.
func (c *Ctx) Do(e Effect) (engine.Value, error) { return c.host.Do(&e) }

// Record records a step of the node; see Effects.
func (c *Ctx) Record(s engine.Step) error { return c.host.Record(s) }

// Emit sends a piece of live output to observers.
func (c *Ctx) Emit(ch llm.Chunk) { c.host.Emit(ch) }

// Wait suspends the node until a person, timer or event resolves the
// interrupt; see Waits.
func (c *Ctx) Wait(name string, i engine.Interrupt) (engine.Value, bool, error) {
	a, err := c.host.Wait(name, i)
	return a.Value, a.Given, err
}

// Ask is Wait that also returns who answered.
func (c *Ctx) Ask(name string, i engine.Interrupt) (engine.Answer, error) {
	return c.host.Wait(name, i)
}

// Pull requests the value of a lazy port.
func (c *Ctx) Pull(port string) (engine.Value, bool, error) { return c.host.Pull(port) }

// Expand requests iterations of the body; see Graph.
func (c *Ctx) Expand(items []engine.Values, concurrency int) error {
	return c.host.Expand(items, concurrency)
}

// ExpandTolerant requests iterations of which each fails alone; see Graph.
func (c *Ctx) ExpandTolerant(items []engine.Values, concurrency int) error {
	return c.host.ExpandTolerant(items, concurrency)
}

// ItemErrors returns the failures of the newest expansion's iterations; see Graph.
func (c *Ctx) ItemErrors() []*engine.Error { return c.host.ItemErrors() }

// Race requests that all branches of the body run; see Graph.
func (c *Ctx) Race(inputs engine.Values) error { return c.host.Race(inputs) }

// RaceOutcome returns how the branches ended, nil before Race.
func (c *Ctx) RaceOutcome() *engine.RaceOutcome { return c.host.RaceOutcome() }

// Iterated returns the number of iterations of the body so far.
func (c *Ctx) Iterated() int { return c.host.Iterated() }

// BodyOutputs returns the names of the outputs that the body declares.
func (c *Ctx) BodyOutputs() []string { return c.host.BodyOutputs() }

// Iterations returns the outputs of the newest expansion's iterations.
func (c *Ctx) Iterations() []engine.Values { return c.host.Iterations() }

// Origin names the output port that the unchanged value of port came from.
func (c *Ctx) Origin(port string) string { return c.host.Origin(port) }

// TakeSteering returns the messages of people that the next call takes; see Steering.
func (c *Ctx) TakeSteering(name string) []SteeringMessage { return c.host.TakeSteering(name) }

// MoreSteering reports whether the next call takes messages of people; see Steering.
func (c *Ctx) MoreSteering(name string, last, record bool) bool {
	return c.host.MoreSteering(name, last, record)
}

// LLM returns the service for all model calls.
func (c *Ctx) LLM() *llm.Service { return c.host.LLM() }

// Tools returns the tools of this process.
func (c *Ctx) Tools() *tool.Set { return c.host.Tools() }

// Executors returns the code executors; use them inside an effect.
func (c *Ctx) Executors() *sandbox.Set { return c.host.Executors() }

// Usage returns what the run had spent when this entry into the node began; use it inside an
// effect, because a later entry may see more.
func (c *Ctx) Usage() engine.Usage { return c.host.Usage() }

// Cache returns the cache across runs; use it inside an effect.
func (c *Ctx) Cache() Cache { return c.host.Cache() }

// HTTP returns the network client; use it inside an effect.
func (c *Ctx) HTTP() HTTPDoer { return c.host.HTTP() }

// Now returns the start time of the attempt, the same on every re-entry.
func (c *Ctx) Now() time.Time { return c.info.Started }

// Rand returns a random source that is the same on every re-entry and differs between
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

// Result returns the result of one execution of a node, for runners.
func (c *Ctx) Result() (outputs, meta engine.Values, state []engine.StateChange) {
	return c.outputs, c.meta, c.state.Changes()
}

package weir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/stops"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/node/builtin/safehttp"
	"github.com/weir-run/weir/otel"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
)

// Types of other packages that every user of the library needs. The package that a type
// comes from documents all of its fields and methods.
type (
	// Type is a node type: Spec describes its ports and settings, Prepare returns a node
	// for one set of settings. Func makes a Type from a Go function.
	Type = node.Type
	// Ctx is the first argument of a node's function. Through it the function reaches its
	// context.Context, inputs, state, conversation, models, tools, time and randomness, and
	// executes effects.
	Ctx = *node.Ctx
	// Flow is a flow that was read and validated: its Name, Inputs, Nodes, Edges and
	// Outputs, and its Fingerprint.
	Flow = flow.Flow
	// Handle is the value of a port that carries a conversation: a reference to a context,
	// never its messages. A field of this type in a function's inputs or outputs is such a
	// port.
	Handle = engine.Handle
	// Tool is a function that models can call: Name, Description, a JSON Schema of its
	// arguments, and whether it is ReadOnly and needs a person's approval (Approve). Package
	// tool makes tools from Go functions; tool/http and tool/mcp from requests and servers.
	Tool = tool.Tool
	// Provider calls the models of one vendor: Generate answers a request and streams its
	// text. llm/openai, llm/anthropic and llm/gemini implement it, and llm/recorded for tests.
	Provider = llm.Provider
	// Error is a failure with a stable Code, a Message, a Hint, and the Node, Attempt and
	// effect (Key) where it happened. docs/errors.md lists the codes.
	Error = engine.Error
	// Status is the state of a run or node. Completed, Paused, Failed and Cancelled are the
	// states in which Run.Wait returns.
	Status = engine.Status
	// Store keeps the record of runs: memory.New() or sqlite.Open(...). docs/store.md says
	// how to write another one.
	Store = store.Store
)

// The states in which Run.Wait and Reply.Wait return.
const (
	Completed = engine.Completed
	Paused    = engine.Paused
	Failed    = engine.Failed
	Cancelled = engine.Cancelled
)

// Options of a Weir; the zero value works, in memory and without models.
type Options struct {
	// Store keeps the record; nil keeps it in memory, until the process ends. Weir.Close
	// closes it.
	Store Store
	// Types are node types besides the built-in ones.
	Types []Type
	// Providers call models, by the name before the slash in "openai/gpt-5".
	Providers map[string]Provider
	// Replay, if set, answers every model call, of any provider.
	Replay Provider
	// Models has the windows and prices of models; nil is the built-in table.
	Models *llm.Catalogue
	// Limits bound the calls to providers, for all runs of this process; nil is none.
	Limits *llm.Limits
	// Timeouts bound how long the answers of a provider may take, by its name. Zero
	// values mean the defaults: 10 minutes until the answer begins, 5 minutes without
	// anything new, an hour in all. A call that exceeds one fails with model_timeout.
	Timeouts map[string]llm.Timeouts
	// Breakers say when the models of a provider, by its name, are not called for a while
	// because they fail. By default a model pauses for a minute after 5 failures within 5
	// minutes, if these are at least half of its calls; calls then fail with breaker_open.
	Breakers map[string]llm.Breaker
	// Tools are the tools that flows may offer to models.
	Tools []*Tool
	// Flows are flows that other flows may offer to models as tools.
	Flows []FlowTool
	// Executors run the code of action and decision nodes. A node that names none uses the
	// first one of its language; without an executor such nodes fail. See package sandbox.
	Executors []sandbox.Executor
	// Secrets resolves secrets.NAME; nil looks for the environment variable
	// WEIR_SECRET_NAME.
	Secrets func(name string) (string, bool)
	// Trajectories stores the trajectories of all runs while they execute. Without it, nothing
	// is stored, and Trajectory derives them from the journal on request.
	Trajectories *TrajectoryOptions
	// Traces sends OpenTelemetry traces of all runs that this process executes; nil sends none.
	Traces *otel.Config
	// Grants returns the resources outside the run that a flow may use, by the fingerprint of
	// the flow. A nil result, or a nil function, allows everything. It is called before each
	// effect.
	Grants func(ctx context.Context, fingerprint string) (*runner.Grants, error)
	// Quotas reserves the usage of each model call before it starts. Nil sets no quota.
	Quotas runner.Quotas
	// Current returns the flow that a new round of a session runs in place of the given one,
	// for example a newer version. A nil function keeps the given flow.
	Current func(ctx context.Context, f *Flow) (*Flow, error)
	// HTTP sends the requests of httpRequest; nil is a client that refuses private
	// addresses.
	HTTP node.HTTPDoer
	// Parallel is the maximum number of nodes of one run that execute at the same time; 0 is
	// 16.
	Parallel int
	// Runner has other processes execute the runs; nil executes them in this process.
	// Weir.Close closes it.
	Runner runner.Scheduler
	// Executes is the name of the runner whose runs this process executes as its worker; "" is
	// none. See Weir.Execute.
	Executes string
	// Rest is how far away the timer for which a run waits may be before Execute leaves the
	// run; 0 is a second. It needs Executes.
	Rest time.Duration
	// Recover has this process continue what others left in the store: runs that were
	// executing, runs whose timer is due, and messages to sessions that no round has
	// taken. A run is taken only if no process owns it, its owner's lease has run out, or
	// its owner is a process of this machine that is known to be dead. A run that needs
	// something that this process lacks stays where it is; Blocked lists it. It is for
	// processes that live long. With Runner, only messages to sessions are continued.
	Recover bool
	// Tend does the same as Recover.
	//
	// Deprecated: set Recover.
	Tend bool
	// Drain is how long Close waits for effects in flight (model calls, tools, code,
	// requests) to end by themselves; no other effect starts meanwhile. 0 cancels them at
	// once.
	Drain  time.Duration
	Logger *slog.Logger

	// Wrap and Skip are for tests of flows. Wrap returns the node type to use in place of a
	// type, with the same spec. Skip reports whether waits end at once; see runner.Options.
	Wrap func(t Type) Type
	Skip func(open map[string][]engine.Interrupt) bool
}

// Weir runs flows in this process.
type Weir struct {
	resources
	local        *runner.Local
	localOptions runner.Options   // of local
	runner       runner.Scheduler // nil if this process executes the runs
	sessions     *session.Manager
	traces       *otel.Exporter // nil without Options.Traces

	mu               sync.Mutex
	programs         map[string]*runner.Program // by fingerprint
	recordedPrograms map[string]*runner.Program // for reading, by fingerprint and specs
}

// resources are what a Weir was opened with. They stay as they are while it is open.
type resources struct {
	store       *store.Full
	catalogue   *node.Catalogue
	tools       *tool.Set
	logger      *slog.Logger
	models      *llm.Catalogue
	customTypes map[string]bool     // node types besides the built-in ones
	toolFlows   map[string]FlowTool // flows that are offered as tools, by the tool's name
	// providers has the names of the configured providers. replays reports that Options.Replay
	// answers for all of them.
	providers    map[string]bool
	replays      bool
	secret       func(name string) (string, bool)
	history      *history.Reader
	trajectories *history.Trajectories
	current      func(context.Context, *Flow) (*Flow, error)
}

// newWeir returns a Weir that executes nothing yet.
func newWeir(r resources) *Weir {
	return &Weir{resources: r, programs: make(map[string]*runner.Program), recordedPrograms: make(map[string]*runner.Program)}
}

// Open makes a Weir; Close it.
func Open(o Options) (*Weir, error) {
	types := append(builtin.Types(), o.Types...)
	if o.Wrap != nil {
		for i, t := range types {
			types[i] = o.Wrap(t)
		}
	}
	c, err := node.NewCatalogue(types...)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	w := newWeir(resources{
		store: store.Complete(o.Store), catalogue: c, logger: o.Logger, models: o.Models, secret: o.Secrets, replays: o.Replay != nil,
		customTypes: make(map[string]bool), toolFlows: make(map[string]FlowTool, len(o.Flows)), providers: make(map[string]bool, len(o.Providers)),
	})
	for name := range o.Providers {
		w.providers[name] = true
	}
	for _, t := range o.Types {
		w.customTypes[t.Spec().Name] = true
	}
	if w.models == nil {
		w.models = llm.NewCatalogue()
	}
	if err := w.installTools(&o); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	executors, err := sandbox.NewSet(o.Executors...)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	ro := runner.Options{
		Store: o.Store, Parallel: o.Parallel, Logger: o.Logger, Skip: o.Skip,
		Services: runner.Services{
			LLM: llm.NewService(llm.Options{
				Providers: maps.Clone(o.Providers), Replay: o.Replay, Models: o.Models, Limits: o.Limits,
				Timeouts: maps.Clone(o.Timeouts), Breakers: maps.Clone(o.Breakers), Logger: o.Logger, Stopped: stops.New(w.store).Find,
			}),
			Tools: w.tools, Executors: executors, Cache: cache{w.store}, HTTP: o.HTTP, Secret: o.Secrets, Grants: o.Grants, Quotas: o.Quotas,
		},
	}
	if t := o.Trajectories; t != nil && t.Describer != nil && (t.Describer.Model == "") == (t.Describer.Describe == nil) {
		return nil, errors.New("open Weir: Options.Trajectories.Describer needs either Model or Describe")
	}
	w.trajectories, ro.Trajectories = w.newTrajectories(o.Trajectories)
	ro.Flow, ro.RecordedProgram = w.programByFingerprint, w.recordedProgramOf
	if len(w.toolFlows) > 0 {
		ro.ToolFlow = w.flowOfTool
	}
	ro.Specs = func(ctx context.Context, digest string) (*flow.Specs, error) {
		return history.StoredSpecs(ctx, o.Store, digest)
	}
	ro.Drain = o.Drain
	if err := w.openTraces(o.Traces, &ro); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	w.setRunner(&o, &ro)
	opened := make(chan struct{})
	defer close(opened)
	if o.Recover || o.Tend {
		ro.Program = w.programOnceOpened(opened)
	}
	w.local, w.localOptions, w.current = runner.NewLocal(ro), ro, o.Current
	w.history = history.NewReader(w.store, w.local, recordedPrograms{w})
	w.sessions = w.newSessions(o.Recover || o.Tend)
	return w, nil
}

// complete sets the defaults of options that are unset, and checks the options.
func (o *Options) complete() (err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Store == nil {
		o.Store = memory.New()
	}
	if o.HTTP == nil {
		if o.HTTP, err = safehttp.Client(safehttp.Options{}); err != nil {
			return err
		}
	}
	if o.Secrets == nil {
		o.Secrets = func(name string) (string, bool) { return os.LookupEnv("WEIR_SECRET_" + name) }
	}
	return o.checkStore()
}

// checkStore returns an error if the options need a capability that the store lacks.
func (o *Options) checkStore() error {
	switch {
	case o.Runner != nil && o.Executes != "":
		return errors.New("Options.Runner excludes Executes: other processes execute the runs")
	case o.Executes != "" && (o.Recover || o.Tend):
		return errors.New("Options.Executes excludes Recover: the runner says which runs to continue")
	case o.Rest != 0 && o.Executes == "":
		return errors.New("Options.Rest needs Executes")
	}
	if (o.Recover || o.Tend) && o.Store.Capabilities().Recovery == nil {
		return fmt.Errorf("Options.Recover: %w", &store.Unsupported{Capability: "recovery"})
	}
	return nil
}

// installTools makes the set of tools that models may be allowed to call.
func (w *Weir) installTools(o *Options) error {
	flows, err := w.flowTools(o.Flows)
	if err != nil {
		return err
	}
	w.tools, err = tool.NewSet(append(flows, o.Tools...)...)
	return err
}

// Close stops all runs so that they can be resumed, then closes the store. If ctx ends
// first, nodes that do not stop are abandoned.
//
// No further effect starts; those in flight have Options.Drain to end by themselves,
// then they are cancelled. Completed results are kept, and the runs are released at once, so
// that another process can continue them.
func (w *Weir) Close(ctx context.Context) error {
	w.sessions.Close()
	var closed error
	if w.runner != nil {
		closed = w.runner.Close()
	}
	closed = errors.Join(closed, w.local.Close(ctx))
	if w.traces != nil {
		w.traces.Close(ctx)
	}
	return errors.Join(closed, w.store.Close())
}

// SetDrain replaces Options.Drain for the next Close: a process that a supervisor stops may
// give effects in flight more time than one that a person stops.
func (w *Weir) SetDrain(d time.Duration) { w.local.SetDrain(d) }

// Catalogue lists the node types.
func (w *Weir) Catalogue() *node.Catalogue { return w.catalogue }

// Model describes a model of a provider: its window in tokens and its prices in US dollars per
// million tokens. known is false if no entry of the table matches; then the default window holds.
func (w *Weir) Model(provider, model string) (m llm.Model, known bool) {
	return w.models.Find(provider, model)
}

// Start has the inputs and settings of a run; the zero value starts a run without inputs.
type Start struct {
	// ID is the id of the run: starting it again with the same id returns the same run. With
	// other inputs, state, user, targets, breaks or model, and for a run that is a fork, that is
	// an error with the code request_reused. "" generates one.
	ID     string
	Inputs map[string]any
	// State are values of the state that replace the flow's initial values.
	State map[string]any
	User  string
	// Origin is recorded as what started the run: KIND or KIND:NAME, such as
	// "schedule:nightly", "file:PATH" or "webhook:NAME"; "" is "go". Another form is
	// input_invalid.
	Origin string
	// Targets limits the run to what these nodes need.
	Targets []string
	// Breaks pauses the run before these nodes.
	Breaks []string
	// Model replaces the flow's model: "provider/model".
	Model string

	parent string // the run that calls the flow as a tool
}

// Start starts a run of a flow. It returns when the start is durable, and does not wait for
// the result; see Run.Wait.
func (w *Weir) Start(ctx context.Context, f *Flow, s Start) (*Run, error) {
	if err := errors.Join(runner.CheckName("run id", s.ID), runner.CheckName("user", s.User)); err != nil {
		return nil, err
	}
	if err := w.checkBranchTools(f); err != nil {
		return nil, err
	}
	if err := w.checkServices(f, s.Model); err != nil {
		return nil, err
	}
	p, err := w.program(ctx, f)
	if err != nil {
		return nil, err
	}
	b, err := newBeginning(f, s)
	if err != nil {
		return nil, err
	}
	for _, notice := range runner.RunScopeNotices(f, s.User) {
		w.logger.Info("weir: state that ends with the run", "run", b.ID, "notice", notice)
	}
	x, err := w.local.Start(ctx, p, b)
	return w.handOver(ctx, b.ID, x, err)
}

// newBeginning checks the inputs and settings of a new run.
func newBeginning(f *Flow, s Start) (b runner.StartOptions, err error) {
	b = runner.StartOptions{ID: s.ID, User: s.User, Parent: s.parent, Origin: s.Origin, Targets: s.Targets, Breaks: s.Breaks}
	if b.ID == "" {
		b.ID = runner.NewID()
	}
	if b.Origin == "" {
		b.Origin = "go"
	}
	if err := errors.Join(runner.CheckOrigin(b.Origin), checkNodes(f, s.Targets), checkBreaks(f, s.Breaks)); err != nil {
		return b, err
	}
	if b.Inputs, err = runner.CheckInputs(f, s.Inputs); err != nil {
		return b, err
	}
	if b.State, err = valuesOf(s.State); err != nil {
		return b, fmt.Errorf("state %w", err)
	}
	b.Settings = runner.SettingsFor(f, s.Model)
	return b, nil
}

func checkNodes(f *Flow, ids []string) error {
	for _, id := range ids {
		if f.Node(id) == nil {
			return &Error{Code: engine.CodeInput, Message: fmt.Sprintf("flow %s has no node %q", f.Name, id)}
		}
	}
	return nil
}

// cache gives nodes access to the cache of the store.
type cache struct{ s store.CacheStore }

// Get implements node.Cache.
func (c cache) Get(ctx context.Context, key string) (engine.Value, bool, error) {
	return c.s.CacheGet(ctx, key, time.Now())
}

// Put implements node.Cache.
func (c cache) Put(ctx context.Context, key string, v engine.Value, ttl time.Duration) error {
	var expires time.Time
	if ttl > 0 {
		expires = time.Now().Add(ttl)
	}
	return c.s.CachePut(ctx, key, v, expires)
}

// Change implements node.Cache.
func (c cache) Change(ctx context.Context, key string, change func(engine.Value, bool) (engine.Value, bool)) error {
	return c.s.CacheUpdate(ctx, key, time.Now(), change)
}

// Abandoned returns the number of node functions that have not returned although their node
// timed out or was cancelled. Their results and effects are refused; their goroutines exist
// until they return. Each is logged once.
func (w *Weir) Abandoned() int { return w.local.Abandoned() }

// Compact removes the remains of deleted data that deletions with DeferCompaction have left in
// the files of the store, and reports whether there were any. Its cost grows with the size of
// the database.
func (w *Weir) Compact(ctx context.Context) (bool, error) {
	return w.store.Compact(ctx)
}

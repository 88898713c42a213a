package session

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/token"
)

// Runs starts and continues runs. The Manager gets flows, programs and executions of
// runs through it.
type Runs interface {
	// Program prepares a flow for execution in this process.
	Program(ctx context.Context, f *flow.Flow) (*runner.Program, error)
	// Flow returns a stored flow by its fingerprint. The error is a *flow.Invalid if the
	// flow does not load in this process, and store.ErrNotFound if it is not stored.
	Flow(ctx context.Context, fingerprint string) (*flow.Flow, error)
	// RecordedProgram returns the program for reading a run, which needs no node types.
	RecordedProgram(ctx context.Context, run string) (*runner.Program, error)
	// CheckRequirements returns a *runner.Missing if this process lacks something that a
	// run of the flow needs. The run is only named in the error.
	CheckRequirements(ctx context.Context, f *flow.Flow, run string) error
	// Continue continues a run that no process executes. The error is a *runner.Missing
	// if this process lacks something that the run needs. With Options.Remote, it has another process execute the
	// run, and the execution is nil.
	Continue(ctx context.Context, run string) (*runner.Execution, error)
	// Answer answers an interrupt of a run, and continues the run as Continue does. With message, the id of a message
	// in the queue of a session, the commit that answers removes that message.
	Answer(ctx context.Context, run, interrupt string, v engine.Value, by, message string) (*runner.Execution, error)
	// Steer sends a message to a node of a run that works, whichever process executes it.
	Steer(ctx context.Context, run string, s runner.Steering) (node string, err error)
	// Cancel cancels a run, whichever process executes it.
	Cancel(ctx context.Context, run, by, reason string) error
}

// Store is the part of a store that sessions use.
type Store interface {
	store.Journal
	store.Listings
	store.SessionStore
	store.DocumentStore
	DeleteSession(ctx context.Context, id string, e store.DeleteOptions) (store.DeleteResult, error)
}

// Options are what a Manager works with. Store, Runs, Local, Models and Logger are
// required.
type Options struct {
	Store  Store
	Runs   Runs
	Local  *runner.Local
	Models *llm.Catalogue
	Logger *slog.Logger
	// CustomTypes are the node types that are not built in. Such a node may ask a person
	// something.
	CustomTypes map[string]bool
	// CountTokens, if the store counts the tokens of messages, sets the function that
	// counts those of one message.
	CountTokens func(count func(convo.Message) int)
	// Remote: other processes execute the runs. An execution of Local ends when what caused it is durable.
	Remote bool
	// Recover continues sessions that other processes left with messages in the queue.
	Recover bool
	// Current returns the version of a flow that a new round runs, for most flows the given
	// one; nil always runs that.
	Current func(ctx context.Context, f *flow.Flow) (*flow.Flow, error)
	// Deletion calls a deletion of the store, with what goes before and after it; nil only calls it.
	Deletion func(ctx context.Context, o store.DeleteOptions, do func(store.DeleteOptions) (store.DeleteResult, error)) (store.DeleteResult, error)
	// Deleted, if set, is called after sessions and runs were deleted for good.
	Deleted func(ctx context.Context, gone []store.Tree) error
	// Watch, if set, reports commits of other processes, so that waits for their rounds end without polling.
	Watch store.Watcher
}

// Manager opens sessions and drives their rounds in this process. Any number of
// processes can have a Manager on one store. Its methods may be called concurrently.
type Manager struct {
	store       Store
	runs        Runs
	local       *runner.Local
	models      *llm.Catalogue
	logger      *slog.Logger
	customTypes map[string]bool
	deletion    func(ctx context.Context, o store.DeleteOptions, do func(store.DeleteOptions) (store.DeleteResult, error)) (store.DeleteResult, error)
	deleted     func(ctx context.Context, gone []store.Tree) error
	current     func(ctx context.Context, f *flow.Flow) (*flow.Flow, error) // nil returns f
	// messageCounter loads the counter of the store on its first call, nil if the store
	// keeps no counts.
	messageCounter func() token.Counter
	remote         bool
	watcher        store.Watcher // nil: the store reports no commits
	poll           time.Duration // watchedPollInterval outside of tests
	drivers        *drivers
	recovery       *recovery // nil unless Options.Recover
}

// NewManager returns a Manager. Close it before the runner and the store.
func NewManager(o Options) *Manager {
	m := &Manager{
		store: o.Store, runs: o.Runs, local: o.Local, models: o.Models, logger: o.Logger,
		customTypes: o.CustomTypes, deletion: o.Deletion, deleted: o.Deleted, current: o.Current, remote: o.Remote,
		watcher: o.Watch, poll: watchedPollInterval,
	}
	if m.deletion == nil {
		m.deletion = func(_ context.Context, o store.DeleteOptions, do func(store.DeleteOptions) (store.DeleteResult, error)) (store.DeleteResult, error) {
			return do(o)
		}
	}
	m.drivers = newDrivers(m)
	if o.CountTokens != nil {
		m.installMessageCounter(o.CountTokens)
	}
	if o.Recover {
		m.recovery = newRecovery(m)
	}
	return m
}

// Close stops to drive sessions in this process. Queued messages stay in the store;
// every Reply that waits ends with runner.ErrClosed.
func (m *Manager) Close() {
	if m.recovery != nil {
		m.recovery.close()
	}
	m.drivers.close()
}

// Blocked lists the sessions that recovery does not continue, and why.
func (m *Manager) Blocked() []runner.Blocked {
	if m.recovery == nil {
		return nil
	}
	return m.recovery.blockedSessions()
}

// List returns the sessions that the filter selects, newest first.
func (m *Manager) List(ctx context.Context, f store.SessionFilter) ([]store.Session, error) {
	return m.store.Sessions(ctx, f)
}

// StartFunc starts a run, such as runner.Local.Start.
type StartFunc func(ctx context.Context, p *runner.Program, b runner.StartOptions) (*runner.Execution, error)

// StartPendingRound starts a round that has no commit yet because its process died: its
// message is still stored. It returns nil for any other run.
func (m *Manager) StartPendingRound(ctx context.Context, run string, start StartFunc) (*runner.Execution, error) {
	r, err := m.store.Run(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	if r.Commits > 0 || r.Session == "" {
		return nil, nil
	}
	q, err := m.store.RoundMessage(ctx, run)
	if err != nil || q.Value == nil { // another process has started it
		return nil, err
	}
	row, err := m.store.Session(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	f, err := m.runs.Flow(ctx, r.Fingerprint)
	if err != nil {
		return nil, fmt.Errorf("flow %s of run %s: %w", r.Flow, run, err)
	}
	p, err := m.runs.Program(ctx, f)
	if err != nil {
		return nil, err
	}
	said, err := m.readQueued(ctx, &q)
	if err != nil {
		return nil, err
	}
	b, err := m.roundBeginning(ctx, f, &row, run, said)
	if err != nil {
		return nil, err
	}
	return start(ctx, p, b)
}

// counterOf returns the token counter of the model in the settings.
func (m *Manager) counterOf(s convo.Settings) (convo.Counter, error) {
	model, _ := m.models.Find(s.Provider, s.Model)
	c, err := model.Counter(m.models.Vendor(s.Provider))
	if err != nil {
		return nil, fmt.Errorf("count tokens of %s: %w", s.Model, err)
	}
	return c, nil
}

// currentFlow returns the flow with which a new round of f starts; nil for nil.
func (m *Manager) currentFlow(ctx context.Context, f *flow.Flow) (*flow.Flow, error) {
	if m.current == nil || f == nil {
		return f, nil
	}
	return m.current(ctx, f)
}

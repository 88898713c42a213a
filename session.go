package weir

import (
	"context"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

// The types of conversations over many runs. Package session documents their methods and
// the rest of its API.
type (
	// Session is a conversation with a flow over many runs, its rounds. Its ID identifies it.
	// Send sends a message; other methods read, fork and delete it.
	Session = session.Session
	// SessionOptions select a session by ID, or by User and Thread; the zero value selects
	// the active session without a user.
	SessionOptions = session.OpenOptions
	// SendOptions are options of one message: its ID, which makes sending it again harmless,
	// the flow's other Inputs, and what happens if the session is Busy.
	SendOptions = session.SendOptions
	// Reply follows a message: Wait returns its result, a session.ReplyState with the Round,
	// its Status, Text, Outputs, open Interrupts, Usage and Error. Items streams the events and
	// the live text of the round that the message started or answered.
	Reply = session.Reply

	// ReplyStart identifies a reply; see session.ReplyStart.
	ReplyStart = session.ReplyStart
)

// Session finds a session with the flow, or starts one. A session is found by its user
// and the name of the flow, so that it continues after the flow was edited; its next
// round runs f. With SessionOptions.ID, f may be nil: the session continues with the flow
// of its last round. The error is store.ErrNotFound if there is no session with that id.
func (w *Weir) Session(ctx context.Context, f *Flow, o SessionOptions) (*Session, error) {
	if f != nil {
		if err := w.checkServices(f, ""); err != nil {
			return nil, err
		}
	}
	return w.sessions.Open(ctx, f, o)
}

// Sessions lists sessions, newest first.
func (w *Weir) Sessions(ctx context.Context, f store.SessionFilter) ([]store.Session, error) {
	return w.sessions.List(ctx, f)
}

// FindSession returns the id of the one session whose id begins with prefix. The error is
// store.ErrNotFound if there is none.
func (w *Weir) FindSession(ctx context.Context, prefix string) (string, error) {
	return w.sessions.Find(ctx, prefix)
}

// ForkSession is Session.Fork by id. It returns the id of the new session.
func (w *Weir) ForkSession(ctx context.Context, id string, at int) (string, error) {
	s, err := w.sessions.Fork(ctx, id, at)
	if err != nil {
		return "", err
	}
	return s.ID, nil
}

// QueuedMessages is Session.QueuedMessages by id.
func (w *Weir) QueuedMessages(ctx context.Context, session string) ([]session.QueuedMessage, error) {
	return w.sessions.QueuedMessages(ctx, session)
}

// SessionState is Session.State by id.
func (w *Weir) SessionState(ctx context.Context, id string) ([]store.StateValue, error) {
	return w.sessions.State(ctx, id)
}

// EditSessionState is Session.EditState by id: it sets and removes values that the session
// keeps between its rounds.
func (w *Weir) EditSessionState(ctx context.Context, id string, e session.StateEdit) error {
	return w.sessions.EditState(ctx, id, e)
}

// Unqueue removes a message that no round has taken, by its id, and returns the session that it
// was sent to. A sender that waits for the message gets the status cancelled. The error is
// store.ErrNotFound if there is no such message, and runner.ErrStatus if a round has taken it.
func (w *Weir) Unqueue(ctx context.Context, message string) (session string, err error) {
	return w.sessions.Unqueue(ctx, message)
}

// ContinueSession continues a session in this process if its senders have died: it resumes the
// round that no process executes, and starts rounds for the messages in the queue, each with
// the flow that it was sent with. It returns a Reply for each of them, none if there is nothing
// to do. A message that cannot be taken stays in the queue, and its Reply ends with an error.
// Another process may call it at the same time: each message is still taken once.
func (w *Weir) ContinueSession(ctx context.Context, id string) ([]*Reply, error) {
	return w.sessions.Continue(ctx, id)
}

// SessionNames is Session.Names by id.
func (w *Weir) SessionNames(ctx context.Context, id string) (session.Names, error) {
	return w.sessions.Names(ctx, id)
}

// RenameSession is Session.Rename by id.
func (w *Weir) RenameSession(ctx context.Context, id, title, by string) error {
	return w.sessions.Rename(ctx, id, title, by)
}

// LabelSession is Session.SetLabels by id.
func (w *Weir) LabelSession(ctx context.Context, id string, labels []string, by string) error {
	return w.sessions.SetLabels(ctx, id, labels, by)
}

// LabelledSessions lists the sessions with a label, newest first.
func (w *Weir) LabelledSessions(ctx context.Context, label string, f store.SessionFilter) ([]store.Session, error) {
	return w.sessions.ListLabelled(ctx, label, f)
}

// newSessions makes the manager of sessions.
func (w *Weir) newSessions(recovers bool) *session.Manager {
	return session.NewManager(session.Options{
		Store: w.store, Runs: sessionRuns{w}, Local: w.local, Models: w.models, Logger: w.logger,
		CustomTypes: w.customTypes, Deletion: w.deleteRecords, Deleted: w.trajectories.Delete, Current: w.current, CountTokens: w.store.Capabilities().CountTokens,
		Watch: w.store.Capabilities().Watch, Remote: w.runner != nil, Recover: recovers && w.store.Capabilities().Sessions != nil,
	})
}

// sessionRuns implements session.Runs.
type sessionRuns struct{ w *Weir }

// Program implements session.Runs.
func (r sessionRuns) Program(ctx context.Context, f *Flow) (*runner.Program, error) {
	return r.w.program(ctx, f)
}

// Flow implements session.Runs.
func (r sessionRuns) Flow(ctx context.Context, fingerprint string) (*Flow, error) {
	return r.w.FlowByFingerprint(ctx, fingerprint)
}

// RecordedProgram implements session.Runs.
func (r sessionRuns) RecordedProgram(ctx context.Context, run string) (*runner.Program, error) {
	return r.w.programForReading(ctx, run)
}

// CheckRequirements implements session.Runs.
func (r sessionRuns) CheckRequirements(ctx context.Context, f *Flow, run string) error {
	p, err := r.w.program(ctx, f)
	if err != nil {
		return err
	}
	if what := r.w.missing(p, nil, nil); len(what) > 0 {
		return &runner.Missing{Run: run, What: what}
	}
	return nil
}

// Continue implements session.Runs.
func (r sessionRuns) Continue(ctx context.Context, run string) (*runner.Execution, error) {
	return executionOf(r.w.Continue(ctx, run))
}

// Answer implements session.Runs.
func (r sessionRuns) Answer(ctx context.Context, run, interrupt string, v engine.Value, by, message string) (*runner.Execution, error) {
	if message == "" {
		return executionOf(r.w.Answer(ctx, run, interrupt, v, by))
	}
	if r.w.runner != nil {
		return executionOf(r.w.deliver(ctx, runner.QueuedAnswerPost(run, interrupt, v, by, message)))
	}
	return executionOf(r.w.do(ctx, run, runner.AnswerQueued(interrupt, v, by, message)))
}

// Cancel implements session.Runs.
func (r sessionRuns) Cancel(ctx context.Context, run, by, reason string) error {
	_, err := r.w.Cancel(ctx, run, by, reason)
	return err
}

// Steer implements session.Runs.
func (r sessionRuns) Steer(ctx context.Context, run string, s runner.Steering) (string, error) {
	return r.w.Steer(ctx, run, s)
}

// executionOf returns the execution of a run, nil if there is none.
func executionOf(r *Run, err error) (*runner.Execution, error) {
	if r == nil {
		return nil, err
	}
	return r.execution(), err
}

package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// OpenOptions select a session. The zero value is the active session without a user.
type OpenOptions struct {
	// User is the owner of the session; "" is no user. User and Thread are at most 200
	// bytes, without control characters and without blanks at the ends.
	User string
	// Thread names one of the user's conversations with the flow. "" selects the active
	// one: the newest, unless another was activated since. A session whose lifetime (`ttl`
	// of the flow) is over is not active; it continues when its thread or ID is given,
	// until it is pruned.
	Thread string
	// ID is the id of the session; nothing else is needed then.
	ID string
	// New starts a session even if one exists, and makes it the active one. With ID, the
	// new session gets that id, which must be free.
	New bool
}

// Session is a conversation with a flow over many runs, its rounds. The store keeps its
// messages: two values of one session, also in two processes, are the same session.
type Session struct {
	ID, User, Flow, Thread string

	m    *Manager
	flow *flow.Flow
}

// Open finds a session with the flow, or starts one. A session is found by its user and
// the name of the flow, so that it continues after the flow was edited; its next round
// runs f. With OpenOptions.ID, f may be nil: the session continues with the flow of its
// last round. The error is store.ErrNotFound if there is no session with that id.
func (m *Manager) Open(ctx context.Context, f *flow.Flow, o OpenOptions) (*Session, error) {
	m.preloadMessageCounter()
	if o.ID == "" || o.New {
		if err := o.checkNames(); err != nil {
			return nil, err
		}
	}
	if f != nil {
		if _, err := m.runs.Program(ctx, f); err != nil {
			return nil, err
		}
		if err := m.checkTakesMessages(f); err != nil {
			return nil, err
		}
	}
	if o.ID != "" && !o.New {
		return m.sessionByID(ctx, f, o)
	}
	if f == nil {
		return nil, &engine.Error{Code: engine.CodeInput, Message: "a session without an id is one with a flow, and none is given", Permanent: true}
	}
	if !o.New {
		row, err := m.store.FindSession(ctx, o.User, f.Name, o.Thread)
		switch {
		case err == nil && o.Thread == "" && hasExpired(&row): // start another one
		case err == nil || !errors.Is(err, store.ErrNotFound):
			return m.session(&row, f), err
		}
	}
	return m.newSession(ctx, f, o)
}

// newSession creates a session. If another caller has created one with the same thread
// meanwhile, it returns that one.
func (m *Manager) newSession(ctx context.Context, f *flow.Flow, o OpenOptions) (*Session, error) {
	n := store.NewSession{ID: o.ID, User: o.User, Flow: f.Name, Thread: o.Thread, Now: time.Now()}
	if n.ID == "" {
		n.ID = runner.NewID()
	}
	if ttl := f.Session.TTL; ttl > 0 {
		n.Expires = n.Now.Add(ttl)
	}
	err := m.store.CreateSession(ctx, n)
	if errors.Is(err, store.ErrExists) && !o.New {
		row, err := m.store.FindSession(ctx, o.User, f.Name, o.Thread)
		return m.session(&row, f), err
	}
	if err != nil {
		return nil, fmt.Errorf("new session of flow %s: %w", f.Name, err)
	}
	row, err := m.store.Session(ctx, n.ID)
	return m.session(&row, f), err
}

// hasExpired reports whether the lifetime of a session is over and nothing runs or waits
// in it. It may be deleted at any time.
func hasExpired(row *store.Session) bool {
	return !row.Expires.IsZero() && !time.Now().Before(row.Expires) && row.Holder == "" && row.Queued == 0
}

// sessionByID finds a session by its id. It must have the user and flow that are given.
func (m *Manager) sessionByID(ctx context.Context, f *flow.Flow, o OpenOptions) (*Session, error) {
	row, err := m.store.Session(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	switch {
	case o.User != "" && o.User != row.User:
		return nil, fmt.Errorf("session %s of user %q: %w", o.ID, o.User, store.ErrNotFound)
	case f != nil && f.Name != row.Flow:
		return nil, &engine.Error{
			Code: engine.CodeInput, Permanent: true,
			Message: fmt.Sprintf("session %s is one with flow %s, and this is flow %s", o.ID, row.Flow, f.Name),
			Hint:    "a session continues with the flow of its name; start another session for this flow",
		}
	case f == nil:
		if f, err = m.flowOfSession(ctx, &row); err != nil {
			return nil, err
		}
	}
	return m.session(&row, f), nil
}

func (m *Manager) session(row *store.Session, f *flow.Flow) *Session {
	return &Session{ID: row.ID, User: row.User, Flow: row.Flow, Thread: row.Thread, m: m, flow: f}
}

// flowOfSession returns the flow of the last round of a session, or of the sessions it was
// forked from.
func (m *Manager) flowOfSession(ctx context.Context, row *store.Session) (*flow.Flow, error) {
	for id := row.ID; id != ""; {
		rounds, err := m.store.Runs(ctx, store.Filter{Session: id, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(rounds) > 0 {
			p, err := m.runs.RecordedProgram(ctx, rounds[0].ID)
			if err != nil {
				return nil, err
			}
			return p.Flow, nil
		}
		s, err := m.store.Session(ctx, id)
		if err != nil {
			return nil, err
		}
		id = s.Parent
	}
	return nil, &engine.Error{
		Code: engine.CodeInput, Permanent: true,
		Message: fmt.Sprintf("session %s has no round yet, so its version of flow %s is not known", row.ID, row.Flow),
		Hint:    "name the flow",
	}
}

// checkTakesMessages returns an error for a flow that can neither take a message nor ask a
// question.
func (m *Manager) checkTakesMessages(f *flow.Flow) error {
	if _, ok := MessageInput(f); ok || m.mayAskQuestions(&f.Graph) {
		return nil
	}
	return &engine.Error{
		Code: engine.CodeInput, Permanent: true,
		Message: fmt.Sprintf("flow %s takes no message: it has no input for one and asks nothing", f.Name),
		Hint:    "declare an input named message: `inputs: {message: {type: text, required: true}}`",
	}
}

// mayAskQuestions reports whether a node of the graph may ask a person something.
func (m *Manager) mayAskQuestions(g *flow.Graph) bool {
	for _, n := range g.Nodes {
		if n.Type == "userInput" || n.Uses != nil || len(n.Runs) > 0 || m.customTypes[n.Type] || n.Body != nil && m.mayAskQuestions(n.Body) {
			return true
		}
	}
	return false
}

// MessageInput returns the input that takes the message of a round: the one named message,
// else the only required one of type text or message. ok is false if a flow has none.
func MessageInput(f *flow.Flow) (flow.Input, bool) {
	var only flow.Input
	n := 0
	for _, in := range f.Inputs {
		said := in.Type == flow.TypeText || in.Type == flow.TypeMessage
		switch {
		case in.Name == messageName && (said || in.Type == flow.TypeAny):
			return in, true
		case in.Required && said:
			only = in
			n++
		}
	}
	return only, n == 1
}

// messageName is the input that takes the message of a round. If the flow has no input for
// it, the run keeps the message under this name until it answers the first question with
// it.
const messageName = "message"

// Info reads the row of the session.
func (s *Session) Info(ctx context.Context) (store.Session, error) {
	return s.m.store.Session(ctx, s.ID)
}

// Messages returns the messages of the history from position from to position to, which is
// excluded. Messages that views no longer show are included.
func (s *Session) Messages(ctx context.Context, from, to int) ([]store.SessionMessage, error) {
	return s.m.store.SessionMessages(ctx, s.ID, from, to)
}

// Rounds lists the runs of the session, newest first: at most limit, or 100 if limit is 0.
// With before, the id of a run, it lists those before that run.
func (s *Session) Rounds(ctx context.Context, before string, limit int) ([]store.Run, error) {
	return s.m.store.Runs(ctx, store.Filter{Session: s.ID, Before: before, Limit: limit})
}

// Fork starts another session with the first at messages of this one; -1 means all.
// Nothing is copied, and neither session sees the later messages of the other. The user's
// active session does not change; see Activate.
func (s *Session) Fork(ctx context.Context, at int) (*Session, error) {
	row, err := s.Info(ctx)
	if err != nil {
		return nil, err
	}
	if at < 0 {
		at = row.Length
	}
	if at > row.Length {
		return nil, &engine.Error{
			Code: engine.CodeInput, Permanent: true,
			Message: fmt.Sprintf("session %s has %d messages, and cannot be forked at %d", s.ID, row.Length, at),
			Hint:    "give how many of its messages the fork begins with",
		}
	}
	id := runner.NewID()
	if err := s.createFork(ctx, id, at); err != nil {
		return nil, err
	}
	row, err = s.m.store.Session(ctx, id)
	return s.m.session(&row, s.flow), err
}

// createFork creates a session with the first at messages of this one.
func (s *Session) createFork(ctx context.Context, id string, at int) error {
	n := store.NewSession{ID: id, User: s.User, Flow: s.Flow, Parent: s.ID, ParentLength: at, Now: time.Now()}
	if s.flow != nil && s.flow.Session.TTL > 0 {
		n.Expires = n.Now.Add(s.flow.Session.TTL)
	}
	if err := s.m.store.CreateSession(ctx, n); err != nil {
		return fmt.Errorf("fork session %s: %w", s.ID, err)
	}
	return nil
}

// Activate makes the session the active one of its user and flow.
func (s *Session) Activate(ctx context.Context) error {
	return s.m.store.ActivateSession(ctx, s.ID)
}

// WithFlow returns the session with another flow of the same name, such as an edited one.
func (s *Session) WithFlow(ctx context.Context, f *flow.Flow) (*Session, error) {
	return s.m.Open(ctx, f, OpenOptions{ID: s.ID})
}

// Fork is Session.Fork by id.
func (m *Manager) Fork(ctx context.Context, id string, at int) (*Session, error) {
	row, err := m.store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	return m.session(&row, nil).Fork(ctx, at)
}

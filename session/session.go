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

// OpenOptions says which conversation is meant. The zero value is the active
// one of the flow's name and nobody in particular.
type OpenOptions struct {
	// User is whose session it is, "" for nobody in particular. It and Thread fit on
	// a line: at most 200 bytes, no control characters, no blanks at the ends.
	User string
	// Thread names one conversation of the user with the flow; "" is the active
	// one, which is the newest unless another was activated since. One that has
	// outlived the lifetime that its flow gives it (`ttl`) is active no more: it goes
	// on where its thread or ID is given, until it is pruned.
	Thread string
	// ID is the session's own id; nothing else has to be given then.
	ID string
	// New makes a session where one is there already, and has it be the active
	// one. With ID it is made under that id, which is to be free.
	New bool
}

// Session is a conversation with a flow over many runs, its rounds. Its
// messages are in the store: two values of one session, in one process or two,
// are the same session.
type Session struct {
	ID, User, Flow, Thread string

	m    *Manager
	flow *flow.Flow
}

// Session finds a conversation with the flow or begins one. It is known by the
// user and the flow's name, so that it goes on after the flow was changed; what
// rounds run is f as it is now. With an ID, f may be nil: the session goes on
// with the flow of its last round. store.ErrNotFound says that there is no
// session of that id.
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
		case err == nil && o.Thread == "" && hasExpired(&row): // another begins
		case err == nil || !errors.Is(err, store.ErrNotFound):
			return m.session(&row, f), err
		}
	}
	return m.newSession(ctx, f, o)
}

// newSession makes one, unless somebody was faster with the same thread.
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

// hasExpired reports whether a session has outlived its lifetime and nothing goes on
// in it: it may be deleted at any time.
func hasExpired(row *store.Session) bool {
	return !row.Expires.IsZero() && !time.Now().Before(row.Expires) && row.Holder == "" && row.Queued == 0
}

// sessionByID is the session of an id, held to whose it is said to be.
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

// flowOfSession is the flow of a session's last round.
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
		Message: fmt.Sprintf("session %s has had no round, so that nobody knows which file flow %s is", row.ID, row.Flow),
		Hint:    "name the flow",
	}
}

// checkTakesMessages refuses a flow that has no use for a message.
func (m *Manager) checkTakesMessages(f *flow.Flow) error {
	if _, ok := messageInput(f); ok || m.mayAskQuestions(&f.Graph) {
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

// messageInput is the input that a round's message goes to: the one named
// message, else the only one that is required and a text or message.
func messageInput(f *flow.Flow) (flow.Input, bool) {
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

// messageName is the input that takes the message of a round. A flow that has
// none for it is asked nothing of the kind; its run keeps the message under that
// name until its first question is answered with it.
const messageName = "message"

// Info is the session as it stands.
func (s *Session) Info(ctx context.Context) (store.Session, error) {
	return s.m.store.Session(ctx, s.ID)
}

// Messages returns the history at positions from up to to, which is not
// included. All of it can be read for ever, also what no view shows any more.
func (s *Session) Messages(ctx context.Context, from, to int) ([]store.SessionMessage, error) {
	return s.m.store.SessionMessages(ctx, s.ID, from, to)
}

// Rounds lists the session's runs, the newest first, at most limit of them; 0 is
// 100. Those before a run that is named are listed with before.
func (s *Session) Rounds(ctx context.Context, before string, limit int) ([]store.Run, error) {
	return s.m.store.Runs(ctx, store.Filter{Session: s.ID, Before: before, Limit: limit})
}

// Fork begins another session with the first at messages of this one, -1 for all
// of them. Nothing is copied, and neither sees what the other continues with. The
// active session of the user stays the active one; see Activate.
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
	n := store.NewSession{ID: runner.NewID(), User: s.User, Flow: s.Flow, Parent: s.ID, ParentLength: at, Now: time.Now()}
	if s.flow != nil && s.flow.Session.TTL > 0 {
		n.Expires = n.Now.Add(s.flow.Session.TTL)
	}
	if err := s.m.store.CreateSession(ctx, n); err != nil {
		return nil, fmt.Errorf("fork session %s: %w", s.ID, err)
	}
	row, err = s.m.store.Session(ctx, n.ID)
	return s.m.session(&row, s.flow), err
}

// Activate has the session be the one that is meant where no thread is named.
func (s *Session) Activate(ctx context.Context) error {
	return s.m.store.ActivateSession(ctx, s.ID)
}

// WithFlow is the session with another flow of the same name, as after an edit.
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

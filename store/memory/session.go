package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/store"
)

// sessions has the sessions and their queued messages. Its lock is acquired before that of a run.
type sessions struct {
	mu       sync.Mutex
	byID     map[string]*session
	order    []*session // by creation
	queue    []*store.QueuedMessage
	messages map[string]*store.QueuedMessage // by id, including those that were taken
	active   int64                           // the last assigned number
}

// session is one session, guarded by the mutex of sessions.
type session struct {
	number     int // grows with each session
	row        store.Session
	parent     *session
	rounds     []*run
	active     int64 // the highest of (user, flow) is the active session
	usageAdded bool  // the usage of the last round is included in row.Usage
	changes    []stateChange
}

// end returns the number of messages of the history.
func (s *session) end() (int, error) {
	n := len(s.rounds)
	if n == 0 {
		return s.row.ParentLength, nil
	}
	last := s.rounds[n-1]
	own, err := last.sessionContext()
	if err != nil || own == nil {
		return last.first, err
	}
	return own.end(), nil
}

// sessionContext returns the run's context that continues its session, nil if it has not created it yet.
func (r *run) sessionContext() (*ownMessages, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.contexts.index(r); err != nil || r.contexts.sessionContext == nil {
		return nil, err
	}
	return new(*r.contexts.sessionContext), nil
}

// historyPart is a part of a history with the run that added it.
type historyPart struct {
	stretch
	run   *run
	owner *session
}

// parts lists the parts of the history for positions from up to to, the last one first.
func (s *session) parts(from, to int) ([]historyPart, error) {
	var out []historyPart
	for ; s != nil; s = s.parent {
		i := sort.Search(len(s.rounds), func(i int) bool { return s.rounds[i].first >= to }) - 1
		for ; i >= 0 && from < to; i-- {
			r := s.rounds[i]
			own, err := r.sessionContext()
			if err != nil {
				return nil, err
			}
			if own != nil {
				if lo, hi := max(from, own.base), min(to, own.end()); lo < hi {
					out = append(out, historyPart{stretch{lo, own.list[lo-own.base : hi-own.base]}, r, s})
				}
			}
			to = min(to, r.first)
		}
		to = min(to, s.row.ParentLength)
	}
	return out, nil
}

// sessionStretches lists the stretches of a session's history.
func (s *Store) sessionStretches(ctx context.Context, id string, from, to int) ([]stretch, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	x := s.sessions.byID[id]
	if x == nil {
		return nil, fmt.Errorf("session %s: %w", id, store.ErrNotFound)
	}
	parts, err := x.parts(from, to)
	out := make([]stretch, len(parts))
	for i := range parts {
		out[i] = parts[i].stretch
	}
	return out, err
}

// CreateSession implements store.SessionStore.
func (s *Store) CreateSession(ctx context.Context, n store.NewSession) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	t := &s.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	n.Thread = cmp.Or(n.Thread, n.ID)
	taken := slices.ContainsFunc(t.order, func(x *session) bool {
		return x.row.User == n.User && x.row.Flow == n.Flow && x.row.Thread == n.Thread
	})
	if taken || t.byID[n.ID] != nil || n.FirstMessage != nil && t.messages[n.FirstMessage.ID] != nil {
		return fmt.Errorf("create session %s: %w", n.ID, store.ErrExists)
	}
	x := &session{row: store.Session{
		ID: n.ID, User: n.User, Flow: n.Flow, Thread: n.Thread, Created: n.Now, Updated: n.Now, Expires: n.Expires,
	}}
	if n.Parent != "" || n.ParentLength != 0 {
		if err := x.fork(t.byID[n.Parent], n.ParentLength); err != nil {
			return fmt.Errorf("create session %s: %d messages of session %s: %w", n.ID, n.ParentLength, n.Parent, err)
		}
	}
	if last := len(t.order); last > 0 {
		x.number = t.order[last-1].number + 1
	}
	t.byID[n.ID] = x
	t.order = append(t.order, x)
	if n.Parent == "" {
		t.activate(x)
	}
	if n.FirstMessage != nil {
		t.enqueue(*n.FirstMessage)
	}
	return nil
}

// fork makes a new session start with the first messages of another.
func (s *session) fork(parent *session, at int) error {
	if parent == nil {
		return store.ErrNotFound
	}
	n, err := parent.end()
	if err == nil && (at > n || at < 0) {
		err = store.ErrNotFound
	}
	s.parent, s.row.Parent, s.row.ParentRound, s.row.ParentLength = parent, parent.row.ID, parent.row.Rounds, at
	if at == n {
		s.row.Carryover = slices.Clone(parent.row.Carryover)
	}
	if err != nil {
		return err
	}
	return s.inheritState(at)
}

func (t *sessions) activate(x *session) {
	t.active++
	x.active = t.active
}

// ActivateSession implements store.SessionStore.
func (s *Store) ActivateSession(ctx context.Context, id string) error {
	return s.withSession(ctx, id, func(x *session) error {
		s.sessions.activate(x)
		return nil
	})
}

// ExpireSession implements store.SessionStore.
func (s *Store) ExpireSession(ctx context.Context, id string, at time.Time) error {
	return s.withSession(ctx, id, func(x *session) error {
		x.row.Expires = at
		return nil
	})
}

// withSession calls do under the lock; store.ErrNotFound if there is no such session.
func (s *Store) withSession(ctx context.Context, id string, do func(x *session) error) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	x := s.sessions.byID[id]
	if x == nil {
		return fmt.Errorf("session %s: %w", id, store.ErrNotFound)
	}
	return do(x)
}

// Session implements store.SessionStore.
func (s *Store) Session(ctx context.Context, id string) (out store.Session, err error) {
	err = s.withSession(ctx, id, func(x *session) error {
		out, err = s.sessions.sessionRow(x)
		return err
	})
	return out, err
}

// sessionRow returns a session for callers.
func (t *sessions) sessionRow(x *session) (store.Session, error) {
	row := x.row
	row.Updated = x.lastMessageAt()
	row.Carryover = slices.Clone(row.Carryover)
	for _, q := range t.queue {
		if q.Session == row.ID {
			row.Queued++
		}
	}
	var err error
	row.Length, err = x.end()
	return row, err
}

// FindSession implements store.SessionStore.
func (s *Store) FindSession(ctx context.Context, user, flow, thread string) (store.Session, error) {
	if err := s.checkOpen(ctx); err != nil {
		return store.Session{}, err
	}
	t := &s.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	var found *session
	for _, x := range t.order {
		if x.row.User != user || x.row.Flow != flow || thread != "" && x.row.Thread != thread {
			continue
		}
		if found == nil || x.active > found.active {
			found = x
		}
	}
	if found == nil {
		return store.Session{}, fmt.Errorf("session of user %q and flow %q, thread %q: %w", user, flow, thread, store.ErrNotFound)
	}
	return t.sessionRow(found)
}

// Sessions implements store.SessionStore.
func (s *Store) Sessions(ctx context.Context, f store.SessionFilter) ([]store.Session, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	t := &s.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.byID[f.Before]
	if before == nil && f.Before != "" {
		return nil, fmt.Errorf("list sessions before: session %s: %w", f.Before, store.ErrNotFound)
	}
	out := []store.Session{}
	for _, x := range slices.Backward(t.order) {
		if len(out) == cmp.Or(f.Limit, 100) {
			break
		}
		other := f.User != "" && f.User != x.row.User || f.Flow != "" && f.Flow != x.row.Flow || !strings.HasPrefix(x.row.ID, f.Prefix)
		if other || before != nil && x.number >= before.number {
			continue
		}
		row, err := t.sessionRow(x)
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, nil
}

// SessionMessages implements store.SessionStore.
func (s *Store) SessionMessages(ctx context.Context, id string, from, to int) ([]store.SessionMessage, error) {
	out := []store.SessionMessage{}
	err := s.withSession(ctx, id, func(x *session) error {
		parts, err := x.parts(max(from, 0), to)
		for _, p := range slices.Backward(parts) {
			out = append(out, p.historyMessages(x)...)
		}
		if count := s.tokens.Load(); count != nil {
			for i := range out {
				out[i].Tokens = (*count)(out[i].Message)
			}
		}
		return err
	})
	return out, err
}

// SessionHistory implements store.SessionStore.
func (s *Store) SessionHistory(ctx context.Context, id string, from, to int) ([]convo.Message, error) {
	ms, err := s.SessionMessages(ctx, id, from, to)
	out := make([]convo.Message, len(ms))
	for i := range ms {
		out[i] = ms[i].Message
	}
	return out, err
}

// historyMessages returns a part of the history of x.
func (p historyPart) historyMessages(x *session) []store.SessionMessage {
	row := p.run.copy()
	own, err := p.run.sessionContext()
	if err != nil || own == nil {
		return nil // it existed a moment ago
	}
	out := make([]store.SessionMessage, 0, len(p.messages))
	for i := range p.messages {
		m := store.SessionMessage{
			Position: p.from + i, Run: row.ID, Status: row.Head.Status, Message: p.messages[i],
		}
		if p.owner == x {
			m.Round = row.Round
		}
		if c, ok := p.run.commit(own.seqs[p.from+i-own.base]); ok {
			m.At = time.UnixMilli(c.At)
		}
		out = append(out, m)
	}
	return out
}

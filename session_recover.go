package weir

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// pendingSessions is a store that lists the sessions in which something waits for a
// process.
type pendingSessions interface {
	PendingSessions(ctx context.Context, after string, limit int) ([]string, error)
}

const (
	// sessionsPause is about how long passes between two looks at the sessions in
	// which something waits.
	sessionsPause = time.Second
	// sessionsASweep bounds how many sessions are continued in one look.
	sessionsASweep = 32
	// senderPatience is how long a message waits for its sender where it is not known
	// whether that process lives.
	senderPatience = 5 * time.Second
	// blockedFor is how long a session that cannot go on here is left alone.
	blockedFor = 30 * time.Second
)

// sessionRecovery continues sessions whose processes left messages in the queue, or a
// round that was begun and has no commit.
type sessionRecovery struct {
	w      *Weir
	ctx    context.Context //nolint:containedctx // ends when the Weir closes
	cancel context.CancelFunc
	loop   sync.WaitGroup

	mu      sync.Mutex
	blocked map[string]blockedSession
}

type blockedSession struct {
	Blocked
	until time.Time
}

func newSessionRecovery(w *Weir) *sessionRecovery {
	s := &sessionRecovery{w: w, blocked: make(map[string]blockedSession)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if from, ok := w.store.(pendingSessions); ok {
		s.loop.Go(func() { s.run(from) })
	}
	return s
}

func (s *sessionRecovery) close() {
	s.cancel()
	s.loop.Wait()
}

// list is what Blocked tells of sessions.
func (s *sessionRecovery) list() []Blocked {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Blocked
	for _, id := range slices.Sorted(maps.Keys(s.blocked)) {
		out = append(out, s.blocked[id].Blocked)
	}
	return out
}

func (s *sessionRecovery) run(from pendingSessions) {
	clock := time.NewTimer(0)
	defer clock.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-clock.C:
		}
		if err := s.sweep(from); err != nil && s.ctx.Err() == nil {
			s.w.logger.Warn("list sessions with messages", "error", err)
		}
		clock.Reset(sessionsPause - sessionsPause/4 + rand.N(sessionsPause/2))
	}
}

// sweep continues the sessions that may be continued here.
func (s *sessionRecovery) sweep(from pendingSessions) error {
	continued, seen := 0, map[string]bool{}
	for after := ""; continued < sessionsASweep; {
		ids, err := from.PendingSessions(s.ctx, after, 2*sessionsASweep)
		if err != nil {
			return err
		}
		for _, id := range ids {
			after, seen[id] = id, true
			if continued == sessionsASweep || !s.may(id) {
				continue
			}
			joined, err := s.recover(id)
			switch {
			case s.ctx.Err() != nil:
				return s.ctx.Err()
			case err != nil && !errors.Is(err, store.ErrNotFound):
				s.block(id, err)
			case joined:
				continued++
			}
		}
		if len(ids) < 2*sessionsASweep {
			s.forget(seen)
			return nil
		}
	}
	return nil
}

// may reports whether a session is to be looked at: nothing drives it here, and it was
// not refused a moment ago.
func (s *sessionRecovery) may(id string) bool {
	if s.w.talks.drives(id) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blocked[id]
	return !ok || time.Now().After(b.until)
}

func (s *sessionRecovery) block(id string, err error) {
	b := Blocked{Session: id, Poisoned: errors.Is(err, runner.ErrPoisoned), Err: err}
	if m, ok := errors.AsType[*runner.Missing](err); ok {
		b.Missing, b.Run = m.What, m.Run
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked[id] = blockedSession{b, time.Now().Add(blockedFor)}
}

func (s *sessionRecovery) forget(seen map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.blocked, func(id string, _ blockedSession) bool { return !seen[id] })
}

// recover has this process drive a session until the messages that wait in it have had
// their turn.
func (s *sessionRecovery) recover(id string) (joined bool, err error) {
	row, err := s.w.store.Session(s.ctx, id)
	if err != nil {
		return false, err
	}
	list, err := s.w.store.Queue(s.ctx, id)
	if err != nil {
		return false, err
	}
	if row.Holder != "" {
		now, err := s.w.store.Run(s.ctx, row.Holder)
		if err != nil {
			return false, err
		}
		switch status := now.Head.Status; {
		case status == engine.Pending && now.Commits == 0:
			first, err := s.w.store.RoundMessage(s.ctx, row.Holder)
			if err != nil {
				return false, err
			}
			list = append([]store.Queued{first}, list...)
		case status == engine.Running: // the run is continued first, and the queue after it
			return false, nil
		}
		if now.Owner != "" && now.Owner != s.w.local.Owner() && time.Now().Before(now.Until) && !runner.OwnerGone(now.Owner) {
			return false, nil
		}
	}
	if len(list) == 0 || !s.left(&list[0]) {
		return false, nil
	}
	if err := s.ready(&row, &list[0]); err != nil {
		return false, err
	}
	turns, err := s.w.ContinueSession(s.ctx, id)
	for _, t := range turns {
		s.loop.Go(func() { s.watch(id, t) })
	}
	return len(turns) > 0, err
}

// watch notes why a message cannot have its turn.
func (s *sessionRecovery) watch(id string, t *Turn) {
	select {
	case <-t.Done():
	case <-s.ctx.Done():
		return
	}
	t.mu.Lock()
	err := t.err
	t.mu.Unlock()
	if err != nil && !errors.Is(err, runner.ErrClosed) {
		s.block(id, err)
	}
}

// ready reports what this process lacks for the round of a message.
func (s *sessionRecovery) ready(row *store.Session, q *store.Queued) error {
	f, err := s.w.flowOfMessage(s.ctx, row, q)
	if invalid, ok := errors.AsType[*flow.Invalid](err); ok {
		return missingTypes(q.Run, invalid)
	}
	if err != nil {
		return err
	}
	p, err := s.w.program(s.ctx, f)
	if err != nil {
		return err
	}
	if what := s.w.missing(p, nil, nil); len(what) > 0 {
		return &runner.Missing{Run: q.Run, What: what}
	}
	return nil
}

// left reports whether the process that sent a message will not begin its round.
func (s *sessionRecovery) left(q *store.Queued) bool {
	sender := spokenOf(q.Value).process
	switch {
	case sender == s.w.local.Owner(), sender != "" && runner.OwnerGone(sender):
		return true
	default:
		return time.Since(q.At) > senderPatience
	}
}

// drives reports whether this process drives a session.
func (cs *conductors) drives(id string) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.byID[id] != nil
}

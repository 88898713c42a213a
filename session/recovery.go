package session

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

const (
	// recoveryInterval is about how long passes between two looks at the sessions in
	// which something waits.
	recoveryInterval = time.Second
	// maxSessionsPerSweep bounds how many sessions are continued in one look.
	maxSessionsPerSweep = 32
	// senderTimeout is how long a message waits for its sender where it is not known
	// whether that process lives.
	senderTimeout = 5 * time.Second
	// blockedRetryInterval is how long a session that cannot go on here is left alone.
	blockedRetryInterval = 30 * time.Second
)

// recovery continues sessions whose processes left messages in the queue, or a
// round that was begun and has no commit.
type recovery struct {
	m      *Manager
	ctx    context.Context //nolint:containedctx // ends when the Weir closes
	cancel context.CancelFunc
	loop   sync.WaitGroup

	mu      sync.Mutex
	blocked map[string]blockedSession
}

type blockedSession struct {
	runner.Blocked
	until time.Time
}

func newRecovery(m *Manager) *recovery {
	s := &recovery{m: m, blocked: make(map[string]blockedSession)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.loop.Go(s.run)
	return s
}

func (s *recovery) close() {
	s.cancel()
	s.loop.Wait()
}

// blockedSessions is what Blocked tells of sessions.
func (s *recovery) blockedSessions() []runner.Blocked {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []runner.Blocked
	for _, id := range slices.Sorted(maps.Keys(s.blocked)) {
		out = append(out, s.blocked[id].Blocked)
	}
	return out
}

func (s *recovery) run() {
	clock := time.NewTimer(0)
	defer clock.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-clock.C:
		}
		if err := s.sweep(); err != nil && s.ctx.Err() == nil {
			s.m.logger.Warn("list sessions with messages", "error", err)
		}
		clock.Reset(recoveryInterval - recoveryInterval/4 + rand.N(recoveryInterval/2))
	}
}

// sweep continues the sessions that may be continued here.
func (s *recovery) sweep() error {
	continued, seen := 0, map[string]bool{}
	for after := ""; continued < maxSessionsPerSweep; {
		ids, err := s.m.store.PendingSessions(s.ctx, after, 2*maxSessionsPerSweep)
		if err != nil {
			return err
		}
		for _, id := range ids {
			after, seen[id] = id, true
			if continued == maxSessionsPerSweep || !s.mayContinue(id) {
				continue
			}
			joined, err := s.continueSession(id)
			switch {
			case s.ctx.Err() != nil:
				return s.ctx.Err()
			case err != nil && !errors.Is(err, store.ErrNotFound):
				s.block(id, err)
			case joined:
				continued++
			}
		}
		if len(ids) < 2*maxSessionsPerSweep {
			s.removeUnseen(seen)
			return nil
		}
	}
	return nil
}

// mayContinue reports whether a session is to be looked at: nothing drives it here, and it was
// not refused a moment ago.
func (s *recovery) mayContinue(id string) bool {
	if s.m.drivers.drives(id) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blocked[id]
	return !ok || time.Now().After(b.until)
}

func (s *recovery) block(id string, err error) {
	b := runner.Blocked{Session: id, Poisoned: errors.Is(err, runner.ErrPoisoned), Err: err}
	if m, ok := errors.AsType[*runner.Missing](err); ok {
		b.Missing, b.Run = m.What, m.Run
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked[id] = blockedSession{b, time.Now().Add(blockedRetryInterval)}
}

func (s *recovery) removeUnseen(seen map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.blocked, func(id string, _ blockedSession) bool { return !seen[id] })
}

// continueSession has this process drive a session until the messages that wait in it have had
// their turn.
func (s *recovery) continueSession(id string) (joined bool, err error) {
	row, err := s.m.store.Session(s.ctx, id)
	if err != nil {
		return false, err
	}
	list, err := s.m.store.Queue(s.ctx, id)
	if err != nil {
		return false, err
	}
	if row.Holder != "" {
		now, err := s.m.store.Run(s.ctx, row.Holder)
		if err != nil {
			return false, err
		}
		switch status := now.Head.Status; {
		case status == engine.Pending && now.Commits == 0:
			first, err := s.m.store.RoundMessage(s.ctx, row.Holder)
			if err != nil {
				return false, err
			}
			list = append([]store.QueuedMessage{first}, list...)
		case status == engine.Running: // the run is continued first, and the queue after it
			return false, nil
		}
		if now.Owner != "" && now.Owner != s.m.local.Owner() && time.Now().Before(now.Until) && !runner.OwnerDead(now.Owner) {
			return false, nil
		}
	}
	if len(list) == 0 || !s.isSenderGone(&list[0]) {
		return false, nil
	}
	if err := s.checkRequirements(&row, &list[0]); err != nil {
		return false, err
	}
	turns, err := s.m.Continue(s.ctx, id)
	for _, t := range turns {
		s.loop.Go(func() { s.watchReply(id, t) })
	}
	return len(turns) > 0, err
}

// watchReply notes why a message cannot have its turn.
func (s *recovery) watchReply(id string, t *Reply) {
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

// checkRequirements returns a *runner.Missing if this process lacks something that the
// round of a message needs.
func (s *recovery) checkRequirements(row *store.Session, q *store.QueuedMessage) error {
	f, err := s.m.flowOfMessage(s.ctx, row, q)
	if invalid, ok := errors.AsType[*flow.Invalid](err); ok {
		return runner.MissingTypes(q.TakenBy, invalid)
	}
	if err != nil {
		return err
	}
	return s.m.runs.CheckRequirements(s.ctx, f, q.TakenBy)
}

// isSenderGone reports whether the process that sent a message will not begin its round.
func (s *recovery) isSenderGone(q *store.QueuedMessage) bool {
	sender := decodeQueuedInput(q.Value).sender
	switch {
	case sender == s.m.local.Owner(), sender != "" && runner.OwnerDead(sender):
		return true
	default:
		return time.Since(q.At) > senderTimeout
	}
}

// drives reports whether this process drives a session.
func (cs *drivers) drives(id string) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.byID[id] != nil
}

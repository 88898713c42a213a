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
	// recoveryInterval is the average time between two sweeps.
	recoveryInterval = time.Second
	// maxSessionsPerSweep bounds how many sessions one sweep continues.
	maxSessionsPerSweep = 32
	// senderTimeout is how long a message waits for its sender if it is unknown whether
	// that process is alive.
	senderTimeout = 5 * time.Second
	// blockedRetryInterval is how long a session that cannot continue here is skipped.
	blockedRetryInterval = 30 * time.Second
)

// recovery continues sessions whose processes left messages in the queue, or a round that
// was created and has no commit.
type recovery struct {
	m      *Manager
	ctx    context.Context //nolint:containedctx // ends when the Manager is closed
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

// blockedSessions lists the sessions that cannot continue here.
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

// sweep continues the sessions that can continue in this process.
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

// mayContinue reports whether a session is neither driven by this process nor blocked.
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

// continueSession drives a session in this process if no other process does; joined
// reports whether it does.
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
		case status == engine.Running: // the runner recovers the run; the queue follows
			return false, nil
		}
		if now.Owner != "" && now.Owner != s.m.local.Owner() && !now.Expired && !runner.OwnerDead(now.Owner) {
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

// watchReply marks the session as blocked if the reply ends with an error.
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

// isSenderGone reports whether the process that sent a message will not start its round.
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

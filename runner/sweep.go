package runner

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

const (
	// sweepInterval is about how long passes between two looks for unfinished runs.
	sweepInterval = time.Second
	// unprovenInterval is how long passes while runs that were taken have not committed.
	unprovenInterval = 50 * time.Millisecond
	// maxRunsPerSweep bounds how many runs a process takes in one look, so that several
	// processes share what another left.
	maxRunsPerSweep = 32
	// sweepPageSize is how many unfinished runs are read at a time.
	sweepPageSize = 500
)

// sweeper continues runs that their processes left: those that were executing, those
// whose timer is due, and those with messages in their inbox. One goroutine uses it.
type sweeper struct {
	l        *Local
	unproven []string // runs that were taken after a crash and have not committed
	refused  refusals
}

// refusals are the runs that could not be continued.
type refusals struct {
	mu   sync.Mutex
	runs map[string]refusal
}

type refusal struct {
	Blocked
	until time.Time     // when it is tried again
	pause time.Duration // how long that is
}

// unownedRun is an unfinished run that no process executes, as one sweep sees it.
type unownedRun struct {
	store.Unfinished
	crashes int // once it is taken
}

// sweep continues what it may and returns how long there is nothing to do.
func (s *sweeper) sweep(ctx context.Context, now time.Time) (time.Duration, error) {
	free, all, err := s.list(ctx)
	if err != nil {
		return sweepInterval, err
	}
	if err := s.dropProven(ctx); err != nil {
		return sweepInterval, err
	}
	s.dropRefusals(all)
	poisoned := s.quarantinePoisoned(ctx, free)
	claims, suspects := 0, []*unownedRun(nil)
	for i := range free {
		u := &free[i]
		switch {
		case s.skips(u, all, now), poisoned[u.Run]:
		case isSuspect(free, u):
			suspects = append(suspects, u)
		case claims == maxRunsPerSweep:
			return jitter(unprovenInterval), nil
		default:
			claims++
			s.continueRun(ctx, u, free)
		}
	}
	// A run that may have brought down its process is tried alone, so that the next
	// crash, if there is one, is counted for it and for no other.
	for _, u := range suspects {
		if len(s.unproven) > 0 {
			return jitter(unprovenInterval), nil
		}
		s.continueRun(ctx, u, free)
	}
	if len(s.unproven) > 0 {
		return jitter(unprovenInterval), nil
	}
	return s.nextPause(ctx), nil
}

// list reads the unfinished runs that no process executes, and the ids of all that are
// unfinished and not executed here.
func (s *sweeper) list(ctx context.Context) (free []unownedRun, all map[string]bool, err error) {
	all = make(map[string]bool)
	gone := make(map[string]bool)
	for after := int64(0); ; {
		page, err := s.l.store.Unfinished(ctx, s.l.owner, after, sweepPageSize)
		if err != nil {
			return nil, nil, err
		}
		for i := range page {
			u := &page[i]
			after = u.Number
			all[u.Run] = true
			if _, known := gone[u.Owner]; !known {
				gone[u.Owner] = ownerDead(u.Owner)
			}
			if u.Owner == "" || gone[u.Owner] || u.Expired {
				free = append(free, unownedRun{*u, s.l.crashesOf(u, gone[u.Owner])})
			}
		}
		if len(page) < sweepPageSize {
			return free, all, nil
		}
	}
}

// dropProven forgets the runs that have committed, ended or come to rest since they
// were taken.
func (s *sweeper) dropProven(ctx context.Context) error {
	var failed error
	s.unproven = slices.DeleteFunc(s.unproven, func(id string) bool {
		row, err := s.l.store.Run(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return true
		}
		if err != nil {
			failed = err
			return false
		}
		return row.Crashes == 0 || row.Head.Status != engine.Running || row.Owner == ""
	})
	return failed
}

// quarantinePoisoned sets aside the runs that have brought down their processes, and says which
// runs are not to be continued because of that: they and those above them.
func (s *sweeper) quarantinePoisoned(ctx context.Context, free []unownedRun) map[string]bool {
	out := make(map[string]bool)
	parents := make(map[string]string, len(free))
	for i := range free {
		parents[free[i].Run] = free[i].Parent
	}
	for i := range free {
		u := &free[i]
		if u.crashes < MaxCrashes {
			continue
		}
		err := s.l.quarantine(ctx, &u.Unfinished)
		if !errors.Is(err, ErrPoisoned) {
			continue // another process has it
		}
		s.refuse(&u.Unfinished, err)
		for id := u.Run; id != "" && !out[id]; id = parents[id] {
			out[id] = true
			if id != u.Run {
				s.refuse(&store.Unfinished{Run: id}, err)
			}
		}
	}
	return out
}

// skips reports whether a run is not for this sweep: another run brings it along, or
// it was refused a moment ago.
func (s *sweeper) skips(u *unownedRun, all map[string]bool, now time.Time) bool {
	if u.Parent != "" && (all[u.Parent] || s.l.Held(u.Parent) != nil) || s.l.Held(u.Run) != nil {
		return true
	}
	s.refused.mu.Lock()
	defer s.refused.mu.Unlock()
	r, ok := s.refused.runs[u.Run]
	return ok && now.Before(r.until)
}

// isSuspect reports whether the run, or one below it, has ended two processes: then the
// next crash sets it aside, and no other run may be the cause of that.
func isSuspect(free []unownedRun, u *unownedRun) bool {
	for i := range free {
		if of := &free[i]; of.crashes > 1 && (of.Run == u.Run || strings.HasPrefix(of.Run, u.Run+".")) {
			return true
		}
	}
	return false
}

// continueRun continues a run here, unless another process was faster.
func (s *sweeper) continueRun(ctx context.Context, u *unownedRun, free []unownedRun) {
	p, err := s.l.o.Program(ctx, u.Run)
	if err == nil && u.Status == engine.Pending {
		return // a round without a commit: the driver of its session starts it
	}
	if err == nil && u.Posts && (u.Status == engine.Paused || u.Activity == engine.AwaitsTimers) {
		if err := s.l.DeliverPosts(ctx, p, u.Run); err != nil {
			s.warn("read inbox", u.Run, err)
		}
		return
	}
	var x *Execution
	if err == nil {
		x, err = s.l.Resume(ctx, p, u.Run)
	}
	switch {
	case errors.Is(err, store.ErrOwned), errors.Is(err, ErrClosed), ctx.Err() != nil:
	case errors.Is(err, ErrOtherRunner):
		s.refuse(&u.Unfinished, err)
	case err != nil:
		s.refuse(&u.Unfinished, err)
		s.warn("continue run", u.Run, err)
	default:
		s.l.o.Logger.Info("run continued", "run", u.Run, "owner", OwnerName(u.Owner), "crashes", u.crashes)
		for i := range free {
			if of := &free[i]; of.crashes > 0 && (of.Run == u.Run || strings.HasPrefix(of.Run, u.Run+".")) {
				s.unproven = append(s.unproven, of.Run)
			}
		}
		s.l.loops.Go(func() { s.watch(u.Unfinished, x) })
	}
}

// watch notes why a run that was continued stops.
func (s *sweeper) watch(u store.Unfinished, x *Execution) {
	select {
	case <-x.done:
	case <-s.l.ctx.Done():
		return
	}
	if err := x.err; err != nil && !errors.Is(err, store.ErrFenced) && !errors.Is(err, store.ErrOwned) {
		s.refuse(&u, err)
	} else {
		s.clearRefusal(u.Run)
	}
}

// refuse notes that a run cannot be continued, and tries it again later: the more
// often that was so, the later.
func (s *sweeper) refuse(u *store.Unfinished, err error) {
	b := Blocked{Run: u.Run, Session: u.Session, Poisoned: errors.Is(err, ErrPoisoned), Err: err}
	if m, ok := errors.AsType[*Missing](err); ok {
		b.Missing = m.What
	}
	s.refused.mu.Lock()
	defer s.refused.mu.Unlock()
	if s.refused.runs == nil {
		s.refused.runs = make(map[string]refusal)
	}
	r := s.refused.runs[u.Run]
	r.Blocked, r.pause = b, min(max(2*r.pause, sweepInterval), maxRefusalPause)
	r.until = time.Now().Add(r.pause)
	s.refused.runs[u.Run] = r
}

func (s *sweeper) clearRefusal(run string) {
	s.refused.mu.Lock()
	defer s.refused.mu.Unlock()
	delete(s.refused.runs, run)
}

// dropRefusals drops refusals of runs that are no longer unfinished.
func (s *sweeper) dropRefusals(all map[string]bool) {
	s.refused.mu.Lock()
	defer s.refused.mu.Unlock()
	maps.DeleteFunc(s.refused.runs, func(id string, _ refusal) bool { return !all[id] && s.l.Held(id) == nil })
}

// nextPause returns how long to wait before the next sweep.
func (s *sweeper) nextPause(ctx context.Context) time.Duration {
	pause := jitter(sweepInterval)
	wait, due, err := s.l.store.NextDue(ctx)
	if err != nil {
		s.warn("find the next timer", "", err)
		return pause
	}
	if due {
		pause = min(pause, wait)
	}
	return pause
}

// jitter spreads pauses of several processes, by a quarter.
func jitter(d time.Duration) time.Duration {
	return d - d/4 + rand.N(d/2)
}

func (s *sweeper) warn(doing, run string, err error) {
	if s.l.ctx.Err() == nil {
		s.l.o.Logger.Warn("recover", "doing", doing, "run", run, "error", err)
	}
}

// Blocked lists the unfinished runs that this process does not continue, by id.
func (l *Local) Blocked() []Blocked {
	if l.sweeper == nil {
		return nil
	}
	r := &l.sweeper.refused
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Blocked
	for _, id := range slices.Sorted(maps.Keys(r.runs)) {
		if errors.Is(r.runs[id].Err, ErrOtherRunner) { // which continues it
			continue
		}
		out = append(out, r.runs[id].Blocked)
	}
	return out
}

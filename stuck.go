package weir

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// StuckRun is a run that has something to do and that nothing advances, or a session in which a message waits that no round takes.
type StuckRun struct {
	// Run is "" for a session without a round. Message is the first message that waits in the queue of the session, for StuckMessage.
	Run, Flow, User, Session string
	Message                  string
	Status                   Status
	// Runner is that to which the run belongs, "" for the local one.
	Runner string
	// Reason is one of the Stuck constants, or a code of the runner.Scheduler. Detail says it in a sentence, and Next what to do.
	Reason, Detail, Next string
	// Since is the last commit, or the time of the timer that is due.
	Since time.Time
	// Owner is the process that executed the run last, if it has not released it.
	Owner   string
	Crashes int
}

// The reasons of runs that are stuck. Schedulers add their own.
const (
	// StuckPoisoned: several processes ended while they executed the run.
	StuckPoisoned = "poisoned"
	// StuckOwnerLost: the process that executed the run has ended, or its lease has expired.
	StuckOwnerLost = "owner_lost"
	// StuckNoProcess: the run was released with work left, and no process has acquired it.
	StuckNoProcess = "no_process"
	// StuckRunnerNotReached: the run belongs to a runner that this process does not reach.
	StuckRunnerNotReached = "runner_not_reached"
	// StuckMessage: a message waits in the queue of a session, and no process takes it.
	StuckMessage = "message_waiting"
)

// StuckOptions select stuck runs; the zero value selects all.
type StuckOptions struct {
	// For is how long nothing has happened at least.
	For time.Duration
	// Limit is the largest number of runs and sessions; 0 is no limit.
	Limit int
}

// stuckPage is how many unfinished runs are read at a time.
const stuckPage = 500

// StuckRuns lists the runs, without child runs, that have a node to execute, a due timer or a message in their inbox, and that
// nothing advances: no live process owns them, and the runner, if they belong to one, says why it does not. The oldest comes
// first. Runs that wait for people, events or a later timer are not stuck. Sessions follow in which a message waits that no
// process takes, ordered by id.
func (w *Weir) StuckRuns(ctx context.Context, o StuckOptions) ([]StuckRun, error) {
	recovery := w.store.Capabilities().Recovery
	if recovery == nil {
		return nil, fmt.Errorf("list stuck runs: %w", &store.Unsupported{Capability: "recovery"})
	}
	var out []StuckRun
	for after := int64(0); ; {
		page, err := recovery.Unfinished(ctx, "", after, stuckPage)
		if err != nil {
			return out, fmt.Errorf("list stuck runs: %w", err)
		}
		for i := range page {
			after = page[i].Number
			s, err := w.stuckRun(ctx, &page[i], o.For)
			if err != nil {
				return out, err
			}
			if s == nil {
				continue
			}
			if out = append(out, *s); len(out) == o.Limit {
				return out, nil
			}
		}
		if len(page) < stuckPage {
			return w.addStuckQueues(ctx, out, o)
		}
	}
}

// addStuckQueues appends the sessions in which a message waits that no process takes.
func (w *Weir) addStuckQueues(ctx context.Context, out []StuckRun, o StuckOptions) ([]StuckRun, error) {
	if w.store.Capabilities().Sessions == nil {
		return out, nil
	}
	queues, err := w.sessions.StuckQueues(ctx, o.For)
	if err != nil {
		return out, fmt.Errorf("list stuck sessions: %w", err)
	}
	for i := range queues {
		q := &queues[i]
		s := StuckRun{
			Flow: q.Session.Flow, User: q.Session.User, Session: q.Session.ID, Message: q.Message, Since: q.Since, Owner: q.Sender,
			Reason: StuckMessage, Detail: "message " + q.Message + " waits in the queue, and no process starts a round with it",
			Next: fmt.Sprintf("start `weir serve`, or a worker, with the flow; `%s` removes the message", engine.CommandLine("sessions", "unqueue", q.Message)),
		}
		if q.Paused {
			s.Run, s.Status = q.Session.Holder, Paused
			s.Detail = "message " + q.Message + " waits in the queue, and no process answers the question of the round with it"
		}
		if out = append(out, s); len(out) == o.Limit {
			break
		}
	}
	return out, nil
}

// stuckRun says why an unfinished run is stuck, nil if it is not.
func (w *Weir) stuckRun(ctx context.Context, u *store.Unfinished, age time.Duration) (*StuckRun, error) {
	if u.Parent != "" || u.Owner != "" && !u.Expired && !runner.OwnerDead(u.Owner) {
		return nil, nil
	}
	row, err := w.store.Run(ctx, u.Run)
	if errors.Is(err, store.ErrNotFound) { // it was deleted meanwhile
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", u.Run, err)
	}
	s := &StuckRun{
		Run: u.Run, Flow: row.Flow, User: row.User, Session: row.Session, Status: row.Head.Status,
		Since: row.Updated, Owner: u.Owner, Crashes: u.Crashes,
	}
	if due := time.UnixMilli(u.Due); u.Due > 0 && due.After(s.Since) && !u.Posts && u.Activity == engine.AwaitsTimers {
		s.Since = due
	}
	if time.Since(s.Since) < age {
		return nil, nil
	}
	if s.Runner, err = w.local.RunnerOf(ctx, u.Run); err != nil {
		return nil, err
	}
	o, err := w.obstacle(ctx, s, u)
	if o == nil || err != nil {
		return nil, err
	}
	s.Reason, s.Detail, s.Next = o.Code, o.Detail, o.Next
	return s, nil
}

// obstacle says why nothing advances a run that no live process owns, nil if it is not stuck.
func (w *Weir) obstacle(ctx context.Context, s *StuckRun, u *store.Unfinished) (*runner.Obstacle, error) {
	switch {
	case u.Crashes >= runner.MaxCrashes:
		p := &runner.Poisoned{Run: u.Run, Crashes: u.Crashes}
		return &runner.Obstacle{Code: StuckPoisoned, Detail: p.Error(), Next: p.Hint()}, nil
	case s.Runner != "" && s.Runner != w.runnerName():
		o := &runner.OtherRunner{Run: u.Run, Runner: s.Runner, Here: w.runnerName()}
		return &runner.Obstacle{Code: StuckRunnerNotReached, Detail: o.Error(), Next: o.Hint()}, nil
	case s.Runner != "":
		return w.runner.Obstacle(ctx, runner.RunRef{ID: u.Run, Flow: s.Flow, User: s.User, Session: s.Session})
	}
	if u.Activity == engine.AwaitsChildren && !u.Posts {
		if waits, err := w.childrenWait(ctx, u.Run); waits || err != nil {
			return nil, err
		}
	}
	o := &runner.Obstacle{
		Code: StuckNoProcess, Detail: noProcess(u),
		Next: fmt.Sprintf("continue it with `%s`, or end it with `%s`", engine.CommandLine("resume", u.Run), engine.CommandLine("cancel", u.Run)),
	}
	if u.Owner != "" {
		o.Code, o.Detail = StuckOwnerLost, "process "+u.Owner+", which executed the run, has ended or does not renew its lease"
	}
	return o, nil
}

// childrenWait reports whether all unfinished child runs of a run wait for people, events or a later timer.
func (w *Weir) childrenWait(ctx context.Context, run string) (bool, error) {
	children, err := w.store.Runs(ctx, store.Filter{Parent: run, Limit: history.MaxChildren})
	if err != nil {
		return false, fmt.Errorf("child runs of run %s: %w", run, err)
	}
	open := false
	for i := range children {
		h := &children[i].Head
		if h.Status.Ended() {
			continue
		}
		open = true
		posts, err := w.store.Inbox(ctx, children[i].ID)
		if err != nil || len(posts) > 0 {
			return false, err
		}
		waits := h.Status == Paused || h.Activity == engine.AwaitsTimers && h.Due > time.Now().UnixMilli()
		if h.Status == engine.Running && h.Activity == engine.AwaitsChildren {
			waits, err = w.childrenWait(ctx, children[i].ID)
		}
		if !waits || err != nil {
			return false, err
		}
	}
	return open, nil
}

// noProcess says what a run without an owner has to do.
func noProcess(u *store.Unfinished) string {
	what := "nodes are left to execute"
	switch {
	case u.Posts:
		what = "a message waits in its inbox"
	case u.Activity == engine.AwaitsTimers:
		what = "its timer was due"
	}
	return what + ", and no process executes the run"
}

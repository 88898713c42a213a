package flowtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// pollInterval is how often a conversation checks whether its runs only wait.
const pollInterval = time.Millisecond

// openQuestion is the first thing that a round waits for besides timers.
type openQuestion struct {
	engine.Interrupt // without ID if the round waits for nothing
	run              string
	timed            bool // the round waits for a timer too
}

// openQuestionOf returns what the round of a session waits for. Its run is "" if no round is open.
func (c *conversation) openQuestionOf(ctx context.Context, s *weir.Session) (q openQuestion, err error) {
	if s == nil {
		return q, nil
	}
	row, err := s.Info(ctx)
	if err != nil || row.Holder == "" {
		return q, err
	}
	r, err := c.store.Run(ctx, row.Holder)
	if err != nil {
		return q, err
	}
	q.run, q.timed = r.ID, r.Head.Status == engine.Running
	if len(r.Head.Waiting) > 0 {
		q.Interrupt = r.Head.Waiting[0]
	}
	return q, nil
}

// noteQuestion notes what a turn of a user leaves open.
func (c *conversation) noteQuestion(user string, seen *outcome) {
	switch {
	case seen == nil:
	case len(seen.open) == 0:
		delete(c.asked, user)
	default:
		c.asked[user] = openQuestion{Interrupt: seen.open[0], run: c.root()}
	}
}

// noOpenQuestion returns the error for an answer to a question that is not open. asked is the last open one.
func (c *conversation) noOpenQuestion(ctx context.Context, asked openQuestion) error {
	if asked.ID == "" {
		return errors.New("answer: the session waits for no answer")
	}
	v, err := c.w.Inspect(ctx, asked.run, 0)
	if err != nil {
		return err
	}
	why := fmt.Sprintf("its round is %s", v.Run.Status())
	for _, commit := range v.Commits {
		for _, e := range commit.Events {
			if fired, ok := e.(*engine.TimerFired); ok && fired.ID == asked.ID {
				why = "its time limit has passed, and " + why
			}
		}
	}
	if e := v.Run.Failure(); e != nil {
		why += ": " + e.Error()
	}
	return fmt.Errorf("answer: %s is not open: %s", interruptText(asked.Interrupt), why)
}

// untilRest answers the questions of a round until it has ended or waits for a person. It is answerAll for a round,
// which ends a turn also while a timer is set.
func (c *conversation) untilRest(ctx context.Context, run *weir.Run) (*outcome, error) {
	for {
		var r weir.Result
		rests, err := c.await(ctx, func(ctx context.Context) (err error) {
			r, err = run.Wait(ctx)
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case rests != nil:
			return c.roundOutcome(ctx, run.ID)
		case r.Status != engine.Paused:
			return c.readOutcome(ctx, r)
		}
		answered, ok := c.answer(ctx, run.ID, r.Interrupts)
		switch {
		case !ok:
			return nil, nil
		case answered == nil:
			return c.readOutcome(ctx, r)
		}
		run = answered
	}
}

// roundOutcome returns how far a round has come.
func (c *conversation) roundOutcome(ctx context.Context, run string) (*outcome, error) {
	v, err := c.w.Inspect(ctx, run, 0)
	if err != nil {
		return nil, err
	}
	return c.readOutcome(ctx, weir.Result{
		Run: run, Status: v.Run.Status(), Outputs: v.Run.Outputs(), Interrupts: v.Run.Interrupts(),
		Usage: v.Run.Usage(), Error: v.Run.Failure(),
	})
}

// await returns when wait has, or when the present round waits for people and timers, and the test has no answer:
// rests has what it waits for. Meanwhile it skips the waits of the round in which no person is asked, and answers.
func (c *conversation) await(ctx context.Context, wait func(context.Context) error) (rests []engine.Interrupt, err error) {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- wait(waiting) }()
	for {
		select {
		case err := <-done:
			return nil, err
		case <-time.After(pollInterval):
		}
		rests, err = c.continueRound(ctx)
		if rests == nil && err == nil {
			continue
		}
		stop()
		if ended := <-done; ended == nil && err == nil {
			return nil, nil
		}
		return rests, err
	}
}

// continueRound does the next thing for the present round if it only waits: it gives an answer, or moves the clock to
// the next timer if no person is asked. Otherwise rests has what the round waits for.
func (c *conversation) continueRound(ctx context.Context) (rests []engine.Interrupt, err error) {
	w, ok := c.w.Waits()
	if !ok {
		return nil, nil
	}
	open, executing := w.Open[c.root()]
	if !executing {
		return nil, nil
	}
	if len(open) > 0 {
		answered, ok := c.answer(ctx, c.root(), open)
		switch {
		case !ok:
			return nil, errAnswerRejected
		case answered == nil:
			return open, nil
		}
		return nil, nil
	}
	rows, next, err := c.unfinished(ctx)
	if err == nil && next > 0 {
		err = c.moveClock(ctx, w, rows, next)
	}
	return nil, err
}

// unfinished lists the runs that have not ended, with the time of their first timer in Unix milliseconds, 0 for none.
func (c *conversation) unfinished(ctx context.Context) (rows []store.Run, next int64, err error) {
	rows, err = c.store.Runs(ctx, store.Filter{Status: []engine.Status{engine.Running, engine.Paused}, Limit: math.MaxInt32})
	for i := range rows {
		if due := rows[i].Head.Due; due > 0 && (next == 0 || due < next) {
			next = due
		}
	}
	return rows, next, err
}

// moveClock moves the clock to a time. Paused runs of which a timer is then due are resumed, which fires it.
func (c *conversation) moveClock(ctx context.Context, w runner.Waits, rows []store.Run, at int64) error {
	if err := c.w.MoveClock(time.UnixMilli(at)); err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		if _, executing := w.Open[r.ID]; executing || r.Head.Due == 0 || r.Head.Due > at {
			continue
		}
		if _, err := c.w.Resume(ctx, r.ID); err != nil {
			return err
		}
	}
	return nil
}

// passTime lets a time pass: all timers that are due by then fire, in their order, and every round continues until it
// has ended or waits for a person. Then it takes the time from what each session has left of its lifetime.
func (c *conversation) passTime(ctx context.Context, d time.Duration) error {
	target := int64(0)
	for more := true; more; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
		w, ok := c.w.Waits()
		if !ok {
			continue
		}
		if target == 0 {
			target = w.Now + d.Milliseconds()
		}
		var err error
		if more, err = c.passNext(ctx, w, target); err != nil {
			return err
		}
	}
	return c.ageSessions(ctx, d)
}

// passNext does the next thing until the time target: it gives an answer, or moves the clock to the next timer. more is
// false when the time has passed, and each round rests.
func (c *conversation) passNext(ctx context.Context, w runner.Waits, target int64) (more bool, err error) {
	rows, next, err := c.unfinished(ctx)
	if err != nil {
		return false, err
	}
	onlyTimers := false
	for i := range rows {
		r := &rows[i]
		if !slices.Contains(c.rounds, r.ID) {
			continue
		}
		onlyTimers = onlyTimers || r.Head.Status == engine.Running && len(r.Head.Waiting) == 0
		answered, ok := c.answer(ctx, r.ID, r.Head.Waiting)
		if !ok {
			return false, errAnswerRejected
		}
		if answered != nil {
			return true, nil
		}
	}
	switch {
	case next > 0 && (onlyTimers || next <= max(target, w.Now)):
		return true, c.moveClock(ctx, w, rows, next)
	case w.Now < target:
		return true, c.moveClock(ctx, w, nil, target)
	}
	return onlyTimers, nil
}

// ageSessions takes a time from what each session has left of its lifetime.
func (c *conversation) ageSessions(ctx context.Context, d time.Duration) error {
	for _, s := range c.sessions {
		row, err := s.Info(ctx)
		if err != nil {
			return err
		}
		if row.Expires.IsZero() {
			continue
		}
		if err := c.store.ExpireSession(ctx, row.ID, row.Expires.Add(-d)); err != nil {
			return err
		}
	}
	return nil
}

// outcomeOfTime returns what came of the round of a user while time passed, nil if nothing is expected of it.
func (c *conversation) outcomeOfTime(ctx context.Context, t *conversationStep, user string, before openQuestion) (*outcome, error) {
	switch {
	case !t.expects:
		return nil, nil
	case before.run == "":
		return nil, errors.New("pass: the user has no open round of which something can be expected")
	}
	c.setRoot(before.run)
	seen, err := c.roundOutcome(ctx, before.run)
	if err == nil && len(seen.open) > 0 {
		c.noteQuestion(user, seen)
	}
	return seen, err
}

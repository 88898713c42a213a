package flowtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// conversationStep is one step of a conversation: a message or an answer, what comes of it, and where it
// is said.
type conversationStep struct {
	pos         flow.Pos
	user        string        // whose session it is in; "" is the test's user
	fork        bool          // first continue in a fork of the session
	at          int           // with this many messages; -1 is all
	pass        time.Duration // first let this time pass
	say, answer *flow.FileValue
	expect      expectation
}

// conversationSteps reads `turns`.
func (r *fileReader) conversationSteps(l testKeys, d *flow.FileValue) []*conversationStep {
	for _, key := range []string{"expect", "state", "target"} {
		if v := l.test.Get(key); v != nil {
			r.report(v.Pos(), flow.CodeUnknownKey, fmt.Sprintf("a test with turns has no key %q", key), map[string]string{
				"expect": "write expect: in the turns", "state": "set the state in a node; a session begins with the initial state", "target": "",
			}[key])
		}
	}
	if !d.IsList() || len(d.Items()) == 0 {
		r.reportAt(d, "turns must be a list with at least one turn; got %s", show(d))
		return []*conversationStep{}
	}
	var out []*conversationStep
	for _, item := range d.Items() {
		if t := r.conversationStep(l, item); t != nil {
			out = append(out, t)
		}
	}
	return out
}

// conversationStep reads one turn.
func (r *fileReader) conversationStep(l testKeys, d *flow.FileValue) *conversationStep {
	if !r.object(d, "a turn", "say", "answer", "fork", "edit", "pass", "as", "expect") {
		return nil
	}
	t := &conversationStep{pos: d.Pos(), at: -1, say: d.Get("say"), answer: d.Get("answer"), user: r.text(d.Get("as"), "as")}
	fork, edit := d.Get("fork"), d.Get("edit")
	if pass := d.Get("pass"); pass != nil {
		t.pass = r.passedTime(pass)
	}
	switch {
	case t.say != nil && t.answer != nil:
		r.reportAt(d, "a turn has say or answer, not both")
	case fork != nil && edit != nil:
		r.reportAt(d, "a turn has fork or edit, not both")
	case t.say == nil && edit != nil:
		r.reportAt(d, "edit needs say: what is said instead of the message")
	case t.say == nil && t.answer == nil && fork == nil && d.Get("pass") == nil:
		r.reportAt(d, "a turn has say, answer, fork or pass")
	case t.answer != nil && fork != nil:
		r.reportAt(d, "a fork of a session waits for no answer")
	case t.say == nil && t.answer == nil && d.Get("expect") != nil:
		r.reportAt(d.Get("expect"), "nothing is expected of a fork or pass alone: write expect with say")
	}
	switch {
	case edit != nil:
		t.fork, t.at = true, r.count(edit, "edit")
	case fork != nil && fork.Value() == true:
		t.fork = true
	case fork != nil:
		t.fork, t.at = true, r.count(fork, "fork")
	}
	t.expect = r.expectation(testKeys{d, l.defaults})
	if t.expect.golden != "" {
		r.report(t.expect.goldenPos, flow.CodeUnknownKey, "a turn has no golden file", "write what is expected of the turn")
	}
	return t
}

// passedTime reads the time that passes before a turn.
func (r *fileReader) passedTime(d *flow.FileValue) time.Duration {
	if text, ok := d.Value().(string); ok && strings.HasSuffix(text, "d") {
		if t, err := flow.ParseLifetime(text); err == nil && t > 0 {
			return t
		}
	}
	before := len(r.problems)
	t := r.duration(d, "pass")
	if t == 0 && len(r.problems) == before {
		r.reportAt(d, "pass must be a time above 0, such as 12h or 30d; got %s", show(d))
	}
	return t
}

// conversation runs the turns of a test. Each user has one session at a time.
type conversation struct {
	*testRunner
	flow     *weir.Flow
	model    string
	sessions map[string]*weir.Session
	sent     int
}

// run runs the turns in order, until one fails.
func (c *conversation) run(ctx context.Context) error {
	for i, t := range c.test.turns {
		seen, err := c.take(ctx, t)
		if err != nil {
			return fmt.Errorf("turn %d: %w", i+1, err)
		}
		if seen == nil { // a fork alone, or a refused answer, which has failed
			if c.failed() {
				return nil
			}
			continue
		}
		for _, f := range t.expect.check(seen) {
			f.Where = joinPlace(fmt.Sprintf("turn %d", i+1), f.Where)
			if f.Pos.Line == 0 {
				f.Pos = t.pos
			}
			c.fail(f)
		}
		if c.failed() {
			return nil
		}
	}
	return nil
}

func joinPlace(turn, where string) string {
	if where == "" {
		return turn
	}
	return turn + ": " + where
}

func (c *conversation) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.failures) > 0
}

// take takes one turn and returns what came of it, nil for a fork alone.
func (c *conversation) take(ctx context.Context, t *conversationStep) (*outcome, error) {
	user := t.user
	if user == "" {
		user = c.test.user
	}
	if t.pass > 0 {
		if err := c.passTime(ctx, t.pass); err != nil {
			return nil, err
		}
		if t.say == nil && t.answer == nil && !t.fork {
			return nil, nil
		}
	}
	s := c.sessions[user]
	var err error
	switch {
	case s == nil:
		s, err = c.w.Session(ctx, c.flow, weir.SessionOptions{User: user})
		if err == nil && t.fork {
			err = errors.New("there is no session yet to fork")
		}
	case t.fork:
		s, err = s.Fork(ctx, t.at)
	}
	if err != nil {
		return nil, err
	}
	c.sessions[user] = s
	c.tools.forget()
	c.testRunner.model.forget()
	switch {
	case t.say != nil:
		return c.say(ctx, s, t)
	case t.answer != nil:
		return c.answerOpen(ctx, s, t, user)
	}
	return nil, nil
}

// passTime takes a time from what each session has left of its lifetime. The next message of a
// user whose session has nothing left starts another one.
func (c *conversation) passTime(ctx context.Context, d time.Duration) error {
	for user, s := range c.sessions {
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
		if left := time.Until(row.Expires); left <= d {
			delete(c.sessions, user)
		}
	}
	return nil
}

// say sends a message and answers the questions that the test has answers for.
func (c *conversation) say(ctx context.Context, s *weir.Session, t *conversationStep) (*outcome, error) {
	c.sent++
	id := fmt.Sprintf("testturn%08d", c.sent) // also the run's id
	c.setRoot(id)
	if row, err := s.Info(ctx); err == nil && row.Holder != "" {
		c.setRoot(row.Holder) // whose question the message answers
	}
	reply, err := s.Send(ctx, t.say.Value(), weir.SendOptions{ID: id, Inputs: c.test.inputs, Model: c.model, Origin: "test"})
	if err == nil {
		_, err = reply.Wait(ctx)
	}
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return refusedOutcome(e), nil
	}
	if err != nil {
		return nil, err
	}
	c.setRoot(reply.Run())
	run, err := c.w.Resume(ctx, reply.Run())
	if err != nil {
		return nil, err
	}
	return c.answerAll(ctx, run)
}

// answerOpen answers the first open question of the session's round.
func (c *conversation) answerOpen(ctx context.Context, s *weir.Session, t *conversationStep, user string) (*outcome, error) {
	row, err := s.Info(ctx)
	if err != nil {
		return nil, err
	}
	if row.Holder == "" {
		return nil, errors.New("answer: the session waits for no answer")
	}
	c.setRoot(row.Holder)
	v, err := c.w.Inspect(ctx, row.Holder, 0)
	if err != nil {
		return nil, err
	}
	open := v.Run.Interrupts()
	if len(open) == 0 {
		return nil, errors.New("answer: the session waits for no answer")
	}
	run, err := c.w.Answer(ctx, row.Holder, open[0].ID, t.answer.Value(), user)
	if err != nil {
		c.fail(Failure{Pos: t.answer.Pos(), Where: "answer", Message: err.Error(), Diff: []Line{{' ', interruptText(open[0])}}})
		return nil, nil //nolint:nilerr // the test has failed with it
	}
	return c.answerAll(ctx, run)
}

// setRoot says which run the nodes of the test belong to.
func (c *conversation) setRoot(run string) {
	c.paths.addRoot(run)
	c.mu.Lock()
	c.testRunner.run = run
	c.mu.Unlock()
}

// forget forgets the requests so far.
func (m *scriptedModel) forget() {
	m.mu.Lock()
	m.asked = nil
	m.mu.Unlock()
}

// forget forgets the calls so far.
func (b *toolRecorder) forget() {
	b.mu.Lock()
	b.calls = nil
	b.mu.Unlock()
}

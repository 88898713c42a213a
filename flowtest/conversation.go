package flowtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	expects     bool // the turn has expect itself
}

// waitsOnly reports whether the turn only lets time pass.
func (t *conversationStep) waitsOnly() bool {
	return t.pass > 0 && t.say == nil && t.answer == nil && !t.fork
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
	case t.say == nil && t.answer == nil && fork != nil && d.Get("expect") != nil:
		r.reportAt(d.Get("expect"), "nothing is expected of a fork alone: write expect with say")
	}
	switch {
	case edit != nil:
		t.fork, t.at = true, r.count(edit, "edit")
	case fork != nil && fork.Value() == true:
		t.fork = true
	case fork != nil:
		t.fork, t.at = true, r.count(fork, "fork")
	}
	t.expect, t.expects = r.expectation(testKeys{d, l.defaults}, true), d.Get("expect") != nil
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
	asked    map[string]openQuestion // by user: what the last turn of the user left open
	rounds   []string                // the runs of all rounds, oldest first
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

// take takes one turn and returns what came of it, nil for a fork, or time that passes, of which nothing is expected.
func (c *conversation) take(ctx context.Context, t *conversationStep) (*outcome, error) {
	user := t.user
	if user == "" {
		user = c.test.user
	}
	c.tools.forget()
	c.testRunner.model.forget()
	before, err := c.openQuestionOf(ctx, c.sessions[user])
	if err != nil {
		return nil, err
	}
	if t.pass > 0 {
		if err := c.passTime(ctx, t.pass); err != nil {
			return nil, err
		}
	}
	if t.waitsOnly() {
		return c.outcomeOfTime(ctx, t, user, before)
	}
	s, err := c.session(ctx, user, t)
	if err != nil {
		return nil, err
	}
	c.sessions[user] = s
	var seen *outcome
	switch {
	case t.say != nil:
		seen, err = c.say(ctx, s, t)
	case t.answer != nil:
		seen, err = c.answerOpen(ctx, s, t, user, before)
	}
	c.noteQuestion(user, seen)
	return seen, err
}

// session returns the session of a turn: that of the user, a new one, or a fork.
func (c *conversation) session(ctx context.Context, user string, t *conversationStep) (*weir.Session, error) {
	s := c.sessions[user]
	if s != nil {
		row, err := s.Info(ctx)
		if err != nil {
			return nil, err
		}
		if !row.Expires.IsZero() && !time.Now().Before(row.Expires) && row.Holder == "" {
			s = nil // the next message starts another one
		}
	}
	switch {
	case s == nil && t.fork:
		return nil, errors.New("there is no session yet to fork")
	case s == nil:
		return c.w.Session(ctx, c.flow, weir.SessionOptions{User: user})
	case t.fork:
		return s.Fork(ctx, t.at)
	}
	return s, nil
}

// say sends a message and answers the questions that the test has answers for.
func (c *conversation) say(ctx context.Context, s *weir.Session, t *conversationStep) (*outcome, error) {
	c.sent++
	id := fmt.Sprintf("testturn%08d", c.sent) // also the run's id
	root := id
	open, err := c.openQuestionOf(ctx, s)
	if err != nil {
		return nil, err
	}
	switch {
	case open.run != "" && !open.timed:
		root = open.run // whose question the message answers
	case open.run != "":
		c.fail(Failure{
			Pos: t.say.Pos(), Where: "say", Diff: []Line{{' ', interruptText(open.Interrupt)}},
			Message: "the round waits for a person and for a timer, and a message does not answer such a round; write answer: in place of say:",
		})
		return nil, nil
	}
	c.setRoot(root)
	reply, err := s.Send(ctx, t.say.Value(), weir.SendOptions{ID: id, Inputs: c.test.inputs, Model: c.model, Origin: "test"})
	var rests []engine.Interrupt
	if err == nil {
		rests, err = c.await(ctx, func(ctx context.Context) error {
			_, err := reply.Wait(ctx)
			return err
		})
	}
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return refusedOutcome(e), nil
	}
	if err != nil {
		return nil, err
	}
	if rests != nil {
		return c.roundOutcome(ctx, c.root())
	}
	c.setRoot(reply.Run())
	run, err := c.w.Resume(ctx, reply.Run())
	if err != nil {
		return nil, err
	}
	return c.untilRest(ctx, run)
}

// answerOpen answers the first open question of the session's round. before is the one before time passed in this turn.
func (c *conversation) answerOpen(ctx context.Context, s *weir.Session, t *conversationStep, user string, before openQuestion) (*outcome, error) {
	open, err := c.openQuestionOf(ctx, s)
	if err != nil {
		return nil, err
	}
	switch {
	case open.ID == "":
		return nil, c.noOpenQuestion(ctx, c.asked[user])
	case t.pass > 0 && before.ID != "" && before.ID != open.ID:
		return nil, fmt.Errorf("%w; the open question is %s, which a turn of its own answers", c.noOpenQuestion(ctx, before), interruptText(open.Interrupt))
	}
	c.setRoot(open.run)
	run, err := c.w.Answer(ctx, open.run, open.ID, t.answer.Value(), user)
	if err != nil {
		c.fail(Failure{Pos: t.answer.Pos(), Where: "answer", Message: err.Error(), Diff: []Line{{' ', interruptText(open.Interrupt)}}})
		return nil, nil //nolint:nilerr // the test has failed with it
	}
	return c.untilRest(ctx, run)
}

// setRoot says which run the nodes of the test belong to.
func (c *conversation) setRoot(run string) {
	c.paths.addRoot(run)
	c.mu.Lock()
	c.testRunner.run = run
	c.mu.Unlock()
	if !slices.Contains(c.rounds, run) {
		c.rounds = append(c.rounds, run)
	}
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

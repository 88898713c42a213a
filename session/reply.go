package session

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// Reply is what follows a message: a round, or the rest of the round that it answered. Its
// methods may be called concurrently.
type Reply struct {
	// Session is where the message was added: a fork of the session it was sent to if that
	// was busy and the policy is fork.
	Session *Session
	// Message is the id of the message.
	Message string

	opts SendOptions
	// recovered: another process sent the message. If the message cannot be taken, it
	// stays in the queue.
	recovered bool
	idle      *idleSession // what was read before the message was kept; nil where the session must be read
	// waits is the queued message whose round is the reply: Message, or the repetition of its
	// round. The driver changes it under the mutex.
	waits string

	mu          sync.Mutex
	run         string
	startLength int // length of the session before
	// parts are the executions that the reply consists of, in order. afterEvent is the number
	// of the last event before the first one of the run.
	parts       []replyPart
	afterEvent  int64
	firstCommit int64         // number of the run's commits before the reply
	changed     chan struct{} // closed and replaced when an execution is added
	done        chan struct{}
	endLength   int // length of the session after
	result      runner.Result
	err         error
	state       *ReplyState
}

// replyPart is an execution of the run of a reply; x is nil for one in another process.
type replyPart struct {
	x          *runner.Execution
	run        string
	afterEvent int64
}

// ReplyState is the result of a reply.
type ReplyState struct {
	// Result is that of the run; its Usage is that of the whole run.
	runner.Result
	Session string `json:"session"`
	Round   int    `json:"round"`
	Message string `json:"message"` // the id
	// Text is the last text of the assistant in this reply. If no model answered, it is
	// the output of the round if that is one text.
	Text string `json:"text"`
	// Messages are those that the reply added to the history.
	Messages []store.SessionMessage `json:"messages"`
	// Spent is what the reply cost.
	Spent engine.Usage `json:"spent"`
	// Started is the time of the first commit, and Took the time until the last one, in
	// nanoseconds in JSON.
	Started time.Time     `json:"began"`
	Took    time.Duration `json:"took"`
	// Omitted is how many of the session's first messages were not part of the round's
	// context, because of the flow's session limits or a reset.
	Omitted int `json:"earlier,omitempty"`
	// SentTokens is the size of the last model request, as the provider counted it. View
	// says which messages it omitted; nil means none.
	SentTokens int             `json:"sent,omitempty"`
	View       *convo.Manifest `json:"view,omitempty"`
}

func newReply(s *Session, id string, o SendOptions) *Reply {
	return &Reply{Session: s, Message: id, waits: id, opts: o, changed: make(chan struct{}), done: make(chan struct{})}
}

// Run returns the id of the run that took the message, "" while it is queued.
func (t *Reply) Run() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.run
}

// Done is closed when the reply is complete.
func (t *Reply) Done() <-chan struct{} { return t.done }

// Wait waits until the round has ended or waits for input. Cancelling ctx ends the wait,
// not the round.
func (t *Reply) Wait(ctx context.Context) (ReplyState, error) {
	select {
	case <-t.done:
	case <-ctx.Done():
		return ReplyState{}, ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return ReplyState{Result: t.result, Session: t.Session.ID}, t.err
	}
	if t.state == nil {
		s, err := t.readState(ctx)
		if err != nil {
			return ReplyState{Result: t.result, Session: t.Session.ID}, err
		}
		t.state = &s
	}
	return *t.state, nil
}

// readState reads the result from the store.
func (t *Reply) readState(ctx context.Context) (ReplyState, error) {
	s := ReplyState{Result: t.result, Session: t.Session.ID, Message: t.Message}
	if t.run == "" {
		return s, nil
	}
	m := t.Session.m
	r, err := m.store.Run(ctx, t.run)
	if err != nil {
		return s, err
	}
	s.Round = r.Round
	from := t.startLength
	for c, err := range m.store.Commits(ctx, t.run, t.firstCommit) {
		if err != nil {
			return s, err
		}
		from = s.addCommit(&c, from)
	}
	if s.Messages, err = t.messages(ctx, from); err != nil {
		return s, err
	}
	for i := range s.Messages {
		if m := &s.Messages[i].Message; m.Role == convo.Assistant && m.Text != "" {
			s.Text = m.Text
		}
	}
	if s.Text == "" {
		s.Text, _ = onlyText(s.Outputs)
	}
	return s, err
}

// addCommit adds a commit of the round to its state. It returns the position of the first
// message of the round: from, or what the start of the round says.
func (s *ReplyState) addCommit(c *engine.Commit, from int) int {
	at := time.UnixMilli(c.At)
	if s.Started.IsZero() {
		s.Started = at
	}
	s.Took = at.Sub(s.Started)
	for _, e := range c.Events {
		if start, ok := e.(*engine.RunStarted); ok && len(start.Contexts) > 0 {
			from, s.Omitted = start.Contexts[0].At, epochOf(start.Contexts[0].Body)
			for _, seed := range start.Contexts[1:] {
				from += seed.Adds
			}
		}
		s.addEvent(e)
	}
	return from
}

// messages returns the messages that the run of the reply added from a position on. They
// are consecutive; later rounds are not read.
func (t *Reply) messages(ctx context.Context, from int) (out []store.SessionMessage, err error) {
	for n := 16; from < t.endLength; n *= 2 {
		said, err := t.Session.Messages(ctx, from, min(from+n, t.endLength))
		if err != nil || len(said) == 0 {
			return out, err
		}
		for i := range said {
			if said[i].Run != t.run {
				return out, nil
			}
			out = append(out, said[i])
		}
		from += len(said)
	}
	return out, nil
}

// onlyText returns the only output of a flow if it is a text.
func onlyText(outputs engine.Values) (text string, ok bool) {
	if len(outputs) == 1 {
		text, ok = outputs[0].Value.(string)
	}
	return text, ok
}

// addEvent adds what an event says about model calls.
func (s *ReplyState) addEvent(e engine.Event) {
	done, ok := e.(*engine.EffectCompleted)
	if !ok {
		return
	}
	if done.Usage != nil {
		s.Spent = s.Spent.Add(*done.Usage)
	}
	if done.Usage != nil && done.Usage.Calls > 0 {
		s.SentTokens, s.View = done.Usage.Input, nil
		if o, ok := done.Manifest.(map[string]any); ok {
			s.View = manifestOf(o)
		}
	}
}

// epochOf returns the position at which the context of a round begins.
func epochOf(body any) int {
	switch b := body.(type) {
	case *convo.Change:
		return b.Epoch
	case map[string]any: // as decoded from a store
		n, _ := b["epoch"].(int64)
		return int(n)
	}
	return 0
}

func manifestOf(o map[string]any) *convo.Manifest {
	n := func(key string) int {
		i, _ := o[key].(int64)
		return int(i)
	}
	m := &convo.Manifest{
		From: n("from"), To: n("to"), Omitted: n("left"), Cleared: n("cleared"), Shortened: n("short"), Repaired: n("repaired"),
		Tokens: n("tokens"), Room: n("room"),
	}
	m.Reason, _ = o["why"].(string)
	if pair, ok := o["summary"].([]any); ok && len(pair) == 2 {
		from, _ := pair[0].(int64)
		to, _ := pair[1].(int64)
		m.Summary = &[2]int{int(from), int(to)}
	}
	return m
}

// Items yields the events of the reply and of its child runs, with live output between
// them, until the reply is complete; see runner.Item. It never slows the round down. Of a
// round that another process executes, it yields live output in steps of 250 ms, if the store
// has the capability LiveText, otherwise events only.
func (t *Reply) Items(ctx context.Context) iter.Seq2[runner.Item, error] {
	return func(yield func(runner.Item, error) bool) {
		cursor, of := "", ""
		seen := func(item runner.Item, err error) bool {
			if c := item.Cursor(); c != "" {
				cursor = c
			}
			return yield(item, err) && err == nil
		}
		for n := 0; ; n++ {
			part, ok := t.part(ctx, n)
			if err := ctx.Err(); err != nil && !ok {
				yield(runner.Item{}, err)
				return
			}
			if !ok {
				return
			}
			if part.run != of { // the first one, or a round that repeats it
				cursor, of = "", part.run
			}
			if !t.partItems(ctx, &part, cursor, seen) {
				return
			}
		}
	}
}

// partItems yields the items of an execution after a cursor.
func (t *Reply) partItems(ctx context.Context, p *replyPart, cursor string, yield func(runner.Item, error) bool) (more bool) {
	switch {
	case p.x == nil:
		return t.remoteItems(ctx, p, cursor, yield)
	case cursor != "":
		return yieldAll(p.x.Stream(ctx, cursor), yield)
	}
	return yieldAll(p.x.Items(ctx, p.afterEvent), yield)
}

// yieldAll yields items; more is false if the consumer stopped or an error was yielded.
func yieldAll(items iter.Seq2[runner.Item, error], yield func(runner.Item, error) bool) (more bool) {
	for item, err := range items {
		if !yield(item, err) {
			return false
		}
	}
	return true
}

// part waits for the n-th execution of the reply; ok is false if there will be none.
func (t *Reply) part(ctx context.Context, n int) (p replyPart, ok bool) {
	for {
		t.mu.Lock()
		news := t.changed
		if n < len(t.parts) {
			p = t.parts[n]
			t.mu.Unlock()
			return p, true
		}
		t.mu.Unlock()
		select {
		case <-news:
		case <-t.done:
			t.mu.Lock()
			more := n < len(t.parts)
			t.mu.Unlock()
			if !more {
				return p, false
			}
		case <-ctx.Done():
			return p, false
		}
	}
}

// remoteItems yields the events of a run that another process executes, until the reply is
// complete.
func (t *Reply) remoteItems(ctx context.Context, p *replyPart, cursor string, yield func(runner.Item, error) bool) bool {
	return yieldAll(t.Session.m.local.FollowJournals(ctx, p.run, cursor, p.afterEvent, t.done), yield)
}

// Cancel removes a queued message, or cancels the round that took it. When it returns,
// that is durable; Wait returns the result.
func (t *Reply) Cancel(ctx context.Context, reason string) error {
	m := t.Session.m
	if t.Run() == "" {
		t.mu.Lock()
		queued := t.waits
		t.mu.Unlock()
		err := m.store.RemoveQueued(ctx, queued)
		if err == nil {
			m.drivers.complete(t, runner.Result{Status: engine.Cancelled}, nil)
			return nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		select { // a round has just taken it
		case <-t.runAssigned():
		case <-t.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return m.runs.Cancel(ctx, t.Run(), t.opts.By, reason)
}

// runAssigned is closed when the reply has a run, or another execution.
func (t *Reply) runAssigned() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run != "" {
		c := make(chan struct{})
		close(c)
		return c
	}
	return t.changed
}

// sessionLength returns how long the session was when the reply's newest execution ended, if
// that was in this process.
func (t *Reply) sessionLength() (n int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.parts) == 0 || t.parts[len(t.parts)-1].x == nil {
		return 0, false
	}
	return t.parts[len(t.parts)-1].x.SessionLength()
}

// attachIfNew is attach for an execution that may be attached already.
func (t *Reply) attachIfNew(run string, x *runner.Execution) {
	t.mu.Lock()
	n := len(t.parts)
	known := n > 0 && t.parts[n-1].x == x && t.parts[n-1].run == run
	t.mu.Unlock()
	if !known {
		t.attach(run, x, 0, 0, 0)
	}
}

// attach adds an execution of the reply's run, nil for one in another process. from, first
// and after are set once: the length of the session, the commits and the events before the
// reply.
func (t *Reply) attach(run string, x *runner.Execution, from int, first, after int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run == "" {
		t.run, t.startLength, t.firstCommit, t.afterEvent = run, from, first, after
	}
	t.parts = append(t.parts, replyPart{x, run, t.afterEvent})
	close(t.changed)
	t.changed = make(chan struct{})
}

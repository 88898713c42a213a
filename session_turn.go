package weir

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

// Turn is a message that was sent and what comes of it: a round, or the part of
// a round that it answered.
type Turn struct {
	// Session is where the message was said: a fork of the session that it was
	// sent to where that was busy and `fork` says so.
	Session *Session
	// Message is the id of the message.
	Message string

	opts SendOptions
	// adopted: the message was sent by a process that is gone, so that nobody is
	// told where it is refused; it stays in the queue instead.
	adopted bool

	mu   sync.Mutex
	run  string
	from int // the session's length before
	// parts are the executions that the turn takes, and after the number of the
	// last event before it.
	parts  []*runner.Execution
	after  int64
	first  int64         // of the run's commits before the turn
	news   chan struct{} // closed and made anew when there is another part
	done   chan struct{}
	to     int // the session's length after
	result Result
	err    error
	state  *TurnState
}

// TurnState is how far a turn has come.
type TurnState struct {
	// Result is that of the run: its Usage is of the whole run.
	Result
	Session string `json:"session"`
	Round   int    `json:"round"`
	Message string `json:"message"` // the id
	// Text is what the assistant said last in the turn; where no model spoke, the
	// round's output if it is one text.
	Text string `json:"text"`
	// Messages are what the turn has added to the history.
	Messages []store.SessionMessage `json:"messages"`
	// Spent is what the turn has cost.
	Spent engine.Usage `json:"spent"`
	// Began and Took say when; in JSON Took is in nanoseconds.
	Began time.Time     `json:"began"`
	Took  time.Duration `json:"took"`
	// Earlier is how many of the session's first messages the round did not begin
	// with: those that the flow's session caps leave out, or that were reset.
	Earlier int `json:"earlier,omitempty"`
	// Sent is how many tokens the last call of a model was sent, as the provider
	// counted them, and View what of the history it was not given; nil is nothing.
	Sent int             `json:"sent,omitempty"`
	View *convo.Manifest `json:"view,omitempty"`
}

func newTurn(s *Session, id string, o SendOptions) *Turn {
	return &Turn{Session: s, Message: id, opts: o, news: make(chan struct{}), done: make(chan struct{})}
}

// Run is the id of the run that the message went to, "" while it has to wait.
func (t *Turn) Run() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.run
}

// Done is closed when the turn has ended.
func (t *Turn) Done() <-chan struct{} { return t.done }

// Wait returns when the round has ended or waits for somebody. Ending ctx ends
// the wait and not the round.
func (t *Turn) Wait(ctx context.Context) (TurnState, error) {
	select {
	case <-t.done:
	case <-ctx.Done():
		return TurnState{}, ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return TurnState{Result: t.result, Session: t.Session.ID}, t.err
	}
	if t.state == nil {
		s, err := t.gather(ctx)
		if err != nil {
			return TurnState{Result: t.result, Session: t.Session.ID}, err
		}
		t.state = &s
	}
	return *t.state, nil
}

// gather reads what the turn has left in the record.
func (t *Turn) gather(ctx context.Context) (TurnState, error) {
	s := TurnState{Result: t.result, Session: t.Session.ID, Message: t.Message}
	if t.run == "" {
		return s, nil
	}
	w := t.Session.w
	r, err := w.store.Run(ctx, t.run)
	if err != nil {
		return s, err
	}
	s.Round = r.Round
	from := t.from
	for c, err := range w.store.Commits(ctx, t.run, t.first) {
		if err != nil {
			return s, err
		}
		at := time.UnixMilli(c.At)
		if s.Began.IsZero() {
			s.Began = at
		}
		s.Took = at.Sub(s.Began)
		for _, e := range c.Events {
			if start, ok := e.(*engine.RunStarted); ok && len(start.Contexts) > 0 {
				from, s.Earlier = start.Contexts[0].At, epochOf(start.Contexts[0].Body)
			}
			s.add(e)
		}
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

// messages are what the turn's run has added to the history from a position on. They
// are next to each other: rounds that came later are not read.
func (t *Turn) messages(ctx context.Context, from int) (out []store.SessionMessage, err error) {
	for n := 16; from < t.to; n *= 2 {
		said, err := t.Session.Messages(ctx, from, min(from+n, t.to))
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

// onlyText is the one output of a flow, if it is text.
func onlyText(outputs engine.Values) (text string, ok bool) {
	if len(outputs) == 1 {
		text, ok = outputs[0].Value.(string)
	}
	return text, ok
}

// add takes what one event says of models.
func (s *TurnState) add(e engine.Event) {
	done, ok := e.(*engine.EffectCompleted)
	if !ok {
		return
	}
	if done.Usage != nil {
		s.Spent = s.Spent.Add(*done.Usage)
	}
	if done.Usage != nil && done.Usage.Calls > 0 {
		s.Sent, s.View = done.Usage.Input, nil
		if o, ok := done.Manifest.(map[string]any); ok {
			s.View = manifestOf(o)
		}
	}
}

// epochOf is where the history begins that a round begins with.
func epochOf(body any) int {
	switch b := body.(type) {
	case *convo.Change:
		return b.Epoch
	case map[string]any: // as it is read from a store
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
		From: n("from"), To: n("to"), Left: n("left"), Cleared: n("cleared"), Short: n("short"), Repaired: n("repaired"),
		Tokens: n("tokens"), Room: n("room"),
	}
	m.Why, _ = o["why"].(string)
	if pair, ok := o["summary"].([]any); ok && len(pair) == 2 {
		from, _ := pair[0].(int64)
		to, _ := pair[1].(int64)
		m.Summary = &[2]int{int(from), int(to)}
	}
	return m
}

// Items yields the events of the turn, and those of its child runs, and live output
// between them until it ends, as Run.Events does. It never slows the round down. Of a
// round that another process drives there are events alone.
func (t *Turn) Items(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		cursor := ""
		seen := func(item Item, err error) bool {
			if c := item.Cursor(); c != "" {
				cursor = c
			}
			return yield(item, err) && err == nil
		}
		for n := 0; ; n++ {
			x, elsewhere, ok := t.part(ctx, n)
			if err := ctx.Err(); err != nil && !ok {
				yield(Item{}, err)
				return
			}
			if !ok {
				return
			}
			var more bool
			switch {
			case x == nil:
				more = t.far(ctx, elsewhere, &cursor, seen)
			case cursor != "":
				more = all(x.Stream(ctx, cursor), seen)
			default:
				more = all(x.Items(ctx, t.after), seen)
			}
			if !more {
				return
			}
		}
	}
}

// all yields items; more is false where no more are wanted.
func all(items iter.Seq2[Item, error], yield func(Item, error) bool) (more bool) {
	for item, err := range items {
		if !yield(item, err) {
			return false
		}
	}
	return true
}

// part is the n-th execution of the turn once there is one; ok is false where
// there will be none. An execution that is nil is of another process: of run.
func (t *Turn) part(ctx context.Context, n int) (x *runner.Execution, run string, ok bool) {
	for {
		t.mu.Lock()
		news := t.news
		if n < len(t.parts) {
			x, run = t.parts[n], t.run
			t.mu.Unlock()
			return x, run, true
		}
		t.mu.Unlock()
		select {
		case <-news:
		case <-t.done:
			t.mu.Lock()
			more := n < len(t.parts)
			t.mu.Unlock()
			if !more {
				return nil, "", false
			}
		case <-ctx.Done():
			return nil, "", false
		}
	}
}

// far yields the events of a run that another process drives, until the turn is done.
func (t *Turn) far(ctx context.Context, run string, cursor *string, yield func(Item, error) bool) bool {
	for ended := false; ; {
		if !all(t.Session.w.local.Recorded(ctx, run, *cursor, t.after), yield) {
			return false
		}
		if ended {
			return true
		}
		select {
		case <-t.done:
			ended = true
		case <-time.After(longestPause):
		case <-ctx.Done():
			yield(Item{}, ctx.Err())
			return false
		}
	}
}

// Cancel stops the turn: a message that waits is taken back, a round that goes
// on is cancelled, and when it returns that is durable. Wait for the end.
func (t *Turn) Cancel(ctx context.Context, reason string) error {
	w := t.Session.w
	if t.Run() == "" {
		err := w.store.Unqueue(ctx, t.Message)
		if err == nil {
			w.talks.resolve(t, Result{Status: engine.Cancelled}, nil)
			return nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		select { // it was taken a moment ago
		case <-t.begun():
		case <-t.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	_, err := w.Cancel(ctx, t.Run(), t.opts.By, reason)
	return err
}

// begun is closed when the turn has the run that it goes to, or another part.
func (t *Turn) begun() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run != "" {
		c := make(chan struct{})
		close(c)
		return c
	}
	return t.news
}

// attachNew is attach for an execution that may be attached already.
func (t *Turn) attachNew(run string, x *runner.Execution) {
	t.mu.Lock()
	n := len(t.parts)
	known := n > 0 && t.parts[n-1] == x
	t.mu.Unlock()
	if !known {
		t.attach(run, x, 0, 0, 0)
	}
}

// attach notes an execution that the turn takes, nil for one of another process.
func (t *Turn) attach(run string, x *runner.Execution, from int, first, after int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run == "" {
		t.run, t.from, t.first, t.after = run, from, first, after
	}
	t.parts = append(t.parts, x)
	close(t.news)
	t.news = make(chan struct{})
}

//go:build linux

package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/temporal"
)

// counting pays once in each round, and counts the rounds in the state of the session.
const counting = `
weir: 1
name: counting
inputs: {message: {type: text, required: true}}
state: {rounds: {scope: session, initial: 0, reducer: sum}}
nodes:
  pay: {type: pay, in: {value: "{{ run.inputs.message }}"}}
  count: {type: transform, after: pay, with: {state: {rounds: "1"}}}
outputs: {receipt: "{{ pay.receipt }}"}
`

// interview takes no message: its first question takes the first one.
const interview = `
weir: 1
name: interview
nodes:
  first: {type: userInput, with: {prompt: "Your name?"}}
  second: {type: userInput, with: {prompt: "How old, {{ inputs.name }}?", schema: {type: integer}}, in: {name: "{{ first.value }}"}}
  pay: {type: pay, in: {value: "{{ second.value }}"}}
outputs: {text: "{{ first.value }} is {{ second.value }}"}
`

// session opens a session.
func (w *world) session(x *weir.Weir, text string, o weir.SessionOptions) *weir.Session {
	w.t.Helper()
	s, err := x.Session(w.t.Context(), w.flow(x, text), o)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// say sends a message and waits for the reply.
func (w *world) say(s *weir.Session, message any, want weir.Status) session.ReplyState {
	w.t.Helper()
	r, err := s.Send(w.t.Context(), message, weir.SendOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.reply(r, want)
}

// reply waits for a reply.
func (w *world) reply(r *weir.Reply, want weir.Status) session.ReplyState {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	got, err := r.Wait(ctx)
	if err != nil || got.Status != want {
		w.t.Fatalf("message %s: %s, error %v, %v; want %s", r.Message, got.Status, got.Error, err, want)
	}
	return got
}

func TestRoundsOfASessionAreExecutedByWorkers(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	s := w.session(x, counting, weir.SessionOptions{User: "ann"})
	for i := range 3 {
		got := w.say(s, fmt.Sprintf("message %d", i), weir.Completed)
		if got.Round != i+1 || got.Text == "" {
			t.Errorf("round %d: %d, %q", i+1, got.Round, got.Text)
		}
	}
	state, err := s.State(t.Context())
	if err != nil || len(state) != 1 || fmt.Sprint(state[0].Value) != "3" {
		t.Errorf("the state of the session is %v, %v", state, err)
	}
	if n := w.ledger.total(); n != 3 {
		t.Errorf("%d effects, want 3", n)
	}
}

func TestMessagesAnswerTheQuestionsOfARoundOnAWorker(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	s := w.session(x, interview, weir.SessionOptions{})
	if got := w.say(s, "Ada", weir.Paused); len(got.Interrupts) != 1 || got.Interrupts[0].Prompt != "How old, Ada?" {
		t.Fatalf("the first message has answered nothing: %+v", got.Interrupts)
	}
	if _, err := s.Send(t.Context(), "very", weir.SendOptions{}); !errors.Is(err, runner.ErrAnswer) {
		t.Errorf("an answer that does not fit: %v", err)
	}
	if got := w.say(s, "36", weir.Completed); got.Text != "Ada is 36" {
		t.Errorf("the reply is %q", got.Text)
	}
	if got := w.say(s, "Bob", weir.Paused); got.Round != 2 {
		t.Errorf("the next message has started round %d", got.Round)
	}
	second, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Answer(t.Context(), "second:ask#1", 40, weir.SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.reply(r, weir.Completed); got.Text != "Bob is 40" {
		t.Errorf("the reply to an answer by id is %q, of round %s", got.Text, second.Holder)
	}
}

func TestMessagesOfSeveralProcessesAreEachTakenOnceByWorkers(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	w.process()
	const processes, messages = 3, 4
	first := w.client()
	id := w.session(first, counting, weir.SessionOptions{}).ID
	var all sync.WaitGroup
	replies := make(chan *weir.Reply, processes*messages)
	for range processes {
		x := w.client()
		s := w.session(x, counting, weir.SessionOptions{ID: id})
		all.Go(func() {
			for range messages {
				r, err := s.Send(t.Context(), "hello", weir.SendOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				replies <- r
			}
		})
	}
	all.Wait()
	close(replies)
	runs := make(map[string]bool)
	for r := range replies {
		runs[w.reply(r, weir.Completed).Run] = true
	}
	if n := processes * messages; len(runs) != n || w.ledger.total() != n {
		t.Errorf("%d rounds and %d effects, want %d", len(runs), w.ledger.total(), n)
	}
	for key, n := range w.ledger.counts() {
		if n != 1 {
			t.Errorf("%s was asked for %d times", key, n)
		}
	}
}

func TestWorkersContinueASessionWhoseSenderIsGone(t *testing.T) {
	w := newWorld(t)
	x := w.client()
	s := w.session(x, counting, weir.SessionOptions{})
	// No worker executes the first round, so that the second message stays in the queue.
	for i := range 2 {
		if _, err := s.Send(t.Context(), fmt.Sprint(i), weir.SendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.until("the first round is recorded", func() bool {
		row, err := s.Info(t.Context())
		return err == nil && row.Rounds == 1 && row.Queued == 1
	})
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.worker(temporal.WorkerOptions{})
	y := w.client()
	w.until("both rounds have completed", func() bool {
		runs, err := y.Runs(t.Context(), store.Filter{Session: s.ID})
		return err == nil && len(runs) == 2 && runs[0].Head.Status == weir.Completed && runs[1].Head.Status == weir.Completed
	})
	if n := w.ledger.total(); n != 2 {
		t.Errorf("%d effects, want 2", n)
	}
}

func TestAKilledWorkerLosesNoMessageOfASession(t *testing.T) {
	w := newWorld(t)
	w.ledger.setDelay(300 * time.Millisecond)
	victim := w.process()
	x := w.client()
	s := w.session(x, counting, weir.SessionOptions{})
	var replies []*weir.Reply
	for i := range 3 {
		r, err := s.Send(t.Context(), fmt.Sprint(i), weir.SendOptions{})
		if err != nil {
			t.Fatal(err)
		}
		replies = append(replies, r)
	}
	w.until("an effect is in flight", func() bool { return w.ledger.total() > 0 })
	kill(victim)
	w.process()
	for i, r := range replies {
		if got := w.reply(r, weir.Completed); got.Round != i+1 {
			t.Errorf("message %d was taken by round %d", i, got.Round)
		}
	}
	if n := w.ledger.total(); n != 3 {
		t.Errorf("%d effects, want 3", n)
	}
}

func TestARoundOnAWorkerIsCancelled(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	s := w.session(x, interview, weir.SessionOptions{})
	r, err := s.Send(t.Context(), "Ada", weir.SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.reply(r, weir.Paused)
	if err := r.Cancel(t.Context(), "enough"); err != nil {
		t.Fatal(err)
	}
	w.until("the round is cancelled and the session free", func() bool {
		row, err := s.Info(t.Context())
		return err == nil && row.Holder == ""
	})
	if got := w.say(s, "Bob", weir.Paused); got.Round != 2 {
		t.Errorf("the next message has started round %d", got.Round)
	}
}

func TestAMessageAnswersAQuestionOfAChildRunOnAWorker(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	child := w.flow(x, `
weir: 1
name: child
nodes:
  ask: {type: userInput, with: {prompt: "How many?", schema: {type: integer}}}
outputs: {n: "{{ ask.value }}"}
`)
	f := w.flow(x, `
weir: 1
name: parent
inputs: {message: {type: text, required: true}}
nodes:
  sub: {type: flow, with: {flow: child}}
outputs: {n: "{{ sub.n }}"}
`, child)
	s, err := x.Session(t.Context(), f, weir.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.say(s, "hello", weir.Paused)
	got := w.say(s, "42", weir.Completed)
	if n, _ := weir.Output[int](got.Result, "n"); n != 42 {
		t.Errorf("the answer is %d", n)
	}
	row, err := s.Info(t.Context())
	if err != nil || row.Queued != 0 || row.Holder != "" {
		t.Errorf("the session is %+v, %v", row, err)
	}
}

// heldModel answers its first call when it is released, and all others at once, with what it was last told.
type heldModel struct {
	calls   chan struct{}
	release chan struct{}
}

func (m *heldModel) Generate(ctx context.Context, r *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	m.calls <- struct{}{}
	select {
	case <-m.release:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: "told: " + r.Messages[len(r.Messages)-1].Text}}, nil
}

func TestARoundOnAWorkerIsSteered(t *testing.T) {
	w := newWorld(t)
	m := &heldModel{make(chan struct{}, 8), make(chan struct{})}
	w.providers = map[string]weir.Provider{"held": m}
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	s := w.session(x, `
weir: 1
name: steered
context: {model: held/m}
inputs: {message: {type: text, required: true}}
nodes:
  work: {type: agent, in: {message: "{{ run.inputs.message }}"}}
outputs: {text: "{{ work.text }}"}
`, weir.SessionOptions{})
	r, err := s.Send(t.Context(), "plan a trip", weir.SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	<-m.calls
	got, err := s.Steer(t.Context(), runner.Steering{Text: "by train"}, weir.SendOptions{})
	if err != nil || got.Node != "work" || got.Queued != nil {
		t.Fatalf("the message went to %+v, %v", got, err)
	}
	close(m.release)
	if reply := w.reply(r, weir.Completed); reply.Text != "told: by train" {
		t.Errorf("the reply is %q", reply.Text)
	}
	if _, err := s.Steer(t.Context(), runner.Steering{Interrupt: true}, weir.SendOptions{}); !errors.Is(err, runner.ErrSteeringLate) {
		t.Errorf("an interruption of a round that has ended: %v", err)
	}
}

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/tool"
)

// turnModel answers each call with what the test gives it.
type turnModel struct{ calls chan *modelTurn }

type modelTurn struct {
	req    *llm.Request
	answer chan func(emit func(llm.Chunk)) (*llm.Response, error)
}

func newTurnModel() *turnModel { return &turnModel{make(chan *modelTurn)} }

func (m *turnModel) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	c := &modelTurn{req, make(chan func(func(llm.Chunk)) (*llm.Response, error))}
	select {
	case m.calls <- c:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		select {
		case answer := <-c.answer:
			if resp, err := answer(emit); resp != nil || err != nil {
				return resp, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// say ends the call with a text, emit sends a piece of it, and look ends it with a call of a tool.
func (c *modelTurn) say(text string) {
	c.answer <- func(func(llm.Chunk)) (*llm.Response, error) {
		return &llm.Response{Message: convo.Message{Role: convo.Assistant, Text: text}}, nil
	}
}

func (c *modelTurn) emit(text string) {
	c.answer <- func(emit func(llm.Chunk)) (*llm.Response, error) {
		emit(llm.Chunk{Text: text})
		return nil, nil
	}
}

func (c *modelTurn) look() {
	c.answer <- func(func(llm.Chunk)) (*llm.Response, error) {
		return &llm.Response{Message: convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: "c1", Name: "look", Arguments: "{}"}}}}, nil
	}
}

func (c *modelTurn) fail() {
	c.answer <- func(func(llm.Chunk)) (*llm.Response, error) {
		return nil, &llm.Error{Code: engine.CodeModelUnavailable, Message: "down", Retry: true, Retried: true}
	}
}

// shown is what a call was given, as "role: text" in one line.
func (c *modelTurn) shown() string { return shownMessages(c.req.Messages) }

func shownMessages(list []convo.Message) string {
	var out []string
	for i := range list {
		m := &list[i]
		text := m.Text
		if len(m.Calls) > 0 {
			text += "+call"
		}
		if m.Metadata[llm.InterruptedKey] == true {
			text += "(interrupted)"
		}
		out = append(out, string(m.Role)+": "+text)
	}
	return strings.Join(out, " | ")
}

// steeredFlows are flows with a node `work` that people may steer, one for each kind.
func steeredFlows() map[string]string {
	const flow = `
weir: 1
name: %s
context: {model: held/m}
inputs: {message: {type: text, required: true}}
nodes:
  work: {type: %s, in: {message: "{{ run.inputs.message }}", tools: "{{ t.tools }}"}%s}
  t: {type: tools, with: {tools: [look]}}
outputs: {text: "{{ work.text }}"}
`
	return map[string]string{
		"agent":      fmt.Sprintf(flow, "agent", "agent", ""),
		"queue":      fmt.Sprintf(flow, "queue", "agent", ", with: {post: [{say: Tidy up.}]}"),
		"llmRequest": fmt.Sprintf(flow, "llmRequest", "llmRequest", ""),
	}
}

type steeringCase struct {
	*testing.T
	model *turnModel
	w     *weir.Weir
	s     *weir.Session
	kind  string
}

func newSteeringCase(t *testing.T, kind, text string, o weir.Options) *steeringCase {
	t.Helper()
	model := newTurnModel()
	o.Providers = map[string]weir.Provider{"held": model}
	o.Tools = []*weir.Tool{look()}
	w := weirkit.Open(t, o)
	s, err := w.Session(t.Context(), weirkit.Parse(t, w, text), weir.SessionOptions{User: "ada", Thread: "t"})
	if err != nil {
		t.Fatal(err)
	}
	return &steeringCase{t, model, w, s, kind}
}

func look() *weir.Tool {
	return &tool.Tool{
		Name: "look", Description: "Looks.", ReadOnly: true, Parameters: map[string]any{"type": "object"},
		Call: func(context.Context, tool.Call) (string, error) { return "seen", nil },
	}
}

func (c *steeringCase) send(text string) *weir.Reply {
	c.Helper()
	r, err := c.s.Send(c.Context(), text, weir.SendOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return r
}

func (c *steeringCase) steer(m runner.Steering) {
	c.Helper()
	r, err := c.steerPatiently(m)
	if err != nil || r.Node != "work" || r.Queued != nil {
		c.Fatalf("steering gave %+v, %v", r, err)
	}
}

// steerPatiently sends a message again as long as the process of the run has not looked into its inbox in time.
func (c *steeringCase) steerPatiently(m runner.Steering) (session.SteerReply, error) {
	for {
		r, err := c.s.Steer(c.Context(), m, weir.SendOptions{})
		if !errors.Is(err, store.ErrOwned) || c.Context().Err() != nil {
			return r, err
		}
	}
}

func (c *steeringCase) shows(want string) *modelTurn {
	c.Helper()
	call := <-c.model.calls
	if got := call.shown(); got != want {
		c.Fatalf("the call was shown\n%s\nexpected\n%s", got, want)
	}
	return call
}

// tidy answers the entry of the queue post.
func (c *steeringCase) tidy() {
	if c.kind == "queue" {
		(<-c.model.calls).say("Tidy.")
	}
}

func (c *steeringCase) ends(r *weir.Reply, text string) {
	c.Helper()
	state, err := r.Wait(c.Context())
	if err != nil || state.Status != engine.Completed || state.Text != text {
		c.Fatalf("the round ended with %+v, %v; expected %q", state, err, text)
	}
}

func (c *steeringCase) history(want string) {
	c.Helper()
	row, err := c.s.Info(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	list, err := c.s.Messages(c.Context(), 0, row.Length)
	if err != nil {
		c.Fatal(err)
	}
	var ms []convo.Message
	for i := range list {
		ms = append(ms, list[i].Message)
	}
	if got := shownMessages(ms); got != want {
		c.Fatalf("the history is\n%s\nexpected\n%s", got, want)
	}
}

// inner is what of a turn stays in the history: all of an llmRequest's, only the answer of an agent's.
func (c *steeringCase) inner(text string) string {
	if c.kind == "llmRequest" {
		return text
	}
	return ""
}

// A message is taken by the next model call, after the results of tools. One that comes during
// the last answer is answered by another call.
func TestAMessageSteersTheNextModelCall(t *testing.T) {
	t.Parallel()
	for kind, text := range steeredFlows() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := newSteeringCase(t, kind, text, weir.Options{})
			r := c.send("Go")
			call := c.shows("user: Go")
			c.steer(runner.Steering{ID: "a", Text: "Faster"})
			c.steer(runner.Steering{ID: "a", Text: "Faster"}) // sent again
			call.look()
			call = c.shows("user: Go | assistant: +call | tool: seen | user: Faster")
			c.steer(runner.Steering{Text: "And shorter", Path: "work"})
			call.say("Done.")
			c.shows("user: Go | assistant: +call | tool: seen | user: Faster | assistant: Done. | user: And shorter").say("OK.")
			c.tidy()
			c.ends(r, "OK.")
			c.history("user: Go" + c.inner(" | assistant: +call | tool: seen") + " | user: Faster" + c.inner(" | assistant: Done.") + " | user: And shorter | assistant: OK.")
			next, err := c.s.Steer(t.Context(), runner.Steering{Text: "Next"}, weir.SendOptions{})
			if err != nil || next.Queued == nil || next.Run != "" {
				t.Fatalf("a message after the round gave %+v, %v", next, err)
			}
			(<-c.model.calls).say("Yes.")
			c.tidy()
			c.ends(next.Queued, "Yes.")
		})
	}
}

// An answer that is interrupted stays as far as it came, and the message that came with it is
// answered. Without a message it is the answer.
func TestAnAnswerIsInterrupted(t *testing.T) {
	t.Parallel()
	for kind, text := range steeredFlows() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := newSteeringCase(t, kind, text, weir.Options{})
			r := c.send("Go")
			call := c.shows("user: Go")
			call.emit("A long ")
			c.steer(runner.Steering{Text: "Stop", Interrupt: true})
			call = c.shows("user: Go | assistant: A long (interrupted) | user: Stop")
			c.steer(runner.Steering{Interrupt: true}) // before anything came
			c.tidy()
			state, err := r.Wait(t.Context())
			if err != nil || state.Status != engine.Completed {
				t.Fatalf("the round ended with %+v, %v", state, err)
			}
			if got, err := weir.Output[string](state.Result, "text"); err != nil || got != "" {
				t.Fatalf("the text is %q, %v", got, err)
			}
			if state.Usage.Calls < 2 || state.Usage.Estimated < 1 {
				t.Errorf("the usage is %+v", state.Usage)
			}
			c.history("user: Go" + c.inner(" | assistant: A long (interrupted)") + " | user: Stop")
			if _, err := c.s.Steer(t.Context(), runner.Steering{Interrupt: true}, weir.SendOptions{}); !errors.Is(err, runner.ErrSteeringLate) {
				t.Errorf("an interrupt without a round gave %v", err)
			}
			_ = call
		})
	}
}

// A process that continues the run makes the same requests: what a call took is journaled.
func TestSteeringIsTheSameInAnotherProcess(t *testing.T) {
	t.Parallel()
	for kind, text := range steeredFlows() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "weir.db")
			run := steerUntilClosed(newSteeringCase(t, kind, text, weir.Options{Store: weirkit.OpenSQLite(t, path)}))
			c := newSteeringCase(t, kind, text, weir.Options{Store: weirkit.OpenSQLite(t, path)})
			x, err := c.w.Resume(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			call := c.shows(steeredTwice)
			if _, err := c.w.Steer(t.Context(), run, runner.Steering{Text: "Now"}); err != nil {
				t.Fatal(err)
			}
			call.say("So far.")
			c.shows(steeredTwice + " | assistant: So far. | user: Now").say("End.")
			c.tidy()
			if result, err := x.Wait(t.Context()); err != nil || result.Status != engine.Completed {
				t.Fatalf("the run ended with %+v, %v", result, err)
			}
			want := 4
			if kind == "queue" {
				want = 5
			}
			c.proves(run, want)
			if _, err := c.w.Steer(t.Context(), run, runner.Steering{Text: "Late"}); !errors.Is(err, runner.ErrSteeringLate) {
				t.Errorf("steering an ended run gave %v", err)
			}
		})
	}
}

const steeredTwice = "user: Go | assistant: +call | tool: seen | user: Faster | assistant: +call | tool: seen | user: Shorter"

// steerUntilClosed steers a run twice and closes its process during the third call.
func steerUntilClosed(c *steeringCase) (run string) {
	c.Helper()
	r := c.send("Go")
	call := c.shows("user: Go")
	c.steer(runner.Steering{Text: "Faster"})
	call.look()
	call = c.shows("user: Go | assistant: +call | tool: seen | user: Faster")
	c.steer(runner.Steering{Text: "Shorter"})
	call.look()
	c.shows(steeredTwice)
	if err := c.w.Close(c.Context()); err != nil {
		c.Fatal(err)
	}
	return r.Run()
}

// proves checks that the requests of a run can be shown as they were made.
func (c *steeringCase) proves(run string, want int) {
	c.Helper()
	calls, err := c.w.InspectPrompts(c.Context(), run, "work")
	if err != nil {
		c.Fatal(err)
	}
	proven := 0
	for i := range calls {
		if calls[i].Proven {
			proven++
		}
	}
	if proven != want {
		c.Errorf("%d requests are proven of %d, expected %d", proven, len(calls), want)
	}
}

// A call that failed and is made again takes no further message: its request stays the same.
func TestARepeatedCallTakesNoFurtherMessage(t *testing.T) {
	t.Parallel()
	c := newSteeringCase(t, "agent", strings.Replace(steeredFlows()["agent"], "type: agent,", "type: agent, retry: {attempts: 2, backoff: 1ms},", 1), weir.Options{})
	r := c.send("Go")
	call := c.shows("user: Go")
	c.steer(runner.Steering{Text: "Faster"})
	call.fail()
	c.shows("user: Go").say("Done.")
	c.shows("user: Go | assistant: Done. | user: Faster").say("OK.")
	c.ends(r, "OK.")
}

// What people have said stays in the history of a round that fails.
func TestSteeringStaysAfterAFailure(t *testing.T) {
	t.Parallel()
	for kind, text := range steeredFlows() {
		if kind == "queue" {
			continue // its queue post asks the model after the failure
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := newSteeringCase(t, kind, text, weir.Options{})
			r := c.send("Go")
			call := c.shows("user: Go")
			c.steer(runner.Steering{Text: "Faster"})
			call.look()
			call = <-c.model.calls
			c.steer(runner.Steering{Text: "Shorter"})
			call.fail()
			state, err := r.Wait(t.Context())
			if err != nil || state.Status != engine.Failed {
				t.Fatalf("the round ended with %+v, %v", state, err)
			}
			c.history("user: Go | user: Faster | user: Shorter")
		})
	}
}

const twoAgents = `
weir: 1
name: two
context: {model: held/m}
inputs: {message: {type: text, required: true}}
nodes:
  a: {type: newContext}
  left: {type: agent, in: {context: "{{ a.context }}", message: "left"}}
  right: {type: agent, in: {message: "{{ run.inputs.message }}"}}
outputs: {left: "{{ left.text }}", right: "{{ right.text }}"}
`

// With several agents at work the node must be named. A message goes into a child run by a path.
func TestTheSteeredNodeIsNamed(t *testing.T) {
	t.Parallel()
	c := newSteeringCase(t, "agent", twoAgents, weir.Options{})
	r := c.send("right")
	calls := map[string]*modelTurn{}
	for range 2 {
		call := <-c.model.calls
		calls[call.shown()] = call
	}
	_, err := c.s.Steer(t.Context(), runner.Steering{Text: "x"}, weir.SendOptions{})
	if e, ok := errors.AsType[*engine.Error](err); !ok || e.Code != engine.CodeInput || !strings.Contains(e.Message, "left, right") {
		t.Fatalf("without a node: %v", err)
	}
	for _, m := range []runner.Steering{{}, {Text: " "}, {Text: strings.Repeat("x", 300<<10)}, {Text: "\xff"}} {
		if _, err := c.s.Steer(t.Context(), m, weir.SendOptions{}); err == nil {
			t.Errorf("%.20q was accepted", m.Text)
		}
	}
	if got, err := c.s.Steer(t.Context(), runner.Steering{Text: "x", Path: "left"}, weir.SendOptions{}); err != nil || got.Node != "left" {
		t.Fatalf("with a node: %+v, %v", got, err)
	}
	calls["user: left"].say("l")
	calls["user: right"].say("r")
	c.shows("user: left | assistant: l | user: x").say("ll")
	if state, err := r.Wait(t.Context()); err != nil || state.Status != engine.Completed {
		t.Fatalf("%+v, %v", state, err)
	}
}

// A message to a child run is journaled there, by its path, or without one if only the child works.
func TestAChildRunIsSteered(t *testing.T) {
	t.Parallel()
	model := newTurnModel()
	w := weirkit.Open(t, weir.Options{Providers: map[string]weir.Provider{"held": model}, Tools: []*weir.Tool{look()}})
	folder := t.TempDir()
	for name, text := range map[string]string{
		"inner.yaml": steeredFlows()["agent"],
		"outer.yaml": "weir: 1\nname: outer\nnodes: {sub: {type: flow, in: {message: Go}, with: {flow: inner.yaml}}}\noutputs: {text: \"{{ sub.text }}\"}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := w.Load(filepath.Join(folder, "outer.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	call := <-model.calls
	for _, path := range []string{"", "sub>", "sub>work"} {
		if _, err := w.Steer(t.Context(), run.ID, runner.Steering{Text: "More " + path, Path: path}); err != nil {
			t.Fatalf("%q: %v", path, err)
		}
	}
	if _, err := w.Steer(t.Context(), run.ID, runner.Steering{Text: "x", Path: "other>work"}); !errors.Is(err, runner.ErrSteeringLate) {
		t.Errorf("an unknown child gave %v", err)
	}
	call.say("One.")
	call = <-model.calls
	if got, want := call.shown(), "user: Go | assistant: One. | user: More  | user: More sub> | user: More sub>work"; got != want {
		t.Fatalf("the call was shown %s", got)
	}
	call.say("Two.")
	if r, err := run.Wait(t.Context()); err != nil || r.Status != engine.Completed {
		t.Fatalf("%+v, %v", r, err)
	}
}

// Another process on the store steers the run through its inbox.
func TestAnotherProcessSteers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	open := func() *steeringCase {
		return newSteeringCase(t, "agent", steeredFlows()["agent"], weir.Options{Store: weirkit.OpenSQLite(t, path)})
	}
	c, other := open(), open()
	r := c.send("Go")
	call := c.shows("user: Go")
	other.steer(runner.Steering{Text: "From afar"})
	call.emit("Long")
	other.steer(runner.Steering{Text: "Stop", Interrupt: true})
	c.shows("user: Go | assistant: Long(interrupted) | user: From afar | user: Stop").say("OK.")
	c.ends(r, "OK.")
	var kinds []string
	for it, err := range c.w.Follow(t.Context(), r.Run(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if it.Event != nil && strings.HasPrefix(it.Event.Kind(), "steering.") {
			kinds = append(kinds, it.Event.Kind())
		}
	}
	if !slices.Equal(kinds, []string{"steering.added", "steering.added", "steering.taken"}) {
		t.Errorf("the events are %v", kinds)
	}
}

// A message that is sent again under its id is not taken again: not by another node, not by the next round, and not by
// the round that it has become.
func TestAMessageSentAgainIsNotTakenAgain(t *testing.T) {
	t.Parallel()
	two := strings.Replace(steeredFlows()["agent"], "outputs:", "  then: {type: agent, in: {message: \"Then {{ work.text }}\"}}\noutputs:", 1)
	c := newSteeringCase(t, "agent", two, weir.Options{})
	again := func(m runner.Steering, queued bool) {
		t.Helper()
		r, err := c.s.Steer(t.Context(), m, weir.SendOptions{})
		if err != nil || r.Message != m.ID || (r.Queued != nil) != queued || !queued && r.Node != "work" {
			t.Errorf("sent again: %+v, %v", r, err)
		}
	}
	a, b := runner.Steering{ID: "a", Text: "Faster"}, runner.Steering{ID: "b", Text: "Next"}
	r := c.send("Go")
	call := c.shows("user: Go")
	c.steer(a)
	call.look()
	c.shows("user: Go | assistant: +call | tool: seen | user: Faster").say("Done.")
	call = c.shows("user: Go | user: Faster | assistant: Done. | user: Then Done.")
	again(a, false)
	call.say("Then.")
	c.ends(r, "Then.")
	next, err := c.s.Steer(t.Context(), b, weir.SendOptions{})
	if err != nil || next.Queued == nil {
		t.Fatalf("a message after the round gave %+v, %v", next, err)
	}
	call = <-c.model.calls
	before := call.shown()
	again(a, false)
	again(b, true)
	call.say("Yes.")
	c.shows(before + " | assistant: Yes. | user: Then Yes.").say("Then.")
	c.ends(next.Queued, "Then.")
}

// Another process steers a child run through the inbox of the parent, and knows that it did.
func TestAnotherProcessSteersAChildRun(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"inner.yaml": steeredFlows()["agent"],
		"outer.yaml": "weir: 1\nname: outer\ninputs: {message: {type: text, required: true}}\n" +
			"nodes: {sub: {type: flow, in: {message: \"{{ run.inputs.message }}\"}, with: {flow: inner.yaml}}}\noutputs: {text: \"{{ sub.text }}\"}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	model := newTurnModel()
	open := func() *steeringCase {
		w := weirkit.Open(t, weir.Options{
			Store: weirkit.OpenSQLite(t, filepath.Join(folder, "weir.db")), Providers: map[string]weir.Provider{"held": model}, Tools: []*weir.Tool{look()},
		})
		f, err := w.Load(filepath.Join(folder, "outer.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := w.Session(t.Context(), f, weir.SessionOptions{User: "ada", Thread: "t"})
		if err != nil {
			t.Fatal(err)
		}
		return &steeringCase{t, model, w, s, "agent"}
	}
	c, other := open(), open()
	r := c.send("Go")
	call := c.shows("user: Go")
	for _, m := range []runner.Steering{{ID: "a", Text: "A"}, {ID: "b", Text: "B", Path: "sub>work"}, {ID: "a", Text: "A"}, {Text: "C"}} {
		if got, err := other.steerPatiently(m); err != nil || got.Run != r.Run() || got.Node != "sub>work" || got.Queued != nil {
			t.Errorf("steering with %+v gave %+v, %v", m, got, err)
		}
	}
	call.say("One.")
	c.shows("user: Go | assistant: One. | user: A | user: B | user: C").say("Two.")
	c.ends(r, "Two.")
}

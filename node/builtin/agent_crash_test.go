package builtin_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
)

// limitedStore is a store that takes so many commits and no more, as if the process
// had died.
type limitedStore struct {
	weir.Store
	mu   sync.Mutex
	left int
}

// Close leaves the record to the next process.
func (m *limitedStore) Close() error { return nil }

var errStoreDied = errors.New("the process died")

func (m *limitedStore) Append(ctx context.Context, appends []store.Append) []error {
	m.mu.Lock()
	m.left--
	dead := m.left < 0
	m.mu.Unlock()
	if dead {
		return slices.Repeat([]error{errStoreDied}, len(appends))
	}
	return m.Store.Append(ctx, appends)
}

// unlimitedCommits is more commits than a run has.
const unlimitedCommits = 1 << 20

// keyedModel is a model that says what is written down for the call, by the key of its
// effect without the run: "work/plan#1".
type keyedModel struct {
	answers map[string]convo.Message
	l       *effectLog
}

// Generate gives what is said.
func (p *keyedModel) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	p.l.add(req.Key)
	_, key, _ := strings.Cut(req.Key, "/")
	m, ok := p.answers[key]
	if !ok {
		return nil, &llm.Error{Code: engine.CodeReplayDivergence, Message: "nothing is said at " + key}
	}
	m.Role = convo.Assistant
	m.Calls = slices.Clone(m.Calls)
	for i := range m.Calls {
		m.Calls[i].ID = key + string(rune('a'+i))
	}
	return &llm.Response{Message: m, Usage: llm.Usage{Input: 10, Output: 1}}, nil
}

// recordingTool returns a tool that enters the keys of its calls in the ledger.
func recordingTool(l *effectLog, name string, approve tool.Approval) *tool.Tool {
	return &tool.Tool{Name: name, Approve: approve, Call: func(_ context.Context, c tool.Call) (string, error) {
		l.add(c.Key)
		return name + " did " + c.Arguments, nil
	}}
}

// saga is a flow whose agent does everything that an agent can, and files next to it.
var allFeaturesFiles = flow.MemFiles{
	"asking.yaml": `
weir: 1
name: asking
inputs: {who: {type: text, required: true}}
nodes:
  ask: {type: userInput, with: {prompt: "{{ run.inputs.who }}?"}}
  say: {type: llmRequest, in: {message: "{{ ask.text }}"}}
outputs: {word: "{{ say.text }}"}
`,
}

func allFeaturesFlow() string {
	return queues(`
mode: plan
pre:
  - Prepare.
  - {tool: look, arguments: {at: pre}}
  - {flow: asking.yaml, in: {who: pre}}
todo:
  - {tool: kept, arguments: {at: todo}}
flows: [asking.yaml]
maxTime: 1h
post:
  - {tool: kept, arguments: {at: post}}
  - {flow: asking.yaml, in: {who: post}}
  - Write it up.
`)
}

func allFeaturesAnswers() map[string]convo.Message {
	return map[string]convo.Message{
		"work/model#1":        callMessage(`look {"at":"one"}`, `kept {"at":"one"}`),
		"work/model#2":        textMessage("prepared"),
		"work/plan#1":         textMessage(`{"steps": [{"say": "first"}, {"tool": "look", "arguments": "{\"at\":\"plan\"}"}, {"flow": "asking", "in": "{\"who\":\"plan\"}"}]}`),
		"work/model#3":        callMessage(`addTodo {"say":"second"}`, `look {"at":"two"}`, `addTodo {"flow":"asking","in":{"who":"model"}}`, `listTodo {}`),
		"work/model#4":        textMessage("first is done"),
		"work/model#5":        textMessage("second is done"),
		"work/model#6":        textMessage("all is done"),
		"say/model#1":         textMessage("heard"),
		"work/post.3.model#1": textMessage("written"),
	}
}

// crashCase is a flow and what it meets, in one process after another.
type crashCase struct {
	text  string
	files flow.MemFiles
	model weir.Provider
	tools []*tool.Tool
	flows []weir.FlowTool
	l     *effectLog // of the keys of all that is done outside
}

// process returns a Weir over a record that takes so many commits.
func (s *crashCase) process(t require, record weir.Store, left int) *weir.Weir {
	t.Helper()
	w, err := weir.Open(weir.Options{Store: &limitedStore{Store: record, left: left}, Providers: models(s.model), Tools: s.tools, Flows: s.flows})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// require is what helpers want of a test.
type require interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// allFeaturesCase returns the tale whose agent does everything that an agent can.
func allFeaturesCase() *crashCase {
	l := new(effectLog)
	return &crashCase{
		text: allFeaturesFlow(), files: allFeaturesFiles, model: &keyedModel{allFeaturesAnswers(), l}, l: l,
		tools: []*tool.Tool{recordingTool(l, "look", ""), recordingTool(l, "kept", tool.ApproveAlways)},
	}
}

// runToEnd sees the run to its end, answering what it asks; the error is that of a
// process that died.
func runToEnd(ctx context.Context, w *weir.Weir, run *weir.Run) (weir.Result, error) {
	for {
		r, err := run.Wait(ctx)
		if err != nil || r.Status != engine.Paused {
			return r, err
		}
		for _, i := range r.Interrupts {
			answer := map[engine.InterruptKind]any{engine.AwaitApproval: "approve", engine.AwaitEffect: "retry", engine.AwaitInput: "me"}[i.Kind]
			if run, err = w.Answer(ctx, "run", i.ID, answer, "ann"); err != nil {
				return r, err
			}
		}
	}
}

// recordedKeys returns the keys of the effects that the record has, of the run and its
// child runs.
func recordedKeys(t require, w *weir.Weir, run string) []string {
	t.Helper()
	v, err := w.Inspect(t.Context(), run, 0)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var events []engine.Event
	for _, c := range v.Commits {
		events = append(events, c.Events...)
	}
	var keys []string
	var waits []engine.Interrupt
	for _, e := range events {
		switch e := e.(type) {
		case *engine.EffectCompleted:
			keys = append(keys, run+"/"+e.Key)
		case *engine.NodeWaiting:
			waits = append(waits, e.Interrupts...)
		}
	}
	for _, i := range waits {
		if i.Child != nil {
			keys = append(keys, recordedKeys(t, w, i.Child.Run)...)
		}
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return strings.Contains(key, "/clock#") })
	slices.Sort(keys)
	return slices.Compact(keys)
}

// runWithCrash runs the flow in a process that dies after so many commits, and on in another;
// dead is false where it did not live to see that. What was recorded as done may not
// be done again.
func (s *crashCase) runWithCrash(t require, left int) (r weir.Result, keys []string, dead bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	record := memory.New()
	w := s.process(t, record, left)
	f, err := w.ParseIn(s.files, "flow.yaml", []byte(s.text))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(ctx, f, weir.Start{ID: "run"})
	if err == nil {
		r, err = runToEnd(ctx, w, run)
	}
	if closed := w.Close(ctx); err == nil && closed != nil {
		t.Fatal(closed)
	}
	w = s.process(t, record, unlimitedCommits)
	defer func() {
		if err := w.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	if err == nil {
		return r, recordedKeys(t, w, "run"), false
	}
	before := recordedKeys(t, w, "run")
	s.l.clear()
	run, err = w.Start(ctx, f, weir.Start{ID: "run"})
	if err == nil {
		r, err = runToEnd(ctx, w, run)
	}
	if err != nil {
		t.Fatalf("after %d commits: %v", left, err)
	}
	for _, key := range s.l.all() {
		if slices.Contains(before, key) {
			t.Errorf("after %d commits %s is done again, which was recorded as done", left, key)
		}
	}
	return r, recordedKeys(t, w, "run"), true
}

func TestAgentWithQueuesSurvivesACrashAtAnyCommit(t *testing.T) {
	t.Parallel()
	whole, keys, _ := allFeaturesCase().runWithCrash(t, unlimitedCommits)
	if text, _ := weir.Output[string](whole, "text"); whole.Status != engine.Completed || text != "all is done" {
		t.Fatalf("the run %s with %q: %v", whole.Status, text, whole.Error)
	}
	if len(keys) != 22 {
		t.Errorf("there were %d effects: %q", len(keys), keys)
	}
	died := 0
	for {
		r, got, dead := allFeaturesCase().runWithCrash(t, died+1)
		if !dead {
			break
		}
		died++
		if r.Status != engine.Completed || !reflect.DeepEqual(r.Outputs, whole.Outputs) {
			t.Errorf("after %d commits the run %s with %v: %v", died, r.Status, r.Outputs, r.Error)
		}
		if !slices.Equal(got, keys) {
			t.Errorf("after %d commits the effects are %q, expected %q", died, got, keys)
		}
	}
	if died < 40 {
		t.Errorf("the run has %d commits in which a process may die, expected more", died)
	}
}

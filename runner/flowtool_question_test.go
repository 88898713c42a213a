package runner_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/tool"
)

// twoCallsModel calls the tools once, in one answer, and then repeats their results.
type twoCallsModel struct{ calls []convo.Call }

func (m twoCallsModel) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	var results []string
	for _, o := range req.Messages {
		if o.Role == convo.Tool {
			results = append(results, fmt.Sprintf("%v: %s", o.Failed, o.Text))
		}
	}
	a := convo.Message{Role: convo.Assistant, Text: strings.Join(results, "; ")}
	if results == nil {
		a = convo.Message{Role: convo.Assistant, Calls: slices.Clone(m.calls)}
	}
	return &llm.Response{Message: a}, nil
}

// callOf returns a call of the tool inner.
func callOf(id, arguments string) convo.Call {
	return convo.Call{ID: id, Name: "inner", Arguments: arguments}
}

// questionProcess opens a process with the flow inner as a tool; calls are those of the model.
func questionProcess(t *testing.T, s store.Store, inner string, calls []convo.Call, tools ...*tool.Tool) *weir.Weir {
	t.Helper()
	parsing := weirkit.Open(t, weir.Options{Tools: tools})
	ft := weir.FlowTool{Flow: weirkit.Parse(t, parsing, "weir: 1\nname: inner\n"+inner)}
	return weirkit.Open(t, weir.Options{Store: s, Tools: tools, Flows: []weir.FlowTool{ft}, Providers: map[string]weir.Provider{"m": twoCallsModel{calls}}})
}

const whoFlow = `
inputs: {n: {type: number, default: 0}}
nodes: {who: {type: userInput, with: {prompt: "Who is {{ run.inputs.n }}?"}}}
outputs: {t: "{{ who.text }}"}
`

// callingFlow returns a flow whose node calls what the model asks for.
func callingFlow(node string) string {
	return "weir: 1\nname: outer\ncontext: {model: m/m}\nnodes:\n  pick: {type: tools}\n  say: " + node + "\noutputs: {text: \"{{ say.text }}\"}\n"
}

const callingNode = `{type: llmRequest, in: {message: Go., tools: "{{ pick.tools }}"}}`

// answerIn answers the question whose id begins with the prefix, in a process.
func answerIn(t *testing.T, w *weir.Weir, run string, r *weir.Result, prefix string, value any) weir.Result {
	t.Helper()
	i := slices.IndexFunc(r.Interrupts, func(i engine.Interrupt) bool { return strings.HasPrefix(i.ID, prefix) })
	if r.Status != engine.Paused || i < 0 {
		t.Fatalf("no question %s: %s %v %v", prefix, r.Status, r.Interrupts, r.Error)
	}
	next, err := w.Answer(t.Context(), run, r.Interrupts[i].ID, value, "ann")
	if err != nil {
		t.Fatal(err)
	}
	return weirkit.Wait(t, next)
}

// TestEveryQuestionOfAFlowToolPausesItsCaller asks each kind of question below each node that calls tools for a model. Each
// step is made by another process on one database.
func TestEveryQuestionOfAFlowToolPausesItsCaller(t *testing.T) {
	t.Parallel()
	kept := &tool.Tool{Name: "kept", Approve: tool.ApproveAlways, Call: func(context.Context, tool.Call) (string, error) { return "kept", nil }}
	asks := &tool.Tool{Name: "asks", ReadOnly: true, Call: func(_ context.Context, c tool.Call) (string, error) {
		if c.Input == nil {
			return "", &tool.InputRequired{Questions: []tool.Question{{Name: "q", Prompt: "Which?"}}}
		}
		return fmt.Sprint(c.Input.Answers["q"].Value), nil
	}}
	inners := map[string]struct {
		flow, path string
		answer     any
		want       string
	}{
		"a question":       {whoFlow, "say:tool1#1>who:", "Ada", "false: Ada"},
		"an approval":      {"nodes: {call: {type: tool, with: {tool: kept}}}\noutputs: {t: \"{{ call.text }}\"}\n", "say:tool1#1>call:", "approve", "false: kept"},
		"a refusal":        {"nodes: {call: {type: tool, with: {tool: kept}}}\noutputs: {t: \"{{ call.text }}\"}\n", "say:tool1#1>call:", "reject", "true: the flow of the tool inner failed"},
		"a gate":           {"nodes: {call: {type: approvalGate, with: {prompt: Well?}}}\noutputs: {t: \"{{ call.by }}\"}\n", "say:tool1#1>call:", "approve", "false: ann"},
		"input of a tool":  {"nodes: {call: {type: tool, with: {tool: asks}}}\noutputs: {t: \"{{ call.text }}\"}\n", "say:tool1#1>call:", "this", "false: this"},
		"an outside event": {"nodes: {call: {type: waitEvent, with: {name: paid}}}\noutputs: {t: \"{{ call.value }}\"}\n", "say:tool1#1>call:", "yes", "false: yes"},
		"of its own tool":  {"nodes: {call: {type: tool, with: {tool: low}}}\noutputs: {t: \"{{ call.text }}\"}\n", "say:tool1#1>call:tool1#1>who:", "Bo", "false: Bo"},
	}
	nodes := map[string]string{
		"llmRequest":       callingNode,
		"agent":            `{type: agent, in: {message: Go., tools: "{{ pick.tools }}"}}`,
		"agent with queue": `{type: agent, in: {message: Go., tools: "{{ pick.tools }}"}, with: {queue: {tools: true}}}`,
		"skipHistory":      `{type: llmRequest, in: {message: Go., tools: "{{ pick.tools }}"}, with: {skipHistory: true}}`,
	}
	for name, c := range inners {
		for nodeName, node := range nodes {
			t.Run(name+"/"+nodeName, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "weir.db")
				process := func(do func(w *weir.Weir) weir.Result) weir.Result {
					parsing := weirkit.Open(t, weir.Options{})
					low := weirkit.Parse(t, parsing, "weir: 1\nname: low\n"+whoFlow)
					named := weirkit.Open(t, weir.Options{Tools: []*tool.Tool{kept, asks}, Flows: []weir.FlowTool{{Flow: low}}})
					inner := weirkit.Parse(t, named, "weir: 1\nname: inner\n"+c.flow)
					w, err := weir.Open(weir.Options{
						Store: weirkit.OpenSQLite(t, path), Tools: []*tool.Tool{kept, asks}, Flows: []weir.FlowTool{{Flow: low}, {Flow: inner}},
						Providers: map[string]weir.Provider{"m": twoCallsModel{[]convo.Call{callOf("c", "")}}},
					})
					if err != nil {
						t.Fatal(err)
					}
					r := do(w)
					if err := w.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
					return r
				}
				r := process(func(w *weir.Weir) weir.Result { return weirkit.Wait(t, weirkit.StartText(t, w, callingFlow(node))) })
				r = process(func(w *weir.Weir) weir.Result { return answerIn(t, w, "run", &r, c.path, c.answer) })
				if text, _ := weir.Output[string](r, "text"); r.Status != engine.Completed || !strings.HasPrefix(text, c.want) {
					t.Errorf("%s %q %v", r.Status, text, r.Error)
				}
			})
		}
	}
}

// startTwoFlowTools starts a run whose model calls the flow twice and a plain tool in between.
func startTwoFlowTools(t *testing.T, s store.Store, note *tool.Tool) (*weir.Weir, weir.Result) {
	t.Helper()
	w := questionProcess(t, s, whoFlow, []convo.Call{callOf("c", `{"n": 1}`), {ID: "d", Name: "note"}, callOf("e", `{"n": 2}`)}, note)
	return w, weirkit.Wait(t, weirkit.StartText(t, w, callingFlow(callingNode)))
}

func countingTool(n *int) *tool.Tool {
	return &tool.Tool{Name: "note", Call: func(context.Context, tool.Call) (string, error) {
		*n++ // one call at a time, or the test fails
		return "noted", nil
	}}
}

func TestFlowsOfOneAnswerAskTogetherAndOtherToolsRunOnce(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"say:tool1#1>", "say:tool3#1>"}, {"say:tool3#1>", "say:tool1#1>"}} {
		noted := 0
		w, r := startTwoFlowTools(t, nil, countingTool(&noted))
		if len(r.Interrupts) != 2 || r.Interrupts[0].Prompt == r.Interrupts[1].Prompt {
			t.Fatalf("the questions are %v", r.Interrupts)
		}
		for _, prefix := range order {
			r = answerIn(t, w, "run", &r, prefix, "to "+prefix)
		}
		const want = "false: to say:tool1#1>; false: noted; false: to say:tool3#1>"
		if text, _ := weir.Output[string](r, "text"); text != want || noted != 1 {
			t.Errorf("%s %q %v; noted %d times", r.Status, text, r.Error, noted)
		}
	}
}

func TestACallerThatWaitsForFlowToolsIsCancelledWithThem(t *testing.T) {
	t.Parallel()
	noted := 0
	w, _ := startTwoFlowTools(t, nil, countingTool(&noted))
	run, err := w.Cancel(t.Context(), "run", "ada", "enough")
	if err != nil {
		t.Fatal(err)
	}
	if r := weirkit.Wait(t, run); r.Status != engine.Cancelled || len(r.Interrupts) != 0 {
		t.Errorf("%s %v", r.Status, r.Interrupts)
	}
	for _, below := range waitForChildren(t, w, 2) {
		if below.Head.Status != engine.Cancelled {
			t.Errorf("%s is %s", below.ID, below.Head.Status)
		}
	}
}

func TestTheTimeoutOfACallerCoversTheQuestionsOfItsFlowTools(t *testing.T) {
	t.Parallel()
	noted := 0
	note := countingTool(&noted)
	parsing := weirkit.Open(t, weir.Options{Tools: []*tool.Tool{note}})
	w := weirkit.Open(t, weir.Options{
		Tools: []*tool.Tool{note}, Flows: []weir.FlowTool{{Flow: weirkit.Parse(t, parsing, "weir: 1\nname: inner\n"+whoFlow)}},
		Providers: map[string]weir.Provider{"m": twoCallsModel{[]convo.Call{callOf("c", ""), {ID: "d", Name: "note"}, callOf("e", "")}}},
		Skip:      func(open map[string][]engine.Interrupt) bool { return len(open["run"]) == 2 },
	})
	r := weirkit.Wait(t, weirkit.StartText(t, w, callingFlow(strings.TrimSuffix(callingNode, "}")+", timeout: 1h}")))
	if r.Status != engine.Failed || r.Error.Code != engine.CodeTimeout || noted != 1 {
		t.Fatalf("%s %v; noted %d times", r.Status, r.Error, noted)
	}
	for _, below := range waitForChildren(t, w, 2) {
		if below.Head.Status != engine.Cancelled {
			t.Errorf("%s is %s", below.ID, below.Head.Status)
		}
	}
}

func TestAChildOfAToolCallThatAPersonCancelsIsAFailedCall(t *testing.T) {
	t.Parallel()
	noted := 0
	w, r := startTwoFlowTools(t, nil, countingTool(&noted))
	r = answerIn(t, w, "run", &r, "say:tool3#1>", "two")
	below := waitForChildren(t, w, 2)
	open := below[slices.IndexFunc(below, func(x store.Run) bool { return x.Head.Status == engine.Paused })]
	if _, err := w.Cancel(t.Context(), open.ID, "ada", "no"); err != nil {
		t.Fatal(err)
	}
	run, err := w.Resume(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	r = weirkit.Wait(t, run)
	if text, _ := weir.Output[string](r, "text"); !strings.Contains(text, "true: the flow of the tool inner failed") || !strings.HasSuffix(text, "false: two") || noted != 1 {
		t.Errorf("%s %q %v", r.Status, text, r.Error)
	}
}

// TestAForkOfACallerAsksTheQuestionsOfItsFlowToolsAnew forks in each state: both questions open, one answered, and both.
func TestAForkOfACallerAsksTheQuestionsOfItsFlowToolsAnew(t *testing.T) {
	t.Parallel()
	for answered := range 3 {
		noted := 0
		w, r := startTwoFlowTools(t, nil, countingTool(&noted))
		for i, prefix := range []string{"say:tool1#1>", "say:tool3#1>"} {
			if i < answered {
				r = answerIn(t, w, "run", &r, prefix, "first")
			}
		}
		before, err := w.Inspect(t.Context(), "run", 0)
		if err != nil {
			t.Fatal(err)
		}
		fork, _, err := w.Fork(t.Context(), "run", weir.ForkOptions{ID: "fork", At: before.Run.Events()})
		if err != nil {
			t.Fatal(err)
		}
		f := weirkit.Wait(t, fork)
		for _, prefix := range []string{"say:tool1#1>", "say:tool3#1>"}[answered:] {
			f = answerIn(t, w, "fork", &f, prefix, "fork")
		}
		told := [][]string{{"fork", "fork"}, {"first", "fork"}, {"first", "first"}}[answered]
		want := fmt.Sprintf("false: %s; false: noted; false: %s", told[0], told[1])
		if text, _ := weir.Output[string](f, "text"); text != want || noted != 1 {
			t.Errorf("%d answered: the fork is %s %q %v; noted %d times", answered, f.Status, text, f.Error, noted)
		}
		after, err := w.Inspect(t.Context(), "run", 0)
		if err != nil || after.Run.Events() != before.Run.Events() || len(after.Run.Interrupts()) != 2-answered {
			t.Errorf("%d answered: the forked run has changed: %v", answered, err)
		}
	}
}

func TestTwoProcessesAnswerTheQuestionsOfFlowTools(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	noted := 0
	_, r := startTwoFlowTools(t, weirkit.OpenSQLite(t, path), countingTool(&noted))
	other := questionProcess(t, weirkit.OpenSQLite(t, path), whoFlow, nil, countingTool(new(int)))
	r = answerIn(t, other, "run", &r, "say:tool3#1>", "two")
	r = answerIn(t, other, "run", &r, "say:tool1#1>", "one")
	if text, _ := weir.Output[string](r, "text"); text != "false: one; false: noted; false: two" || noted != 1 {
		t.Errorf("%s %q %v", r.Status, text, r.Error)
	}
}

// TestAMessageToTheSessionAnswersTheQuestionOfAFlowTool answers a round in the way of a chat, in another process.
func TestAMessageToTheSessionAnswersTheQuestionOfAFlowTool(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	const talk = `
weir: 1
name: talk
context: {model: m/m}
inputs: {message: {type: text, required: true}}
nodes:
  pick: {type: tools}
  say: {type: agent, in: {message: "{{ run.inputs.message }}", tools: "{{ pick.tools }}"}}
outputs: {text: "{{ say.text }}"}
`
	for _, step := range []struct{ message, want string }{{"Go.", ""}, {"Ada", "false: Ada"}} {
		parsing := weirkit.Open(t, weir.Options{})
		ft := weir.FlowTool{Flow: weirkit.Parse(t, parsing, "weir: 1\nname: inner\n"+whoFlow)}
		w, err := weir.Open(weir.Options{
			Store: weirkit.OpenSQLite(t, path), Flows: []weir.FlowTool{ft}, Providers: map[string]weir.Provider{"m": twoCallsModel{[]convo.Call{callOf("c", "")}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		reply := weirkit.SendAndWait(t, weirkit.OpenSession(t, w, weirkit.Parse(t, w, talk)), step.message, weir.SendOptions{})
		if text, _ := weir.Output[string](reply.Result, "text"); text != step.want || (step.want == "") != (reply.Status == engine.Paused) {
			t.Errorf("%s: %s %q %v", step.message, reply.Status, text, reply.Error)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

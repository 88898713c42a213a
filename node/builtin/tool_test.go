package builtin_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// anyArguments is the schema of a tool that takes anything.
var anyArguments = map[string]any{"type": "object"}

// toolNodeFlow returns a flow whose node calls the tool "act".
func toolNodeFlow(with, keys string) string {
	return "weir: 1\nname: calling\nstate: {n: {initial: 0}}\nnodes:\n  call:\n    type: tool\n    in: {title: loud}\n    with: {tool: act" + with + "}\n" + keys +
		"outputs: {text: \"{{ call.text }}\", value: \"{{ call.value }}\"}\n"
}

func TestToolNodeOutputsTheResultAsTextAndValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		value  any // that the tool returns besides the text
		expect any
	}{
		{`{"id": 7}`, nil, map[string]any{"id": int64(7)}},
		{"done", nil, "done"},
		{"", nil, ""},
		{"[1, 2.5]", nil, []any{int64(1), 2.5}},
		{"as text", map[string]any{"rows": 2}, map[string]any{"rows": int64(2)}},
	} {
		act := &tool.Tool{Name: "act", Parameters: anyArguments, Call: func(_ context.Context, call tool.Call) (string, error) {
			if !call.Caller.Node || call.Caller.User != "ada" || call.Arguments != `{"title":"loud"}` {
				t.Errorf("the call is %+v", call)
			}
			if c.value != nil {
				call.Return(c.value)
			}
			return c.text, nil
		}}
		r := weirtest.Flow(t, toolNodeFlow("", ""), weirtest.Case{User: "ada", Tools: []*tool.Tool{act}})
		if r.Error != nil || r.Outputs["text"] != c.text || !reflect.DeepEqual(r.Outputs["value"], c.expect) {
			t.Errorf("%q gives %v, %v", c.text, r.Outputs, r.Error)
		}
		if len(r.Effects) != 1 || r.Effects[0].Key != "call/tool#1" {
			t.Errorf("the effects are %+v", r.Effects)
		}
	}
}

func TestArgumentsOfToolNodesAreCheckedBeforeTheRunStarts(t *testing.T) {
	t.Parallel()
	act := &tool.Tool{
		Name: "act", Call: func(context.Context, tool.Call) (string, error) { return "", errors.New("called") },
		Parameters: map[string]any{
			"type": "object", "required": []any{"title"}, "additionalProperties": false,
			"properties": map[string]any{"title": map[string]any{"type": "string"}, "rank": map[string]any{"type": "integer", "maximum": 9}},
		},
	}
	w := open(t, weir.Options{Store: memory.New(), Tools: []*tool.Tool{act}})
	for _, c := range []struct{ node, code, says string }{
		{"in: {title: loud}, with: {tool: act}", "", ""},
		{"in: {title: loud, rank: 3}, with: {tool: act}", "", ""},
		{`in: {title: "{{ run.id }}"}, with: {tool: act}`, "", ""},
		{`with: {tool: act, arguments: {title: "{{ run.id }}", rank: 1}}`, "", ""},
		{`in: {all: {title: x}}, with: {tool: act, arguments: "{{ inputs.all }}"}`, "", ""},
		{"in: {title: loud}, with: {tool: acts}", flow.CodeUnknownTool, "did you mean act?"},
		{"with: {tool: act}", flow.CodeToolArguments, "title"},
		{"in: {title: 5}, with: {tool: act}", flow.CodeToolArguments, "title"},
		{"in: {title: x, rank: 10}, with: {tool: act}", flow.CodeToolArguments, "rank"},
		{"in: {title: x, rang: 1}, with: {tool: act}", flow.CodeToolArguments, "rang"},
		{`in: {title: "{{ run.id }}", rang: "{{ run.id }}"}, with: {tool: act}`, flow.CodeToolArguments, "no argument rang"},
		{`in: {title: "{{ run.id }}", rank: high}, with: {tool: act}`, flow.CodeToolArguments, "rank"},
		{`in: {rank: "{{ 1 }}"}, with: {tool: act}`, flow.CodeToolArguments, "title"},
		{"with: {tool: act, arguments: {}}", flow.CodeToolArguments, "title"},
		{`with: {tool: "{{ run.id }}"}`, flow.CodeInvalidSetting, "cannot be a template"},
	} {
		for place, text := range map[string]string{
			"flow": "weir: 1\nname: f\nnodes:\n  call: {type: tool, " + c.node + "}\n",
			"body": "weir: 1\nname: f\nnodes:\n  each: {type: forEach, in: {items: [1]}, with: {body: {nodes: {call: {type: tool, " + c.node + "}}}}}\n",
		} {
			_, err := w.Parse("flow.yaml", []byte(text))
			var invalid *flow.Invalid
			switch {
			case c.code == "" && err != nil:
				t.Errorf("%s, %s: %v", place, c.node, err)
			case c.code == "":
			case !errors.As(err, &invalid) || invalid.Problems[0].Code != c.code || !strings.Contains(err.Error(), c.says) || invalid.Problems[0].Pos.Line == 0:
				t.Errorf("%s, %s: %v, expected %s with %q", place, c.node, err, c.code, c.says)
			}
		}
	}
	// Arguments that are known only in the run are checked before a person is asked.
	r := weirtest.Flow(t, "weir: 1\nname: f\ninputs: {t: {type: any}}\nnodes:\n  call: {type: tool, in: {title: \"{{ run.inputs.t }}\"}, with: {tool: act, approve: always}}\n",
		weirtest.Case{Tools: []*tool.Tool{act}, In: map[string]any{"t": 5}})
	if r.Error == nil || r.Error.Code != engine.CodeInput || len(r.Effects) != 0 || len(r.Waiting) != 0 {
		t.Errorf("%s: %v, %v", r.Status, r.Error, r.Waiting)
	}
}

func TestToolNodeWiredByEdgesIsValid(t *testing.T) {
	t.Parallel()
	act := &tool.Tool{
		Name: "act", Call: func(_ context.Context, c tool.Call) (string, error) { return c.Arguments, nil },
		Parameters: map[string]any{"type": "object", "required": []any{"title"}, "properties": map[string]any{"title": map[string]any{"type": "string"}}},
	}
	r := weirtest.Flow(t, `{"weir": 1, "name": "f", "nodes": {"a": {"type": "template", "with": {"text": "x"}}, "call": {"type": "tool", "with": {"tool": "act"}}},
		"edges": [{"from": "a.text", "to": "call.title"}], "outputs": {"text": "{{ call.text }}"}}`, weirtest.Case{Tools: []*tool.Tool{act}})
	if r.Error != nil || r.Outputs["text"] != `{"title":"x"}` {
		t.Errorf("%v %v", r.Outputs, r.Error)
	}
}

// callCase is one combination of tool, failure, setting and retry.
type callCase struct {
	readOnly, idempotent bool
	onUnknown            string
	retry                string
	fails                error // of the first two calls
}

// runCounted returns how often the tool is called, and how the run ended.
func (c callCase) runCounted(t *testing.T) (int, weirtest.Result) {
	t.Helper()
	made := 0
	act := &tool.Tool{
		Name: "act", Parameters: anyArguments, ReadOnly: c.readOnly, Idempotent: c.idempotent,
		Call: func(context.Context, tool.Call) (string, error) {
			if made++; made <= 2 {
				return "", c.fails
			}
			return "done", nil
		},
	}
	with, keys := "", ""
	if c.onUnknown != "" {
		with = ", onUnknown: " + c.onUnknown
	}
	if c.retry != "" {
		keys = "    retry: " + c.retry + "\n"
	}
	r := weirtest.Flow(t, toolNodeFlow(with, keys), weirtest.Case{Tools: []*tool.Tool{act}})
	return made, r
}

// expected returns how many calls the rules allow, and how the run ends.
func (c callCase) expected() (calls int, status engine.Status, code string) {
	repeatable, unknown := c.readOnly || c.idempotent, errors.Is(c.fails, tool.ErrOutcomeUnknown)
	policy := c.onUnknown
	if policy == "" && repeatable {
		policy = "retry"
	} else if policy == "" {
		policy = "ask"
	}
	repeats, code := repeatable || errors.Is(c.fails, tool.ErrNotMade), engine.CodeToolError
	if unknown {
		repeats, code = policy == "retry", engine.CodeEffectUnknown
	}
	switch {
	case unknown && policy == "ask":
		return 1, engine.Paused, ""
	case repeats && c.retry != "":
		return 3, engine.Completed, ""
	}
	return 1, engine.Failed, code
}

func TestRetryRepeatsAToolCallOnlyIfThatIsSafe(t *testing.T) {
	t.Parallel()
	var cases []callCase
	for _, retry := range []string{"", "{attempts: 3, backoff: 1ms}", "{attempts: 3, backoff: 1ms, on: [tool_error, effect_outcome_unknown]}"} {
		for _, onUnknown := range []string{"", "retry", "ask", "fail"} {
			for _, fails := range []error{errors.New("no"), tool.NotMade(errors.New("no")), fmt.Errorf("lost: %w", tool.ErrOutcomeUnknown)} {
				for _, kind := range []string{"", "readOnly", "idempotent"} {
					cases = append(cases, callCase{readOnly: kind == "readOnly", idempotent: kind == "idempotent", onUnknown: onUnknown, retry: retry, fails: fails})
				}
			}
		}
	}
	for _, c := range cases {
		calls, status, code := c.expected()
		made, r := c.runCounted(t)
		got := ""
		if r.Error != nil {
			got = r.Error.Code
		}
		if made != calls || r.Status != status || got != code {
			t.Errorf("%+v: %d calls, %s %s; expected %d, %s %s", c, made, r.Status, got, calls, status, code)
		}
	}
}

func TestPersonDecidesAboutACallWithUnknownOutcome(t *testing.T) {
	t.Parallel()
	for answer, expect := range map[any]struct {
		text  string
		calls int
	}{"retry": {"done", 2}, "result": {"it happened", 1}, "fail": {"", 1}} {
		made := 0
		act := &tool.Tool{Name: "act", Parameters: anyArguments, Call: func(context.Context, tool.Call) (string, error) {
			if made++; made == 1 {
				return "", tool.ErrOutcomeUnknown
			}
			return "done", nil
		}}
		if answer == "result" {
			answer = map[string]any{"result": "it happened"}
		}
		r := weirtest.Flow(t, toolNodeFlow("", ""), weirtest.Case{Tools: []*tool.Tool{act}, Answers: map[string]any{"call": answer}})
		text, _ := r.Outputs["text"].(string)
		if made != expect.calls || text != expect.text || (expect.text == "") != (r.Error != nil && r.Error.Code == engine.CodeEffectUnknown) {
			t.Errorf("%v: %d calls, %v %v", answer, made, r.Outputs, r.Error)
		}
	}
}

func TestApprovalIsAskedAgainAfterTheArgumentsChanged(t *testing.T) {
	t.Parallel()
	var asked []string
	act := &tool.Tool{Name: "act", Parameters: anyArguments, Approve: tool.ApproveAlways, Call: func(_ context.Context, c tool.Call) (string, error) {
		asked = append(asked, c.Arguments)
		if len(asked) == 1 {
			return "", tool.NotMade(errors.New("no connection"))
		}
		return "done", nil
	}}
	w := open(t, weir.Options{Store: memory.New(), Tools: []*tool.Tool{act}})
	f, err := w.Parse("flow.yaml", []byte(`
weir: 1
name: f
nodes:
  call: {type: tool, with: {tool: act, arguments: {n: "{{ state.n }}"}}, retry: {attempts: 2, backoff: 1ms}}
`))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	run, err := w.Start(ctx, f, weir.Start{ID: "run", State: map[string]any{"n": 1}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(ctx)
	if err != nil || len(r.Interrupts) != 1 || !strings.Contains(r.Interrupts[0].Prompt, `{"n":1}`) {
		t.Fatalf("%+v %v", r, err)
	}
	first := r.Interrupts[0].ID
	// A fork with another state has other arguments and asks about those.
	forked, _, err := w.Fork(ctx, "run", weir.ForkOptions{From: "call", State: map[string]any{"n": 2}})
	if err != nil {
		t.Fatal(err)
	}
	r, err = forked.Wait(ctx)
	if err != nil || len(r.Interrupts) != 1 || r.Interrupts[0].ID == first || !strings.Contains(r.Interrupts[0].Prompt, `{"n":2}`) {
		t.Fatalf("%+v %v", r, err)
	}
	if err := forked.Answer(ctx, r.Interrupts[0].ID, "approve"); err != nil {
		t.Fatal(err)
	}
	if r, err = forked.Wait(ctx); err != nil || r.Status != engine.Completed {
		t.Fatalf("%+v %v", r, err)
	}
	if !slices.Equal(asked, []string{`{"n":2}`, `{"n":2}`}) {
		t.Errorf("the calls are %q", asked)
	}
}

// toolCrashCase returns a flow whose tools have effects, which a person approves.
func toolCrashCase() *crashCase {
	l := new(effectLog)
	kept, look := recordingTool(l, "kept", tool.ApproveAlways), recordingTool(l, "look", "")
	kept.Parameters, look.Parameters = anyArguments, anyArguments
	return &crashCase{l: l, tools: []*tool.Tool{kept, look}, text: `
weir: 1
name: crash
nodes:
  first: {type: tool, in: {at: first}, with: {tool: kept}}
  each:
    type: forEach
    in: {items: [1, 2]}
    with: {body: {nodes: {act: {type: tool, in: {n: "{{ inputs.item }}"}, with: {tool: look}}}, outputs: {text: "{{ act.text }}"}}}
  last: {type: tool, in: {at: "{{ first.text }}"}, with: {tool: kept}, after: each}
outputs: {text: "{{ last.text }}", each: "{{ each.results }}"}
`}
}

func TestToolNodesSurviveACrashAtAnyCommit(t *testing.T) {
	t.Parallel()
	whole, keys, _ := toolCrashCase().runWithCrash(t, unlimitedCommits)
	if whole.Status != engine.Completed || len(keys) != 4 {
		t.Fatalf("the run %s with %v and %q", whole.Status, whole.Error, keys)
	}
	died := 0
	for ; ; died++ {
		c := toolCrashCase()
		r, got, dead := c.runWithCrash(t, died+1)
		if !dead {
			break
		}
		if r.Status != engine.Completed || !reflect.DeepEqual(r.Outputs, whole.Outputs) || !slices.Equal(got, keys) {
			t.Errorf("after %d commits the run %s with %v and %q: %v", died+1, r.Status, r.Outputs, got, r.Error)
		}
	}
	if died < 10 {
		t.Errorf("the run has %d commits in which a process may die, expected more", died)
	}
}

// runApproving runs the flow in a process that dies after so many commits. A person approves
// calls, declines to give input, and says what calls with an unknown outcome returned.
func (s *crashCase) runApproving(t *testing.T, record weir.Store, left int) (weir.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	w := s.process(t, record, left)
	defer w.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the store dies in some cases
	f, err := w.Parse("flow.yaml", []byte(s.text))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(ctx, f, weir.Start{ID: "run"})
	for err == nil {
		var r weir.Result
		if r, err = run.Wait(ctx); err != nil || r.Status != engine.Paused {
			return r, err
		}
		for _, i := range r.Interrupts {
			answer := map[engine.InterruptKind]any{engine.AwaitApproval: "approve", engine.AwaitEffect: map[string]any{"result": "seen"}, engine.AwaitInput: "decline"}[i.Kind]
			if run, err = w.Answer(ctx, "run", i.ID, answer, "ann"); err != nil {
				return r, err
			}
		}
	}
	return weir.Result{}, err
}

func TestToolWithEffectsIsNotCalledTwiceWithoutPermission(t *testing.T) {
	t.Parallel()
	for died := 1; ; died++ {
		c, record := toolCrashCase(), memory.New()
		if _, err := c.runApproving(t, record, died); err == nil {
			break
		}
		if r, err := c.runApproving(t, record, unlimitedCommits); err != nil || r.Status != engine.Completed {
			t.Fatalf("after %d commits: %s %v %v", died, r.Status, r.Error, err)
		}
		calls := slices.Sorted(slices.Values(c.l.all()))
		if unique := slices.Compact(slices.Clone(calls)); len(unique) != len(calls) {
			t.Errorf("after %d commits the calls are %q", died, calls)
		}
	}
}

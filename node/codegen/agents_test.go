package codegen_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

func invoice() map[string]any { return map[string]any{"invoice": "1250 EUR, ACME"} }

// fails returns the error of a run that failed.
func fails(t *testing.T, r weirtest.Result, code string) *weir.Error {
	t.Helper()
	if r.Error == nil || r.Error.Code != code {
		t.Fatalf("the run %s with %v; expected %s; steps %q", r.Status, r.Error, code, steps(r))
	}
	return r.Error
}

func TestAgentAnswersAreReadInSeveralForms(t *testing.T) {
	const program = "import json\namount = float(inputs['invoice'].split(' EUR')[0])\n" +
		"print(json.dumps({'status': 'success', 'context_updates': {'amount': amount}}))"
	for _, c := range []struct {
		name   string
		script []string
	}{
		{"JSON in prose", []string{"Let me see {here}. I think:\n```json\n" + noAnalysis + "\n```\nThat is all.", readAmount, "Well: " + goodVerdict}},
		{"booleans as texts", []string{`{"needs_analysis": "No", "complexity": "LOW"}`, readAmount, `{"valid": "yes"}`}},
		{"another name for valid", []string{noAnalysis, readAmount, `{"is_valid": true}`}},
		{"null where a field is unknown", []string{`{"needs_analysis": false, "reason": null, "hint": null}`, readAmount, `{"valid": true, "reason": null}`}},
		{"code without a fence", []string{noAnalysis, program, goodVerdict}},
		{"code in a fence of no language", []string{noAnalysis, "Sure!\n```\n" + program + "\n```\nHope that helps.", goodVerdict}},
		{"a fence that is not closed", []string{noAnalysis, "```python\n" + program, goodVerdict}},
		{"the longest of several fences", []string{noAnalysis, "```bash\npip install pdf\n# and many more lines than the program has, which is not that long at all, or is it? it is, " +
			"since this goes on and on and on and on and on and on and on and on and on\n```\n```py\nx = 1\n```\n```python\n" + program + "\n```", goodVerdict}},
		{"indented code", []string{noAnalysis, "```python\n    " + strings.ReplaceAll(program, "\n", "\n    ") + "\n```", goodVerdict}},
		{"code as JSON", []string{noAnalysis, fmt.Sprintf(`{"code": %q}`, program), goodVerdict}},
		{"lines that end as on Windows", []string{noAnalysis, strings.ReplaceAll(readAmount, "\n", "\r\n"), goodVerdict}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := play(t, readingFlow, weirtest.Case{In: invoice(), Script: weirtest.Says(c.script...)})
			completes(t, r)
			equal(t, "the state", r.State, map[string]any{"amount": 1250.0})
			equal(t, "steps", steps(r), []string{
				"1 input_analysis 1 success", "2 data_analysis 1 skipped", "3 code_generation 1 success",
				"4 code_validation 1 success", "5 execution 1 success", "6 output_validation 1 success",
			})
		})
	}
}

func TestAgentMistakesAreRetried(t *testing.T) {
	start := []string{"1 input_analysis 1 success", "2 data_analysis 1 skipped"}
	second := []string{"3 code_generation 2 success", "4 code_validation 2 success", "5 execution 2 success", "6 output_validation 2 success"}
	for _, c := range []struct {
		name, say string
		more      []string
		steps     []string
		want      string
	}{
		{"an empty answer", "", nil, []string{"3 code_generation 1 failed"}, "no code"},
		{"a program in Python 2", "```python\nprint 'hello'\n```", nil, []string{"3 code_generation 1 success", "4 code_validation 1 failed"}, "line 1"},
		{"prose for a program", "I would rather not.", nil, []string{"3 code_generation 1 success", "4 code_validation 1 failed"}, "line 1"},
		{
			"a program that says it failed", "```\nprint('{\"status\": \"error\", \"message\": \"where is it\"}')\n```", nil,
			[]string{"3 code_generation 1 success", "4 code_validation 1 success", "5 execution 1 failed"},
			"where is it",
		},
		{
			"a value that JSON does not have", "```\ncontext['amount'] = {1, 2}\n```", nil,
			[]string{"3 code_generation 1 success", "4 code_validation 1 success", "5 execution 1 failed"},
			"amount",
		},
		{
			"an outcome that is not what was asked for", "```\ncontext['amount'] = 0\n```",
			[]string{`{"valid": false, "reason": "It is 1250."}`},
			[]string{"3 code_generation 1 success", "4 code_validation 1 success", "5 execution 1 success", "6 output_validation 1 failed"},
			"It is 1250.",
		},
		{
			"a verdict that says nothing", "```\ncontext['amount'] = 0\n```",
			[]string{`{"opinion": "fine"}`, `{"opinion": "good"}`},
			[]string{"3 code_generation 1 success", "4 code_validation 1 success", "5 execution 1 success", "6 output_validation 1 failed"},
			"missing propert",
		},
		{
			"a verdict that is no JSON, nor when it is mended", "```\ncontext['amount'] = 0\n```",
			[]string{"Fine!", "Really fine!"},
			[]string{"3 code_generation 1 success", "4 code_validation 1 success", "5 execution 1 success", "6 output_validation 1 failed"},
			"also after one repair: it is not JSON",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			script := append([]string{noAnalysis, c.say}, c.more...)
			r := play(t, readingFlow, weirtest.Case{In: invoice(), Script: weirtest.Says(append(script, readAmount, goodVerdict)...)})
			completes(t, r)
			equal(t, "steps", steps(r), append(append(append([]string{}, start...), c.steps...), second...))
			equal(t, "the state", r.State, map[string]any{"amount": 1250.0})
			if text := sent(r.Requests[len(r.Requests)-2]); !strings.Contains(text, c.want) {
				t.Errorf("the second generation does not receive %q: %s", c.want, text)
			}
		})
	}
}

func TestFailedAnalysisIsRecordedAndWorkContinues(t *testing.T) {
	r := play(t, readingFlow, weirtest.Case{In: invoice(), Script: weirtest.Says("No idea.", "Still none.", "```python\n1/0\n```", readAmount, goodVerdict)})
	completes(t, r)
	equal(t, "steps", steps(r)[:3], []string{"1 input_analysis 1 failed", "2 data_analysis 1 failed", "3 code_generation 1 success"})
	if s := stepsOf(r)[1]; !strings.Contains(s.Error, "ZeroDivisionError") || !strings.Contains(s.Code, "1/0") {
		t.Errorf("the analysis is recorded as %+v", s)
	}
}

func TestAnalysisCannotChangeTheState(t *testing.T) {
	r := play(t, readingFlow, weirtest.Case{In: invoice(), State: map[string]any{"kept": 1}, Script: weirtest.Says(
		analysis, "```python\ncontext['spy'] = 1\ndel context['kept']\nprint('a text, then EUR')\n```", readAmount, goodVerdict)})
	completes(t, r)
	equal(t, "the state", r.State, map[string]any{"amount": 1250.0, "kept": int64(1)})
	if text := sent(r.Requests[2]); !strings.Contains(text, "a text, then EUR") {
		t.Errorf("the generation does not receive what was found: %s", text)
	}
}

func TestExhaustedAttemptsReportTheLastError(t *testing.T) {
	r := play(t, readingFlow, weirtest.Case{In: invoice(), Script: weirtest.Says(noAnalysis, readFile, readFile, "```python\nraise ValueError('the last')\n```")})
	e := fails(t, r, engine.CodeGeneration)
	if !strings.Contains(e.Message, "the last") || !strings.Contains(e.Message, "3 attempts") || !strings.Contains(e.Hint, "--chain") {
		t.Errorf("the error is %v, %q", e, e.Hint)
	}
	m := metadata(t, r)
	if len(m["errors"].([]any)) != 3 || m["attempts"] != int64(3) || m["steps"] != int64(11) {
		t.Errorf("the metadata is %v", m)
	}
	equal(t, "the state", r.State, map[string]any{})
}

func TestDecisionCodeIsGenerated(t *testing.T) {
	const deciding = `
weir: 1
name: deciding
context: {model: script/demo}
nodes:
  size:
    type: decision
    with: {prompt: "Is amount more than 1000?", branches: [true, false], learn: false}
  big: {type: template, after: size.true, with: {text: big}}
outputs: {branch: "{{ size.result }}", text: "{{ big.text }}"}
`
	r := play(t, deciding, weirtest.Case{State: map[string]any{"amount": 1250, "branch_decision": "false"}, Script: weirtest.Says(
		noAnalysis, "```python\npass\n```", "```python\ncontext['branch_decision'] = 'maybe'\n```", "```python\ncontext['branch_decision'] = context['amount'] > 1000\n```", goodVerdict)})
	completes(t, r)
	equal(t, "outputs", r.Outputs, map[string]any{"branch": "true", "text": "big"})
	all := stepsOf(r)
	if len(all) != 12 || !strings.Contains(all[4].Error, engine.CodeBranchMissing) || !strings.Contains(all[7].Error, engine.CodeBranch) {
		t.Errorf("steps %q: %s; %s", steps(r), all[4].Error, all[7].Error)
	}
	if text := sent(r.Requests[1]); !strings.Contains(text, `"true", "false"`) || !strings.Contains(text, "branch_decision") {
		t.Errorf("the generation does not receive the branches: %s", text)
	}
	equal(t, "the state", r.State, map[string]any{"amount": int64(1250), "branch_decision": "false"})
}

// Only the judge gets the beginnings of the inputs, and no model gets values of
// the state.
func TestModelsSeeNamesAndTypesOnly(t *testing.T) {
	r := play(t, readingFlow, weirtest.Case{
		In:    map[string]any{"invoice": "1250 EUR, my-own-words"},
		State: map[string]any{"api_key": "sk-very-secret", "customer": map[string]any{"name": "Ada Lovelace", "password": "correct horse"}},
		Script: weirtest.Says(analysis, "```python\nimport json\nprint(json.dumps({'found': 'sk-very-secret and correct horse'}))\n```",
			"```python\ncontext['amount'] = 1250.0\ncontext['copy'] = context['api_key']\nraise ValueError('correct horse')\n```",
			"```python\ncontext['amount'] = 1250.0\ncontext['token'] = 'fresh-secret'\nprint('used sk-very-secret')\n```", goodVerdict),
	})
	completes(t, r)
	for i, req := range r.Requests {
		text := sent(req)
		for _, secret := range []string{"sk-very-secret", "correct horse", "fresh-secret", "Ada Lovelace", "my-own-words"} {
			if judge := i == len(r.Requests)-1; judge && secret == "my-own-words" {
				continue
			}
			if strings.Contains(text, secret) {
				t.Errorf("call %d receives %q: %s", i+1, secret, text)
			}
		}
	}
	text := sent(r.Requests[0])
	for _, want := range []string{`"api_key": text of 14 characters`, `"name": text of 12 characters`, `"invoice": text of 22 characters`} {
		if !strings.Contains(text, want) {
			t.Errorf("the first call does not receive %s: %s", want, text)
		}
	}
}

func TestEachAgentMayHaveItsOwnModel(t *testing.T) {
	flow := strings.Replace(readingFlow, "learn: false}", "learn: false, models: {input_analysis: script/small, code_generation: other/large}}", 1)
	r := play(t, flow, weirtest.Case{In: invoice(), Script: weirtest.Says(noAnalysis, readAmount, goodVerdict)})
	completes(t, r)
	var models []string
	for _, s := range stepsOf(r) {
		models = append(models, s.Model)
	}
	equal(t, "models", models, []string{"script/small", "", "other/large", "", "", "script/demo"})
	equal(t, "the model of the metadata", metadata(t, r)["model"], "other/large")
}

func TestGeneratorMayCallTools(t *testing.T) {
	look := &weir.Tool{Name: "look_up", Call: func(_ context.Context, c tool.Call) (string, error) { return "EUR stands behind the amount", nil }}
	flow := strings.Replace(readingFlow, "learn: false}", "learn: false, tools: [look_up]}", 1)
	r := play(t, flow, weirtest.Case{In: invoice(), Tools: []*weir.Tool{look}, Script: append(append(
		weirtest.Says(noAnalysis), weirtest.Calls("look_up", map[string]any{"what": "EUR"})), weirtest.Says(readFile, readAmount, goodVerdict)...)})
	completes(t, r)
	s := stepsOf(r)[2]
	if out := fmt.Sprint(s.Output); !strings.Contains(out, "look_up") || s.Usage.Calls != 2 {
		t.Errorf("the generation is recorded as %s, %+v", out, s.Usage)
	}
	if len(r.Requests[0].Tools) != 0 || len(r.Requests[1].Tools) != 1 || len(r.Requests[len(r.Requests)-1].Tools) != 0 {
		t.Error("others than the one who writes are offered tools")
	}
}

func TestAgentsDoNotWriteToTheConversation(t *testing.T) {
	r := play(t, readingFlow, weirtest.Case{In: invoice(), Script: weirtest.Says(noAnalysis, readAmount, goodVerdict)})
	completes(t, r)
	if len(r.Messages) != 0 {
		t.Errorf("the context has %v", r.Messages)
	}
}

func TestFailedModelFailsTheNodeWithItsCode(t *testing.T) {
	r := play(t, readingFlow, weirtest.Case{In: invoice(), Script: append(weirtest.Says(noAnalysis), weirtest.Fails(engine.CodeModelOverloaded))})
	if e := fails(t, r, engine.CodeModelOverloaded); e.Node != "read" {
		t.Errorf("the error is of %q", e.Node)
	}
	equal(t, "steps", steps(r), []string{"1 input_analysis 1 success", "2 data_analysis 1 skipped", "3 code_generation 1 failed"})
	if m := metadata(t, r); m["attempts"] != int64(1) {
		t.Errorf("the metadata is %v", m)
	}
}

func TestStateSchemaViolationIsRetried(t *testing.T) {
	flow := strings.Replace(readingFlow, "nodes:", "state: {amount: {schema: {type: number, minimum: 1}}}\nnodes:", 1)
	r := play(t, flow, weirtest.Case{In: invoice(), Script: weirtest.Says(noAnalysis, "```\ncontext['amount'] = -5\n```", readAmount, goodVerdict)})
	completes(t, r)
	if s := stepsOf(r)[4]; s.Status != engine.StepFailed || !strings.Contains(s.Error, "minimum") {
		t.Errorf("the execution is recorded as %+v", s)
	}
}

func TestBudgetCoversTheAgents(t *testing.T) {
	flow := strings.Replace(readingFlow, "in: {invoice", "budget: {maxCalls: 2}\n    in: {invoice", 1)
	r := play(t, flow, weirtest.Case{In: invoice(), Script: weirtest.Says(noAnalysis, readFile, readAmount, goodVerdict)})
	if e := fails(t, r, engine.CodeBudget); e.Budget == "" || len(r.Requests) != 2 || r.Usage.Calls != 2 {
		t.Errorf("%d calls were made, %d counted", len(r.Requests), r.Usage.Calls)
	}
	equal(t, "the last step", steps(r)[5], "3 code_generation 2 failed")

	branch := strings.Replace(strings.Replace(flow, "maxCalls: 2", "maxCalls: 2, onLimit: branch", 1), "outputs:",
		"  over: {type: template, after: read.limit, with: {text: over}}\noutputs:", 1)
	branch = strings.Replace(branch, `value: "{{ read.value }}"`, `value: "{{ read.value }}", over: "{{ over.text }}"`, 1)
	r = play(t, branch, weirtest.Case{In: invoice(), Script: weirtest.Says(noAnalysis, readFile)})
	completes(t, r)
	equal(t, "outputs", r.Outputs, map[string]any{"over": "over"})
}

func TestAnalysisForADecisionTakesNoBranch(t *testing.T) {
	r := play(t, `
weir: 1
name: deciding
context: {model: script/demo}
nodes:
  size: {type: decision, with: {prompt: "Is amount more than 1000?", learn: false}}
outputs: {branch: "{{ size.result }}"}
`, weirtest.Case{State: map[string]any{"amount": 1250}, Script: weirtest.Says(
		analysis, "```python\nprint('a whole number')\n```", "```python\ncontext['branch_decision'] = context['amount'] > 1000\n```", goodVerdict)})
	completes(t, r)
	equal(t, "the analysis", steps(r)[1], "2 data_analysis 1 success")
}

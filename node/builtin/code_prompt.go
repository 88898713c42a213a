package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/codegen"
)

// PromptSettings say how models write the code that a node runs; they are the
// settings that all nodes which have code written have in common.
type PromptSettings struct {
	ModelSettings
	ToolSettings
	Prompt   template          `json:"prompt"`
	Attempts int               `json:"attempts"`
	Models   map[string]string `json:"models"`
	Tools    []string          `json:"tools"`
	Learn    *bool             `json:"learn"`
}

// defaultAttempts is how many codes are tried where the settings do not say.
const defaultAttempts = 3

// withPromptSettings adds the settings of PromptSettings.
func withPromptSettings(properties map[string]any) map[string]any {
	properties = withToolSettings(withCallSettings(properties))
	properties["prompt"] = templateSchema("string", "What the code has to do: models write it.")
	properties["attempts"] = map[string]any{
		"type": "integer", "minimum": 1, "maximum": 10,
		"description": fmt.Sprintf("How many codes are tried. Default: %d.", defaultAttempts),
	}
	models := make(map[string]any)
	for _, agent := range codegen.Agents() {
		models[agent] = map[string]any{"type": "string", "minLength": 1}
	}
	perAgent := objectSchema(models)
	perAgent["description"] = "Models of single agents, as provider/model."
	properties["models"] = perAgent
	properties["tools"] = map[string]any{
		"type": "array", "uniqueItems": true, "items": map[string]any{"type": "string", "minLength": 1},
		"description": "Tools, by name, that the agent may call which writes the code.",
	}
	properties["learn"] = settingSchema("boolean", "Whether code that did what was asked is used again for the same task. Default: true.")
	return properties
}

// promptKeys returns the settings that have an effect only together with a prompt.
func promptKeys() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(withPromptSettings(map[string]any{}))), func(name string) bool { return name == "prompt" })
}

// promptDoc says how code is written by models.
const promptDoc = "With `prompt` in the place of `code` models write the code: they look at what there is, write it, have it checked and run,\n" +
	"and check its result. A failure is reported to the model that writes the code, which tries again. The models receive names, types and sizes of\n" +
	"values, not what is in them. See [code nodes](../code-nodes.md)."

// promptSettingsDoc are the rows of the settings of PromptSettings.
const promptSettingsDoc = "| `prompt` | what the code has to do, a template; `code` and `prompt` exclude each other |\n" +
	"| `attempts` | with `prompt`: how many codes are tried (3) |\n" +
	"| `model`, `provider` | the model of all agents as `provider/model`; the context's where not given |\n" +
	"| `models` | `{AGENT: provider/model}`: models of single agents: `input_analysis`, `data_analysis`, `code_generation`, `output_validation` |\n" +
	"| `tools` | names of tools that the agent may call which writes the code |\n" +
	"| `maxSteps`, `atMax`, `approve` | for its calls of tools, as for `llmRequest` |\n" +
	"| `learn` | `false` neither uses nor keeps code that did what was asked (`true`) |\n" +
	"| `system` | instructions beside the agents' own, a template; those of the context are not sent |\n" +
	"| `temperature`, `maxOutput`, `reasoning`, `thinkingBudget`, `budget` | as for `llmRequest` |"

// promptOutputsDoc are the rows of the outputs that are there with a prompt.
const promptOutputsDoc = "| `usage` | with `prompt`: `{input, cached, output, reasoning, calls}`: tokens, and how many model calls |\n" +
	"| `limit` | alone, where a budget with `onLimit: branch` does not cover a call |\n" +
	"| `context` | with `prompt`: the context's handle |"

// isPrompted reports whether models write a node's code.
func isPrompted(with map[string]any) bool { return with["prompt"] != nil }

// promptContext returns what a node does with its context: its model's settings are
// read from there.
func promptContext(with map[string]any) flow.ContextUse {
	if isPrompted(with) {
		return flow.ContextRead
	}
	return flow.ContextNone
}

// withPromptPorts adds the ports that are there with a prompt.
func withPromptPorts(p flow.Ports, with map[string]any) flow.Ports {
	if isPrompted(with) {
		p.In = append(p.In, contextIn())
		p.Out = append(p.Out,
			flow.Port{Name: "usage", Type: flow.TypeObject, Description: "Tokens used, and model calls made."},
			limitPort(), contextOut(),
		)
	}
	return p
}

// checkPrompt reports what is wrong with the settings of a prompt, as far as their
// schema cannot say it.
func checkPrompt(with map[string]any) []flow.Problem {
	if problems := checkThinking(with); problems != nil {
		return problems
	}
	if !isPrompted(with) {
		return nil
	}
	var problems []flow.Problem
	if text, ok := with["prompt"].(string); ok && strings.TrimSpace(text) == "" {
		problems = append(problems, settingProblem("prompt", "there is nothing to do"))
	}
	if with["tools"] == nil {
		problems = append(problems, notBeside(with, "a prompt without tools", "maxSteps", "atMax", "approve")...)
	}
	return problems
}

// writer has models write the code of a job.
func (s *PromptSettings) writer(ctx *node.Ctx, j *codegen.Job) (*codegen.Writer, error) {
	m, err := outputContext(ctx)
	if err != nil {
		return nil, err
	}
	w := &codegen.Writer{
		Job: *j, Attempts: s.Attempts, Learn: s.Learn == nil || *s.Learn, MaxSteps: s.MaxSteps, StopAtMax: s.AtMax == "stop",
	}
	if w.Attempts == 0 {
		w.Attempts = defaultAttempts
	}
	if w.Task, err = s.Prompt.text(ctx, "prompt"); err != nil {
		return nil, err
	}
	if strings.TrimSpace(w.Task) == "" {
		return nil, permanentError(CodeInput, "prompt: there is nothing to do")
	}
	tools, err := toolsNamed(ctx.Tools(), s.Tools)
	if err != nil {
		return nil, err
	}
	if w.Tools, err = s.withApproval(tools); err != nil {
		return nil, err
	}
	w.Turn = func(agent string) (llm.Turn, error) {
		alone := convo.Context{ID: m.ID() + "@" + ctx.Info().Path + "/" + agent, Kind: convo.Isolated, Settings: m.Get().Settings}
		t, err := s.turn(ctx, convo.NewManager(alone, true))
		if own := s.Models[agent]; own != "" {
			t.Provider, t.Model = "", own
		}
		return t, err
	}
	return w, nil
}

// runJob runs the code that stands in the flow, or has it written, and declares the
// files that it was given.
func runJob(ctx *node.Ctx, c *CodeSettings, p *PromptSettings, branches []string) (*codegen.Execution, error) {
	j, err := c.job(ctx)
	if err != nil {
		return nil, err
	}
	j.Decision, j.Branches = branches != nil, branches
	r, err := p.execute(ctx, c, j)
	if err == nil {
		err = j.Declare(ctx)
	}
	return r, err
}

// execute runs the code of a job, written first where there is a prompt.
func (s *PromptSettings) execute(ctx *node.Ctx, c *CodeSettings, j *codegen.Job) (*codegen.Execution, error) {
	if !s.Prompt.isSet() {
		return j.RunCode(ctx, c.Code)
	}
	if j.Language != "" && j.Language != python && j.Language != starlark {
		return nil, &engine.Error{
			Code: engine.CodeSandboxUnavailable, Permanent: true,
			Message: fmt.Sprintf("the executor %s runs %s, and the agents write python and starlark", j.Executor, j.Language),
			Hint:    "beside prompt, name an executor of python or starlark, or none",
		}
	}
	w, err := s.writer(ctx, j)
	if err != nil {
		return nil, err
	}
	r, usage, err := w.Run(ctx)
	if err != nil {
		return nil, err
	}
	ctx.Output("usage", usage)
	ctx.Meta("tokenUsage", usage)
	return r, nil
}

// promptExample returns an action whose code models write.
func promptExample() flow.Example {
	return flow.Example{
		Name: "code that models write",
		Flow: `
weir: 1
name: written
context: {model: script/demo}
inputs:
  invoice: {type: text, required: true}
nodes:
  read:
    type: action
    in: {invoice: "{{ run.inputs.invoice }}"}
    with:
      prompt: "The input invoice begins with an amount, as in 1250 EUR. Set amount to it, a number."
      attempts: 2
outputs: {amount: "{{ read.value.amount }}", calls: "{{ read.usage.calls }}"}
`,
		Inputs: map[string]any{"invoice": "1250 EUR, ACME"},
		Script: []string{
			`{"needs_analysis": false, "complexity": "low", "reason": "The task says how the text begins."}`,
			"```python\nimport json\namount = float(inputs['invoice'].split(' EUR')[0])\nprint(json.dumps({'status': 'success', 'context_updates': {'amount': amount}}))\n```",
			`{"valid": true, "task_completed": true, "changes_made": true, "reason": "The amount is a number."}`,
		},
		Outputs: map[string]any{"amount": 1250.0, "calls": 3},
	}
}

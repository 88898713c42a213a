package builtin_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// probe shows what a setting does: the stage runs with and without it, and what happens
// differs; or the flow is refused with the code.
type probe struct {
	stage   probeFlow
	value   string
	refused string
	// whole replaces the setting that the member is of, where its members need each other.
	whole string
}

// settingPaths lists the settings of a schema, members of objects and of elements as a.b.
func settingPaths(at string, s map[string]any) []string {
	for _, inner := range []map[string]any{s, member(s, "items"), member(s, "additionalProperties")} {
		properties, _ := inner["properties"].(map[string]any)
		if len(properties) == 0 {
			continue
		}
		var out []string
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			m, _ := properties[name].(map[string]any)
			out = append(out, settingPaths(strings.TrimPrefix(at+"."+name, "."), m)...)
		}
		return out
	}
	if at == "" {
		return nil
	}
	return []string{at}
}

func member(s map[string]any, key string) map[string]any {
	m, _ := s[key].(map[string]any)
	return m
}

// TestEverySettingOfEveryTypeHasAnEffectOrIsRejected enumerates the settings from
// the catalogue: one without a probe fails.
func TestEverySettingOfEveryTypeHasAnEffectOrIsRejected(t *testing.T) {
	t.Parallel()
	table, cells := settingProbes(), 0
	for _, spec := range builtin.Catalogue().Specs() {
		names := settingPaths("", spec.Settings)
		for name := range table[spec.Name] {
			if !slices.Contains(names, name) && table[spec.Name][name].refused == "" {
				t.Errorf("%s has no setting %s, and a probe for it", spec.Name, name)
			}
		}
		for _, name := range names {
			cells++
			t.Run(spec.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				p, ok := table[spec.Name][name]
				if !ok {
					t.Fatalf("no probe shows what the setting %s of %s does", name, spec.Name)
				}
				p.stage.typ = spec.Name
				if p.whole != "" {
					name, _, _ = strings.Cut(name, ".")
					p.value = p.whole
				}
				p.check(t, p.stage.setting(name, p.value))
			})
		}
	}
	t.Logf("%d settings of %d node types", cells, len(builtin.Catalogue().Specs()))
}

// check compares what happens on the stage with what happens on the other.
func (p probe) check(t *testing.T, other probeFlow) {
	t.Helper()
	after, err := other.run(t)
	if p.refused != "" {
		var invalid *flow.Invalid
		if !errors.As(err, &invalid) || invalid.Problems[0].Code != p.refused {
			t.Errorf("%v: expected to be refused with %s:\n%s", err, p.refused, other.text())
		}
		return
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, other.text())
	}
	before, err := p.stage.run(t)
	if err != nil {
		t.Fatalf("without it: %v in\n%s", err, p.stage.text())
	}
	if slices.Equal(before, after) {
		t.Errorf("nothing that happens differs with it:\n%s\n%s", other.text(), firstLines(after))
	}
	// Nodes that execute at the same time are in any order.
	again, err := p.stage.run(t)
	if err != nil || !slices.Equal(slices.Sorted(slices.Values(before)), slices.Sorted(slices.Values(again))) {
		t.Errorf("the probe shows nothing: without the setting two runs differ in\n%s", differing(before, again))
	}
}

// differing returns the lines that stand in one of them only.
func differing(a, b []string) string {
	var out []string
	for _, l := range slices.Concat(a, b) {
		if slices.Contains(a, l) != slices.Contains(b, l) {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

// firstLines returns the beginnings of lines.
func firstLines(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString("\n" + l[:min(len(l), 300)])
	}
	return b.String()
}

// withLongConversation returns the stage with a long conversation before the node, and room for part of it.
func (s probeFlow) withLongConversation() probeFlow {
	s.more += "  before: {type: filled}\n"
	s.top += "context: {model: script/one, budget: {window: 1500, reserve: 300}}\n"
	return s.key("after", "before")
}

// modelProbes returns the stages of settings that all types have which ask a model.
func modelProbes(s probeFlow) map[string]probe {
	return map[string]probe{
		"provider":    {stage: s, value: "other"},
		"model":       {stage: s, value: "script/two"},
		"system":      {stage: s, value: `"You serve {{ run.user }}."`},
		"temperature": {stage: s, value: "0.3"},
		"maxOutput":   {stage: s, value: "77"},
		"reasoning":   {stage: s, value: "high"},

		"thinkingBudget": {stage: s, value: "2048"},
	}
}

// fallbackProbes adds those of several models. On the stage, two answers are not taken.
func fallbackProbes(table map[string]probe, s probeFlow) {
	table["models"] = probe{stage: s, value: "[script/two, script/three]"}
	for _, key := range []string{"first", "idle", "total"} {
		table["callTimeout."+key] = probe{stage: s, value: "7m"}
	}
	table["on"] = probe{stage: s.setting("models", "[script/two, script/three]"), value: "[model_answer_invalid]"}
}

// viewProbes adds those that say how a conversation is shown.
func viewProbes(table map[string]probe, s probeFlow) map[string]probe {
	l := s.withLongConversation()
	summary := l.setting("view", "{strategy: summary}")
	table["history"] = probe{stage: s, value: "server"}
	table["budget.window"] = probe{stage: l, value: "1100"}
	table["budget.reserve"] = probe{stage: l, value: "600"}
	table["view.strategy"] = probe{stage: l, value: "all"}
	table["view.low"] = probe{stage: l, value: "20"}
	table["view.keepResults"] = probe{stage: l, value: "-1"}
	table["view.maxResult"] = probe{stage: l, value: "20"}
	table["view.summary"] = probe{stage: summary, value: "90"}
	table["view.model"] = probe{stage: summary, value: "script/two"}
	return table
}

// singleCallProbes adds those that bound a call which shows a model one text.
func singleCallProbes(table map[string]probe, s probeFlow) map[string]probe {
	s.top = "context: {model: script/one, budget: {window: 1500, reserve: 300}}\n"
	table["budget.window"] = probe{stage: s, value: "40"}
	table["budget.reserve"] = probe{stage: s, value: "1490"}
	return table
}

func call() weirtest.Turn { return weirtest.Calls("look", map[string]any{}) }

// settingProbes returns the probes of all types, by type and setting.
func settingProbes() map[string]map[string]probe {
	return map[string]map[string]probe{
		"llmRequest": llmRequestProbes(), "agent": agentProbes(), "categorizer": categorizerProbes(),
		"extract": extractProbes(), "summarize": summarizeProbes(), "action": codeProbes("value"), "decision": decisionProbes(),
		"newContext": newContextProbes(), "httpRequest": httpRequestProbes(), "userInput": userInputProbes(),
		"waitEvent": waitEventProbes(), "wait": waitProbes(), "loop": loopProbes(), "forEach": forEachProbes(), "race": raceProbes(), "flow": flowProbes(),
		"cache": cacheProbes(), "fail": failProbes(), "injectMessages": injectProbes(),
		"manualInput": manualInputProbes(), "merge": mergeProbes(), "output": outputProbes(), "portalIn": portalInProbes(),
		"portalOut": portalOutProbes(), "switch": switchProbes(), "template": templateProbes(), "tools": toolsProbes(),
		"transform": transformProbes(), "tool": toolProbes(), "say": sayProbes(),
		"remember": rememberProbes(), "recall": recallProbes(), "forget": forgetProbes(), "identifyUser": nil,
		"readFile": readFileProbes(), "approvalGate": approvalGateProbes(), "semanticTools": semanticToolsProbes(),
		"budgetGuard": budgetGuardProbes(), "errorDetection": errorDetectionProbes(), "redactor": redactorProbes(), "extractMemories": extractMemoriesProbes(),
	}
}

func llmRequestProbes() map[string]probe {
	s := probeFlow{in: map[string]string{"message": "hello"}}
	tools := probeFlow{in: map[string]string{"message": "hello", "tools": "[look]"}, script: []weirtest.Turn{call(), call()}}
	table := viewProbes(modelProbes(s), s)
	shaped := s.setting("schema", "{type: object}")
	shaped.script = weirtest.Says("no", "no", "{}")
	fallbackProbes(table, shaped)
	table["skipHistory"] = probe{stage: s, value: "true"}
	table["schema"] = probe{stage: s, value: "{type: string}"}
	table["maxSteps"] = probe{stage: tools, value: "1"}
	table["atMax"] = probe{stage: tools.setting("maxSteps", "1"), value: "stop"}
	table["approve"] = probe{stage: tools, value: "{look: always}"}
	return table
}

func agentProbes() map[string]probe {
	table := llmRequestProbes()
	delete(table, "skipHistory")
	s := probeFlow{in: map[string]string{"message": "hello"}, files: map[string]string{"child.yaml": childFlow}}
	tools := probeFlow{in: map[string]string{"message": "hello", "tools": "[look]"}, script: []weirtest.Turn{call(), call()}}
	plan := s.setting("mode", "plan")
	plan.script = weirtest.Says(`{"steps": [{"say": "one"}, {"say": "two"}]}`)
	table["maxTokens"] = probe{stage: tools, value: "60"}
	table["maxTime"] = probe{stage: tools, value: "0.000001"}
	table["mode"] = probe{stage: s, value: "plan"}
	table["flows"] = probe{stage: s, value: "[child.yaml]"}
	table["queue.capacity"] = probe{stage: plan, value: "1"}
	table["queue.tools"] = probe{stage: plan, value: "false"}
	for name, p := range modelProbes(plan) {
		if name == "thinkingBudget" { // which the planner does not have
			continue
		}
		table["planner."+name] = probe{stage: plan, value: p.value}
	}
	for _, name := range []string{"pre", "todo", "post"} {
		for entry, value := range map[string]string{
			"say": "{say: first}", "tool": "{tool: look}", "arguments": "{tool: look, arguments: {a: 1}}",
			"flow": "{flow: child.yaml}", "in": "{flow: child.yaml, in: {word: hi}}",
		} {
			base := s
			switch entry {
			case "arguments":
				base = s.setting(name, "[{tool: look}]")
			case "in":
				base = s.setting(name, "[{flow: child.yaml}]")
			}
			table[name+"."+entry] = probe{stage: base, value: "[" + value + "]"}
		}
	}
	return table
}

const childFlow = "weir: 1\nname: child\ninputs: {word: {type: text}, other: {type: text}}\nstate: {k: {initial: 1}}\nnodes:\n" +
	"  t: {type: template, with: {text: 'word {{ run.inputs }} {{ has(state.given) ? \"given\" : \"\" }}'}}\noutputs: {summary: '{{ t.text }}'}\n"

func sayProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"text": "hi"}}
	return map[string]probe{"text": {stage: s, value: "bye"}, "history": {stage: s, value: "true"}}
}

// remembering returns a stage before whose node two items are remembered.
func remembering() probeFlow {
	s := probeFlow{in: map[string]string{"one": `"{{ k1.id }}"`, "two": `"{{ k2.id }}"`}}
	s.more = "  k1: {type: remember, with: {text: the first}}\n  k2: {type: remember, after: k1, with: {text: the second}}\n"
	return s
}

func rememberProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"text": "hi"}}
	episode := s.setting("kind", "episode")
	return map[string]probe{
		"text": {stage: s, value: "bye"}, "kind": {stage: s, value: "procedure"}, "key": {stage: s, value: "greeting"},
		"tags": {stage: s, value: "[word]"}, "when": {stage: episode, value: `"2026-01-01"`},
	}
}

func recallProbes() map[string]probe {
	s := remembering()
	s.in = nil
	s = s.key("after", "k2")
	return map[string]probe{
		"query": {stage: s, value: "second"}, "kind": {stage: s, value: "episode"}, "since": {stage: s, value: `"2099-01-01"`}, "limit": {stage: s, value: "1"},
	}
}

func forgetProbes() map[string]probe {
	s := remembering().setting("id", `"{{ inputs.one }}{{ false ? inputs.two : '' }}"`)
	return map[string]probe{"id": {stage: s, value: `"{{ inputs.two }}{{ false ? inputs.one : '' }}"`}}
}

func readFileProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"path": "say.go"}}
	return map[string]probe{
		"path": {stage: s, value: "tool.go"}, "maxBytes": {stage: s, value: "10"},
		"allowOutside": {stage: s.setting("path", `"{{ 'say.go' }}"`), value: "true", refused: flow.CodeInvalidSetting},
	}
}

func approvalGateProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"prompt": "Go?"}, answers: map[string]any{"n:approve#1": "approve"}}
	timed := probeFlow{timed: true, with: map[string]string{"prompt": "Go?", "timeout": "24h"}}
	return map[string]probe{"prompt": {stage: s, value: "Stop?"}, "timeout": {stage: timed, value: "48h"}}
}

func toolProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"tool": "look"}, in: map[string]string{"a": "1"}}
	lost := s
	lost.fault = tool.ErrOutcomeUnknown
	return map[string]probe{
		"tool": {stage: s, value: "seek", refused: flow.CodeUnknownTool}, "approve": {stage: s, value: "always"},
		"arguments": {stage: s, value: `{b: "{{ inputs.a }}"}`}, "onUnknown": {stage: lost, value: "ask"},
	}
}

func categorizerProbes() map[string]probe {
	s := probeFlow{in: map[string]string{"message": "hello"}, with: map[string]string{"categories": "[{name: one}, {name: two}]"}, script: weirtest.Says("one")}
	none := s
	none.script = weirtest.Says("none of these")
	table := singleCallProbes(modelProbes(s), s)
	unread := s.setting("categories", "[{name: one}, {name: two}]")
	unread.script = weirtest.Says("none of these", "nor these", "two")
	fallbackProbes(table, unread)
	table["categories"] = probe{stage: s, value: "[{name: three}, {name: two}]"}
	table["default"] = probe{stage: none, value: "two"}
	return table
}

func extractProbes() map[string]probe {
	s := probeFlow{in: map[string]string{"message": "hello"}, with: map[string]string{"schema": "{type: object}"}, script: weirtest.Says("{}")}
	table := singleCallProbes(modelProbes(s), s)
	unread := s
	unread.script = weirtest.Says("no", "no", "{}")
	fallbackProbes(table, unread)
	table["schema"] = probe{stage: s, value: "{type: object, required: [a]}"}
	return table
}

func summarizeProbes() map[string]probe {
	s := probeFlow{in: map[string]string{"text": "hello"}}
	table := singleCallProbes(modelProbes(s), s)
	unread := s
	unread.script = weirtest.Says("", "", "short")
	fallbackProbes(table, unread)
	table["maxTokens"] = probe{stage: s, value: "33"}
	return table
}

// codeProbes returns those of types that run code, of which the output is watched.
func codeProbes(_ string) map[string]probe {
	s := probeFlow{with: map[string]string{"code": `"context['a'] = 1"`}}
	written := probeFlow{with: map[string]string{"prompt": "Set amount."}, script: weirtest.Says(
		`{"needs_analysis": true, "complexity": "low", "reason": "r"}`, "print(1)", "context['amount'] = 1",
		`{"valid": true, "task_completed": true, "changes_made": true, "reason": "r"}`,
	)}
	raises := written
	raises.script = weirtest.Says(`{"needs_analysis": false, "complexity": "low", "reason": "r"}`, "raise 1", "raise 2", "raise 3", "raise 4")
	tools := written.setting("tools", "[look]")
	tools.script = append(weirtest.Says(`{"needs_analysis": false, "complexity": "low", "reason": "r"}`), call(), call())
	table := singleCallProbes(modelProbes(written), written)
	table["code"] = probe{stage: s, value: `"context['b'] = 2"`}
	table["language"] = probe{stage: s, value: "starlark"}
	table["executor"] = probe{stage: s, value: "e2b"}
	table["timeout"] = probe{stage: s, value: "7"}
	table["files"] = probe{stage: s, value: "{data.csv: every_setting_test.go}"}
	table["prompt"] = probe{stage: written, value: "Set another amount."}
	table["attempts"] = probe{stage: raises, value: "1"}
	table["tools"] = probe{stage: written, value: "[look]"}
	table["maxSteps"] = probe{stage: tools, value: "1"}
	table["atMax"] = probe{stage: tools.setting("maxSteps", "1"), value: "stop"}
	table["approve"] = probe{stage: tools, value: "{look: always}"}
	table["learn"] = probe{stage: written, value: "false"}
	for _, agent := range []string{"input_analysis", "data_analysis", "code_generation", "output_validation"} {
		table["models."+agent] = probe{stage: written, value: "script/two"}
	}
	return table
}

func decisionProbes() map[string]probe {
	table := codeProbes("result")
	table["expr"] = probe{stage: probeFlow{with: map[string]string{"expr": "1 < 2"}}, value: "1 > 2"}
	table["branches"] = probe{stage: probeFlow{with: map[string]string{"expr": `"'b'"`, "branches": "[a, b]"}}, value: "[c, d]"}
	return table
}

// withFollowingRequest returns the stage with a request after the node, in the context that it gives.
func (s probeFlow) withFollowingRequest() probeFlow {
	s.more += "  next: {type: llmRequest, context: n, in: {message: hello}}\n"
	return s
}

func newContextProbes() map[string]probe {
	s := probeFlow{compare: "model"}.withFollowingRequest()
	table := viewProbes(modelProbes(s), s)
	table["history"] = probe{stage: s, value: "server"}
	fallbackProbes(table, s)
	on := table["on"]
	on.stage.compare = "" // the setting is that of the context, which events have
	table["on"] = on
	for name, p := range table {
		if strings.HasPrefix(name, "budget.") || strings.HasPrefix(name, "view.") {
			p.stage = p.stage.setting("base", "fork")
			table[name] = p
		}
	}
	table["base"] = probe{stage: s.withLongConversation(), value: "fork"}
	table["label"] = probe{stage: probeFlow{}, value: "room"}
	maps.Copy(table, messagesProbes(s))
	return table
}

func messagesProbes(s probeFlow) map[string]probe {
	table := map[string]probe{}
	for name, value := range map[string]string{
		"text": "{role: user, text: bye}", "role": "{role: assistant, text: hi}", "id": "{role: user, text: hi, id: x1}",
		"pinned": "{role: user, text: hi, pinned: true}", "priority": "{role: user, text: hi, priority: 5}",
	} {
		p := probe{stage: s.setting("messages", "[{role: user, text: hi}]"), value: "[" + value + "]"}
		if name == "pinned" || name == "priority" {
			p.stage.compare = ""
		}
		table["messages."+name] = p
	}
	return table
}

func httpRequestProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"url": "http://example.com/a"}}
	post, broken, slow, missing := s.setting("method", "POST"), s.setting("method", "POST"), s, s
	broken.fault, slow.slow, missing.status = errors.New("connection reset"), true, 404
	return map[string]probe{
		"url": {stage: s, value: "http://example.com/b"}, "method": {stage: s, value: "DELETE"}, "query": {stage: s, value: "{q: x}"},
		"headers": {stage: s, value: "{accept: text/plain}"}, "body": {stage: post, value: "{a: 1}"},
		"timeout": {stage: slow.setting("timeout", "0.02"), value: "0.03"}, "maxBytes": {stage: s, value: "10"},
		"expect": {stage: missing, value: "[404]"}, "onUnknown": {stage: broken.key("retry", "{attempts: 2}"), value: "retry"},
	}
}

func userInputProbes() map[string]probe {
	s, timed := probeFlow{answers: map[string]any{"n:ask#1": "yes"}}, probeFlow{timed: true}.setting("timeout", "24h")
	return map[string]probe{
		"prompt": {stage: s, value: "Really?"}, "schema": {stage: s, value: "{type: string, enum: [\"no\"]}"},
		"history": {stage: s, value: "true"}, "timeout": {stage: timed, value: "48h"},
	}
}

func waitEventProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"name": "paid"}, answers: map[string]any{"n:event#1": "yes"}}
	timed := probeFlow{timed: true, with: map[string]string{"name": "paid", "timeout": "24h"}}
	return map[string]probe{
		"name": {stage: s, value: "sent"}, "schema": {stage: s, value: "{type: integer}"}, "timeout": {stage: timed, value: "48h"},
	}
}

func waitProbes() map[string]probe {
	return map[string]probe{
		"for":   {stage: probeFlow{timed: true, with: map[string]string{"for": "1h"}}, value: "2h"},
		"until": {stage: probeFlow{timed: true, with: map[string]string{"until": `"2126-01-01T00:00:00Z"`}}, value: `"2127-01-01T00:00:00Z"`},
	}
}

const bodyOf = `{nodes: {t: {type: template, in: {i: "{{ inputs.index }}"}, with: {text: "TEXT {{ inputs.i }}"}}}, outputs: {out: "{{ t.text }}"}}`

func loopProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"body": bodyOf, "max": "3"}}
	return map[string]probe{
		"body": {stage: s, value: strings.Replace(bodyOf, "TEXT", "other", 1)}, "max": {stage: s, value: "2"},
		"until": {stage: s, value: `"true"`}, "atMax": {stage: s.setting("until", `"false"`), value: "stop"},
	}
}

func forEachProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"body": bodyOf}, in: map[string]string{"items": "[1, 2]"}}
	return map[string]probe{
		"body": {stage: s, value: strings.Replace(bodyOf, "TEXT", "other", 1)}, "concurrency": {stage: s, value: "2"},
		"onItemError": {stage: s.setting("body", `{nodes: {d: {type: transform, in: {n: "{{ inputs.item }}"}, with: {expr: 1 / (inputs.n - 1)}}}, outputs: {out: "{{ d.value }}"}}`), value: "drop"},
	}
}

// branchesOf are two branches of which the first always wins.
const branchesOf = `{a: {nodes: {t: {type: template, with: {text: TEXT}}}, outputs: {out: "{{ t.text }}"}}, b: {nodes: {w: {type: wait, with: {for: 1h}}}}}`

func raceProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"branches": branchesOf}}
	request := `{nodes: {u: {type: httpRequest, with: {method: POST, url: "http://example.com/a"}}}}`
	acts := s.setting("branches", strings.Replace(branchesOf, "{nodes: {w: {type: wait, with: {for: 1h}}}}", request, 1)).setting("allowEffects", "true")
	return map[string]probe{
		"branches":     {stage: s, value: strings.Replace(branchesOf, "TEXT", "other", 1)},
		"allowEffects": {stage: acts, value: "false", refused: flow.CodeRaceEffect},
	}
}

func flowProbes() map[string]probe {
	s := probeFlow{
		with: map[string]string{"flow": "child.yaml"}, top: "state: {given: {initial: 5}}\n",
		files: map[string]string{"child.yaml": childFlow, "second.yaml": strings.Replace(childFlow, "word {{", "second {{", 1)},
	}
	choice := s.setting("flow", "{from: [child.yaml, second.yaml], name: \"{{ run.id == '' ? 'second.yaml' : 'child.yaml' }}\"}")
	return map[string]probe{
		"flow.from":   {stage: s, whole: "{from: [second.yaml], name: \"{{ 'second.yaml' }}\"}"},
		"flow.name":   {stage: choice, whole: "{from: [child.yaml, second.yaml], name: \"{{ 'second.yaml' }}\"}"},
		"lastMessage": {stage: s.withMessage(), value: "other"},
		"state":       {stage: s, value: "[given]"}, "reply": {stage: s, value: "true"},
	}
}

// withMessage returns the stage with something said before the node.
func (s probeFlow) withMessage() probeFlow {
	s.more += "  before: {type: llmRequest, in: {message: before}}\n"
	return s.key("after", "before")
}

func cacheProbes() map[string]probe {
	s := probeFlow{
		with: map[string]string{"key": "k"}, in: map[string]string{"value": `"{{ run.inputs.v }}"`}, top: "inputs: {v: {type: any}}\n",
		inputs: map[string]any{"v": 1}, twice: map[string]any{"v": 2},
	}
	users := s
	users.secondUser = "ben"
	return map[string]probe{"key": {stage: s, value: `"{{ run.inputs.v }}"`}, "ttl": {stage: s, value: "5h"}, "shared": {stage: users, value: "true"}}
}

func failProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"message": "no"}}
	return map[string]probe{"code": {stage: s, value: "mine"}, "message": {stage: s, value: "other"}, "hint": {stage: s, value: "try"}}
}

func manualInputProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"text": "hi"}}
	return map[string]probe{"text": {stage: s, value: "other"}, "history": {stage: s, value: "true"}}
}

func mergeProbes() map[string]probe {
	return map[string]probe{"mode": {stage: probeFlow{in: map[string]string{"value": `"{{ a.text }}"`}, more: "  a: {type: template, with: {text: x}}\n"}, value: "list"}}
}

func outputProbes() map[string]probe {
	return map[string]probe{"schema": {stage: probeFlow{in: map[string]string{"value": "x"}}, value: "{type: integer}"}}
}

func portalInProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"name": "p"}, more: "  a: {type: portalOut, in: {value: 1}, with: {name: p}}\n  b: {type: portalOut, in: {value: 2}, with: {name: q}}\n"}
	return map[string]probe{"name": {stage: s, value: "q"}}
}

func portalOutProbes() map[string]probe {
	s := probeFlow{
		with: map[string]string{"name": "p"}, in: map[string]string{"value": "1"}, outputs: `{v: "{{ a.value }}"}`,
		more: "  a: {type: portalIn, with: {name: p}}\n",
	}
	return map[string]probe{"name": {stage: s, value: "q", refused: flow.CodeUnknownPortal}}
}

func switchProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"cases": `[{when: "1 > 2", to: a}]`, "default": "b"}}
	return map[string]probe{
		"cases.when": {stage: s, value: `[{when: "1 < 2", to: a}]`}, "cases.to": {stage: s.setting("cases", `[{when: "1 < 2", to: a}]`), value: `[{when: "1 < 2", to: c}]`},
		"default": {stage: s, value: "c"},
	}
}

func templateProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"text": "'[1, 2]'"}}
	return map[string]probe{"text": {stage: s, value: "'[1, 3]'"}, "format": {stage: s, value: "json"}}
}

func toolsProbes() map[string]probe {
	return map[string]probe{"tools": {stage: probeFlow{with: map[string]string{"tools": "[look]"}}, value: "[]"}}
}

func transformProbes() map[string]probe {
	s := probeFlow{with: map[string]string{"expr": "1"}}
	return map[string]probe{
		"expr": {stage: s, value: "2"}, "state": {stage: s, value: "{k: '1'}"},
		"fields": {stage: probeFlow{with: map[string]string{"fields": "{a: '1'}"}}, value: "{a: '2'}"},
	}
}

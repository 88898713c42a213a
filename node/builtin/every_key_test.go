package builtin_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/weirtest"
)

// minimalFlows returns one valid node of each type.
func minimalFlows() map[string]probeFlow {
	hello := map[string]string{"message": "hello"}
	return map[string]probeFlow{
		"llmRequest": {in: hello}, "agent": {in: hello}, "summarize": {in: map[string]string{"text": "hello"}},
		"categorizer": {in: hello, with: map[string]string{"categories": "[{name: one}]"}, script: weirtest.Says("one", "one")},
		"extract":     {in: hello, with: map[string]string{"schema": "{type: object}"}, script: weirtest.Says("{}", "{}")},
		"action":      {with: map[string]string{"code": `"context['a'] = 1"`}}, "decision": {with: map[string]string{"expr": "1 < 2"}},
		"newContext": {}, "httpRequest": {with: map[string]string{"url": "http://example.com/a"}}, "userInput": {answers: map[string]any{"n:ask#1": "yes"}},
		"waitEvent": {with: map[string]string{"name": "paid"}, answers: map[string]any{"n:event#1": "yes"}}, "wait": {with: map[string]string{"for": "0.001"}},
		"loop": {with: map[string]string{"body": bodyOf, "max": "2"}}, "forEach": {with: map[string]string{"body": bodyOf}, in: map[string]string{"items": "[1, 2]"}},
		"race":  {with: map[string]string{"branches": branchesOf}},
		"flow":  {with: map[string]string{"flow": "child.yaml"}, files: map[string]string{"child.yaml": childFlow}},
		"cache": {with: map[string]string{"key": "k"}, in: map[string]string{"value": "1"}}, "fail": {with: map[string]string{"message": "no"}},
		"injectMessages": {with: map[string]string{"messages": "[{role: user, text: hi}]"}}, "manualInput": {with: map[string]string{"text": "hi"}},
		"merge": {in: map[string]string{"value": `"{{ a.text }}"`}, more: "  a: {type: template, with: {text: x}}\n"}, "output": {in: map[string]string{"value": "x"}},
		"portalIn":  {with: map[string]string{"name": "p"}, more: "  a: {type: portalOut, in: {value: 1}, with: {name: p}}\n"},
		"portalOut": {with: map[string]string{"name": "p"}, in: map[string]string{"value": "1"}}, "start": {},
		"switch":   {with: map[string]string{"cases": `[{when: "1 > 2", to: a}]`, "default": "b"}},
		"remember": {with: map[string]string{"text": "hi"}}, "recall": {}, "identifyUser": {},
		"forget": remembering().setting("id", `"{{ inputs.one }}{{ false ? inputs.two : '' }}"`), "readFile": {with: map[string]string{"path": "say.go"}},
		"approvalGate": {with: map[string]string{"prompt": "Go?"}, answers: map[string]any{"n:approve#1": "approve"}},
		"say":          {with: map[string]string{"text": "hi"}}, "semanticTools": {with: map[string]string{"query": "look"}},
		"budgetGuard": {with: map[string]string{"maxCalls": "1"}}, "errorDetection": {in: map[string]string{"value": "hi"}}, "redactor": {in: map[string]string{"value": "hi"}},
		"extractMemories": {in: map[string]string{"text": "hi"}, script: weirtest.Says(`{"items": []}`, `{"items": []}`)},
		"tool":            {with: map[string]string{"tool": "look", "arguments": "{a: 1}"}},
		"template":        {with: map[string]string{"text": "hi"}}, "tools": {with: map[string]string{"tools": "[look]"}}, "transform": {with: map[string]string{"expr": "1"}},
	}
}

// withFailingNode returns the stage with a node that fails the first times.
func (s probeFlow) withFailingNode(times int) probeFlow {
	s.body = func(n node.Node, ctx *node.Ctx) error {
		if ctx.Info().Attempt <= times {
			return &engine.Error{Code: "flaky", Message: "the test says so"}
		}
		return n.Run(ctx)
	}
	return s
}

// withHangingNode returns the stage with a node that ends with its time only.
func (s probeFlow) withHangingNode() probeFlow {
	s.body = func(_ node.Node, ctx *node.Ctx) error {
		<-ctx.Done()
		return ctx.Err()
	}
	return s
}

// behindDecision returns the stage behind a decision.
func (s probeFlow) behindDecision() probeFlow {
	s.more += "  gate: {type: decision, with: {expr: 1 < 2}}\n"
	return s
}

// keyProbe is what shows what a node key does, for the types that take it; elsewhere
// it is refused with a code.
type keyProbe struct {
	value string
	on    func(s probeFlow, typ string) probeFlow
	// valueOf gives the value for a type, where that differs.
	valueOf func(typ string) string
	refused map[string][]string // types by code
	// ownBase: the stage with the value is compared with the stage under this key's value.
	base string
}

func same(s probeFlow, _ string) probeFlow { return s }

func allTypes() []string {
	var names []string
	for _, s := range builtin.Catalogue().Specs() {
		names = append(names, s.Name)
	}
	return names
}

// except returns all types but those.
func except(names ...string) []string {
	return slices.DeleteFunc(allTypes(), func(n string) bool { return slices.Contains(names, n) })
}

func composites() []string { return []string{"loop", "forEach", "race"} }

// withIsolation gives composites the lane that some keys need.
func withIsolation(s probeFlow, typ string) probeFlow {
	if slices.Contains(composites(), typ) {
		return s.key("isolation", "fork")
	}
	return s
}

// keyProbes has the cells of each key: NAME, or NAME.MEMBER.
func keyProbes() map[string]keyProbe {
	return map[string]keyProbe{
		"type": {value: "nope", on: same, refused: map[string][]string{flow.CodeUnknownType: allTypes()}},
		"in": {value: "{zzz: 1}", on: same, refused: map[string][]string{
			flow.CodeUnreadInput: except(closedIn()...), flow.CodeUnknownPort: closedIn(),
		}},
		"with":  {value: "{zzz: 1}", on: same, refused: map[string][]string{flow.CodeUnknownSetting: allTypes()}},
		"after": {value: "gate.false", on: func(s probeFlow, _ string) probeFlow { return s.behindDecision() }},
		"join": {value: "all", on: func(s probeFlow, _ string) probeFlow {
			s.more += "  other: {type: decision, with: {expr: 1 > 2}}\n"
			return s.behindDecision().key("after", "[gate.true, other.true]")
		}},
		"description":     {value: "for people", on: same},
		"interruptBefore": {value: "true", on: same},
		"interruptAfter":  {value: "true", on: same, refused: map[string][]string{flow.CodeNeverCompletes: {"fail"}}},
		"artifacts":       {value: "[{type: Knowledge, name: fact, description: about}]", on: same, refused: map[string][]string{flow.CodeNeverCompletes: {"fail"}}},
		"retry.attempts":  {value: "{attempts: 2}", on: func(s probeFlow, typ string) probeFlow { return withIsolation(s.withFailingNode(1), typ) }},
		"retry.backoff": {value: "{attempts: 2, backoff: 4m}", base: "{attempts: 2, backoff: 2m}", on: func(s probeFlow, typ string) probeFlow {
			s.timed = true
			return withIsolation(s.withFailingNode(1), typ)
		}},
		"retry.on":      {value: "{attempts: 2, on: node_timeout}", base: "{attempts: 2}", on: func(s probeFlow, typ string) probeFlow { return withIsolation(s.withFailingNode(1), typ) }},
		"timeout.total": {value: "{total: 20ms}", base: "{total: 30ms}", on: func(s probeFlow, _ string) probeFlow { return s.withHangingNode() }},
		"timeout.idle": {
			value: "{idle: 20ms}", base: "{total: 30ms}", on: func(s probeFlow, _ string) probeFlow { return s.withHangingNode() },
			refused: map[string][]string{flow.CodeBadValue: {"loop", "forEach", "race", "flow", "wait", "waitEvent", "userInput", "approvalGate"}},
		},
		"onError": {
			on: func(s probeFlow, _ string) probeFlow { return s.withFailingNode(5) }, valueOf: func(typ string) string { return "{value: " + literalsByPortType()[firstOut(typ)] + "}" },
			refused: map[string][]string{flow.CodeTypeMismatch: {"newContext", "tools", "semanticTools", "injectMessages", "fail", "start"}},
		},
		"cache": {
			value: "true", on: func(s probeFlow, typ string) probeFlow { s.twice = map[string]any{}; return withIsolation(s, typ) }, refused: uncached(),
		},
		"cache.key": {
			value: "{key: 'k{{ run.id }}'}", base: "{key: k}", on: func(s probeFlow, typ string) probeFlow { s.twice = map[string]any{}; return withIsolation(s, typ) }, refused: uncached(),
		},
		"cache.shared": {
			value: "{shared: true}", base: "true", refused: uncached(), on: func(s probeFlow, typ string) probeFlow {
				s.twice, s.secondUser = map[string]any{}, "ben"
				return withIsolation(s, typ)
			},
		},
		"cache.ttl": {
			value: "{ttl: 5h}", base: "true", on: withIsolation, refused: uncached(),
		},
		"isolation": {valueOf: func(typ string) string {
			if typ == "race" { // fork is its default
				return "fresh"
			}
			return "fork"
		}, on: func(s probeFlow, typ string) probeFlow {
			if typ == "flow" {
				return s.withMessage()
			}
			return s
		}, refused: map[string][]string{flow.CodeNotComposite: except("loop", "forEach", "race", "flow")}},
		"budget.maxTokens": {value: "{maxTokens: 1}", on: spending, refused: unasked()},
		"budget.maxCalls":  {value: "{maxCalls: 1}", base: "{maxCalls: 2}", on: spending, refused: unasked()},
		"budget.maxCost":   {value: "{maxCost: 0.0001}", on: spending, refused: unasked()},
		"budget.onLimit":   {value: "{maxTokens: 1, onLimit: pause}", base: "{maxTokens: 1}", on: spending, refused: unasked()},
		"context": {value: "side", on: func(s probeFlow, _ string) probeFlow {
			s.more += "  side: {type: newContext, with: {system: Beside.}}\n"
			return s
		}, refused: map[string][]string{flow.CodeUnknownPort: {
			"action", "decision", "httpRequest", "waitEvent", "wait", "cache", "fail", "merge", "output", "portalIn", "portalOut", "switch", "template", "tool", "tools", "transform",
			"remember", "recall", "forget", "identifyUser", "readFile", "approvalGate", "semanticTools", "budgetGuard", "errorDetection", "redactor",
		}}},
	}
}

// closedIn returns the types that take no input ports but their own.
func closedIn() []string {
	return []string{"tools", "start", "portalIn", "portalOut", "output", "merge", "flow", "identifyUser"}
}

// uncached returns the types that cannot be cached.
func uncached() map[string][]string {
	pure := []string{"decision", "fail", "merge", "output", "portalIn", "portalOut", "switch", "template", "transform", "categorizer", "extract", "summarize", "errorDetection", "loop", "forEach", "race"}
	return map[string][]string{flow.CodeNeverCompletes: {"fail"}, flow.CodeNotPure: except(pure...)}
}

// unasked returns the types that call no model, under the settings of plainStages.
func unasked() map[string][]string {
	return map[string][]string{flow.CodeNoModel: except("llmRequest", "agent", "categorizer", "extract", "summarize", "extractMemories", "loop", "forEach", "race", "flow")}
}

// spending returns a stage whose node asks a model, and more than once.
func spending(s probeFlow, typ string) probeFlow {
	s.top = "context: {model: openai/gpt-5-mini}\n"
	const two = "{type: llmRequest, in: {message: hello}}"
	switch typ {
	case "loop", "forEach":
		return s.setting("body", "{nodes: {t: "+two+"}}")
	case "race":
		return s.setting("branches", "{a: {nodes: {t: "+two+", u: {type: llmRequest, after: t, in: {message: hello}}}}, b: {nodes: {w: {type: fail, with: {message: no}}}}}")
	case "flow":
		s.files = map[string]string{"child.yaml": "weir: 1\nname: child\ncontext: {model: openai/gpt-5-mini}\nnodes:\n  a: " + two + "\n  b: {type: llmRequest, after: a, in: {message: hello}}\n"}
	case "llmRequest", "agent":
		s = probeFlow{typ: typ, top: s.top, in: map[string]string{"message": "hello", "tools": "[look]"}, script: []weirtest.Turn{call(), call()}}
	case "categorizer", "extract": // an answer that is not taken is asked for again
		s.script = weirtest.Says("", "")
	case "extractMemories":
		s.script = weirtest.Says("", "")
	case "summarize":
		s.script = weirtest.Says("", "")
	}
	return s
}

// firstOut returns the type of the first output port of a type.
func firstOut(typ string) flow.PortType {
	spec := builtin.Catalogue().Lookup(typ)
	out := spec.Ports.Out
	if spec.PortsFor != nil {
		out = spec.PortsFor(map[string]any{"branches": []any{"a"}}).Out
	}
	if len(out) == 0 {
		return flow.TypeAny
	}
	return out[0].Type
}

// literalsByPortType has a literal of each port type, or of another where it has none.
func literalsByPortType() map[flow.PortType]string {
	return map[flow.PortType]string{
		flow.TypeText: "late", flow.TypeNumber: "7", flow.TypeBool: "true", flow.TypeObject: "{a: 1}", flow.TypeList: "[1]", flow.TypeMessage: "hi",
		flow.TypeMessages: "[]", flow.TypeAny: "late", flow.TypeContext: "main", flow.TypeTools: "[look]", flow.TypeFile: "{a: 1}",
	}
}

// TestEveryNodeKeyOfEveryTypeHasAnEffectOrIsRejected enumerates the keys from the
// one table of node keys, and the types from the catalogue.
func TestEveryNodeKeyOfEveryTypeHasAnEffectOrIsRejected(t *testing.T) {
	t.Parallel()
	probes, cells, stages := keyProbes(), 0, minimalFlows()
	for _, key := range flow.NodeKeys() {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(probes)), func(p string) bool { return strings.Split(p, ".")[0] == key }) {
			t.Errorf("no probe shows what the node key %s does", key)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(probes)) {
		for _, typ := range allTypes() {
			cells++
			s, ok := stages[typ]
			if !ok {
				t.Fatalf("there is no stage for %s", typ)
			}
			s.typ = typ
			t.Run(name+"/"+typ, func(t *testing.T) {
				t.Parallel()
				probes[name].check(t, s, name, typ)
			})
		}
	}
	t.Logf("%d members of %d node keys, %d node types: %d cells", len(probes), len(flow.NodeKeys()), len(stages), cells)
}

func (k keyProbe) check(t *testing.T, s probeFlow, name, typ string) {
	t.Helper()
	p := probe{stage: k.on(s, typ)}
	key, value := strings.Split(name, ".")[0], k.value
	if k.valueOf != nil {
		value = k.valueOf(typ)
	}
	if k.base != "" {
		p.stage = p.stage.key(key, k.base)
	}
	for code, types := range k.refused {
		if slices.Contains(types, typ) {
			p.refused = code
		}
	}
	other := p.stage
	switch key {
	case "type":
		other.typ = value
	case "in":
		other.in = other.set(other.in, "zzz", "1")
	case "with":
		other.with = other.set(other.with, "zzz", "1")
	case "description": // it is for people, who find it in the flow
		describes(t, other.key(key, value))
		return
	default:
		other = other.key(key, value)
	}
	p.check(t, other)
}

// describes checks that the description of a node is kept with the flow.
func describes(t *testing.T, s probeFlow) {
	t.Helper()
	f, err := flow.Source{Files: flow.MemFiles(s.files)}.Parse("flow.yaml", []byte(s.text()), builtin.Catalogue())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := f.Normal(); err != nil || !strings.Contains(string(text), "for people") {
		t.Errorf("the normal form lacks it: %v", err)
	}
}

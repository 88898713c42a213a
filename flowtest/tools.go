package flowtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/tool"
)

// toolMock is a tool with the results of a test.
type toolMock struct {
	spec    tool.Tool
	pos     flow.Pos
	results []toolResult // in the order of the calls; the last one repeats
	file    string       // of the flow that is called instead; "" is none
}

// toolResult is the result of one call.
type toolResult struct {
	when *flow.FileValue // the required arguments; nil matches any
	text string
	fail bool
	asks []tool.Question // that a person answers before the result
}

// toolMocks reads `tools`.
func (r *fileReader) toolMocks(l testKeys) []*toolMock {
	var out []*toolMock
	for _, e := range l.entries(&r.reader, "tools", "what tools return, by name") {
		m := &toolMock{pos: e.Pos, spec: tool.Tool{Name: e.Key, ReadOnly: true}}
		if !tool.ValidName(e.Key) {
			// Flows call tools of servers mcp:server/tool; models see another name.
			m.spec.Alias = e.Key
			m.spec.Name = strings.Map(func(c rune) rune {
				if tool.ValidName(string(c)) {
					return c
				}
				return '_'
			}, e.Key)
		}
		r.toolMock(m, e.Value)
		if _, err := tool.NewSet(m.tool(nil)); err != nil {
			r.report(e.Pos, flow.CodeBadValue, err.Error(), "")
			continue
		}
		out = append(out, m)
	}
	return out
}

// toolMock reads a result, a list of results, or an object with more keys.
func (r *fileReader) toolMock(m *toolMock, d *flow.FileValue) {
	if d.IsObject() && d.Get("flow") != nil {
		r.toolFlow(m, d)
		return
	}
	described := d.IsObject() && (d.Get("results") != nil || d.Get("description") != nil || d.Get("parameters") != nil ||
		d.Get("approve") != nil || d.Get("ends") != nil || d.Get("readOnly") != nil)
	if described {
		r.object(d, "a tool", "description", "parameters", "approve", "ends", "readOnly", "result", "error", "asks", "results")
		m.spec.Description = r.text(d.Get("description"), "description")
		m.spec.EndsTurn = r.flag(d.Get("ends"), "ends")
		m.spec.Approve = tool.Approval(r.text(d.Get("approve"), "approve"))
		if ro := d.Get("readOnly"); ro != nil {
			m.spec.ReadOnly = r.flag(ro, "readOnly")
		}
		if p := d.Get("parameters"); p != nil {
			m.spec.Parameters, _ = p.Value().(map[string]any)
			if m.spec.Parameters == nil {
				r.reportAt(p, "parameters must be a JSON Schema, an object; got %s", show(p))
			}
		}
		if d.Get("results") == nil {
			m.results = append(m.results, r.toolResult(d, true))
			return
		}
		d = d.Get("results")
	}
	if !d.IsList() {
		m.results = append(m.results, r.toolResult(d, false))
		return
	}
	for _, e := range d.Items() {
		m.results = append(m.results, r.toolResult(e, false))
	}
}

// toolFlow reads a flow that is offered as a tool, with its path relative to the test file.
func (r *fileReader) toolFlow(m *toolMock, d *flow.FileValue) {
	r.object(d, "a flow as a tool", "flow", "description", "approve")
	m.spec.Description = r.text(d.Get("description"), "description")
	m.spec.Approve = tool.Approval(r.text(d.Get("approve"), "approve"))
	m.file = r.relativePath(d.Get("flow"), "flow")
	f, err := flow.Load(m.file, r.cat)
	if err != nil {
		r.flowInvalid(d, m.file, err)
		return
	}
	r.toolFlows = append(r.toolFlows, f)
}

// toolResult reads {result: ...}, {error: ...}, with `when`, or a text.
func (r *fileReader) toolResult(d *flow.FileValue, checked bool) toolResult {
	if !d.IsObject() {
		return toolResult{text: textOf(d.Value())}
	}
	if !checked {
		r.object(d, "the result of a tool", "result", "error", "when", "asks")
	}
	out := toolResult{when: d.Get("when"), asks: r.toolQuestions(d.Get("asks"))}
	if out.when != nil {
		r.checkExpected(out.when)
	}
	switch {
	case d.Get("error") != nil:
		out.text, out.fail = r.text(d.Get("error"), "error"), true
	case d.Get("result") != nil:
		out.text = textOf(d.Get("result").Value())
	default:
		r.reportAt(d, "the result of a tool has result or error")
	}
	return out
}

// toolQuestions reads the questions of a tool to a person: {NAME: {prompt, schema}}, or {NAME: PROMPT}.
func (r *fileReader) toolQuestions(d *flow.FileValue) []tool.Question {
	if d == nil {
		return nil
	}
	var out []tool.Question
	for _, e := range d.Entries() {
		q := tool.Question{Name: e.Key}
		if e.Value.IsObject() {
			r.object(e.Value, "a question of a tool", "prompt", "schema")
			q.Prompt = r.text(e.Value.Get("prompt"), "prompt")
			if form := e.Value.Get("schema"); form != nil {
				if q.Schema, _ = form.Value().(map[string]any); q.Schema == nil {
					r.reportAt(form, "schema must be a JSON Schema, an object; got %s", show(form))
				}
			}
		} else {
			q.Prompt = r.text(e.Value, e.Key)
		}
		out = append(out, q)
	}
	if err := (&tool.InputRequired{Questions: out}).Check(); err != nil {
		r.reportAt(d, "asks: %v", err)
	}
	return out
}

// textOf returns a result as it is sent to the model: text unchanged, other values as JSON.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := engine.AppendValue(nil, v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// toolRecorder offers the tools of a test and records their calls.
type toolRecorder struct {
	places *runPaths
	mu     sync.Mutex
	calls  []toolCall
}

type toolCall struct {
	key       string // RUN/PATH/tool#N
	name      string
	arguments any
}

func (b *toolRecorder) tools(mocks []*toolMock) []*weir.Tool {
	var out []*weir.Tool
	for _, m := range mocks {
		if m.file == "" {
			out = append(out, m.tool(b))
		}
	}
	return out
}

// flowTools returns the flows of a test that are offered as tools.
func flowTools(mocks []*toolMock) []weir.FlowTool {
	var out []weir.FlowTool
	for _, m := range mocks {
		if m.file != "" {
			out = append(out, weir.FlowTool{Name: m.spec.Name, Description: m.spec.Description, File: m.file, Approve: m.spec.Approve})
		}
	}
	return out
}

// tool creates the tool; b records its calls.
func (m *toolMock) tool(b *toolRecorder) *weir.Tool {
	t := m.spec
	var mu sync.Mutex
	used := make([]bool, len(m.results))
	t.Call = func(_ context.Context, c tool.Call) (string, error) {
		if c.Input != nil { // the call that asked was recorded
			return m.resultAfter(c.Input)
		}
		var arguments any = c.Arguments
		if v, err := engine.ParseValue([]byte(c.Arguments)); err == nil {
			arguments = v
		}
		b.record(toolCall{b.places.effectKey(c.Key), t.Name, arguments})
		mu.Lock()
		defer mu.Unlock()
		i, err := m.pick(used, arguments)
		if err != nil {
			return "", err
		}
		used[i] = true
		if asks := m.results[i].asks; asks != nil {
			return "", &tool.InputRequired{State: strconv.Itoa(i), Questions: asks}
		}
		return m.results[i].outcome()
	}
	return &t
}

// resultAfter returns the result of a call that a person has given its input for.
func (m *toolMock) resultAfter(in *tool.Input) (string, error) {
	i, err := strconv.Atoi(in.State)
	if err != nil || i < 0 || i >= len(m.results) {
		return "", fmt.Errorf("the test has no result for tool %s after the answers", m.spec.Name)
	}
	return m.results[i].outcome()
}

func (t *toolResult) outcome() (string, error) {
	if t.fail {
		return "", errors.New(t.text)
	}
	return t.text, nil
}

// pick returns the result of a call: the first unused one that matches the arguments, otherwise the last one that
// matches.
func (m *toolMock) pick(used []bool, arguments any) (int, error) {
	last := -1
	for i, res := range m.results {
		if res.when != nil && len(compare("", res.when, actual{arguments, true})) > 0 {
			continue
		}
		if !used[i] {
			return i, nil
		}
		last = i
	}
	if last < 0 {
		b, _ := json.Marshal(arguments)
		return 0, fmt.Errorf("the test has no result for tool %s with the arguments %s", m.spec.Name, b)
	}
	return last, nil
}

func (b *toolRecorder) record(c toolCall) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, c)
}

// called returns the calls as {node, tool, arguments}: nodes in order of their first call, the calls of each in the
// order of the model's answer.
func (b *toolRecorder) called() []any {
	b.mu.Lock()
	defer b.mu.Unlock()
	rank := make(map[string]int)
	for _, c := range b.calls {
		if node := recorded.NodeOf(c.key); rank[node] == 0 {
			rank[node] = len(rank) + 1
		}
	}
	list := slices.Clone(b.calls)
	slices.SortStableFunc(list, func(x, y toolCall) int {
		return cmp.Or(cmp.Compare(rank[recorded.NodeOf(x.key)], rank[recorded.NodeOf(y.key)]), cmp.Compare(ordinal(x.key), ordinal(y.key)))
	})
	out := make([]any, len(list))
	for i, c := range list {
		out[i] = map[string]any{"node": recorded.NodeOf(c.key), "tool": c.name, "arguments": c.arguments}
	}
	return out
}

// ordinal returns the number at the end of an effect key.
func ordinal(key string) int {
	n, _ := strconv.Atoi(key[strings.LastIndexByte(key, '#')+1:])
	return n
}

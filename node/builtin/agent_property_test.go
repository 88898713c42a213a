package builtin_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// queueCase is the task of an agent, and what its model adds at which of its turns.
// Entries are names: those with a C are tool calls, which a person has to allow, and
// those with an F flows.
type queueCase struct {
	capacity        int
	pre, todo, post []string
	plan            []string // nil for none
	adds            map[string][]string
}

const lastTurn = "That was the last step. Now give the final answer to what was asked at first."

func drawQueueCase(t *rapid.T) queueCase {
	n := 0
	names := func(label string, most int) []string {
		out := []string{}
		for range rapid.IntRange(0, most).Draw(t, label) {
			n++
			kind := rapid.SampledFrom([]string{"S", "S", "C", "F"}).Draw(t, "kind")
			out = append(out, fmt.Sprintf("%s%d", kind, n))
		}
		return out
	}
	p := queueCase{capacity: rapid.IntRange(1, 4).Draw(t, "capacity"), adds: map[string][]string{}}
	p.pre, p.todo, p.post = names("pre", min(2, p.capacity)), names("todo", min(3, p.capacity)), names("post", min(2, p.capacity))
	if rapid.Bool().Draw(t, "plans") {
		p.plan = names("plan", p.capacity-len(p.todo))
	}
	turns := append([]string{"Go.", lastTurn}, p.pre...)
	turns = append(append(append(turns, p.todo...), p.plan...), p.post...)
	for i := 0; i < len(turns) && n < 20; i++ {
		if kindOf(turns[i]) != "say" || p.plan != nil && turns[i] == "Go." {
			continue
		}
		if more := names("adds", 2); len(more) > 0 {
			p.adds[turns[i]] = more
			turns = append(turns, more...)
		}
	}
	return p
}

// kindOf returns what an entry of that name is.
func kindOf(name string) string {
	switch name[0] {
	case 'C':
		return "tool"
	case 'F':
		return "flow"
	}
	return "say"
}

const echoFlow = `
weir: 1
name: echo
inputs: {at: {type: text, required: true}}
nodes: {n: {type: template, with: {text: "{{ run.inputs.at }}"}}}
outputs: {text: "{{ n.text }}"}
`

// expectedOrder returns what is done, in order, and how much is refused: the queues as a list and
// a loop.
func (p queueCase) expectedOrder() (done []string, refused int) {
	waiting := append([]string{}, p.todo...)
	adds := maps.Clone(p.adds)
	closed := false
	do := func(name string) {
		done = append(done, name)
		for _, more := range adds[name] {
			switch {
			case closed:
			case len(waiting) == p.capacity:
				refused++
			default:
				waiting = append(waiting, more)
			}
		}
		delete(adds, name)
	}
	for _, name := range p.pre {
		do(name)
	}
	// What was added before may leave the plan no room: it is then refused as a whole.
	if p.plan != nil {
		waiting = append(waiting, p.plan...)
	}
	do("Go.")
	for again := p.plan != nil || len(waiting) > 0; again; again = len(waiting) > 0 {
		for len(waiting) > 0 {
			name := waiting[0]
			waiting = waiting[1:]
			do(name)
		}
		do(lastTurn)
	}
	closed = true
	for _, name := range p.post {
		do(name)
	}
	return done, refused
}

// settings returns the plot as the agent's.
func (p queueCase) settings() string {
	list := func(names []string) string {
		var out []string
		for _, name := range names {
			out = append(out, map[string]string{
				"say": name, "tool": `{tool: asks, arguments: {at: ` + name + `}}`, "flow": `{flow: echo.yaml, in: {at: ` + name + `}}`,
			}[kindOf(name)])
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	s := fmt.Sprintf("pre: %s\ntodo: %s\npost: %s\nflows: [echo.yaml]\nqueue: {capacity: %d}\nmaxSteps: 1000", list(p.pre), list(p.todo), list(p.post), p.capacity)
	if p.plan != nil {
		s += "\nmode: plan"
	}
	return s
}

// Generate gives what the plot says that the model does at this turn: it follows from
// the request alone.
func (p queueCase) Generate(_ context.Context, req *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	m := convo.Message{Role: convo.Assistant, Text: "so"}
	last := req.Messages[len(req.Messages)-1]
	name := nameOf(last.Text)
	if req.Schema != nil && len(req.Tools) == 0 {
		var steps []string
		for _, s := range p.plan {
			steps = append(steps, stepJSON(s))
		}
		m.Text = `{"steps": [` + strings.Join(steps, ", ") + `]}`
		return &llm.Response{Message: m}, nil
	}
	times := 0
	for _, before := range req.Messages {
		if before.Role == convo.User && nameOf(before.Text) == name {
			times++
		}
	}
	if last.Role == convo.User && times == 1 {
		for i, more := range p.adds[name] {
			m.Calls = append(m.Calls, convo.Call{ID: fmt.Sprint(name, i), Name: "addTodo", Arguments: stepJSON(more)})
		}
	}
	return &llm.Response{Message: m}, nil
}

func stepJSON(name string) string {
	at := fmt.Sprintf(`{\"at\": \"%s\"}`, name)
	return map[string]string{
		"say": `{"say": "` + name + `"}`, "tool": `{"tool": "asks", "arguments": "` + at + `"}`, "flow": `{"flow": "echo", "in": "` + at + `"}`,
	}[kindOf(name)]
}

var entryName = regexp.MustCompile(`^The (?:tool asks was called|flow echo.yaml was run) with {"at":"([CF]\d+)"}`)

// nameOf returns the name of the entry that a message is of.
func nameOf(text string) string {
	if m := entryName.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	if i := strings.Index(text, ": "); i > 0 && strings.HasPrefix(text, "Step ") {
		return text[i+2:]
	}
	return text
}

// drawQueueCaseWithRoom returns a plot whose plan finds room in the queue.
func drawQueueCaseWithRoom(t *rapid.T) queueCase {
	p := drawQueueCase(t)
	room := p.capacity - len(p.todo)
	for _, name := range p.pre {
		room -= len(p.adds[name])
	}
	if p.plan != nil && len(p.plan) > room {
		p.plan = p.plan[:max(room, 0)]
	}
	return p
}

// doneOf returns what a trace says was done, in order.
func doneOf(trace []any) []string {
	var got []string
	for _, m := range trace {
		if o := m.(map[string]any); o["role"] == "user" {
			got = append(got, nameOf(o["text"].(string)))
		}
	}
	return got
}

// recordingCase is a plot whose model's calls are entered in a ledger.
type recordingCase struct {
	queueCase
	l *effectLog
}

// Generate enters the call.
func (p recordingCase) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	p.l.add(req.Key)
	return p.queueCase.Generate(ctx, req, emit)
}

func TestRandomQueuesSurviveACrashAtAnyCommit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p, l := drawQueueCaseWithRoom(rt), new(effectLog)
		s := &crashCase{
			text: queues(p.settings()), files: flow.MemFiles{"echo.yaml": echoFlow}, model: recordingCase{p, l}, l: l,
			tools: []*tool.Tool{recordingTool(l, "asks", tool.ApproveAlways)},
		}
		r, _, _ := s.runWithCrash(rt, rapid.IntRange(1, 40).Draw(rt, "commits"))
		want, _ := p.expectedOrder()
		trace, err := weir.Output[[]any](r, "trace")
		if got := doneOf(trace); err != nil || r.Status != engine.Completed || !reflect.DeepEqual(got, want) {
			rt.Fatalf("%+v: the run %s: %v; done was\n%q, expected\n%q", p, r.Status, r.Error, got, want)
		}
	})
}

// Every call of a tool waits for a person, so that the agent is entered again and
// again, and has to take the same way every time.
func TestQueuesRunInTheOrderOfANaiveModel(t *testing.T) {
	t.Parallel()
	asked := &tool.Tool{Name: "asks", Approve: tool.ApproveAlways, Call: func(context.Context, tool.Call) (string, error) { return "done", nil }}
	rapid.Check(t, func(rt *rapid.T) {
		p := drawQueueCaseWithRoom(rt)
		r := weirtest.Flow(t, queues(p.settings()), weirtest.Case{Model: p, Tools: []*tool.Tool{asked}, Files: map[string]string{"echo.yaml": echoFlow}, Answers: map[string]any{"work": "approve"}})
		if r.Status != engine.Completed {
			rt.Fatalf("%+v: the run %s: %v", p, r.Status, r.Error)
		}
		want, refused := p.expectedOrder()
		if got := doneOf(weirtest.Output[[]any](t, r, "trace")); !reflect.DeepEqual(got, want) {
			rt.Fatalf("%+v: done was\n%q, expected\n%q", p, got, want)
		}
		todo, _ := queuesOf(t, r).(map[string]any)["todo"].(map[string]any)
		if n, _ := todo["refused"].(int64); int(n) != refused {
			rt.Fatalf("%+v: %d were refused, expected %d", p, n, refused)
		}
	})
}

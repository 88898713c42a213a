package flowtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// outcome is the result of a run, as plain values.
type outcome struct {
	status    string
	err       *engine.Error
	outputs   map[string]any
	state     map[string]any
	usage     engine.Usage
	path      []nodeOutcome
	messages  map[string]any // lists by context
	labels    map[string]string
	questions []any
	toolCalls []any
	requests  []any
	open      []engine.Interrupt // the open interrupts
}

// nodeOutcome is the result of one node.
type nodeOutcome struct {
	path   string
	status engine.Status
	ran    bool
}

// readOutcome reads the result of a run from its journal.
func readOutcome(ctx context.Context, w *weir.Weir, r weir.Result) (*outcome, error) {
	o := &outcome{
		status: r.Status.String(), err: r.Error, outputs: plainMap(r.Outputs.Map()), usage: r.Usage,
		messages: make(map[string]any), labels: make(map[string]string), open: r.Interrupts,
	}
	b := &journalReader{out: o, index: make(map[string]int), readRuns: make(map[string]bool), inspect: func(run string) (*runner.RunView, error) { return w.Inspect(ctx, run, 0) }}
	v, err := b.read(r.Run, "")
	if err != nil {
		return nil, err
	}
	o.state = make(map[string]any)
	state := v.Run.State()
	for _, k := range state.Keys() {
		o.state[k], _ = state.Get(k)
	}
	o.state = plainMap(o.state)
	o.path, o.questions = b.steps, b.questions
	return o, nil
}

// journalReader reads the nodes from the journals of a run and its child runs, in the order of their starts.
type journalReader struct {
	out       *outcome
	inspect   func(run string) (*runner.RunView, error)
	prefix    string // prefix of the paths of the current run
	idPrefix  string // prefix of the ids of its questions
	steps     []nodeOutcome
	index     map[string]int
	readRuns  map[string]bool // runs
	questions []any
}

// read reads the journal of a run, and the messages of its contexts.
func (b *journalReader) read(run, prefix string) (*runner.RunView, error) {
	v, err := b.inspect(run)
	if err != nil {
		return nil, fmt.Errorf("read run %s: %w", run, err)
	}
	for id, c := range v.Contexts {
		list, err := c.Messages()
		if err != nil {
			return nil, fmt.Errorf("read context %s of run %s: %w", id, run, err)
		}
		b.out.messages[prefix+id] = plainMessages(list)
		if c.Label != "" {
			b.out.labels[prefix+c.Label] = prefix + id
		}
	}
	around := b.prefix
	b.prefix = prefix
	for _, c := range v.Commits {
		for _, e := range c.Events {
			if err := b.applyEvent(e); err != nil {
				return nil, err
			}
		}
	}
	b.prefix = around
	return v, nil
}

func (b *journalReader) step(path string) *nodeOutcome {
	path = b.prefix + path
	i, ok := b.index[path]
	if !ok {
		i = len(b.steps)
		b.index[path] = i
		b.steps = append(b.steps, nodeOutcome{path: path})
	}
	return &b.steps[i]
}

func (b *journalReader) applyEvent(e engine.Event) error {
	switch e := e.(type) {
	case *engine.NodeStarted:
		s := b.step(e.Path)
		s.ran, s.status = true, engine.Running
	case *engine.NodeCompleted:
		s := b.step(e.Path)
		s.ran, s.status = true, engine.Completed
	case *engine.NodeFailed:
		s := b.step(e.Path)
		s.ran, s.status = true, engine.Failed
	case *engine.NodeErrored:
		b.step(e.Path).status = engine.Failed
	case *engine.NodeSkipped:
		b.step(e.Path).status = engine.Skipped
	case *engine.NodeNotNeeded:
		b.step(e.Path).status = engine.NotNeeded
	case *engine.NodeCancelled:
		b.step(e.Path).status = engine.Cancelled
	case *engine.NodeWaiting:
		return b.applyWaiting(e)
	case *engine.InterruptAnswered:
		for _, q := range b.questions {
			if m := q.(map[string]any); m["id"] == b.idPrefix+e.ID {
				m["answer"] = plainValue(e.Value)
			}
		}
	}
	return nil
}

// applyWaiting reads what a node waits for. The journal of a child run is read at this place.
func (b *journalReader) applyWaiting(e *engine.NodeWaiting) error {
	b.step(e.Path).status = engine.Waiting
	for _, i := range e.Interrupts {
		switch i.Kind {
		case engine.AwaitTimer:
		case engine.AwaitChild:
			if i.Child == nil || b.readRuns[i.Child.Run] {
				continue
			}
			b.readRuns[i.Child.Run] = true
			around := b.idPrefix
			b.idPrefix += engine.BelowChild(i.ID, "")
			_, err := b.read(i.Child.Run, b.prefix+e.Path+">")
			b.idPrefix = around
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		default:
			b.addQuestion(i)
		}
	}
	return nil
}

// addQuestion adds a question once: a node that waits for several asks the others again when one is answered.
func (b *journalReader) addQuestion(i engine.Interrupt) {
	if slices.ContainsFunc(b.questions, func(q any) bool { return q.(map[string]any)["id"] == b.idPrefix+i.ID }) {
		return
	}
	q := map[string]any{"id": b.idPrefix + i.ID, "node": b.prefix + nodeOfInterrupt(i.ID), "kind": string(i.Kind), "prompt": i.Prompt}
	if i.Event != "" {
		q["event"] = i.Event
	}
	b.questions = append(b.questions, q)
}

// plainMessages converts messages to plain values without internal fields.
func plainMessages(list []convo.Message) []any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = plainMessage(&list[i])
	}
	return out
}

func plainMessage(m *convo.Message) map[string]any {
	o := map[string]any{"role": string(m.Role), "text": m.Text}
	if m.Reasoning != "" {
		o["reasoning"] = m.Reasoning
	}
	if m.Role == convo.Tool {
		o["name"], o["failed"] = m.Name, m.Failed
	} else if m.Name != "" {
		o["name"] = m.Name
	}
	var calls []any
	for _, c := range m.Calls {
		var arguments any = c.Arguments
		if v, err := engine.ParseValue([]byte(c.Arguments)); err == nil {
			arguments = v
		}
		calls = append(calls, map[string]any{"tool": c.Name, "arguments": arguments})
	}
	if calls != nil {
		o["calls"] = calls
	}
	return o
}

// plainRequests converts the requests of a model.
func plainRequests(list []*llm.Request) []any {
	out := make([]any, len(list))
	for i, r := range list {
		o := map[string]any{
			"node": recorded.NodeOf(r.Key), "model": r.Model, "system": r.System, "messages": plainMessages(r.Messages),
		}
		if r.Provider != "" {
			o["model"] = r.Provider + "/" + r.Model
		}
		var tools []any
		for _, t := range r.Tools {
			tools = append(tools, t.Name)
		}
		if tools != nil {
			o["tools"] = tools
		}
		if n := len(r.Messages); n > 0 {
			o["last"] = r.Messages[n-1].Text
		}
		out[i] = o
	}
	return out
}

// plainMap and plainValue convert values to those that a test file can contain: a handle becomes an object with the
// key $context, as in JSON.
func plainMap(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = plainValue(v)
	}
	return out
}

func plainValue(v any) any {
	switch t := v.(type) {
	case map[string]any:
		return plainMap(t)
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = plainValue(e)
		}
		return out
	case engine.Handle:
		return map[string]any{"context": t.ID}
	}
	return v
}

// covers reports whether a path in a test matches a node: with its iteration numbers, or without any.
func covers(test, path string) bool {
	return test == path || !strings.Contains(test, "#") && test == recorded.PathWithoutIterations(path)
}

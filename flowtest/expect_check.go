package flowtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// check lists the differences of the run from the expectations.
func (e *expectation) check(o *outcome) []Failure {
	if out := e.checkStatus(o); out != nil {
		return append(out, e.path.check(o)...)
	}
	var out []Failure
	if e.outputs != nil {
		out = append(out, compare("outputs", e.outputs, actual{o.outputs, true})...)
	}
	out = append(out, e.path.check(o)...)
	if e.messages != nil {
		out = append(out, checkMessages(e.messages, o)...)
	}
	if e.state != nil {
		out = append(out, compare("state", e.state, actual{o.state, true})...)
	}
	out = append(out, e.checkSpending(o)...)
	out = append(out, checkList("questions", e.questions, o.questions, "prompt")...)
	out = append(out, checkList("toolCalls", e.toolCalls, o.toolCalls, "tool")...)
	return append(out, checkList("requests", e.requests, o.requests, "last")...)
}

// checkStatus checks the status of the run; nil if it is as expected.
func (e *expectation) checkStatus(o *outcome) []Failure {
	if o.status != e.status {
		return []Failure{e.statusFailure(o)}
	}
	if e.errors == nil || o.err == nil {
		return nil
	}
	if !e.errors.IsObject() || isMatcher(e.errors) {
		return compare("error", e.errors, actual{o.err.Code, true})
	}
	return compareKeys("error", e.errors, map[string]any{
		"code": o.err.Code, "message": o.err.Message, "node": o.err.Node, "hint": o.err.Hint,
	})
}

// statusFailure returns the failure for another status, with its reason.
func (e *expectation) statusFailure(o *outcome) Failure {
	f := Failure{Pos: e.statusPos, Where: "status", Message: fmt.Sprintf("expected %s, got %s", e.status, o.status)}
	switch {
	case o.err != nil:
		f.Message += ": " + o.err.Error()
		if o.err.Hint != "" {
			f.Diff = append(f.Diff, Line{' ', "hint: " + o.err.Hint})
		}
	case o.status == paused, o.status == running:
		f.Message = "the question has no answer, and the test expects the run to be " + e.status
		for _, i := range o.open {
			f.Diff = append(f.Diff, Line{'+', interruptText(i)})
		}
		f.Diff = append(f.Diff, Line{' ', "add the answer under answers:, by the path of the node or this id, or expect status: " + o.status})
	case e.status == failed && len(o.outputs) > 0:
		f.Diff = append(f.Diff, Line{'+', "outputs: " + line(o.outputs)})
	}
	return f
}

// interruptText describes an interrupt on one line.
func interruptText(i engine.Interrupt) string {
	s := i.ID + " asks"
	if i.Kind == engine.AwaitEvent {
		s = i.ID + " waits for the event " + i.Event
	}
	if i.Prompt != "" {
		s += ": " + i.Prompt
	}
	if choices, ok := i.Schema["enum"].([]any); ok {
		s += " " + line(choices)
	}
	return s
}

// checkList compares a list of objects; a text in place of an object is the value of the given key.
func checkList(where string, want *flow.FileValue, got []any, key string) []Failure {
	if want == nil {
		return nil
	}
	element := func(at string, w *flow.FileValue, g actual) []Failure {
		o, ok := g.v.(map[string]any)
		switch {
		case !ok || isMatcher(w) && w.Get("$subset") != nil:
			return compare(at, w, g)
		case w.IsObject() && !isMatcher(w):
			return compareKeys(at, w, o)
		}
		v, there := o[key]
		return compare(at, w, actual{v, there})
	}
	return compareElements(where, want, got, element)
}

// compareElements compares a list with a given comparison of elements: completely, or with $subset a subsequence.
func compareElements(where string, want *flow.FileValue, got []any, element comparer) []Failure {
	if got == nil {
		got = []any{}
	}
	switch {
	case want.IsList():
		return compareList(where, want.Items(), want, got, element)
	case len(want.Entries()) == 1 && want.Get("$subset") != nil && want.Get("$subset").IsList():
		return subsequence(where, want.Get("$subset"), got, element)
	}
	return compare(where, want, actual{got, true})
}

// checkMessages compares the messages of each context.
func checkMessages(want *flow.FileValue, o *outcome) []Failure {
	if want.IsList() || isMatcher(want) {
		return checkContext(engine.MainContext, want, o)
	}
	var out []Failure
	for _, e := range want.Entries() {
		out = append(out, checkContext(e.Key, e.Value, o)...)
	}
	return out
}

func checkContext(name string, want *flow.FileValue, o *outcome) []Failure {
	id := name
	if _, there := o.messages[id]; !there {
		id = o.labels[name]
	}
	list, there := o.messages[id].([]any)
	if !there {
		return fail(want, "messages."+name, "there is no context %q; there are %s", name, strings.Join(sortedKeys(o.messages), ", "))
	}
	return compareElements("messages."+name, want, list, compareMessage)
}

// compareMessage compares the expected keys of a message: {role, text}, {user: text} for short, or a text.
func compareMessage(where string, want *flow.FileValue, got actual) []Failure {
	m, ok := got.v.(map[string]any)
	switch {
	case !ok:
		return compare(where, want, got)
	case isMatcher(want), !want.IsObject():
		return compare(where, want, actual{m["text"], true})
	}
	var out []Failure
	for _, e := range want.Entries() {
		switch e.Key {
		case "system", "user", "assistant", "tool":
			if m["role"] != e.Key {
				out = append(out, Failure{Pos: e.Pos, Where: where, Message: fmt.Sprintf("expected a message of the %s, got %s", e.Key, brief(m))})
				continue
			}
			out = append(out, compare(join(where, "text"), e.Value, actual{m["text"], true})...)
		case "calls":
			calls, _ := m["calls"].([]any)
			out = append(out, checkList(join(where, "calls"), e.Value, calls, "tool")...)
		default:
			v, there := m[e.Key]
			out = append(out, compare(join(where, e.Key), e.Value, actual{v, there})...)
		}
	}
	return out
}

// checkSpending compares usage and cost, in US dollars.
func (e *expectation) checkSpending(o *outcome) []Failure {
	dollars := float64(o.usage.CostMicros) / 1e6
	var out []Failure
	if e.usage != nil {
		out = append(out, compareKeys("usage", e.usage, map[string]any{
			"calls": int64(o.usage.Calls), "input": int64(o.usage.Input), "cached": int64(o.usage.Cached),
			"output": int64(o.usage.Output), "reasoning": int64(o.usage.Reasoning),
			"tokens": int64(o.usage.Input + o.usage.Output), "cost": dollars,
		})...)
	}
	if e.cost != nil {
		out = append(out, compare("cost", e.cost, actual{dollars, true})...)
	}
	return out
}

// check compares the nodes that ran.
func (p *pathExpectation) check(o *outcome) []Failure {
	if p == nil {
		return nil
	}
	var out []Failure
	if p.exact {
		out = append(out, p.checkExactly(o)...)
	}
	out = append(out, checkOrder(p.order, o)...)
	have := func(want []nodeRef, what string, is func(nodeOutcome) bool) {
		for _, w := range want {
			if f := checkNode(w, o, what, is); f != nil {
				out = append(out, *f)
			}
		}
	}
	have(p.ran, "to run", func(s nodeOutcome) bool { return s.ran })
	have(p.skipped, "to be skipped", func(s nodeOutcome) bool { return s.status == engine.Skipped })
	have(p.failed, "to fail", func(s nodeOutcome) bool { return s.status == engine.Failed })
	for _, w := range p.notRun {
		if i := slices.IndexFunc(o.path, func(s nodeOutcome) bool { return covers(w.path, s.path) && s.ran }); i >= 0 {
			out = append(out, Failure{Pos: w.pos, Where: "path.notRun", Message: fmt.Sprintf("expected %s not to run, and it %s", w.path, outcomeText(o.path[i]))})
		}
	}
	return out
}

// checkNode requires a node with the expected outcome; for a node in a body, in one iteration.
func checkNode(w nodeRef, o *outcome, what string, is func(nodeOutcome) bool) *Failure {
	last := -1
	for i, s := range o.path {
		if covers(w.path, s.path) {
			if is(s) {
				return nil
			}
			last = i
		}
	}
	got := "nothing happened to it"
	if last >= 0 {
		got = "it " + outcomeText(o.path[last])
	}
	return &Failure{Pos: w.pos, Where: "path", Message: fmt.Sprintf("expected %s %s, and %s", w.path, what, got), Diff: pathLines(o)}
}

// outcomeText describes a node's outcome.
func outcomeText(s nodeOutcome) string {
	switch s.status {
	case engine.Completed:
		return "completed"
	case engine.Failed:
		return "failed"
	case engine.Skipped:
		return "was skipped"
	case engine.Cancelled:
		return "was cancelled"
	case engine.NotNeeded:
		return "was not needed"
	case engine.Waiting:
		return "waits"
	case engine.Pending, engine.Running, engine.Paused:
	}
	return "is " + s.status.String()
}

// pathLines lists the nodes that ran.
func pathLines(o *outcome) []Line {
	var ran []string
	for _, s := range o.path {
		if s.ran {
			ran = append(ran, s.path)
		}
	}
	if ran == nil {
		ran = []string{"no node"}
	}
	return []Line{{' ', "ran: " + strings.Join(ran, ", ")}}
}

// checkExactly compares all nodes that ran, in the order of their starts. Nodes in bodies and child flows are
// included only if the test names one.
func (p *pathExpectation) checkExactly(o *outcome) []Failure {
	inner := slices.ContainsFunc(p.exactly, func(w nodeRef) bool { return strings.ContainsAny(w.path, "/>") })
	var got []string
	for _, s := range o.path {
		if s.ran && (inner || !strings.ContainsAny(s.path, "/>")) {
			got = append(got, s.path)
		}
	}
	same := len(got) == len(p.exactly)
	var diff []Line
	align(len(p.exactly), len(got), func(i, j int) bool { return covers(p.exactly[i].path, got[j]) }, func(mark byte, i, j int) {
		if mark == '-' {
			same = false
			diff = append(diff, Line{mark, p.exactly[i].path})
			return
		}
		same = same && mark == ' '
		diff = append(diff, Line{mark, got[j]})
	})
	if same {
		return nil
	}
	return []Failure{{Pos: p.pos, Where: "path", Message: "other nodes ran, or in another order", Diff: diff}}
}

// checkOrder requires that nodes started in an order, with any nodes between.
func checkOrder(want []nodeRef, o *outcome) []Failure {
	at := 0
	for i, w := range want {
		for at < len(o.path) && (!o.path[at].ran || !covers(w.path, o.path[at].path)) {
			at++
		}
		if at == len(o.path) {
			msg := fmt.Sprintf("%s did not run", w.path)
			if i > 0 && slices.ContainsFunc(o.path, func(s nodeOutcome) bool { return s.ran && covers(w.path, s.path) }) {
				msg = fmt.Sprintf("%s did not run after %s", w.path, want[i-1].path)
			}
			return []Failure{{Pos: w.pos, Where: "path.order", Message: msg, Diff: pathLines(o)}}
		}
		at++
	}
	return nil
}

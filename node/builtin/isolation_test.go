package builtin_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/weirtest"
)

// messageLines lists messages as "role: text".
func messageLines(ms []convo.Message) []string {
	out := make([]string, len(ms))
	for i, m := range ms {
		out[i] = string(m.Role) + ": " + m.Text
	}
	return out
}

// sentMessages lists what each model call was sent, system instructions left out.
func sentMessages(r weirtest.Result) [][]string {
	var out [][]string
	for _, q := range r.Requests {
		out = append(out, slices.DeleteFunc(messageLines(q.Messages), func(s string) bool { return strings.HasPrefix(s, "system:") }))
	}
	return out
}

const lanesFlow = `
weir: 1
name: lanes
context: {model: script/demo, system: Be brief.}
state: {n: {reducer: sum, initial: 0}}
nodes:
  before: {type: llmRequest, in: {message: "first"}}
  COMPOSITE
  after: {type: llmRequest, after: each, in: {message: "last"}}
outputs: {each: "{{ each.RESULT }}", last: "{{ after.text }}"}
`

func lanes(composite, result string) string {
	return strings.NewReplacer("COMPOSITE", composite, "RESULT", result).Replace(lanesFlow)
}

const forEachIn = `each:
    type: forEach
    after: before
    isolation: %s
    in: {items: [a, b]}
    with:
      body:
        nodes:
          say: {type: llmRequest, in: {message: "{{ inputs.item }}"}}
          keep: {type: transform, after: say, with: {expr: "1", state: {n: "1"}}}
        outputs: {result: "{{ say.text }}"}`

const loopIn = `each:
    type: loop
    after: before
    isolation: %s
    with:
      max: 2
      body:
        nodes:
          say: {type: llmRequest, in: {message: "{{ inputs.index == 0 ? 'a' : 'b' }}"}}
          keep: {type: transform, after: say, with: {expr: "1", state: {n: "1"}}}
        outputs: {said: "{{ say.text }}"}`

func TestIsolationOfLanes(t *testing.T) {
	before := []string{"user: first", "assistant: 1"}
	turns := func(more ...string) []string { return append(slices.Clone(before), more...) }
	for _, c := range []struct {
		name, composite, result string
		sees                    [][]string // of the two calls in the lanes
		after                   []string   // what the call behind the composite sees
		state                   int64
	}{
		{
			"fresh for each", fmt.Sprintf(forEachIn, "fresh"), "results",
			[][]string{{"user: a"}, {"user: b"}},
			turns("user: last"), 0,
		},
		{
			"fork for each", fmt.Sprintf(forEachIn, "fork"), "results",
			[][]string{turns("user: a"), turns("user: b")},
			turns("user: a", "assistant: 2", "user: b", "assistant: 3", "user: last"), 2,
		},
		{
			"share for each", fmt.Sprintf(forEachIn, "share"), "results",
			[][]string{turns("user: a"), turns("user: a", "assistant: 2", "user: b")},
			turns("user: a", "assistant: 2", "user: b", "assistant: 3", "user: last"), 2,
		},
		{
			"fresh loop", fmt.Sprintf(loopIn, "fresh"), "said",
			[][]string{{"user: a"}, {"user: a", "assistant: 2", "user: b"}},
			turns("user: last"), 0,
		},
		{
			"fork loop", fmt.Sprintf(loopIn, "fork"), "said",
			[][]string{turns("user: a"), turns("user: a", "assistant: 2", "user: b")},
			turns("user: a", "assistant: 2", "user: b", "assistant: 3", "user: last"), 2,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := weirtest.Flow(t, lanes(c.composite, c.result), weirtest.Case{Script: weirtest.Says("1", "2", "3", "4")})
			if r.Status != engine.Completed {
				t.Fatalf("the run %s: %v", r.Status, r.Error)
			}
			got := sentMessages(r)
			if !reflect.DeepEqual(got[1:3], c.sees) {
				t.Errorf("the lanes saw\n%q\nexpected\n%q", got[1:3], c.sees)
			}
			if !reflect.DeepEqual(got[3], c.after) {
				t.Errorf("behind them\n%q\nwas seen, expected\n%q", got[3], c.after)
			}
			if r.State["n"] != c.state {
				t.Errorf("the state is %v, expected %d", r.State["n"], c.state)
			}
			for _, q := range r.Requests {
				if q.System != "Be brief." {
					t.Errorf("a call's instructions are %q", q.System)
				}
			}
		})
	}
}

func TestNestedFreshLanesStartEmpty(t *testing.T) {
	r := weirtest.Flow(t, `
weir: 1
name: nested
context: {model: script/demo}
nodes:
  before: {type: llmRequest, in: {message: "first"}}
  outer:
    type: forEach
    after: before
    isolation: fork
    in: {items: [x]}
    with:
      body:
        nodes:
          deep: {type: llmRequest, in: {message: "outer"}}
          inner:
            type: forEach
            after: deep
            isolation: fresh
            in: {items: [y]}
            with:
              body:
                nodes: {say: {type: llmRequest, in: {message: "inner"}}}
                outputs: {result: "{{ say.text }}"}
        outputs: {result: "{{ inner.results }}"}
`, weirtest.Case{Script: weirtest.Says("1", "2", "3")})
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	if got := sentMessages(r)[2]; !reflect.DeepEqual(got, []string{"user: inner"}) {
		t.Errorf("the inner lane saw %q", got)
	}
	if want := []string{"user: first", "assistant: 1", "user: outer", "assistant: 2"}; !reflect.DeepEqual(messageLines(r.Messages), want) {
		t.Errorf("main has %q, expected %q", messageLines(r.Messages), want)
	}
}

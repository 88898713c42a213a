package builtin_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/weirtest"
)

// sameNames is a flow with node ids that the flows it uses have too. CHILD runs
// one of them, or nothing.
const sameNames = `
weir: 1
name: NAME
context: {model: script/demo}
inputs:
  depth: {type: number, default: 0}
nodes:
  note: {type: manualInput, with: {text: "note NAME {{ run.inputs.depth }}", history: true}}
  say: {type: llmRequest, after: note, in: {message: "say NAME {{ run.inputs.depth }}"}}
  CHILD
  last: {type: llmRequest, after: AFTER, in: {message: "last NAME {{ run.inputs.depth }}"}}
outputs: {said: "{{ last.text }}"}
`

func sameNamesFlow(name, child string) string {
	after := "say"
	if child != "" {
		child, after = "child: {after: say, "+child+"}", "child"
	}
	return strings.NewReplacer("NAME", name, "CHILD", child, "AFTER", after).Replace(sameNames)
}

// transcript returns what each of the requests holds, without what the model said.
func transcript(r weirtest.Result) [][]string {
	var out [][]string
	for _, q := range r.Requests {
		var ms []string
		for _, m := range q.Messages {
			if m.Role == convo.User {
				ms = append(ms, m.Text)
			}
		}
		out = append(out, ms)
	}
	return out
}

// uniqueIDs fails where two positions of a context have one id.
func uniqueIDs(t *testing.T, r weirtest.Result) {
	t.Helper()
	for id, c := range r.Contexts {
		if c.History.Versions() {
			t.Errorf("a message of context %s was replaced", id)
		}
	}
	seen := make(map[string]string)
	for _, m := range r.Messages {
		if text, twice := seen[m.ID]; twice {
			t.Errorf("the messages %q and %q have the id %s", text, m.Text, m.ID)
		}
		seen[m.ID] = m.Text
	}
}

// expectedWords returns what each request of a flow and its children must hold, by a naive
// model: a history is a list, a child that forks or shares begins with a copy of it.
func expectedWords(name string, depth int, history []string, modes []string) (asked [][]string, after []string) {
	say := func(what string) {
		history = append(slices.Clip(history), fmt.Sprintf("%s %s %d", what, name, depth))
	}
	say("note")
	say("say")
	asked = append(asked, history)
	if len(modes) > 0 {
		begin := history
		if modes[0] == "fresh" {
			begin = nil
		}
		below, end := expectedWords(fmt.Sprintf("flow%d", depth+1), depth+1, begin, modes[1:])
		asked = append(asked, below...)
		if modes[0] == "share" {
			history = end
		}
	}
	say("last")
	return append(asked, history), history
}

func TestMessageIDsOfFlowsWithEqualNodeIDsDiffer(t *testing.T) {
	t.Parallel()
	modes := []string{"fresh", "fork", "share"}
	for _, outer := range modes {
		for _, inner := range modes {
			t.Run(outer+" "+inner, func(t *testing.T) {
				t.Parallel()
				child := func(file, mode string) string {
					return fmt.Sprintf("type: flow, isolation: %s, in: {depth: \"{{ run.inputs.depth + 1 }}\"}, with: {flow: %s}", mode, file)
				}
				r := weirtest.Flow(t, sameNamesFlow("flow0", child("flow1.yaml", outer)), weirtest.Case{
					Files: map[string]string{
						"flow1.yaml": sameNamesFlow("flow1", child("flow2.yaml", inner)),
						"flow2.yaml": sameNamesFlow("flow2", ""),
					},
					Script: weirtest.Says("1", "2", "3", "4", "5", "6"),
				})
				want, _ := expectedWords("flow0", 0, nil, []string{outer, inner})
				if got := transcript(r); r.Status != engine.Completed || !reflect.DeepEqual(got, want) {
					t.Errorf("the run %s (%v); the requests held\n%q\nnot\n%q", r.Status, r.Error, got, want)
				}
				uniqueIDs(t, r)
			})
		}
	}
}

// repeatedIDs is a flow in which a node id comes back, with the words that each request
// held.
type repeatedIDs struct {
	name, flow string
	asked      [][]string
}

func repeatedNodes() []repeatedIDs {
	return []repeatedIDs{
		{"a flow that runs itself", `
inputs: {n: {type: number, default: 2}}
nodes:
  say: {type: llmRequest, in: {message: "say {{ run.inputs.n }}"}}
  more: {type: decision, after: say, with: {expr: "run.inputs.n > 0", branches: ["true", "false"]}}
  again: {type: flow, isolation: share, after: more.true, in: {n: "{{ run.inputs.n - 1 }}"}, with: {flow: self}}
  last: {type: llmRequest, after: again, in: {message: "last {{ run.inputs.n }}"}}
`, [][]string{
			{"say 2"},
			{"say 2", "say 1"},
			{"say 2", "say 1", "say 0"},
			{"say 2", "say 1", "say 0", "last 1"},
			{"say 2", "say 1", "say 0", "last 1", "last 2"},
		}},
		{"a loop that shares", `
nodes:
  say: {type: llmRequest, in: {message: "say"}}
  each:
    type: loop
    after: say
    with:
      max: 2
      until: "false"
      atMax: stop
      body: {nodes: {say: {type: flow, isolation: share, with: {flow: child.yaml}}}, outputs: {x: 1}}
`, [][]string{{"say"}, {"say", "child 0"}, {"say", "child 0", "child 0"}}},
		{"lanes", `
nodes:
  say: {type: llmRequest, in: {message: "say"}}
  each:
    type: forEach
    isolation: fork
    after: say
    in: {items: [1, 2]}
    with: {body: {nodes: {say: {type: flow, isolation: share, in: {n: "{{ inputs.item }}"}, with: {flow: child.yaml}}}}}
  last: {type: llmRequest, after: each, in: {message: "last"}}
`, [][]string{{"say"}, {"say", "child 1"}, {"say", "child 2"}, {"say", "child 1", "child 2", "last"}}},
	}
}

func repeatedLanes() []repeatedIDs {
	return []repeatedIDs{
		{"a loop that forks", `
nodes:
  say: {type: llmRequest, in: {message: "say"}}
  each:
    type: loop
    isolation: fork
    after: say
    with:
      max: 2
      until: "false"
      atMax: stop
      body:
        nodes:
          say: {type: llmRequest, in: {message: "turn"}}
          child: {type: flow, isolation: share, after: say, with: {flow: child.yaml}}
        outputs: {x: 1}
`, [][]string{{"say"}, {"say", "turn"}, {"say", "turn", "child 0"}, {"say", "turn", "child 0", "turn"}, {"say", "turn", "child 0", "turn", "child 0"}}},
		{"lanes in lanes", `
nodes:
  say: {type: manualInput, with: {text: "say", history: true}}
  each:
    type: forEach
    isolation: fork
    after: say
    in: {items: [1, 2]}
    with:
      body:
        nodes:
          say: {type: llmRequest, in: {message: "outer {{ inputs.item }}"}}
          each:
            type: forEach
            isolation: fork
            after: say
            in: {items: [3]}
            with: {body: {nodes: {say: {type: flow, isolation: share, in: {n: "{{ inputs.item }}"}, with: {flow: child.yaml}}}}}
  last: {type: llmRequest, after: each, in: {message: "last"}}
`, [][]string{
			{"say", "outer 1"},
			{"say", "outer 1", "child 3"},
			{"say", "outer 2"},
			{"say", "outer 2", "child 3"},
			{"say", "outer 1", "child 3", "outer 2", "child 3", "last"},
		}},
		{"two nodes that run one flow", `
nodes:
  say: {type: llmRequest, in: {message: "say"}}
  a: {type: flow, isolation: share, after: say, in: {n: 1}, with: {flow: child.yaml}}
  b: {type: flow, isolation: share, after: a, in: {n: 2}, with: {flow: child.yaml}}
`, [][]string{{"say"}, {"say", "child 1"}, {"say", "child 1", "child 2"}}},
	}
}

func TestMessageIDsAreUnique(t *testing.T) {
	t.Parallel()
	child := `
weir: 1
name: child
context: {model: script/demo}
inputs: {n: {type: any, default: 0}}
nodes: {say: {type: llmRequest, in: {message: "child {{ run.inputs.n }}"}}, quick: {type: manualInput, with: {text: x}}}
outputs: {said: "{{ say.text }}"}
`
	for _, c := range append(repeatedNodes(), repeatedLanes()...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := weirtest.Flow(t, "weir: 1\nname: top\ncontext: {model: script/demo}"+c.flow, weirtest.Case{
				Files: map[string]string{"child.yaml": child}, Script: weirtest.Says("1", "2", "3", "4", "5", "6"),
			})
			if got := transcript(r); r.Status != engine.Completed || !reflect.DeepEqual(got, c.asked) {
				t.Errorf("the run %s (%v); the requests held\n%q\nnot\n%q", r.Status, r.Error, got, c.asked)
			}
			uniqueIDs(t, r)
		})
	}
}

func TestFreshChildMessageIDsDiffer(t *testing.T) {
	t.Parallel()
	r := weirtest.Flow(t, `
weir: 1
name: top
context: {model: script/demo}
nodes:
  say: {type: llmRequest, in: {message: "one"}}
  child: {type: flow, after: say, with: {flow: child.yaml}}
  last: {type: llmRequest, in: {message: "{{ child.m }}"}}
`, weirtest.Case{
		Files: map[string]string{"child.yaml": `
weir: 1
name: child
nodes:
  say: {type: newMessage}
outputs: {m: "{{ say.message }}"}
`},
		Types:  []weir.Type{newMessage()},
		Script: weirtest.Says("1", "2"),
	})
	if got, want := transcript(r), [][]string{{"one"}, {"one", "two"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the run %s (%v); the requests held %q, not %q", r.Status, r.Error, got, want)
	}
	uniqueIDs(t, r)
}

// newMessage outputs a message that has the id its node would say it under.
func newMessage() weir.Type {
	type out struct {
		Message any `json:"message"`
	}
	return weir.Func("newMessage", func(ctx weir.Ctx, _ struct{}) (out, error) {
		return out{map[string]any{"id": ctx.MessageID(ctx.Info().Path + ".user"), "role": "user", "text": "two"}}, nil
	})
}

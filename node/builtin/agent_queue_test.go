package builtin_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// queues is a flow with an agent of these settings, which may call all tools.
func queues(with string) string {
	return `
weir: 1
name: queues
context: {model: script/demo, system: Be brief.}
nodes:
  pick: {type: tools}
  work:
    type: agent
    in: {message: "Go.", tools: "{{ pick.tools }}"}
    with:
` + indented(with, "      ") + `
outputs: {text: "{{ work.text }}", trace: "{{ work.trace }}", stop: "{{ work.stop }}", usage: "{{ work.usage }}"}
`
}

func indented(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
}

// linesOf are the messages of a trace as "role: text".
func linesOf(trace []any) []string {
	var out []string
	for _, m := range trace {
		o := m.(map[string]any)
		out = append(out, o["role"].(string)+": "+o["text"].(string))
	}
	return out
}

// keysOf are the keys of the effects that were made, in the order of the journal.
func keysOf(r weirtest.Result) []string {
	var out []string
	for _, e := range r.Effects {
		out = append(out, strings.TrimPrefix(e.Key, "work/"))
	}
	return out
}

func TestAnAgentDoesWhatIsBeforeAndAfterInOrder(t *testing.T) {
	var l ledger
	r := weirtest.Flow(t, queues(`
pre:
  - Look around.
  - {tool: look, arguments: {at: "{{ run.flow }}"}}
todo: [Do more.]
post:
  - {tool: tidy}
  - say: "Write it up, {{ run.flow }}."
`), weirtest.Case{
		Tools:  []*tool.Tool{l.tool("look", ""), l.tool("tidy", "")},
		Script: weirtest.Says("I looked.", "Done.", "More is done.", "All done.", "Written."),
	})
	if r.Status != engine.Completed {
		t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	want := []string{
		"user: Look around.", "assistant: I looked.",
		"user: The tool look was called with {\"at\":\"queues\"}. Its result:\n<result>\nlook done\n</result>",
		"user: Go.", "assistant: Done.", "user: Do more.", "assistant: More is done.",
		"user: That was the last step. Now give the final answer to what was asked at first.", "assistant: All done.",
		"user: The tool tidy was called with {}. Its result:\n<result>\ntidy done\n</result>",
		"user: Write it up, queues.", "assistant: Written.",
	}
	if got := linesOf(weirtest.Output[[]any](t, r, "trace")); !reflect.DeepEqual(got, want) {
		t.Errorf("the trace is\n%s", strings.Join(got, "\n"))
	}
	if r.Outputs["text"] != "All done." || len(r.Messages) != 2 || r.Messages[1].Text != "All done." {
		t.Errorf("the answer is %v, and the context has %v", r.Outputs["text"], r.Messages)
	}
	keys := []string{"model#1", "queue.tool#1", "model#2", "model#3", "model#4", "post.1.tool#1", "post.2.model#1"}
	if got := keysOf(r); !reflect.DeepEqual(got, keys) {
		t.Errorf("the effects are %q", got)
	}
}

package weirtest_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

func TestNodeRunsWithInputsStateAndHistory(t *testing.T) {
	type in struct {
		Word string
		More []string `weir:"more,optional"`
	}
	type out struct{ Line string }
	typ := weir.Func("speak", func(ctx weir.Ctx, i in) (out, error) {
		m, err := ctx.Context()
		if err != nil {
			return out{}, err
		}
		n, _ := ctx.State().Get("n")
		if err := ctx.State().Set("n", n.(int64)+1); err != nil {
			return out{}, err
		}
		line := fmt.Sprintf("%s %v after %d messages", i.Word, i.More, m.Get().History.Len())
		_, err = m.Add(convo.Message{Role: convo.Assistant, Text: line})
		return out{line}, err
	}).WritesContext()
	r := weirtest.Node(t, typ, weirtest.Case{
		In:       map[string]any{"word": "{{ literal }}", "more": []string{"a", "b"}},
		State:    map[string]any{"n": 1},
		Messages: []convo.Message{{Role: convo.User, Text: "hi"}},
	})
	const want = "{{ literal }} [a b] after 1 messages"
	if got := weirtest.Output[string](t, r, "line"); got != want {
		t.Errorf("line is %q, expected %q", got, want)
	}
	if r.Status != engine.Completed || r.State["n"] != int64(2) || len(r.Messages) != 2 || r.Messages[1].Text != want {
		t.Errorf("got %+v", r)
	}
}

func TestBuiltInNodeUsesScriptAndTools(t *testing.T) {
	look := &weir.Tool{Name: "look", Call: func(_ context.Context, c tool.Call) (string, error) { return "saw " + c.Arguments, nil }}
	r := weirtest.Node(t, builtin.Catalogue().Type("llmRequest"), weirtest.Case{
		In: map[string]any{"message": "Look.", "tools": []string{"look"}}, System: "Be brief.", Tools: []*weir.Tool{look},
		Script: append([]weirtest.Turn{weirtest.Calls("look", map[string]any{"at": 1})}, weirtest.Says("Done.")...),
	})
	if got := weirtest.Output[string](t, r, "text"); got != "Done." {
		t.Errorf("text is %q", got)
	}
	if len(r.Requests) != 2 || r.Requests[0].System != "Be brief." || len(r.Messages) != 4 || r.Messages[2].Text != `saw {"at":1}` {
		t.Errorf("asked %d times; history %+v", len(r.Requests), r.Messages)
	}
	var keys []string
	for _, e := range r.Effects {
		keys = append(keys, e.Key)
	}
	if want := []string{"node/model#1", "node/tool#1", "node/model#2"}; !reflect.DeepEqual(keys, want) {
		t.Errorf("effects are %q, expected %q", keys, want)
	}
}

const ask = `
weir: 1
name: ask
nodes:
  first: {type: userInput}
  second: {type: userInput, after: first}
outputs: {both: "{{ first.text }} {{ second.text }}"}
`

func TestFlowStaysPausedWithoutAnswer(t *testing.T) {
	r := weirtest.Flow(t, ask, weirtest.Case{Answers: map[string]any{"first": "a"}})
	if r.Status != engine.Paused || len(r.Waiting) != 1 || r.Waiting[0].ID != "second:ask#1" {
		t.Fatalf("got %+v", r)
	}
	r = weirtest.Flow(t, ask, weirtest.Case{Answers: map[string]any{"first": "a", "second:ask#1": "b"}})
	if got := weirtest.Output[string](t, r, "both"); got != "a b" {
		t.Errorf("both is %q", got)
	}
}

func TestFailureIsInResult(t *testing.T) {
	r := weirtest.Node(t, builtin.Catalogue().Type("llmRequest"), weirtest.Case{
		In: map[string]any{"message": "hi"}, Script: []weirtest.Turn{weirtest.Fails("model_auth")},
	})
	if r.Status != engine.Failed || r.Error == nil || r.Error.Code != "model_auth" || r.Outputs["text"] != nil {
		t.Errorf("got %+v", r)
	}
}

func TestNode(t *testing.T) {
	type in struct{ Text string }
	type out struct{ Length int }
	length := weir.Func("length", func(_ weir.Ctx, i in) (out, error) { return out{len(i.Text)}, nil })

	r := weirtest.Node(t, length, weirtest.Case{In: map[string]any{"text": "weir"}})
	if n := weirtest.Output[int](t, r, "length"); n != 4 {
		t.Errorf("length is %d", n)
	}
}

func TestFile(t *testing.T) {
	r := weirtest.File(t, "../examples/trace/flow.yaml", weirtest.Case{
		Answers: map[string]any{"userInput": "What is a weir?"}, Script: weirtest.Says("A low dam."),
	})
	if reply := weirtest.Output[string](t, r, "response"); reply != "A low dam." {
		t.Errorf("reply is %q", reply)
	}
}

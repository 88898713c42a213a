package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
	"github.com/weir-run/weir/server/servertest"
)

type promptCaches struct {
	Calls []struct {
		Call, Before, BeforeRun, Place, Was, Is, Cause, Node string
		Equal, Of, Byte, Lost, Cost                          int
	}
}

func TestAModelCallIsComparedWithTheOneBeforeAsAPromptCacheDoes(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	run, err := p.client("").StartRun(t.Context(), client.Start{Flow: "twice", Wait: 60})
	if err != nil || run.Status != "completed" {
		t.Fatalf("%+v, %v", run, err)
	}
	read := func(node string) promptCaches {
		var out promptCaches
		p.get("/v1/runs/"+run.ID+"/cache?node="+node, &out)
		if len(out.Calls) != 1 {
			t.Fatalf("%s: %+v", node, out)
		}
		return out
	}
	if x := read("one").Calls[0]; x.Before != "" || x.BeforeRun != "" || x.Place != "" || x.Cause != "" || x.Node != "" {
		t.Errorf("the first call: %+v", x)
	}
	// The second call continues the conversation: the first is its beginning.
	if x := read("two").Calls[0]; x.Before != "one/model#1" || x.BeforeRun != run.ID || x.Cause != "" || x.Lost != 0 || x.Place != "" || x.Equal != 1 || x.Of != 1 {
		t.Errorf("the second call: %+v", x)
	}
	// The third begins another conversation.
	if x := read("three").Calls[0]; x.Before != "two/model#1" || x.Place != "messages[0]" || !strings.Contains(x.Was, "red") || !strings.Contains(x.Is, "blue") || x.Byte == 0 || x.Cause != "message" || x.Node != "three" {
		t.Errorf("the third call: %+v", x)
	}
}

// TestTheCauseOfALostPromptCacheHasItsNodeAndPrice makes calls that differ from the one before
// in each way, with a vendor that reports tokens and has prices.
func TestTheCauseOfALostPromptCacheHasItsNodeAndPrice(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("the ship waits ", 40)
	p := servertest.Open(t, servertest.Options{
		Flows: map[string]string{
			"all.yaml": "weir: 1\nname: all\ncontext: {model: fake/m, system: You help.}\nnodes:\n" +
				"  one: {type: llmRequest, in: {message: \"first " + long + "\"}}\n" +
				"  two: {type: llmRequest, after: one, in: {message: second}}\n" +
				"  system: {type: llmRequest, after: two, in: {message: third}, with: {system: You do not help.}}\n" +
				"  other: {type: newContext, after: system}\n" +
				"  put: {type: injectMessages, in: {context: \"{{ other.context }}\"}, with: {messages: [{role: user, text: injected}, {role: assistant, text: yes}]}}\n" +
				"  message: {type: llmRequest, after: put, in: {context: \"{{ other.context }}\", message: fourth}, with: {system: You do not help.}}\n",
			"talk.yaml": "weir: 1\nname: talk\ncontext: {model: fake/m}\ninputs: {message: {type: text, required: true}}\nnodes:\n  answer: {type: llmRequest, in: {message: \"{{ run.inputs.message }}\"}}\noutputs: {answer: \"{{ answer.text }}\"}\n",
		},
		Config: "models:\n  - {name: fake/m, window: 100000, price: {input: 10, cached: 1, output: 20}}\n",
		Answer: func(*llmtest.Request) llmtest.Turn {
			return llmtest.Turn{Text: "yes", Usage: llm.Usage{Input: 1000, Output: 2}}
		},
	})
	x, c := &process{t: t, url: p.URL}, &client.Client{URL: p.URL}
	run, err := c.StartRun(t.Context(), client.Start{Flow: "all", Wait: 60})
	if err != nil || run.Status != "completed" {
		t.Fatalf("%+v, %v", run, err)
	}
	for node, want := range map[string]struct{ cause, place, adder string }{
		"one": {}, "two": {}, "system": {"system", "system", "system"}, "message": {"message", "messages[0]", "put"},
	} {
		got := decode[promptCaches](x, c, http.MethodGet, "/v1/runs/"+run.ID+"/cache?node="+node, "").Calls[0]
		if got.Cause != want.cause || got.Place != want.place || got.Node != want.adder {
			t.Errorf("%s: %+v, expected %+v", node, got, want)
		}
		if lost := got.Lost > 500 && got.Lost <= 1000; lost != (want.cause != "") || got.Cost != got.Lost*9 {
			t.Errorf("%s: %d tokens lost for %d", node, got.Lost, got.Cost)
		}
	}
	session, err := c.OpenSession(t.Context(), "talk", "")
	if err != nil {
		t.Fatal(err)
	}
	var rounds []string
	for _, text := range []string{"hello", "and again"} {
		sent, err := c.Send(t.Context(), session, client.Message{Text: text, Wait: 60})
		if err != nil {
			t.Fatal(err)
		}
		rounds = append(rounds, sent.Run)
	}
	got := decode[promptCaches](x, c, http.MethodGet, "/v1/runs/"+rounds[1]+"/cache?node=answer", "").Calls[0]
	if got.BeforeRun != rounds[0] || got.Before != "answer/model#1" || got.Place != "" || got.Cause != "" || got.Of != 1 {
		t.Errorf("the second round: %+v", got)
	}
	last := decode[struct {
		Last struct {
			Node, Call            string
			Input, Output, Window int
		}
	}](x, c, http.MethodGet, "/v1/runs/"+rounds[1]+"/contexts/main", "").Last
	if last.Node != "answer" || last.Call != "answer/model#1" || last.Input != 1000 || last.Output != 2 || last.Window != 100000 {
		t.Errorf("the last call with the context: %+v", last)
	}
}

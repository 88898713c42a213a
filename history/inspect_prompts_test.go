package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/tool"
)

// omittedMessages returns how many messages a call was not sent whole.
func omittedMessages(t *testing.T, s runner.ModelCall) int {
	t.Helper()
	if !s.Proven || s.Result == nil {
		t.Errorf("%s is not proven: %+v", s.Key, s)
	}
	if s.Manifest == nil {
		return 0
	}
	b, err := json.Marshal(s.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	var m llm.Manifest
	if err := json.Unmarshal(b, &m); err != nil || m.Tokens > m.Room || m.Window != 3000 {
		t.Errorf("manifest %s: %+v %v", b, m, err)
	}
	return m.Omitted + m.Cleared
}

func TestInspectPromptsShowsWhatEachCallWasSent(t *testing.T) {
	t.Parallel()
	model := &weirkit.LookingModel{}
	look := &tool.Tool{
		Name: "look", Description: "Looks.", ReadOnly: true,
		Call: func(context.Context, tool.Call) (string, error) { return strings.Repeat("a long look ", 400), nil },
	}
	w, err := weir.Open(weir.Options{Providers: map[string]weir.Provider{"ears": model}, Tools: []*weir.Tool{look}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
	run := weirkit.StartText(t, w, `
weir: 1
name: telling
context: {model: ears/m, system: Be brief., budget: {window: 3000, reserve: 500}}
nodes:
  pick: {type: tools}
  talk:
    type: forEach
    in: {items: "{{ [1, 2, 3, 4, 5, 6] }}", tools: "{{ pick.tools }}"}
    with:
      body:
        nodes:
          say: {type: llmRequest, in: {message: "Look again, it is {{ run.id }}.", tools: "{{ inputs.tools }}"}}
        outputs: {text: "{{ say.text }}"}
outputs: {n: "{{ talk.results }}"}
`)
	if r := weirkit.Wait(t, run); r.Status != engine.Completed {
		t.Fatal(r.Status, r.Error)
	}
	var requests []string
	left := 0
	for i := 1; i <= 6; i++ {
		sent, err := w.InspectPrompts(t.Context(), "run", fmt.Sprintf("talk#%d/say", i))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sent {
			requests = append(requests, string(s.Request))
			left += omittedMessages(t, s)
		}
	}
	if strings.Join(requests, "\n") != strings.Join(model.Requests, "\n") {
		t.Errorf("told\n%s\nsent\n%s", strings.Join(requests, "\n"), strings.Join(model.Requests, "\n"))
	}
	if len(requests) != 12 || left == 0 {
		t.Errorf("%d calls, %d messages said to be left out or cleared", len(requests), left)
	}
}

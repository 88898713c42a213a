package agui_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/agui"
	"github.com/weir-run/weir/server/servertest"
)

func flows() map[string]string {
	return map[string]string{
		"talk.yaml": `weir: 1
name: talk
context: {model: fake/m}
inputs: {message: {type: text, required: true}}
state: {mood: {initial: calm}}
nodes:
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
outputs: {answer: "{{ answer.text }}"}
`,
		"tool.yaml": `weir: 1
name: tool
context: {model: fake/m}
inputs: {message: {type: text, required: true}}
nodes:
  pick: {type: tools, with: {tools: [memoryRead]}}
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}", tools: "{{ pick.tools }}"}}
outputs: {answer: "{{ answer.text }}"}
`,
		"ask.yaml": `weir: 1
name: ask
inputs: {message: {type: text, required: true}}
nodes:
  many: {type: userInput, with: {prompt: How many?, schema: {type: integer}}}
  colour: {type: userInput, with: {prompt: Which colour?}}
outputs: {order: "{{ many.value }} {{ colour.text }}"}
`,
		"broken.yaml": `weir: 1
name: broken
inputs: {message: {type: text, required: true}}
nodes:
  stuck: {type: fail, with: {message: There is no berth., code: no_berth}}
`,
	}
}

func open(t *testing.T) *servertest.Process {
	t.Helper()
	return servertest.Open(t, servertest.Options{
		Flows: flows(), Config: "tools: {memory: true}\n", Faces: []func(*server.Server){agui.Register}, Server: server.Options{RequireToken: true},
		Answer: func(r *llmtest.Request) llmtest.Turn {
			last := r.Messages[len(r.Messages)-1]
			switch {
			case last.Role == convo.Tool:
				return llmtest.Turn{Text: "done"}
			case last.Text == "What is the time?":
				return llmtest.Turn{Text: "Let me look.", Calls: []convo.Call{{ID: "call_1", Name: "memoryRead", Arguments: `{"query":"time"}`}}}
			}
			return servertest.Repeat(r)
		},
	})
}

func TestTheOfficialClientTalksToFlows(t *testing.T) {
	t.Parallel()
	p := open(t)
	env := []string{"WEIR_URL=" + p.URL, "WEIR_TOKEN=" + p.Token("ada", server.Read, server.Start, server.Answer)}
	out := servertest.Node(t, "testdata/agui.mjs", env, "@ag-ui/client@1.0.0")
	if !strings.HasSuffix(out, "ok\n") {
		t.Error(out)
	}
}

func post(t *testing.T, p *servertest.Process, token, flow, body string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/agui/"+flow, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+token)
	a, err := new(http.Client).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text)
}

func TestThreadsBelongToTheirUserAndRunsAreSentOnce(t *testing.T) {
	t.Parallel()
	p := open(t)
	ada, bob := p.Token("ada", server.Start, server.Answer), p.Token("bob", server.Start, server.Answer)
	run := func(thread, id, text string) string {
		return `{"threadId":"` + thread + `","runId":"` + id + `","messages":[{"id":"1","role":"user","content":"` + text + `"}]}`
	}
	for range 2 { // the same run again has the same answer
		if status, text := post(t, p, ada, "talk", run("t", "1", "one")); status != http.StatusOK || !strings.Contains(text, `"success"`) || !strings.Contains(text, `"answer":"1: one"`) {
			t.Errorf("%d %s", status, text)
		}
	}
	if _, text := post(t, p, ada, "talk", run("t", "2", "two")); !strings.Contains(text, `"answer":"3: two"`) {
		t.Error(text)
	}
	if _, text := post(t, p, bob, "talk", run("t", "3", "three")); !strings.Contains(text, `"answer":"1: three"`) {
		t.Errorf("another user's thread: %s", text)
	}
	if _, text := post(t, p, ada, "ask", run("q", "1", "x")); !strings.Contains(text, `"interrupt"`) || !strings.Contains(text, "many:ask#1") {
		t.Fatal(text)
	}
	answer := `{"threadId":"q","runId":"2","messages":[],"resume":[{"interruptId":"many:ask#1","status":"resolved","payload":"forty"}]}`
	if status, text := post(t, p, ada, "ask", answer); status != http.StatusUnprocessableEntity || !strings.Contains(text, "body.resume.many:ask#1") {
		t.Errorf("an answer that does not fit: %d %s", status, text)
	}
	if status, text := post(t, p, bob, "ask", answer); status != http.StatusConflict || !strings.Contains(text, "interrupt_unknown") {
		t.Errorf("another user answers: %d %s", status, text)
	}
	starter := p.Token("ada", server.Start)
	if status, text := post(t, p, starter, "ask", strings.Replace(answer, `"forty"`, `40`, 1)); status != http.StatusForbidden {
		t.Errorf("a token without the scope answer: %d %s", status, text)
	}
	for what, body := range map[string]string{
		"tools of the client": `{"threadId":"t","runId":"9","messages":[],"tools":[{"name":"x","description":"x"}]}`,
		"null":                `null`,
		"no message":          `{"threadId":"t","runId":"9","messages":[]}`,
		"no thread":           `{"runId":"9","messages":[]}`,
	} {
		if status, text := post(t, p, ada, "talk", body); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
}

func TestAMemberThatOccursTwiceIsRefused(t *testing.T) {
	t.Parallel()
	p := open(t)
	status, text := post(t, p, p.Token("ada", server.Read, server.Start), "talk", `{"threadId":"t","runId":"r","runId":"s","messages":[]}`)
	if status != http.StatusUnprocessableEntity || !strings.Contains(text, "occurs twice") {
		t.Errorf("%d %s", status, text)
	}
}

package agui_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
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
		"steps.yaml": `weir: 1
name: steps
context: {model: fake/m}
inputs: {message: {type: text, required: true}}
state: {notes: {initial: [], reducer: append}, mood: {initial: {a/b: calm}}}
nodes:
  first: {type: transform, with: {expr: "'x'", state: {notes: "['one']"}}}
  second: {type: transform, after: first, with: {expr: "'x'", state: {notes: "['two']", mood: "{'a/b': 'glad', 'c': 1}"}}}
  answer: {type: llmRequest, after: second, in: {message: "{{ run.inputs.message }}"}}
`,
		"see.yaml": `weir: 1
name: see
context: {model: fake/m}
inputs: {message: {type: message, required: true}}
nodes:
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
`,
		"work.yaml": `weir: 1
name: work
context: {model: fake/m}
inputs: {message: {type: text, required: true}}
nodes:
  answer: {type: agent, in: {message: "{{ run.inputs.message }}"}}
`,
		"both.yaml": `weir: 1
name: both
context: {model: fake/m}
inputs: {message: {type: text, required: true}}
nodes:
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
  many: {type: userInput, with: {prompt: How many?, schema: {type: integer}}}
outputs: {all: "{{ answer.text }} {{ many.value }}"}
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
			own := slices.ContainsFunc(r.Tools, func(tl llm.Tool) bool { return tl.Name == "show" })
			switch {
			case last.Role == convo.Tool && own:
				return llmtest.Turn{Text: "Shown: " + last.Text}
			case last.Role == convo.Tool:
				return llmtest.Turn{Text: "done"}
			case own && strings.HasPrefix(last.Text, "Show"):
				var turn llmtest.Turn
				for i, w := range strings.Fields(last.Text)[1:] {
					turn.Calls = append(turn.Calls, convo.Call{ID: fmt.Sprint("c", i), Name: "show", Arguments: fmt.Sprintf(`{"what":%q}`, w)})
				}
				return turn
			case last.Text == "Think":
				return llmtest.Turn{Reasoning: "It is a question of berths.", Text: "Berth 4."}
			case len(last.Parts) > 0:
				return llmtest.Turn{Text: fmt.Sprintf("%s: %s of %d bytes", last.Text, last.Parts[0].MIME, len(last.Parts[0].Data))}
			case last.Text == "What is the time?":
				return llmtest.Turn{Text: "Let me look.", Calls: []convo.Call{{ID: "call_1", Name: "memoryRead", Arguments: `{"query":"time"}`}}}
			}
			return servertest.Repeat(r)
		},
	})
}

// onePixel is a PNG.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestTheOfficialClientTalksToFlows(t *testing.T) {
	t.Parallel()
	p := open(t)
	env := []string{"WEIR_URL=" + p.URL, "WEIR_TOKEN=" + p.Token("ada", server.Read, server.Start, server.Answer), "PNG=" + onePixel}
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
	tools := func(list string) string {
		return `{"threadId":"t","runId":"9","messages":[{"id":"1","role":"user","content":"x"}],"tools":[` + list + `]}`
	}
	parts := func(list string) string {
		return `{"threadId":"t","runId":"9","messages":[{"id":"1","role":"user","content":[` + list + `]}]}`
	}
	for what, body := range map[string]string{
		"a tool without a name": tools(`{"description":"x"}`),
		"two equal tools":       tools(`{"name":"x","description":"x"},{"name":"x","description":"y"}`),
		"a schema that is none": tools(`{"name":"x","description":"x","parameters":"x"}`),
		"null":                  `null`,
		"no message":            `{"threadId":"t","runId":"9","messages":[]}`,
		"no thread":             `{"runId":"9","messages":[]}`,
		"an image for a text":   parts(`{"type":"image","source":{"type":"data","value":"eA==","mimeType":"image/png"}}`),
		"a sound":               parts(`{"type":"audio","source":{"type":"data","value":"eA==","mimeType":"audio/mp3"}}`),
		"no base64":             parts(`{"type":"image","source":{"type":"data","value":"?","mimeType":"image/png"}}`),
		"no type":               parts(`{"type":"image","source":{"type":"data","value":"eA=="}}`),
		"a file of the machine": parts(`{"type":"image","source":{"type":"url","value":"file:///etc/passwd"}}`),
		"a file of a vendor":    parts(`{"type":"image","source":{"type":"file","value":"x"}}`),
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

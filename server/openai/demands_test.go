package openai_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/servertest"
)

// comply is a model that follows a schema and a choice of tools in the way that the last message of the user names: at once
// (Plain), with prose around the answer (Fence), when it is told that its answer is invalid (Once), or Never. Cut is an answer
// that ends early.
func comply(r *llmtest.Request) llmtest.Turn {
	way, since := "", 0
	for i, m := range r.Messages {
		first, _, _ := strings.Cut(m.Text, " ")
		if m.Role == convo.User && slices.Contains([]string{"Plain", "Fence", "Once", "Never", "Cut", "Look", "Text"}, first) {
			way, since = first, i
		}
	}
	last := r.Messages[len(r.Messages)-1]
	called := slices.ContainsFunc(r.Messages[since:], func(m convo.Message) bool { return m.Role == convo.Tool })
	told := strings.Contains(last.Text, "cannot be used")
	schema := strings.Contains(string(r.Body), `"response_format"`)
	forced := r.Choice != "" && r.Choice != "auto"
	unwilling := way == "Never" || way == "Once" && !told
	switch {
	case forced && !unwilling, way == "Look" && len(r.Tools) > 0 && !called:
		own := slices.IndexFunc(r.Tools, func(tl llm.Tool) bool { return strings.HasPrefix(tl.Name, "look") })
		return llmtest.Turn{Calls: []convo.Call{{ID: "c1", Name: r.Tools[own].Name, Arguments: `{"berth":"4"}`}}}
	case forced || schema && unwilling:
		return llmtest.Turn{Text: "I would rather not."}
	case schema && way == "Cut":
		return llmtest.Turn{Text: `{"berth": `, Stop: "length"}
	case schema && way == "Fence":
		return llmtest.Turn{Text: "Here it is:\n```json\n{\"berth\": 4}\n```\n"}
	case schema:
		return llmtest.Turn{Text: `{"berth": 4}`}
	case last.Role == convo.Tool:
		return llmtest.Turn{Text: "Found " + last.Text}
	}
	return llmtest.Turn{Text: fmt.Sprintf("%d: %s", len(r.Messages), way)}
}

// demandFlows are flows of each kind of last node that speaks.
func demandFlows() map[string]string {
	out := map[string]string{}
	const schema = "schema: {type: object}"
	for name, node := range map[string]string{
		"talk": "llmRequest, with: {maxSteps: 4}", "work": "agent", "plan": "agent, with: {todo: [Note it.]}",
		"capped": "llmRequest, with: {maxSteps: 1, atMax: stop}", "capped2": "agent, with: {maxSteps: 1, atMax: stop}",
		"capped3": "agent, with: {maxSteps: 1, atMax: stop, todo: [Note it.]}",
		"own":     "llmRequest, with: {" + schema + "}", "says": `say, with: {text: Hello}`, "outputs": "transform, with: {expr: inputs.message}",
		"inside": `loop, with: {max: 1, body: {nodes: {a: {type: llmRequest, in: {message: "{{ inputs.message }}"}}}, outputs: {a: "{{ a.text }}"}}}`,
	} {
		in := `, in: {message: "{{ run.inputs.message }}"}`
		if name == "says" {
			in = ""
		}
		out[name+".yaml"] = "weir: 1\nname: " + name + `
context: {model: fake/m}
inputs: {message: {type: text, required: true}}
nodes:
  answer: {type: ` + node + in + "}\n"
	}
	return out
}

func TestTheOfficialClientDemandsFormatsAndCalls(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{Answer: comply, Flows: demandFlows()})
	out := servertest.Node(t, "testdata/demands.mjs", user(p, "bob"), client)
	if !strings.HasSuffix(out, "ok\n") {
		t.Error(out)
	}
}

// ask sends a message to a flow and returns the content of the answer or the code of the error.
func ask(t *testing.T, p *servertest.Process, token string, body map[string]any, more map[string]any) string {
	t.Helper()
	content := maps.Clone(body)
	maps.Copy(content, more)
	_, _, text := post(t, p.URL+"/v1/chat/completions", token, content, nil)
	var out struct {
		Choices []struct {
			Message struct {
				Content string
				Calls   []struct{ ID string } `json:"tool_calls"`
			}
		}
		Error struct{ Code string }
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(text, err)
	}
	switch {
	case len(out.Choices) == 0:
		return out.Error.Code
	case len(out.Choices[0].Message.Calls) > 0:
		return out.Choices[0].Message.Calls[0].ID
	}
	return out.Choices[0].Message.Content
}

// TestAnAnswerFitsItsFormatOrTheRoundFails tries every kind of node that gives an answer, with answers that fit at once, after
// a repair and never, and with turns that are cut off before the answer.
func TestAnAnswerFitsItsFormatOrTheRoundFails(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{Answer: comply, Flows: demandFlows()})
	token := p.Token("ada", server.Read, server.Start)
	for _, model := range []string{"talk", "work", "plan", "capped", "capped2", "capped3"} {
		for way, want := range map[string]string{
			"Plain": `{"berth":4}`, "Fence": `{"berth":4}`, "Once": `{"berth":4}`, "Never": "model_answer_invalid", "Cut": "model_answer_invalid", "Look": `{"berth":4}`,
		} {
			t.Run(model+" "+way, func(t *testing.T) {
				t.Parallel()
				if model == "capped3" || strings.HasPrefix(model, "capped") && way == "Look" { // no call is left for the answer
					want = "model_answer_invalid"
				}
				if got := askInFormat(t, p, token, model, way); strings.ReplaceAll(got, " ", "") != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		}
	}
}

// askInFormat sends a message that demands JSON, and the output of the function that the model calls if the way is Look.
func askInFormat(t *testing.T, p *servertest.Process, token, model, way string) string {
	t.Helper()
	format := map[string]any{"response_format": map[string]any{"type": "json_object"}}
	messages := []any{map[string]any{"role": "user", "content": way}}
	body := map[string]any{"model": model, "messages": messages, "user": way}
	if way != "Look" {
		return ask(t, p, token, body, format)
	}
	body["tools"] = []any{map[string]any{"type": "function", "function": map[string]any{"name": "look_up"}}}
	id := ask(t, p, token, body, format)
	call := map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "look_up", "arguments": `{"berth":"4"}`}}
	body["messages"] = append(messages, map[string]any{"role": "assistant", "tool_calls": []any{call}}, map[string]any{"role": "tool", "tool_call_id": id, "content": "free"})
	return ask(t, p, token, body, format)
}

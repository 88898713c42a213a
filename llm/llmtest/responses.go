package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// responsesAPI is OpenAI's Responses API.
type responsesAPI struct{ schema *jsonschema.Schema }

type responsesBody struct {
	Model        string          `json:"model"`
	Stream       bool            `json:"stream"`
	Store        *bool           `json:"store"`
	Previous     string          `json:"previous_response_id"`
	Include      []string        `json:"include"`
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"`
	Reasoning    *struct {
		Effort  string `json:"effort"`
		Summary string `json:"summary"`
	} `json:"reasoning"`
	Tools []struct {
		llm.Tool
		Strict bool `json:"strict"`
	} `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	Text       struct {
		Format struct {
			Type   string         `json:"type"`
			Schema map[string]any `json:"schema"`
			Strict bool           `json:"strict"`
		} `json:"format"`
	} `json:"text"`
}

type responsesItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Encrypted string          `json:"encrypted_content"`
}

func (w responsesAPI) name() string { return "responses" }

func (w responsesAPI) routes() []string { return []string{"/v1/responses"} }

func (w responsesAPI) key(r *http.Request) string { return bearer(r) }

func (w responsesAPI) tail() int { return 0 }

func (w responsesAPI) refusal(f *Failure) string {
	return encode(map[string]any{"error": faultBody(f)})
}

func (w responsesAPI) read(_ *http.Request, body []byte, known issuedIDs) *parsedRequest {
	r := &rules{}
	r.shape(w.schema, body)
	a := &parsedRequest{}
	var b responsesBody
	if len(r.problems) == 0 {
		if err := json.Unmarshal(body, &b); err != nil {
			r.broken("%v", err)
		}
	}
	a.Model, a.streamed = b.Model, b.Stream
	a.encrypted = slices.Contains(b.Include, "reasoning.encrypted_content")
	a.summary = b.Reasoning != nil && b.Reasoning.Summary != ""
	r.model(&b, a.encrypted)
	var strict []bool
	for _, t := range b.Tools {
		a.Tools = append(a.Tools, t.Tool)
		strict = append(strict, t.Strict)
	}
	r.tools(a.Tools, strict, b.ToolChoice)
	a.Choice = chosen(b.ToolChoice)
	if b.Text.Format.Type == "json_schema" {
		r.schema("text.format", b.Text.Format.Schema, b.Text.Format.Strict)
	}
	if b.Instructions != "" {
		a.Messages = append(a.Messages, convo.Message{Role: convo.System, Text: b.Instructions})
	}
	a.Session, a.Kept = b.Previous, b.Store == nil || *b.Store
	if !known.holds(b.Previous) {
		a.lost = &Failure{
			Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "previous_response_not_found",
			Param: "previous_response_id", Message: fmt.Sprintf("Previous response with id '%s' not found.", b.Previous),
		}
		a.Problems = r.problems
		return a
	}
	items := inputItems(b.Input)
	r.items(items, b.Previous, known)
	a.Messages = append(a.Messages, messages(items)...)
	a.Problems = r.problems
	return a
}

// model checks settings that only reasoning models accept.
func (r *rules) model(b *responsesBody, encrypted bool) {
	if !strings.HasPrefix(b.Model, "gpt-4") && !strings.HasPrefix(b.Model, "gpt-3") {
		return
	}
	if encrypted {
		r.broken("Encrypted content is not supported with this model.")
	}
	if b.Reasoning != nil {
		r.broken("Unsupported parameter: 'reasoning' is not supported with this model.")
	}
}

func inputItems(raw json.RawMessage) []responsesItem {
	var text string
	if len(raw) > 0 && json.Unmarshal(raw, &text) == nil {
		return []responsesItem{{Role: "user", Content: raw}}
	}
	var items []responsesItem
	_ = json.Unmarshal(raw, &items) // the schema check has reported invalid items
	return items
}

// items checks the pairing of calls and results, and that the vendor's items are returned completely: a call made
// after reasoning needs that reasoning before it, and reasoning needs the item that followed it. Calls of a stored
// response may still be open.
func (r *rules) items(items []responsesItem, previous string, known issuedIDs) {
	open, seen := known.open(previous), map[string]bool{}
	for n, i := range items {
		if i.ID != "" && i.Type != "function_call_output" {
			r.item(n, i.ID, seen, known)
		}
		switch i.Type {
		case "function_call":
			if _, twice := open[i.CallID]; twice {
				r.broken("input[%d]: two calls have the id %q", n, i.CallID)
			}
			open[i.CallID] = true
			r.arguments(convo.Call{ID: i.CallID, Arguments: i.Arguments})
		case "function_call_output":
			if !open[i.CallID] {
				r.broken("input[%d]: no tool call found for function call output with call_id %s", n, i.CallID)
			}
			open[i.CallID] = false
		case "reasoning":
			r.reasoning(n, i, items, known)
		}
	}
	for id, unanswered := range open {
		if unanswered {
			r.broken("no tool output found for function call %s", id)
		}
	}
}

// item checks that an item's id is unique and follows the reasoning that it requires.
func (r *rules) item(n int, id string, seen map[string]bool, known issuedIDs) {
	if seen[id] {
		r.broken("input[%d]: duplicate item found with id %s", n, id)
	}
	seen[id] = true
	if needs := known["item:"+id]; needs != "" && !seen[needs] {
		r.broken("input[%d]: item '%s' was provided without its required 'reasoning' item: '%s'", n, id, needs)
	}
}

func (r *rules) reasoning(n int, i responsesItem, items []responsesItem, known issuedIDs) {
	if i.Encrypted == "" {
		r.broken("input[%d]: item with id '%s' not found; items are not persisted when `store` is set to false", n, i.ID)
		return
	}
	if known["secret:"+i.Encrypted] != i.ID {
		r.broken("input[%d]: the encrypted content could not be verified", n)
	}
	if n+1 == len(items) || (items[n+1].Type != "function_call" && items[n+1].Type != "message" && items[n+1].Type != "reasoning") {
		r.broken("input[%d]: item '%s' of type 'reasoning' was provided without its required following item", n, i.ID)
	}
}

// messages converts items to messages of Weir: texts, calls and reasoning of one answer are one message.
func messages(items []responsesItem) []convo.Message {
	var out []convo.Message
	assistant := func() *convo.Message {
		if len(out) == 0 || out[len(out)-1].Role != convo.Assistant {
			out = append(out, convo.Message{Role: convo.Assistant})
		}
		return &out[len(out)-1]
	}
	for _, i := range items {
		switch {
		case i.Type == "function_call":
			m := assistant()
			m.Calls = append(m.Calls, convo.Call{ID: i.CallID, Name: i.Name, Arguments: i.Arguments})
		case i.Type == "function_call_output":
			m := convo.Message{Role: convo.Tool, CallID: i.CallID}
			m.Text, m.Parts = content(i.Output)
			out = append(out, m)
		case i.Type == "reasoning":
			// The first item of an answer begins a message.
			out = append(out, convo.Message{Role: convo.Assistant, Native: json.RawMessage(encode(i.Encrypted))})
		case i.Role == "assistant":
			text, _ := content(i.Content)
			if last := len(out) - 1; last < 0 || out[last].Role != convo.Assistant || out[last].Text != "" || len(out[last].Calls) > 0 {
				out = append(out, convo.Message{Role: convo.Assistant})
			}
			assistant().Text += text
		default:
			m := convo.Message{Role: convo.Role(i.Role)}
			m.Text, m.Parts = content(i.Content)
			out = append(out, m)
		}
	}
	return out
}

// thinks reports whether the answer begins with a reasoning item.
func (t *Turn) thinks() bool { return t.Reasoning != "" || t.Usage.Reasoning > 0 }

func reasoningID(number int) string { return fmt.Sprintf("rs_%d", number) }

func secret(number int) string { return fmt.Sprintf("gAAAA-%d+/=", number) }

func (w responsesAPI) issue(t *Turn, a *parsedRequest, number int, known issuedIDs) {
	if a.Kept {
		known.keep(fmt.Sprintf("resp_%d", number), t.Calls)
	}
	if !t.thinks() {
		return
	}
	if a.encrypted {
		known["secret:"+secret(number)] = reasoningID(number)
	}
	known[fmt.Sprintf("item:msg_%d", number)] = reasoningID(number)
	for n := range t.Calls {
		known[fmt.Sprintf("item:fc_%d_%d", number, n)] = reasoningID(number)
	}
}

func (w responsesAPI) fault(f *Failure) string {
	body := faultBody(f)
	delete(body, "type")
	body["type"], body["sequence_number"] = "error", 0
	return frame("error", encode(body))
}

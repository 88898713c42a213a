package llmtest

import (
	_ "embed" // the API's schema
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

//go:embed anthropic.schema.json
var anthropicSchema []byte

// anthropicAPI is Anthropic's Messages API.
type anthropicAPI struct{ schema *jsonschema.Schema }

// anthropicShape compiles the schema once, because campaigns check many bodies.
//
//nolint:gochecknoglobals // a compiled table
var anthropicShape = sync.OnceValue(func() *jsonschema.Schema {
	return mustCompile("weir:anthropic", anthropicSchema)
})

func newAnthropicAPI() anthropicAPI { return anthropicAPI{anthropicShape()} }

func (w anthropicAPI) name() string { return "anthropic" }

func (w anthropicAPI) routes() []string { return []string{"/v1/messages"} }

func (w anthropicAPI) key(r *http.Request) string { return r.Header.Get("X-Api-Key") }

// tail: message_stop adds nothing to message_delta.
func (w anthropicAPI) tail() int { return 1 }

// anthropicBody has the fields of a request that the rules read.
type anthropicBody struct {
	Model       string             `json:"model"`
	MaxTokens   int                `json:"max_tokens"`
	Stream      bool               `json:"stream"`
	System      anthropicContent   `json:"system"`
	Messages    []anthropicMessage `json:"messages"`
	Temperature *float64           `json:"temperature"`
	TopP        *float64           `json:"top_p"`
	TopK        *int               `json:"top_k"`
	Mark        *struct{}          `json:"cache_control"`
	Tools       []struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Schema      map[string]any `json:"input_schema"`
		Mark        *struct{}      `json:"cache_control"`
	} `json:"tools"`
	Choice *struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
	Thinking *struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	} `json:"thinking"`
	Output struct {
		Effort string `json:"effort"`
		Format *struct {
			Schema map[string]any `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
}

type anthropicMessage struct {
	Role    string           `json:"role"`
	Content anthropicContent `json:"content"`
}

// anthropicContent is a list of blocks, or the text that may replace it.
type anthropicContent []anthropicBlock

// UnmarshalJSON reads both forms.
func (c *anthropicContent) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = anthropicContent{{Type: "text", Text: text}}
		return nil
	}
	var blocks []anthropicBlock
	err := json.Unmarshal(data, &blocks)
	*c = blocks
	return err
}

type anthropicBlock struct {
	Type      string           `json:"type"`
	Text      string           `json:"text"`
	Thinking  string           `json:"thinking"`
	Signature string           `json:"signature"`
	Redacted  string           `json:"data"`
	ID        string           `json:"id"`
	Name      string           `json:"name"`
	Input     json.RawMessage  `json:"input"`
	CallID    string           `json:"tool_use_id"`
	Failed    bool             `json:"is_error"`
	Content   anthropicContent `json:"content"`
	Title     string           `json:"title"`
	Mark      *struct{}        `json:"cache_control"`
	Source    struct {
		Type string `json:"type"`
		MIME string `json:"media_type"`
		Data string `json:"data"`
		URL  string `json:"url"`
	} `json:"source"`
}

// thinks reports whether a block is thinking.
func (b anthropicBlock) thinks() bool { return b.Type == "thinking" || b.Type == "redacted_thinking" }

func (w anthropicAPI) read(r *http.Request, body []byte, known issuedIDs) *parsedRequest {
	rules, b := w.check(body, known)
	if v := r.Header.Get("Anthropic-Version"); v != "2023-06-01" {
		rules.broken("anthropic-version: %q is not a version of the API", v)
	}
	a := &parsedRequest{streamed: b.Stream}
	a.Model, a.Problems = b.Model, rules.problems
	a.summary = b.Thinking != nil && b.Thinking.Type != "disabled"
	for _, t := range b.Tools {
		a.Tools = append(a.Tools, llm.Tool{Name: t.Name, Description: t.Description, Parameters: t.Schema})
	}
	if b.Choice != nil {
		a.Choice = b.Choice.Name
		if b.Choice.Type != "tool" {
			a.Choice = map[string]string{"any": "required"}[b.Choice.Type]
			a.Choice = first(a.Choice, b.Choice.Type)
		}
	}
	for _, s := range b.System {
		a.Messages = append(a.Messages, convo.Message{Role: convo.System, Text: s.Text})
	}
	for _, m := range b.Messages {
		if m.Role == "assistant" {
			a.Messages = append(a.Messages, m.answer())
		} else {
			a.Messages = append(a.Messages, m.said()...)
		}
	}
	return a
}

// answer converts an assistant's turn to a message of Weir.
func (m anthropicMessage) answer() convo.Message {
	out := convo.Message{Role: convo.Assistant}
	var signatures strings.Builder
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			out.Text += b.Text
		case "tool_use":
			out.Calls = append(out.Calls, convo.Call{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		case "thinking", "redacted_thinking":
			out.Reasoning += b.Thinking
			signatures.WriteString(b.Signature + b.Redacted)
		}
	}
	if signatures.Len() > 0 {
		out.Native = json.RawMessage(encode(signatures.String()))
	}
	return out
}

// said converts a user's turn: each result and each text becomes a message, to which the images and files that follow
// are added.
func (m anthropicMessage) said() []convo.Message {
	var out []convo.Message
	for _, b := range m.Content {
		switch b.Type {
		case "tool_result":
			r := convo.Message{Role: convo.Tool, CallID: b.CallID, Failed: b.Failed}
			for _, c := range b.Content {
				r.Text += c.Text
				if c.Type != "text" {
					r.Parts = append(r.Parts, c.part())
				}
			}
			out = append(out, r)
		case "text":
			out = append(out, convo.Message{Role: convo.User, Text: b.Text})
		default:
			if n := len(out); n == 0 || out[n-1].Role != convo.User {
				out = append(out, convo.Message{Role: convo.User})
			}
			last := &out[len(out)-1]
			last.Parts = append(last.Parts, b.part())
		}
	}
	return out
}

// part converts an image or a document.
func (b anthropicBlock) part() convo.Part {
	kind := "image"
	if b.Type == "document" {
		kind = "file"
	}
	if b.Source.Type == "text" {
		return convo.Part{Kind: kind, MIME: b.Source.MIME, Name: b.Title, Data: []byte(b.Source.Data)}
	}
	if b.Source.URL != "" {
		return convo.Part{Kind: kind, Name: b.Title, URL: b.Source.URL}
	}
	return part(kind, "data:"+b.Source.MIME+";base64,"+b.Source.Data, b.Title)
}

// refusal returns the body of an error. OpenAI's codes of Failure are converted to Anthropic's messages.
func (w anthropicAPI) refusal(f *Failure) string {
	kind, message := anthropicType(f.Status), f.Message
	switch f.Code {
	case "context_length_exceeded":
		kind, message = "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum. "+message
	case "content_policy_violation":
		kind, message = "invalid_request_error", "Output blocked by content filtering policy. "+message
	case "rate_limit_exceeded":
		kind = "rate_limit_error"
	}
	if strings.HasSuffix(f.Type, "_error") && f.Type != "server_error" && f.Status == 0 {
		kind = f.Type
	}
	return encode(map[string]any{
		"type": "error", "error": map[string]any{"type": kind, "message": message}, "request_id": "req_1",
	})
}

// anthropicType returns the error type of a status ("Errors").
func anthropicType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case 529:
		return "overloaded_error"
	}
	if status >= 400 && status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}

func (w anthropicAPI) fault(f *Failure) string { return frame("error", w.refusal(f)) }

// signature returns the server's signature of a thought.
func signature(number int) string { return fmt.Sprintf("EqoBCkgIARABGAIiQ%d+/=", number) }

func (w anthropicAPI) issue(t *Turn, a *parsedRequest, number int, known issuedIDs) {
	if a.summary && t.thinks() {
		known["thought:"+signature(number)] = t.Reasoning
	}
}

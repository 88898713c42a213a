package llmtest

import (
	_ "embed" // the API's schema
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

//go:embed gemini_interactions.schema.json
var interactionsSchema []byte

// interactionsAPI is Google's Interactions API, which stores conversations.
type interactionsAPI struct{ schema *jsonschema.Schema }

// interactionsShape is the compiled schema.
var interactionsShape = sync.OnceValue(func() *jsonschema.Schema { //nolint:gochecknoglobals // a compiled table
	return mustCompile("weir:interactions", interactionsSchema)
})

func newInteractionsAPI() interactionsAPI { return interactionsAPI{interactionsShape()} }

type interactionBody struct {
	Model    string            `json:"model"`
	Input    json.RawMessage   `json:"input"`
	Previous string            `json:"previous_interaction_id"`
	Store    *bool             `json:"store"`
	Stream   bool              `json:"stream"`
	System   string            `json:"system_instruction"`
	Tools    []llm.Tool        `json:"tools"`
	Config   interactionConfig `json:"generation_config"`
	Format   struct {
		Schema map[string]any `json:"schema"`
	} `json:"response_format"`
}

type interactionConfig struct {
	Choice    json.RawMessage `json:"tool_choice"`
	Summaries string          `json:"thinking_summaries"`
}

type interactionStep struct {
	Type      string            `json:"type"`
	Content   []interactionPart `json:"content"`
	Signature string            `json:"signature"`
	Summary   []interactionPart `json:"summary"`
	ID        string            `json:"id"`
	CallID    string            `json:"call_id"`
	Name      string            `json:"name"`
	Arguments json.RawMessage   `json:"arguments"`
	Result    json.RawMessage   `json:"result"`
	IsError   bool              `json:"is_error"`
}

type interactionPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
	MIME string `json:"mime_type"`
	Data string `json:"data"`
	URI  string `json:"uri"`
}

func (w interactionsAPI) name() string { return "interactions" }

func (w interactionsAPI) routes() []string { return []string{"/v1beta/interactions"} }

func (w interactionsAPI) key(r *http.Request) string { return r.Header.Get("X-Goog-Api-Key") }

// tail: [DONE].
func (w interactionsAPI) tail() int { return 1 }

func (w interactionsAPI) fault(f *Failure) string {
	return frame("error", strings.Replace(w.refusal(f), "{", `{"event_type":"error",`, 1))
}

// refusal has names as codes.
func (w interactionsAPI) refusal(f *Failure) string {
	var body struct {
		Error struct {
			Message string `json:"message"`
			Status  string `json:"status"`
			Details any    `json:"details,omitempty"`
		} `json:"error"`
	}
	_ = json.Unmarshal([]byte(geminiAPI{}.refusal(f)), &body) // the message is this package's
	fault := map[string]any{"message": body.Error.Message, "code": strings.ToLower(body.Error.Status)}
	if body.Error.Details != nil {
		fault["details"] = body.Error.Details
	}
	return encode(map[string]any{"error": fault})
}

// CheckInteraction returns the rules of Interactions that a body breaks. Any session and signature is accepted, and a
// body that continues a session may answer calls that it does not contain.
func CheckInteraction(body []byte) []string {
	_, r := newInteractionsAPI().check(body, nil)
	return r.problems
}

func (w interactionsAPI) check(body []byte, known issuedIDs) (*interactionBody, *rules) {
	r := &rules{}
	r.shape(w.schema, body)
	b := &interactionBody{}
	if len(r.problems) == 0 {
		if err := json.Unmarshal(body, b); err != nil {
			r.broken("%v", err)
		}
	}
	if len(r.problems) > 0 {
		return b, r
	}
	r.tools(b.Tools, make([]bool, len(b.Tools)), nil)
	r.interactionChoice(b)
	if b.Format.Schema != nil {
		if _, err := compile("weir:answer", []byte(encode(b.Format.Schema))); err != nil {
			r.broken("response_format: the schema is none: %v", err)
		}
	}
	r.interactionSteps(b, known)
	return b, r
}

func (r *rules) interactionChoice(b *interactionBody) {
	if len(b.Config.Choice) == 0 {
		return
	}
	if len(b.Tools) == 0 {
		r.broken("tool_choice is set without tools")
	}
	for _, name := range allowed(b.Config.Choice) {
		if !named(b.Tools, name) {
			r.broken("tool_choice allows %q, which is not among the tools", name)
		}
	}
}

func named(tools []llm.Tool, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

func allowed(choice json.RawMessage) []string {
	var c struct {
		Allowed struct {
			Tools []string `json:"tools"`
		} `json:"allowed_tools"`
	}
	_ = json.Unmarshal(choice, &c) // a mode, which the schema has checked
	return c.Allowed.Tools
}

func (b *interactionBody) steps() []interactionStep {
	var text string
	if json.Unmarshal(b.Input, &text) == nil {
		return []interactionStep{{Type: "user_input", Content: []interactionPart{{Type: "text", Text: text}}}}
	}
	var steps []interactionStep
	_ = json.Unmarshal(b.Input, &steps) // the schema has checked it
	return steps
}

// interactionSteps checks the order of steps: results belong to open calls and follow them directly, and all calls
// are answered before anything else.
func (r *rules) interactionSteps(b *interactionBody, known issuedIDs) {
	steps := b.steps()
	open, names := known.open(b.Previous), map[string]string{}
	anything := known == nil && b.Previous != ""
	if b.Previous == "" && steps[0].Type != "user_input" {
		r.broken("input[0]: the first step is a %s; it must be the user's", steps[0].Type)
	}
	if last := steps[len(steps)-1].Type; last != "user_input" && last != "function_result" {
		r.broken("the last step is a %s; the user or a function has the last word", last)
	}
	for n, s := range steps {
		switch s.Type {
		case "function_call":
			if _, twice := names[s.ID]; twice {
				r.broken("input[%d]: two calls have the id %q", n, s.ID)
			}
			open[s.ID], names[s.ID] = true, s.Name
		case "function_result":
			if !open[s.CallID] && !anything {
				r.broken("input[%d]: no open function call has the id %q", n, s.CallID)
			}
			r.sameTool(n, s.Name, names[s.CallID])
			delete(open, s.CallID)
		default:
			r.sealed(n, s.Signature, known)
			r.answered(n, open)
		}
	}
	r.answered(len(steps), open)
}

func (r *rules) sameTool(n int, result, call string) {
	if call != "" && result != "" && call != result {
		r.broken("input[%d]: the result of %s answers a call of %s", n, result, call)
	}
}

func (r *rules) sealed(n int, signature string, known issuedIDs) {
	if _, ok := known["signature:"+signature]; known != nil && signature != "" && !ok {
		r.broken("input[%d]: Thought signature is not valid", n)
	}
}

// answered returns the results of the calls that are open before step n.
func (r *rules) answered(n int, open map[string]bool) {
	for id := range open {
		r.broken("input[%d]: the function call %q has no result", n, id)
	}
	clear(open)
}

func (w interactionsAPI) read(_ *http.Request, body []byte, known issuedIDs) *parsedRequest {
	b, r := w.check(body, known)
	a := &parsedRequest{streamed: b.Stream, summary: b.Config.Summaries == "auto"}
	a.Model, a.Tools, a.Problems = b.Model, b.Tools, r.problems
	a.Session, a.Kept = b.Previous, b.Store == nil || *b.Store
	if !known.holds(b.Previous) {
		a.lost = &Failure{Status: http.StatusNotFound, Message: "Interaction " + b.Previous + " not found."}
		a.Problems = nil // the open calls are unknown
	}
	if names := allowed(b.Config.Choice); len(names) > 0 {
		a.Choice = names[0]
	} else if len(b.Config.Choice) > 0 {
		_ = json.Unmarshal(b.Config.Choice, &a.Choice) // the schema has checked it
		if a.Choice == "any" {
			a.Choice = "required"
		}
	}
	if b.System != "" {
		a.Messages = append(a.Messages, convo.Message{Role: convo.System, Text: b.System})
	}
	if len(r.problems) == 0 {
		a.Messages = append(a.Messages, interactionMessages(b.steps())...)
	}
	return a
}

func interactionMessages(steps []interactionStep) []convo.Message {
	var out []convo.Message
	var thought *interactionStep
	assistant := func(text bool) *convo.Message {
		last := len(out) - 1
		if last < 0 || out[last].Role != convo.Assistant || thought != nil || (text && (out[last].Text != "" || len(out[last].Calls) > 0)) {
			out = append(out, convo.Message{Role: convo.Assistant})
			last = len(out) - 1
		}
		if thought != nil {
			for _, p := range thought.Summary {
				out[last].Reasoning += p.Text
			}
			if thought.Signature != "" {
				out[last].Native = json.RawMessage(encode(thought.Signature))
			}
			thought = nil
		}
		return &out[last]
	}
	for n, s := range steps {
		switch s.Type {
		case "thought":
			thought = &steps[n]
		case "user_input":
			m := convo.Message{Role: convo.User}
			m.Text, m.Parts = interactionContent(s.Content)
			out = append(out, m)
		case "model_output":
			m := assistant(true)
			m.Text, m.Parts = interactionContent(s.Content)
		case "function_call":
			m := assistant(false)
			m.Calls = append(m.Calls, convo.Call{ID: s.ID, Name: s.Name, Arguments: string(s.Arguments)})
		case "function_result":
			m := convo.Message{Role: convo.Tool, CallID: s.CallID, Failed: s.IsError}
			if json.Unmarshal(s.Result, &m.Text) != nil {
				var parts []interactionPart
				_ = json.Unmarshal(s.Result, &parts) // an object has no parts
				m.Text, m.Parts = interactionContent(parts)
			}
			out = append(out, m)
		}
	}
	return out
}

func interactionContent(parts []interactionPart) (string, []convo.Part) {
	var (
		text strings.Builder
		out  []convo.Part
	)
	for _, p := range parts {
		kind := "file"
		switch p.Type {
		case "text":
			text.WriteString(p.Text)
			continue
		case "image":
			kind = "image"
		}
		if p.URI != "" {
			out = append(out, convo.Part{Kind: kind, URL: p.URI})
			continue
		}
		data, _ := base64.StdEncoding.DecodeString(p.Data) // invalid data equals nothing
		out = append(out, convo.Part{Kind: kind, MIME: p.MIME, Data: data})
	}
	return text.String(), out
}

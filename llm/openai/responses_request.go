package openai

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// responsesRequest is the body of a request that creates a response.
type responsesRequest struct {
	Instructions string   `json:"instructions,omitempty"`
	MaxOutput    int      `json:"max_output_tokens,omitempty"`
	Previous     string   `json:"previous_response_id,omitempty"`
	Store        bool     `json:"store"`
	Temperature  *float64 `json:"temperature,omitempty"`
	Include      []string `json:"include,omitempty"`
	// Input has inputItems, and unchanged items of earlier answers.
	Input     []any               `json:"input"`
	Model     string              `json:"model"`
	Reasoning *responsesReasoning `json:"reasoning,omitempty"`
	Text      *responsesText      `json:"text,omitempty"`
	// ToolChoice is a mode or a responsesChoice.
	ToolChoice any             `json:"tool_choice,omitempty"`
	Tools      []responsesTool `json:"tools,omitempty"`
	Stream     bool            `json:"stream"`
}

type responsesReasoning struct {
	Effort  string `json:"effort"`
	Summary string `json:"summary,omitempty"`
}

type responsesText struct {
	Format responsesFormat `json:"format"`
}

type responsesFormat struct {
	Type string `json:"type"`
	jsonSchema
}

type responsesTool struct {
	Type        string         `json:"type"`
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters"`
	Strict      bool           `json:"strict"`
}

// responsesChoice is the one tool that must be called.
type responsesChoice struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// inputMessage is a message of any role. Its content is a text or a list of
// inputParts.
type inputMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

type inputCall struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// inputResult is the result of a call, a text or a list of inputParts.
type inputResult struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"`
}

type inputPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Detail   string `json:"detail,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	FileData string `json:"file_data,omitempty"`
	FileURL  string `json:"file_url,omitempty"`
	Filename string `json:"filename,omitempty"`
}

// continuesSession reports whether the vendor has the start of the history. A session is ignored, and everything
// sent, if it has no messages or if no message would be left to send.
func continuesSession(req *llm.Request) bool {
	return req.Session != "" && req.HeldMessages > 0 && req.HeldMessages < len(req.Messages)
}

// responsesBody converts req to a Responses request. Unless KeepSession is set, the vendor stores nothing: the
// history is sent by the client, and reasoning is included in encrypted form. Reasoning is encrypted in stored
// conversations too, in case the vendor loses one. Instructions and tools apply to one response and are sent each
// time.
func (p *Provider) responsesBody(req *llm.Request) (any, error) {
	if err := p.checkReasoning(req); err != nil {
		return nil, err
	}
	body := &responsesRequest{
		Model: req.Model, Store: req.KeepSession, Stream: true, Instructions: req.System, Temperature: req.Temperature,
		MaxOutput: max(req.MaxOutput, 0), ToolChoice: responsesToolChoice(req), Input: []any{},
	}
	if isReasoningModel(req) {
		body.Include = []string{"reasoning.encrypted_content"}
	}
	if req.Reasoning != "" {
		body.Reasoning = &responsesReasoning{Effort: req.Reasoning}
		if p.summary != "none" && req.Reasoning != "none" {
			body.Reasoning.Summary = cmp.Or(p.summary, "auto")
		}
	}
	if req.Schema != nil {
		body.Text = &responsesText{responsesFormat{Type: "json_schema", jsonSchema: answerSchema(req.Schema)}}
	}
	for _, t := range req.Tools {
		body.Tools = append(body.Tools, responsesTool{
			Type: "function", Name: t.Name, Description: t.Description, Parameters: parameters(t),
		})
	}
	sent := map[string]bool{}
	messages := req.Messages
	if continuesSession(req) {
		body.Previous = req.Session
		messages = messages[req.HeldMessages:]
	}
	for i := range messages {
		items, err := p.responsesItems(&messages[i], req.Model, sent)
		if err != nil {
			return nil, err
		}
		body.Input = append(body.Input, items...)
	}
	return body, nil
}

// checkReasoning refuses a number of tokens to think with: these APIs take words only.
func (p *Provider) checkReasoning(req *llm.Request) error {
	if _, err := strconv.Atoi(req.Reasoning); err == nil {
		return p.errors.InvalidRequest("OpenAI's APIs take no number of tokens for reasoning, got %s: use reasoning with none, minimal, low, medium, high or xhigh in place of thinkingBudget", req.Reasoning)
	}
	return nil
}

// isReasoningModel guesses whether the model reasons: requesting encrypted reasoning from another model is an error.
func isReasoningModel(req *llm.Request) bool {
	if req.Reasoning != "" {
		return true
	}
	model := strings.TrimPrefix(req.Model, "ft:")
	for _, family := range []string{"gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat"} {
		if strings.HasPrefix(model, family) {
			return false
		}
	}
	return true
}

func responsesToolChoice(req *llm.Request) any {
	switch {
	case req.ToolChoice == "" || len(req.Tools) == 0:
		return nil
	case req.ToolChoice == "auto" || req.ToolChoice == "none" || req.ToolChoice == "required":
		return req.ToolChoice
	}
	return responsesChoice{Type: "function", Name: req.ToolChoice}
}

// responsesItems converts one message to input items; an assistant's message may become several. sent has the ids of
// the preceding items.
func (p *Provider) responsesItems(m *convo.Message, model string, sent map[string]bool) ([]any, error) {
	switch m.Role {
	case convo.Assistant:
		return p.assistantItems(m, model, sent)
	case convo.Tool:
		output, err := p.responsesContent(m)
		if err != nil {
			return nil, err
		}
		return []any{inputResult{Type: "function_call_output", CallID: m.CallID, Output: output}}, nil
	case convo.System, convo.User:
		content, err := p.responsesContent(m)
		if err != nil {
			return nil, err
		}
		return []any{inputMessage{Role: string(m.Role), Content: content}}, nil
	}
	return nil, p.errors.InvalidRequest("a message has the unknown role %q", m.Role)
}

func (p *Provider) assistantItems(m *convo.Message, model string, sent map[string]bool) ([]any, error) {
	if len(m.Parts) > 0 {
		return nil, p.errors.InvalidRequest("an assistant's message cannot hold an image or a file")
	}
	var items []any
	if kept := p.items(m, model, sent); kept != nil {
		for _, raw := range kept {
			items = append(items, json.RawMessage(raw))
		}
		return items, nil
	}
	if m.Text != "" || len(m.Calls) == 0 {
		items = append(items, inputMessage{Role: "assistant", Content: m.Text})
	}
	for _, c := range m.Calls {
		items = append(items, inputCall{Type: "function_call", CallID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return items, nil
}

// responsesContent converts a message's text and parts.
func (p *Provider) responsesContent(m *convo.Message) (any, error) {
	if len(m.Parts) == 0 {
		return m.Text, nil
	}
	var list []inputPart
	if m.Text != "" {
		list = append(list, inputPart{Type: "input_text", Text: m.Text})
	}
	for _, part := range m.Parts {
		c, err := p.responsesPart(part)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

func (p *Provider) responsesPart(part convo.Part) (inputPart, error) {
	if part.URL == "" && len(part.Data) == 0 {
		return inputPart{}, p.errors.InvalidRequest("the part %q has neither data nor an address", part.Name)
	}
	switch {
	case part.Kind == "image":
		return inputPart{Type: "input_image", Detail: "auto", ImageURL: address(part)}, nil
	case part.Kind != "file":
		return inputPart{}, p.errors.InvalidRequest("a part has the unknown kind %q", part.Kind)
	case len(part.Data) == 0:
		return inputPart{Type: "input_file", FileURL: part.URL}, nil
	}
	return inputPart{Type: "input_file", FileData: dataURL(part), Filename: cmp.Or(part.Name, "file")}, nil
}

// address returns the address of a part's content; its data has precedence.
func address(part convo.Part) string {
	if len(part.Data) > 0 {
		return dataURL(part)
	}
	return part.URL
}

func dataURL(part convo.Part) string {
	mime := part.MIME
	if mime == "" {
		mime = "application/octet-stream"
		if part.Kind == "image" {
			mime = "image/png"
		}
	}
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(part.Data)
}

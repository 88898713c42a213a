package openai

import (
	"cmp"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// chatRequest is the body of a Chat Completions request.
type chatRequest struct {
	Messages            []chatMessage       `json:"messages"`
	Model               string              `json:"model"`
	MaxCompletionTokens int                 `json:"max_completion_tokens,omitempty"`
	MaxTokens           int                 `json:"max_tokens,omitempty"`
	Temperature         *float64            `json:"temperature,omitempty"`
	ReasoningEffort     string              `json:"reasoning_effort,omitempty"`
	StreamOptions       chatStreamOptions   `json:"stream_options"`
	ResponseFormat      *chatResponseFormat `json:"response_format,omitempty"`
	// ToolChoice is a mode or a chatChoice.
	ToolChoice any        `json:"tool_choice,omitempty"`
	Tools      []chatTool `json:"tools,omitempty"`
	Stream     bool       `json:"stream"`
}

type chatStreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatResponseFormat struct {
	Type   string     `json:"type"`
	Schema jsonSchema `json:"json_schema"`
}

// jsonSchema is the schema of an answer. Chat Completions has it below its type, Responses next to it.
type jsonSchema struct {
	Name   string         `json:"name"`
	Strict bool           `json:"strict"`
	Schema map[string]any `json:"schema"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters"`
}

// chatChoice is the one tool that must be called.
type chatChoice struct {
	Type     string   `json:"type"`
	Function chatName `json:"function"`
}

type chatName struct {
	Name string `json:"name"`
}

type chatMessage struct {
	Role string `json:"role"`
	// Content is a text, a list of parts, or nil for a message with only calls.
	Content   any        `json:"content,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
	Calls     []chatCall `json:"tool_calls,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
}

type chatCall struct {
	ID       string           `json:"id"`
	Type     string           `json:"type"`
	Function chatCallFunction `json:"function"`
}

type chatCallFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatPart struct {
	Type  string     `json:"type"`
	Text  string     `json:"text,omitempty"`
	Image *chatImage `json:"image_url,omitempty"`
	File  *chatFile  `json:"file,omitempty"`
}

type chatImage struct {
	URL string `json:"url"`
}

type chatFile struct {
	Data string `json:"file_data"`
	Name string `json:"filename"`
}

// chatBody converts req to a Chat Completions request. The token limit is max_completion_tokens at OpenAI, which
// refuses the older name for reasoning models, and max_tokens elsewhere, because many servers support only that.
func (p *Provider) chatBody(req *llm.Request) (any, error) {
	if err := p.checkReasoning(req); err != nil {
		return nil, err
	}
	body := &chatRequest{
		Model: req.Model, ReasoningEffort: req.Reasoning, Temperature: req.Temperature,
		StreamOptions: chatStreamOptions{IncludeUsage: true}, Stream: true, ToolChoice: chatToolChoice(req),
	}
	if p.vendor {
		body.MaxCompletionTokens = max(req.MaxOutput, 0)
	} else {
		body.MaxTokens = max(req.MaxOutput, 0)
	}
	if req.Schema != nil {
		body.ResponseFormat = &chatResponseFormat{Type: "json_schema", Schema: answerSchema(req.Schema)}
	}
	for _, t := range req.Tools {
		body.Tools = append(body.Tools, chatTool{
			Type: "function", Function: chatFunction{Name: t.Name, Description: t.Description, Parameters: parameters(t)},
		})
	}
	if req.System != "" {
		body.Messages = append(body.Messages, chatMessage{Role: "system", Content: req.System})
	}
	open := afterUser(req.Messages)
	for i := range req.Messages {
		m, err := p.chatMessage(&req.Messages[i], req.Model, i > open)
		if err != nil {
			return nil, err
		}
		body.Messages = append(body.Messages, m)
	}
	return body, nil
}

// afterUser returns the index of the last user message, -1 if there is none.
func afterUser(messages []convo.Message) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == convo.User {
			return i
		}
	}
	return -1
}

func chatToolChoice(req *llm.Request) any {
	switch {
	case req.ToolChoice == "" || len(req.Tools) == 0:
		return nil
	case req.ToolChoice == "auto" || req.ToolChoice == "none" || req.ToolChoice == "required":
		return req.ToolChoice
	}
	return chatChoice{Type: "function", Function: chatName{req.ToolChoice}}
}

// chatMessage converts one message; open means that it belongs to the current turn, for which some reasoning servers
// require their reasoning.
func (p *Provider) chatMessage(m *convo.Message, model string, open bool) (chatMessage, error) {
	if len(m.Parts) > 0 && m.Role != convo.User {
		return chatMessage{}, p.errors.InvalidRequest(
			"chat completions accepts images and files in user messages only, not in one with the role %q", m.Role)
	}
	switch m.Role {
	case convo.System:
		return chatMessage{Role: "system", Content: m.Text}, nil
	case convo.User:
		return p.chatUser(m)
	case convo.Tool:
		return chatMessage{Role: "tool", Content: m.Text, CallID: m.CallID}, nil
	case convo.Assistant:
		return p.chatAssistant(m, model, open), nil
	}
	return chatMessage{}, p.errors.InvalidRequest("a message has the unknown role %q", m.Role)
}

func (p *Provider) chatAssistant(m *convo.Message, model string, open bool) chatMessage {
	out := chatMessage{Role: "assistant"}
	if m.Text != "" || len(m.Calls) == 0 {
		out.Content = m.Text
	}
	for _, c := range m.Calls {
		out.Calls = append(out.Calls, chatCall{
			ID: c.ID, Type: "function", Function: chatCallFunction{Name: c.Name, Arguments: c.Arguments},
		})
	}
	if n, ok := p.unpack(m, model); ok && open && len(m.Calls) > 0 && n.Reasoning == m.Reasoning {
		out.Reasoning = n.Reasoning
	}
	return out
}

func (p *Provider) chatUser(m *convo.Message) (chatMessage, error) {
	if len(m.Parts) == 0 {
		return chatMessage{Role: "user", Content: m.Text}, nil
	}
	var parts []chatPart
	if m.Text != "" {
		parts = append(parts, chatPart{Type: "text", Text: m.Text})
	}
	for _, part := range m.Parts {
		c, err := p.chatPart(part)
		if err != nil {
			return chatMessage{}, err
		}
		parts = append(parts, c)
	}
	return chatMessage{Role: "user", Content: parts}, nil
}

func (p *Provider) chatPart(part convo.Part) (chatPart, error) {
	switch {
	case part.Kind != "image" && part.Kind != "file":
		return chatPart{}, p.errors.InvalidRequest("a part has the unknown kind %q", part.Kind)
	case part.URL == "" && len(part.Data) == 0:
		return chatPart{}, p.errors.InvalidRequest("the part %q has neither data nor an address", part.Name)
	case part.Kind == "image":
		return chatPart{Type: "image_url", Image: &chatImage{URL: address(part)}}, nil
	case len(part.Data) == 0:
		return chatPart{}, p.errors.InvalidRequest("chat completions accepts a file as data only, not by its address")
	}
	return chatPart{Type: "file", File: &chatFile{Data: dataURL(part), Name: cmp.Or(part.Name, "file")}}, nil
}

package anthropic

import "encoding/json"

// messagesRequest is the body of a Messages request.
type messagesRequest struct {
	MaxTokens    int            `json:"max_tokens"`
	Messages     []apiMessage   `json:"messages"`
	Model        string         `json:"model"`
	Temperature  *float64       `json:"temperature,omitempty"`
	OutputConfig *outputConfig  `json:"output_config,omitempty"`
	System       []contentBlock `json:"system,omitempty"`
	Thinking     *thinking      `json:"thinking,omitempty"`
	ToolChoice   *toolChoice    `json:"tool_choice,omitempty"`
	Tools        []apiTool      `json:"tools,omitempty"`
	Stream       bool           `json:"stream"`
}

// The roles of a conversation.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

type apiMessage struct {
	Content []contentBlock `json:"content"`
	Role    string         `json:"role"`
}

type outputConfig struct {
	Effort string        `json:"effort,omitempty"`
	Format *answerFormat `json:"format,omitempty"`
}

type answerFormat struct {
	Type   string         `json:"type"`
	Schema map[string]any `json:"schema"`
}

// thinking is the thinking configuration: a token budget ("enabled"), or left to the model ("adaptive").
type thinking struct {
	Type    string `json:"type"`
	Budget  int    `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

type toolChoice struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
}

// forced reports whether the model must call a tool.
func (c *toolChoice) forced() bool { return c != nil && (c.Type == "any" || c.Type == "tool") }

type apiTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	InputSchema map[string]any `json:"input_schema"`
	Cache       *cacheMark     `json:"cache_control,omitempty"`
}

// cacheMark is a cache_control field. It marks the end of a prefix that the vendor caches.
type cacheMark struct {
	Type string `json:"type"`
}

// contentBlock is a block of a message, of the system text or of a tool result.
type contentBlock struct {
	// raw is a block of an earlier answer, which is sent back unchanged.
	raw json.RawMessage

	Type string `json:"type"`
	// Text is set for a text block.
	Text string `json:"text,omitempty"`
	// ID, Name and Input are set for a call.
	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	// ToolUseID, Content and IsError are set for a result.
	ToolUseID string         `json:"tool_use_id,omitempty"`
	Content   []contentBlock `json:"content,omitempty"`
	IsError   bool           `json:"is_error,omitempty"`
	// Source and Title are set for an image or a document.
	Source *blockSource `json:"source,omitempty"`
	Title  string       `json:"title,omitempty"`
	Cache  *cacheMark   `json:"cache_control,omitempty"`
}

type blockSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

// MarshalJSON encodes the block; a raw block is written unchanged.
func (b contentBlock) MarshalJSON() ([]byte, error) {
	if b.raw != nil {
		return b.raw, nil
	}
	type plain contentBlock
	return json.Marshal(plain(b))
}

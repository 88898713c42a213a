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

// The sides of a conversation.
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

// thinking is a budget of tokens ("enabled"), or left to the model ("adaptive").
type thinking struct {
	Type    string `json:"type"`
	Budget  int    `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

type toolChoice struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
}

// forced says that the model must call a tool.
func (c *toolChoice) forced() bool { return c != nil && (c.Type == "any" || c.Type == "tool") }

type apiTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	InputSchema map[string]any `json:"input_schema"`
	Cache       *cacheMark     `json:"cache_control,omitempty"`
}

// cacheMark marks the end of what the vendor is to keep in its prompt cache.
type cacheMark struct {
	Type string `json:"type"`
}

// contentBlock is a block of a message, of the system's text or of a result.
type contentBlock struct {
	// raw is a block of an answer as it came, which is sent back so.
	raw json.RawMessage

	Type string `json:"type"`
	// Text is a text's.
	Text string `json:"text,omitempty"`
	// ID, Name and Input are a call's.
	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	// ToolUseID, Content and IsError are a result's.
	ToolUseID string         `json:"tool_use_id,omitempty"`
	Content   []contentBlock `json:"content,omitempty"`
	IsError   bool           `json:"is_error,omitempty"`
	// Source and Title are an image's or a document's.
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

// MarshalJSON writes the block, or the block of an answer that it is.
func (b contentBlock) MarshalJSON() ([]byte, error) {
	if b.raw != nil {
		return b.raw, nil
	}
	type plain contentBlock
	return json.Marshal(plain(b))
}

package llm

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/weir-run/weir/convo"
)

// canonicalRequest has the fields that identify a request: everything that is sent to the
// model.
type canonicalRequest struct {
	Provider    string             `json:"provider,omitempty"`
	Model       string             `json:"model,omitempty"`
	System      string             `json:"system,omitempty"`
	Messages    []canonicalMessage `json:"messages"`
	Tools       []Tool             `json:"tools,omitempty"`
	ToolChoice  string             `json:"tool_choice,omitempty"`
	Temperature *float64           `json:"temperature,omitempty"`
	MaxOutput   int                `json:"max_output,omitempty"`
	Reasoning   string             `json:"reasoning,omitempty"`
	Schema      map[string]any     `json:"schema,omitempty"`
}

type canonicalMessage struct {
	Role   convo.Role   `json:"role"`
	Text   string       `json:"text,omitempty"`
	Parts  []convo.Part `json:"parts,omitempty"`
	Calls  []convo.Call `json:"calls,omitempty"`
	CallID string       `json:"call_id,omitempty"`
	Name   string       `json:"name,omitempty"`
	Failed bool         `json:"failed,omitempty"`
	// Native is decoded, because journals need not keep the order of its keys.
	Native   any    `json:"native,omitempty"`
	Provider string `json:"provider,omitempty"`
}

// Canonical returns JSON that is equal for requests that send the same to the model:
// without the key, and without the parts of messages that are not sent (ids, reasoning
// text, pins, metadata). It returns an error if a schema or native blocks are not valid
// JSON.
func (r *Request) Canonical() ([]byte, error) {
	c := canonicalRequest{
		Provider: r.Provider, Model: r.Model, System: r.System, Tools: r.Tools, ToolChoice: r.ToolChoice,
		Temperature: r.Temperature, MaxOutput: r.MaxOutput, Reasoning: r.Reasoning, Schema: r.Schema,
		Messages: make([]canonicalMessage, len(r.Messages)),
	}
	for i := range r.Messages {
		var err error
		if c.Messages[i], err = canonicalOf(&r.Messages[i]); err != nil {
			return nil, fmt.Errorf("canonical form of a request: native blocks of message %d: %w", i+1, err)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return nil, fmt.Errorf("canonical form of a request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func canonicalOf(m *convo.Message) (canonicalMessage, error) {
	c := canonicalMessage{
		Role: m.Role, Text: m.Text, Parts: m.Parts, Calls: m.Calls, CallID: m.CallID, Name: m.Name,
		Failed: m.Failed, Provider: m.Provider,
	}
	if m.Native == nil {
		return c, nil
	}
	return c, json.Unmarshal(m.Native, &c.Native)
}

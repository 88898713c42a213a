package otel

import (
	"encoding/json"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/llm"
)

// maxContent is the size of an attribute with contents, in bytes.
const maxContent = 32 << 10

// cut returns the beginning of a text.
func cut(s string) string { return excerpt.Bytes(s, maxContent) }

// valueAttribute returns an attribute with values as JSON.
func valueAttribute(name string, v engine.Values) Attribute {
	text, err := json.Marshal(v)
	if err != nil { // values of a journal are JSON
		text = []byte("{}")
	}
	return Attribute{name, cut(string(text))}
}

// part is a part of a message, in the form of the conventions.
type part struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
}

// outputMessages returns the answer of a model in the form of the conventions, as JSON. The
// text and the arguments of calls are cut, the JSON is whole.
func outputMessages(r *llm.Response) Attribute {
	type message struct {
		Role         string `json:"role"`
		Parts        []part `json:"parts"`
		FinishReason string `json:"finish_reason"`
	}
	m := message{Role: "assistant", Parts: []part{}, FinishReason: finishReason(r.Stop)}
	if r.Message.Text != "" {
		m.Parts = append(m.Parts, part{Type: "text", Content: cut(r.Message.Text)})
	}
	for _, c := range r.Message.Calls {
		m.Parts = append(m.Parts, part{Type: "tool_call", ID: c.ID, Name: c.Name, Arguments: cut(c.Arguments)})
	}
	text, err := json.Marshal([]message{m})
	if err != nil { // it has strings only
		text = []byte("[]")
	}
	return Attribute{attrOutputMessages, string(text)}
}

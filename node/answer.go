package node

import (
	"encoding/json"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow/schema"
)

// Schema is a compiled JSON Schema.
type Schema = schema.Schema

// CompileSchema compiles a JSON Schema (see schema.Compile). A nil schema accepts only
// text, as the questions of userInput do.
func CompileSchema(s map[string]any) (*Schema, error) {
	if s == nil {
		s = map[string]any{"type": "string"}
	}
	compiled, err := schema.Compile(s)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return compiled, nil
}

// CheckAnswer reports why a value cannot answer a question with this schema; a nil schema
// requires text. The runner refuses such an answer before it is journaled.
func CheckAnswer(form map[string]any, value engine.Value) error {
	s, err := CompileSchema(form)
	if err != nil {
		return err
	}
	return s.Check(value)
}

// ParseAnswer converts a person's typed text to an answer: the text itself if the schema
// accepts it (a nil schema always does), otherwise the JSON value that the text represents.
// The error says what the question expects.
func ParseAnswer(form map[string]any, text string) (engine.Value, error) {
	s, err := CompileSchema(form)
	if err != nil {
		return nil, err
	}
	asText := s.Check(text)
	if asText == nil {
		return text, nil
	}
	if !json.Valid([]byte(text)) {
		return nil, asText
	}
	v, err := engine.ParseValue([]byte(text))
	if err != nil {
		return nil, err
	}
	if err := s.Check(v); err != nil {
		return nil, err
	}
	return v, nil
}

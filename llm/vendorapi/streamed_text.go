package vendorapi

import (
	"strings"

	"github.com/weir-run/weir/llm"
)

// StreamedText collects the text and the reasoning of an answer, and emits each piece as it arrives.
type StreamedText struct {
	Emit      func(llm.Chunk)
	text      strings.Builder
	reasoning strings.Builder
}

// AddText adds a piece of the text; an empty piece is ignored.
func (s *StreamedText) AddText(text string) {
	if text == "" {
		return
	}
	s.text.WriteString(text)
	s.Emit(llm.Chunk{Text: text})
}

// AddReasoning adds a piece of the reasoning; an empty piece is ignored.
func (s *StreamedText) AddReasoning(text string) {
	if text == "" {
		return
	}
	s.reasoning.WriteString(text)
	s.Emit(llm.Chunk{Reasoning: text})
}

// Text returns the text so far.
func (s *StreamedText) Text() string { return s.text.String() }

// Reasoning returns the reasoning so far.
func (s *StreamedText) Reasoning() string { return s.reasoning.String() }

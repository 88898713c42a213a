package tool

import (
	"errors"
	"fmt"
)

// The limits of the input that a tool may require.
const (
	// MaxInputRounds is how often one call may require input.
	MaxInputRounds = 10
	// MaxQuestions is the number of questions that a call may ask at a time.
	MaxQuestions = 20
	// maxInputState limits State in bytes, which is recorded and sent back as it is.
	maxInputState = 64 << 10
)

// InputRequired is the error of a call that a person has to give input for. Where a person
// can be asked, the run pauses with the questions, and the call is made again with the
// answers and the State. Elsewhere it is an error of the tool.
type InputRequired struct {
	// Questions are asked together; at least one.
	Questions []Question `json:"questions"`
	// State is returned unchanged with the answers. Only the tool reads it. At most 64 KiB.
	State string `json:"state,omitempty"`
}

// Question is one question of a tool to a person.
type Question struct {
	// Name identifies the question among those of the call.
	Name   string `json:"name"`
	Prompt string `json:"prompt"`
	// Schema is the JSON Schema of the answer; nil is text.
	Schema map[string]any `json:"schema,omitempty"`
}

// Input is what a call is given that continues one with InputRequired.
type Input struct {
	// State is that of InputRequired.
	State string `json:"state,omitempty"`
	// Answers has an answer to each question, by name.
	Answers map[string]InputAnswer `json:"answers"`
}

// InputAnswer is a person's answer to one question.
type InputAnswer struct {
	// Declined says that the person does not answer; Value is nil then.
	Declined bool `json:"declined,omitempty"`
	Value    any  `json:"value,omitempty"`
}

// Error implements error.
func (e *InputRequired) Error() string {
	if len(e.Questions) == 0 {
		return "the tool requires input, and asks nothing"
	}
	return fmt.Sprintf("the tool requires the input of a person, who cannot be asked here: %s", e.Questions[0].Prompt)
}

// Check reports why the questions cannot be asked.
func (e *InputRequired) Check() error {
	switch {
	case len(e.Questions) == 0:
		return errors.New("it requires input, and asks nothing")
	case len(e.Questions) > MaxQuestions:
		return fmt.Errorf("it asks %d questions, and %d are the limit", len(e.Questions), MaxQuestions)
	case len(e.State) > maxInputState:
		return fmt.Errorf("its state has %d bytes, and %d are the limit", len(e.State), maxInputState)
	}
	names := make(map[string]bool, len(e.Questions))
	for _, q := range e.Questions {
		if names[q.Name] {
			return fmt.Errorf("two questions have the name %q", q.Name)
		}
		names[q.Name] = true
	}
	return nil
}

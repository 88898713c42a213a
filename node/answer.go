package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/weir-run/weir/engine"
)

// Schema is a compiled JSON Schema (draft 2020-12 unless it names another). It
// reads no file and no network: references point into the schema itself.
type Schema struct{ s *jsonschema.Schema }

// CompileSchema compiles a JSON Schema. A nil schema accepts text only, as the
// questions of userInput do.
func CompileSchema(schema map[string]any) (*Schema, error) {
	if schema == nil {
		schema = map[string]any{"type": "string"}
	}
	doc, err := engine.Normalize(schema)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	const root = "weir:///schema.json"
	if err := c.AddResource(root, doc); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s, err := c.Compile(root)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &Schema{s}, nil
}

// Check says what in v the schema refuses: every place with what was expected
// there, "; " between them. Nil means that v is valid.
func (s *Schema) Check(v engine.Value) error {
	err := s.s.Validate(v)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("check against the schema: %w", err)
	}
	var faults []string
	collectFaults(invalid, message.NewPrinter(language.English), &faults)
	return errors.New(strings.Join(faults, "; "))
}

// collectFaults appends the leaves of a validation error, where the reasons are.
func collectFaults(e *jsonschema.ValidationError, p *message.Printer, faults *[]string) {
	for _, c := range e.Causes {
		collectFaults(c, p, faults)
	}
	if len(e.Causes) > 0 {
		return
	}
	fault := e.ErrorKind.LocalizedString(p)
	if len(e.InstanceLocation) > 0 {
		fault = strings.Join(e.InstanceLocation, ".") + ": " + fault
	}
	*faults = append(*faults, fault)
}

// CheckAnswer reports why a value cannot be the answer to a question with this
// schema; a nil schema asks for text. The runner refuses such an answer before
// it is journaled.
func CheckAnswer(schema map[string]any, value engine.Value) error {
	s, err := CompileSchema(schema)
	if err != nil {
		return err
	}
	if err := s.Check(value); err != nil {
		return fmt.Errorf("the answer does not fit the question: %w", err)
	}
	return nil
}

// ParseAnswer turns what a person typed into an answer: the text itself where
// the schema takes it (a nil schema always does), else the value that the text
// is JSON of. The error says what the question expects.
func ParseAnswer(schema map[string]any, text string) (engine.Value, error) {
	s, err := CompileSchema(schema)
	if err != nil {
		return nil, err
	}
	asText := s.Check(text)
	if asText == nil {
		return text, nil
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("the answer does not fit the question: %w", asText)
	}
	v, err := engine.ParseValue([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the answer does not fit the question: %w", err)
	}
	if err := s.Check(v); err != nil {
		return nil, fmt.Errorf("the answer does not fit the question: %w", err)
	}
	return v, nil
}

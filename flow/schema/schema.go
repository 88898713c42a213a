// Package schema compiles JSON Schemas and explains in words why a value does not fit. It
// is used for all checks of settings, answers of people, tool arguments and answers of
// models.
//
// It must not know what the values are for.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct{ s *jsonschema.Schema }

// root is the URL of a schema, for its own references.
const root = "weir:///schema.json"

// Compile compiles a JSON Schema, of draft 2020-12 unless it names another. It reads no
// file or network address: references must point into the schema itself. The error says
// what is wrong with the schema.
func Compile(s map[string]any) (*Schema, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	doc, err := Parse(string(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(root, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(root)
	if e, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if v, ok := errors.AsType[*jsonschema.ValidationError](e.Err); ok {
			return nil, errors.New(strings.Join(PlacedReasons(v), "; "))
		}
	}
	if err != nil {
		return nil, err
	}
	return &Schema{compiled}, nil
}

// noLoader refuses to load other documents.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to %s; only references inside the schema are allowed", url)
}

// Parse parses a JSON text that has nothing after the value. Numbers are json.Number.
func Parse(text string) (any, error) { return jsonschema.UnmarshalJSON(strings.NewReader(text)) }

// Check says what the schema refuses in v: every place, up to eight, with what was expected
// there, separated by "; ". Nil means that v is valid.
func (s *Schema) Check(v any) error {
	e, err := s.ValidationError(v)
	if e == nil {
		return err
	}
	return errors.New(strings.Join(PlacedReasons(e), "; "))
}

// ValidationError is Check with the library's own error, nil for a valid value; err is set
// if v could not be checked.
func (s *Schema) ValidationError(v any) (e *jsonschema.ValidationError, err error) {
	err = s.s.Validate(v)
	if errors.As(err, &e) {
		return e, nil
	}
	if err != nil {
		return nil, fmt.Errorf("check against the schema: %w", err)
	}
	return nil, nil
}

// OptionalNotNull lists the optional members of an object that may not be null, in
// alphabetical order.
func (s *Schema) OptionalNotNull() []string {
	var out []string
	for name, p := range s.s.Properties {
		if !slices.Contains(s.s.Required, name) && p.Validate(nil) != nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// maxReasons limits the number of places that an error names.
const maxReasons = 8

// PlacedReasons returns the reasons of an error with their places, without duplicates.
func PlacedReasons(e *jsonschema.ValidationError) []string {
	return appendReasons(nil, e, true, message.NewPrinter(language.English))
}

// Reasons returns the reasons of an error without their places.
func Reasons(e *jsonschema.ValidationError) []string {
	return appendReasons(nil, e, false, message.NewPrinter(language.English))
}

// appendReasons appends the leaf errors, which have the reasons.
func appendReasons(out []string, e *jsonschema.ValidationError, placed bool, p *message.Printer) []string {
	for _, c := range e.Causes {
		out = appendReasons(out, c, placed, p)
	}
	if len(e.Causes) > 0 || len(out) == maxReasons {
		return out
	}
	word := e.ErrorKind.LocalizedString(p)
	if t, ok := e.ErrorKind.(*kind.Type); ok {
		word = fmt.Sprintf("expected %s, got %s", strings.Join(t.Want, " or "), t.Got)
	}
	if placed && len(e.InstanceLocation) > 0 {
		word = strings.Join(e.InstanceLocation, ".") + ": " + word
	}
	if !slices.Contains(out, word) {
		out = append(out, word)
	}
	return out
}

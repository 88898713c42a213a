package tool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/flow/schema"
)

// Arguments checks a model's arguments against a tool's parameters.
type Arguments struct {
	schema   *schema.Schema
	names    []string        // the sorted names of the properties
	optional map[string]bool // those that may be omitted but not null
}

// NewArguments compiles the JSON Schema of a tool's parameters (draft 2020-12 unless it
// names another; nil means no arguments). It reads no file or network address: references
// must point into the schema itself.
func NewArguments(parameters map[string]any) (*Arguments, error) {
	if parameters == nil {
		parameters = map[string]any{"type": "object", "additionalProperties": false}
	}
	compiled, err := schema.Compile(parameters)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	properties, _ := parameters["properties"].(map[string]any)
	a := &Arguments{schema: compiled, names: slices.Sorted(maps.Keys(properties)), optional: make(map[string]bool)}
	for _, name := range compiled.OptionalNotNull() {
		a.optional[name] = true
	}
	return a, nil
}

// Read checks a model's JSON text and returns its members; numbers are json.Number. An
// empty text means no arguments, and null for an optional property that cannot be null
// counts as omitted, because several models write it. The error is for the model: it names
// every place, what was expected there, and the properties of the schema.
func (a *Arguments) Read(text string) (map[string]any, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	v, err := schema.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the arguments are not JSON: %w", err)
	}
	args, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the arguments are not a JSON object")
	}
	maps.DeleteFunc(args, func(name string, v any) bool { return v == nil && a.optional[name] })
	wrong := a.schema.Check(args)
	if wrong == nil {
		return args, nil
	}
	takes := "it takes none"
	if len(a.names) > 0 {
		takes = "it takes " + strings.Join(a.names, ", ")
	}
	return nil, fmt.Errorf("the arguments do not fit the tool (%s): %w", takes, wrong)
}

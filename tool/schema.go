package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Arguments checks what models write as arguments against a tool's parameters.
type Arguments struct {
	schema   *jsonschema.Schema
	names    []string        // the properties there are, sorted
	optional map[string]bool // those that may be left out and may not be null
}

// NewArguments compiles the JSON Schema of a tool's parameters (draft 2020-12
// unless it names another; nil takes no arguments). It reads no file and no
// network: references point into the schema itself.
func NewArguments(parameters map[string]any) (*Arguments, error) {
	if parameters == nil {
		parameters = map[string]any{"type": "object", "additionalProperties": false}
	}
	b, err := json.Marshal(parameters)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	const root = "weir:///parameters.json"
	if err := c.AddResource(root, doc); err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	a := &Arguments{optional: make(map[string]bool)}
	if a.schema, err = c.Compile(root); err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	properties, _ := parameters["properties"].(map[string]any)
	a.names = slices.Sorted(maps.Keys(properties))
	for name, p := range a.schema.Properties {
		if !slices.Contains(a.schema.Required, name) && p.Validate(nil) != nil {
			a.optional[name] = true
		}
	}
	return a, nil
}

// Read checks the JSON text a model wrote and returns its members; numbers are
// json.Number. No text is no arguments, and null for an optional property that
// cannot be null is that property left out, as several models write it. The
// error is told to the model: it names every place, what was expected there,
// and the properties there are.
func (a *Arguments) Read(text string) (map[string]any, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the arguments are not JSON: %w", err)
	}
	args, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the arguments are not a JSON object")
	}
	maps.DeleteFunc(args, func(name string, v any) bool { return v == nil && a.optional[name] })
	err = a.schema.Validate(args)
	if err == nil {
		return args, nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return nil, fmt.Errorf("check the arguments: %w", err)
	}
	var faults []string
	collectFaults(invalid, message.NewPrinter(language.English), &faults)
	takes := "it takes none"
	if len(a.names) > 0 {
		takes = "it takes " + strings.Join(a.names, ", ")
	}
	return nil, fmt.Errorf("the arguments do not fit the tool (%s): %s", takes, strings.Join(faults, "; "))
}

// maxFaults bounds how many places an error names.
const maxFaults = 8

// collectFaults appends the leaves of a validation error, where the reasons are.
func collectFaults(e *jsonschema.ValidationError, p *message.Printer, faults *[]string) {
	for _, c := range e.Causes {
		collectFaults(c, p, faults)
	}
	if len(e.Causes) > 0 || len(*faults) == maxFaults {
		return
	}
	fault := e.ErrorKind.LocalizedString(p)
	if len(e.InstanceLocation) > 0 {
		fault = strings.Join(e.InstanceLocation, ".") + ": " + fault
	}
	if !slices.Contains(*faults, fault) {
		*faults = append(*faults, fault)
	}
}

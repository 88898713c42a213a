package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// FromFunc creates a tool from a Go function. The fields of In are its arguments, named by
// their json tags; a `doc:"..."` tag describes one to the model and `enum:"a,b"` lists the
// values of a text. A field is required unless it is a pointer or marked omitempty or
// omitzero. Arguments are checked against the schema derived from In before the function is
// called, and unknown members are refused.
//
// A text is returned to the model unchanged, anything else as JSON. Set further fields,
// such as ReadOnly or Timeout, on the returned tool. The error says what is wrong with the
// name or In.
func FromFunc[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error)) (*Tool, error) {
	parameters, err := parametersOf(reflect.TypeFor[In]())
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", name, err)
	}
	return FromSchema(name, description, parameters, func(ctx context.Context, _ Call, args map[string]any) (string, error) {
		var in In
		b, err := json.Marshal(args)
		if err == nil {
			err = json.Unmarshal(b, &in)
		}
		if err != nil {
			return "", fmt.Errorf("the arguments do not fit the tool: %w", err)
		}
		out, err := f(ctx, in)
		if err != nil {
			return "", err
		}
		return textOf(out)
	})
}

// FromSchema creates a tool from a schema and a function that receives valid arguments (see
// Arguments.Read), for tools that are not known at compile time, such as a flow that is
// offered as a tool. The error says what is wrong with the name or the schema.
func FromSchema(
	name, description string, parameters map[string]any,
	f func(ctx context.Context, call Call, args map[string]any) (string, error),
) (*Tool, error) {
	arguments, err := NewArguments(parameters)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", name, err)
	}
	t := &Tool{
		Name: name, Description: description, Parameters: parameters,
		Call: func(ctx context.Context, call Call) (string, error) {
			args, err := arguments.Read(call.Arguments)
			if err != nil {
				return "", NotMade(err)
			}
			return f(ctx, call, args)
		},
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	return t, nil
}

// textOf returns a result as text for the model.
func textOf(out any) (string, error) {
	if v := reflect.ValueOf(out); v.Kind() == reflect.String {
		return v.String(), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return "", fmt.Errorf("the result cannot be written as JSON: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// parametersOf returns the JSON Schema of a struct; nil for one without fields.
func parametersOf(t reflect.Type) (map[string]any, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("its arguments must be the fields of a struct, and %s is not one", t)
	}
	s, err := jsonschema.ForType(t, nil)
	if err != nil {
		return nil, err
	}
	if len(s.Properties) == 0 {
		return nil, nil
	}
	if err := annotate(s, t); err != nil {
		return nil, err
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var parameters map[string]any
	return parameters, json.Unmarshal(b, &parameters)
}

// annotate applies the tags, makes pointers optional, and removes null from types: an
// argument is given or omitted.
func annotate(s *jsonschema.Schema, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		if s.Items != nil {
			return annotate(s.Items, t.Elem())
		}
	case reflect.Map:
		if s.AdditionalProperties != nil {
			return annotate(s.AdditionalProperties, t.Elem())
		}
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if err := annotateField(s, f); err != nil {
				return err
			}
		}
	default:
	}
	return nil
}

func annotateField(s *jsonschema.Schema, f reflect.StructField) error {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		name = f.Name
	}
	p := s.Properties[name]
	if p == nil || f.Anonymous || !f.IsExported() {
		return nil
	}
	if d := f.Tag.Get("doc"); d != "" {
		p.Description = d
	}
	if f.Type.Kind() == reflect.Pointer {
		s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
	}
	if err := annotate(p, f.Type); err != nil {
		return err
	}
	values, ok := f.Tag.Lookup("enum")
	if !ok {
		return nil
	}
	if p.Type != "string" {
		return fmt.Errorf("field %s: an enum tag requires a text", f.Name)
	}
	for v := range strings.SplitSeq(values, ",") {
		p.Enum = append(p.Enum, strings.TrimSpace(v))
	}
	return nil
}

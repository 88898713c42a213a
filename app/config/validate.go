package config

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema of a file, for editors.
func Schema() []byte { return bytes.Clone(schema) }

// compiledSchema compiles the schema of a file. This takes longer than reading the file, so
// a process without configuration files does not do it.
func compiledSchema() *jsonschema.Schema {
	const name = "config.schema.json"
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		panic("config: schema.json: " + err.Error())
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, v); err != nil {
		panic("config: schema.json: " + err.Error())
	}
	return c.MustCompile(name)
}

// validate holds a file to the schema.
func (d *document) validate(s *jsonschema.Schema, v any) bool {
	err := s.Validate(v)
	if e, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		d.explain(s, e)
	} else if err != nil {
		d.report(nil, err.Error(), "")
	}
	sortProblems(d.problems)
	return err == nil
}

// explain reports the leaves of an error. Values are not shown: one may be a
// key that was written where its place should be.
func (d *document) explain(s *jsonschema.Schema, e *jsonschema.ValidationError) {
	path := e.InstanceLocation
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			d.reportUnknownKey(s, path, name)
		}
	case *kind.Required:
		d.report(path, "needs "+strings.Join(k.Missing, " and "), "")
	case *kind.Type:
		d.reportType(path, k)
	case *kind.Enum:
		d.report(path, "is none of "+joinValues(k.Want), "")
	case *kind.Pattern:
		d.reportForm(path, k.Want)
	case *kind.PropertyNames:
		d.report(append(slices.Clone(path), k.Property), "a name of this form cannot be used here", "names are of letters, digits and . _ -")
	case *kind.MinProperties, *kind.MaxProperties:
		d.report(path, "is to hold one of env and file", literalHint)
	case *kind.MinItems:
		d.report(path, "is to hold at least one", "")
	case *kind.MinLength:
		d.report(path, "is empty", "")
	case *kind.Minimum:
		want, _ := k.Want.Float64()
		d.report(path, fmt.Sprintf("is to be at least %v", want), "")
	default:
		if len(e.Causes) == 0 {
			d.report(path, "is not of the form that the schema asks for", "")
		}
		for _, c := range e.Causes {
			d.explain(s, c)
		}
	}
}

const literalHint = "a key is never written into the file: key: {env: NAME} or key: {file: PATH}"

func (d *document) reportType(path []string, k *kind.Type) {
	msg, hint := fmt.Sprintf("is to be %s, not %s", strings.Join(k.Want, " or "), k.Got), ""
	if isKey(path) && k.Got == "string" {
		msg, hint = "a key is never written into the file", "say where it is: {env: NAME} or {file: PATH}"
	}
	d.report(path, msg, hint)
}

// isKey reports whether a path leads to where a key is said to be.
func isKey(path []string) bool {
	return len(path) == 3 && path[0] == "providers" && path[2] == "key" ||
		slices.Equal(path, []string{"executors", "e2b", "key"}) || slices.Equal(path, []string{"server", "oidc", "clientSecret"}) || len(path) == 2 && path[0] == "secrets"
}

func (d *document) reportForm(path []string, want string) {
	switch last := path[len(path)-1]; {
	case last == "env" || last == "apiKeyEnv":
		d.report(path, "is to be the name of an environment variable and not what it holds", "such as OPENAI_API_KEY")
	case strings.Contains(want, "https"):
		d.report(path, "is to begin with https:// or http://", "")
	case path[0] == "server" && (last == "keep" || last == "every" || last == "session"):
		d.report(path, "is to be a duration of at least a minute", "such as 90m or 24h")
	case last == "timeout" || last == "drain":
		d.report(path, "is to be a duration", "such as 30s or 1m30s")
	default:
		d.report(path, "is not of the form "+want, "")
	}
}

// reportUnknownKey reports a key that the schema has not.
func (d *document) reportUnknownKey(s *jsonschema.Schema, path []string, name string) {
	hint := ""
	if at := schemaAt(s, path); at != nil {
		hint = "known here: " + strings.Join(slices.Sorted(maps.Keys(at.Properties)), ", ")
	}
	if strings.EqualFold(name, "apiKey") || strings.EqualFold(name, "api_key") || strings.EqualFold(name, "token") {
		hint = literalHint
	}
	d.report(append(slices.Clone(path), name), "there is no such key", hint)
}

// schemaAt finds the part of the schema that a path is held to.
func schemaAt(s *jsonschema.Schema, path []string) *jsonschema.Schema {
	for _, step := range path {
		switch {
		case s == nil:
			return nil
		case s.Properties[step] != nil:
			s = s.Properties[step]
		case s.Items2020 != nil:
			s = s.Items2020
		default:
			s, _ = s.AdditionalProperties.(*jsonschema.Schema)
		}
		for s != nil && s.Ref != nil {
			s = s.Ref
		}
	}
	return s
}

func joinValues(values []any) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = fmt.Sprint(v)
	}
	return strings.Join(out, ", ")
}

package llmtest

import (
	"bytes"
	_ "embed" // the APIs' schemas
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

//go:embed chat.schema.json
var chatSchema []byte

//go:embed responses.schema.json
var responsesSchema []byte

// The compiled schemas, each compiled once, because tests start many servers.
//
//nolint:gochecknoglobals // compiled tables
var (
	chatShape = sync.OnceValue(func() *jsonschema.Schema {
		return mustCompile("weir:chat", chatSchema)
	})
	responsesShape = sync.OnceValue(func() *jsonschema.Schema {
		return mustCompile("weir:responses", responsesSchema)
	})
)

// issuedIDs has what a server has issued and accepts in later requests: encrypted reasoning ("secret:CONTENT") and
// item ids ("item:ID"), each with the id of the reasoning item that it belongs to, "" for none.
type issuedIDs map[string]string

// rules collects the problems of a request.
type rules struct{ problems []string }

func (r *rules) broken(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// compile compiles a schema; id must be unique to the compiler.
func compile(id string, document []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(closed{}) // a tool's schema must not make the test read files
	if err := c.AddResource(id, doc); err != nil {
		return nil, err
	}
	return c.Compile(id)
}

// closed loads no external schema.
type closed struct{}

// Load returns an error.
func (closed) Load(url string) (any, error) { return nil, fmt.Errorf("%s is not loaded", url) }

// mustCompile compiles a schema of this package.
func mustCompile(id string, document []byte) *jsonschema.Schema {
	schema, err := compile(id, document)
	if err != nil {
		panic("llmtest: " + err.Error())
	}
	return schema
}

// shape checks a body against its API's schema.
func (r *rules) shape(schema *jsonschema.Schema, body []byte) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		r.broken("the body is not JSON: %v", err)
		return
	}
	if problem := plain(body); problem != "" {
		r.broken("the body is not what every parser reads: %s", problem)
		return
	}
	err = schema.Validate(v)
	if err == nil {
		return
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		r.broken("%v", err)
		return
	}
	r.leaves(invalid.DetailedOutput())
}

// leaves returns the causes in a schema error.
func (r *rules) leaves(unit *jsonschema.OutputUnit) {
	for n := range unit.Errors {
		r.leaves(&unit.Errors[n])
	}
	if len(unit.Errors) == 0 && unit.Error != nil && unit.Error.Kind != nil {
		r.broken("at %s: %s", first(unit.InstanceLocation, "/"), unit.Error.String())
	}
}

// tools checks the tools' schemas and the choice among them.
func (r *rules) tools(tools []llm.Tool, strict []bool, choice json.RawMessage) {
	seen := map[string]bool{}
	for n, t := range tools {
		if seen[t.Name] {
			r.broken("two tools have the name %q", t.Name)
		}
		seen[t.Name] = true
		r.schema(fmt.Sprintf("the tool %q", t.Name), t.Parameters, strict[n])
	}
	if len(choice) == 0 || string(choice) == "null" {
		return
	}
	if len(tools) == 0 {
		r.broken("tool_choice is only allowed when tools are specified")
		return
	}
	switch name := chosen(choice); {
	case name == "auto", name == "none", name == "required", seen[name]:
	default:
		r.broken("tool_choice names %q, which is not among the tools", name)
	}
}

// chosen converts OpenAI's tool_choice to that of llm.Request.
func chosen(choice json.RawMessage) string {
	var mode string
	if len(choice) == 0 || json.Unmarshal(choice, &mode) == nil {
		return mode
	}
	var named struct {
		Name     string
		Function struct{ Name string }
	}
	_ = json.Unmarshal(choice, &named) // the schema has checked it
	return first(named.Name, named.Function.Name)
}

// schema checks a JSON Schema as OpenAI does: it is valid and of an object, and in strict mode every object is closed
// and all its properties are required.
func (r *rules) schema(what string, schema map[string]any, strict bool) {
	if schema == nil {
		return
	}
	if schema["type"] != "object" {
		r.broken("invalid schema for %s: it must be of type \"object\", got %v", what, schema["type"])
	}
	if _, err := compile("weir:"+strings.ReplaceAll(what, " ", "-"), []byte(encode(schema))); err != nil {
		r.broken("invalid schema for %s: %v", what, err)
	}
	if strict {
		r.strict(what, schema)
	}
}

func (r *rules) strict(what string, v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			r.strict(what, e)
		}
	case map[string]any:
		if properties, ok := v["properties"].(map[string]any); ok {
			r.object(what, v, properties)
		}
		for _, key := range []string{"allOf", "oneOf", "not", "if", "patternProperties", "dependentRequired", "minLength", "default"} {
			if _, ok := v[key]; ok {
				r.broken("invalid schema for %s: %q is not permitted", what, key)
			}
		}
		for _, e := range v {
			r.strict(what, e)
		}
	}
}

// object checks that a strict object is closed and all its properties required.
func (r *rules) object(what string, schema, properties map[string]any) {
	if schema["additionalProperties"] != false {
		r.broken("invalid schema for %s: additionalProperties is required to be false", what)
	}
	required, _ := schema["required"].([]any)
	for property := range properties {
		if !slices.Contains(required, any(property)) {
			r.broken("invalid schema for %s: required must include %q", what, property)
		}
	}
}

// arguments checks the arguments of a call in a history.
func (r *rules) arguments(c convo.Call) {
	var object map[string]any
	if json.Unmarshal([]byte(c.Arguments), &object) != nil || object == nil {
		r.broken("the arguments of the call %q are not a JSON object", c.ID)
		return
	}
	if problem := plain([]byte(c.Arguments)); problem != "" {
		r.broken("the arguments of the call %q are not what every parser reads: %s", c.ID, problem)
	}
}

// Parameters returns the parameters of an API ("responses", "chat" or "anthropic") that the server knows, sorted.
func Parameters(api string) []string {
	document := map[string][]byte{
		"responses": responsesSchema, "chat": chatSchema, "anthropic": anthropicSchema,
	}[api]
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(document, &schema); err != nil {
		panic("llmtest: " + err.Error())
	}
	return slices.Sorted(maps.Keys(schema.Properties))
}

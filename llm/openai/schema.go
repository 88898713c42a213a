package openai

import (
	"slices"

	"github.com/weir-run/weir/llm"
)

// schemaName returns the name of an answer's schema: its title if the API accepts that as
// a name.
func schemaName(schema map[string]any) string {
	if title, _ := schema["title"].(string); toolPattern().MatchString(title) {
		return title
	}
	return "answer"
}

// answerSchema returns the schema of an answer.
func answerSchema(schema map[string]any) jsonSchema {
	return jsonSchema{Name: schemaName(schema), Strict: strict(schema), Schema: schema}
}

// parameters returns a tool's schema; without one, that of an empty object.
func parameters(t llm.Tool) map[string]any {
	if t.Parameters != nil {
		return t.Parameters
	}
	return map[string]any{"type": "object", "properties": map[string]any{}}
}

// strict reports whether a schema is in the subset of JSON Schema that OpenAI enforces: every object is closed and
// all its properties are required, and only keywords of its list are used ("Structured model outputs", supported
// schemas). Any other schema is sent as one that the model is asked, not forced, to follow.
func strict(schema map[string]any) bool {
	_, union := schema["anyOf"]
	return schema["type"] == "object" && !union && strictPart(schema)
}

func strictPart(schema map[string]any) bool {
	for key, value := range schema {
		if !strictKey(key, value) {
			return false
		}
	}
	if !typed(schema["type"], "object") {
		return true
	}
	if closed, ok := schema["additionalProperties"].(bool); !ok || closed {
		return false
	}
	properties, _ := schema["properties"].(map[string]any)
	required := words(schema["required"])
	if len(required) != len(properties) {
		return false
	}
	for property := range properties {
		if !slices.Contains(required, property) {
			return false
		}
	}
	return true
}

func strictKey(key string, value any) bool {
	switch key {
	case "type", "title", "description", "enum", "const", "required", "additionalProperties", "$ref",
		"pattern", "multipleOf", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum",
		"minItems", "maxItems":
		return true
	case "format":
		format, _ := value.(string)
		return slices.Contains([]string{
			"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
		}, format)
	case "items":
		part, ok := value.(map[string]any)
		return ok && strictPart(part)
	case "anyOf":
		list, ok := value.([]any)
		return ok && !slices.ContainsFunc(list, func(v any) bool {
			part, ok := v.(map[string]any)
			return !ok || !strictPart(part)
		})
	case "properties", "$defs", "definitions":
		parts, ok := value.(map[string]any)
		if !ok {
			return false
		}
		for _, v := range parts {
			if part, ok := v.(map[string]any); !ok || !strictPart(part) {
				return false
			}
		}
		return true
	}
	return false
}

func typed(value any, want string) bool {
	return value == any(want) || slices.Contains(words(value), want)
}

// words returns a list of strings, as JSON decoding or Go code makes it.
func words(value any) []string {
	switch list := value.(type) {
	case []string:
		return list
	case []any:
		var out []string
		for _, v := range list {
			if s, ok := v.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

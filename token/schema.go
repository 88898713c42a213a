package token

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// OpenAI's models see tools as TypeScript, whatever the API was sent; others
// are counted by the JSON that they are sent.
const (
	namespaceStart = "namespace functions {\n\n"
	namespaceEnd   = "} // namespace functions"
)

// toolDefinition returns a tool as the vendor's models read it. Properties come in
// alphabetical order, so that it is the same each time.
func toolDefinition(v vendor, name, description string, parameters map[string]any) string {
	if v != openai {
		schema, _ := json.Marshal(parameters) // what is not JSON is not sent
		return name + "\n" + description + "\n" + string(schema)
	}
	var b strings.Builder
	if description != "" {
		b.WriteString("// " + description + "\n")
	}
	b.WriteString("type " + name + " = (")
	if properties, ok := parameters["properties"].(map[string]any); ok && len(properties) > 0 {
		b.WriteString("_: {\n")
		writeProperties(&b, parameters, 0)
		b.WriteString("}")
	}
	b.WriteString(") => any;\n\n")
	for _, key := range []string{"$defs", "definitions"} { // how they are shown is not known
		if shared, ok := parameters[key]; ok {
			text, _ := json.Marshal(shared)
			b.Write(text)
		}
	}
	return b.String()
}

// The depth beyond which a schema, which may come from anywhere, is any.
const maxDepth = 32

func writeProperties(b *strings.Builder, object map[string]any, depth int) {
	indent := strings.Repeat("  ", depth)
	properties, _ := object["properties"].(map[string]any)
	required := required(object["required"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(map[string]any)
		if d, ok := property["description"].(string); ok && d != "" {
			b.WriteString(indent + "// " + d + "\n")
		}
		b.WriteString(indent + name)
		if !slices.Contains(required, name) {
			b.WriteString("?")
		}
		b.WriteString(": ")
		writeType(b, property, depth)
		b.WriteString(",\n")
	}
}

// required names of a schema, which in Go is a []string or what JSON gave.
func required(v any) []string {
	switch v := v.(type) {
	case []string:
		return v
	case []any:
		names := make([]string, 0, len(v))
		for _, n := range v {
			if s, ok := n.(string); ok {
				names = append(names, s)
			}
		}
		return names
	default:
		return nil
	}
}

func writeType(b *strings.Builder, schema map[string]any, depth int) {
	if depth > maxDepth {
		b.WriteString("any")
		return
	}
	if choices, ok := schema["enum"]; ok {
		b.WriteString(choicesOf(choices))
		return
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if options, ok := schema[key].([]any); ok && len(options) > 0 {
			for i, o := range options {
				if i > 0 {
					b.WriteString(" | ")
				}
				option, _ := o.(map[string]any)
				writeType(b, option, depth+1)
			}
			return
		}
	}
	switch kind, _ := schema["type"].(string); kind {
	case "string", "number", "boolean", "null":
		b.WriteString(kind)
	case "integer":
		b.WriteString("number")
	case "array":
		items, _ := schema["items"].(map[string]any)
		writeType(b, items, depth+1)
		b.WriteString("[]")
	case "object":
		b.WriteString("{\n")
		writeProperties(b, schema, depth+1)
		b.WriteString(strings.Repeat("  ", depth) + "}")
	default:
		if kinds, ok := schema["type"].([]any); ok {
			b.WriteString(strings.Trim(strings.ReplaceAll(fmt.Sprint(kinds), " ", " | "), "[]"))
			return
		}
		b.WriteString("any")
	}
}

// choicesOf an enum, as TypeScript: "a" | "b".
func choicesOf(v any) string {
	var all []any
	switch v := v.(type) {
	case []any:
		all = v
	case []string:
		for _, s := range v {
			all = append(all, s)
		}
	}
	texts := make([]string, len(all))
	for i, c := range all {
		if s, ok := c.(string); ok {
			texts[i] = `"` + s + `"`
		} else {
			texts[i] = fmt.Sprint(c)
		}
	}
	return strings.Join(texts, " | ")
}

package anthropic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// setAnswerFormat requests an answer that is JSON of a schema. The API enforces it if the model and the schema allow
// that; otherwise the system text asks for it. The caller must check the answer, because some keywords are only sent
// as text.
func setAnswerFormat(params *messagesRequest, schema map[string]any, is modelTraits) (held bool) {
	if is.schema {
		if fit, ok := vendorSchema(schema); ok {
			if params.OutputConfig == nil {
				params.OutputConfig = &outputConfig{}
			}
			params.OutputConfig.Format = &answerFormat{Type: "json_schema", Schema: fit}
			return true
		}
	}
	// Maps become JSON with sorted keys, and errors were refused before.
	data, err := json.Marshal(schema)
	if err == nil {
		params.System = append(params.System, contentBlock{
			Type: "text",
			Text: "Answer with one JSON value that is valid under this JSON Schema, and with nothing else, not even a code fence:\n" + string(data),
		})
	}
	return false
}

// vendorSchema converts a schema to the subset that the vendor accepts ("Structured outputs", JSON Schema
// limitations): objects are closed, and unsupported keywords move to descriptions. ok is false if that is impossible:
// for objects with arbitrary keys and recursive schemas.
func vendorSchema(schema map[string]any) (map[string]any, bool) {
	data, err := json.Marshal(schema)
	if err != nil {
		return nil, false
	}
	var plain map[string]any // normalize Go values to decoded JSON
	if json.Unmarshal(data, &plain) != nil || plain["type"] != "object" || recursive(plain) {
		return nil, false
	}
	return fitSchema(plain)
}

// formats returns the string formats that the vendor enforces.
func formats() []any {
	return []any{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
}

func fitSchema(schema map[string]any) (map[string]any, bool) {
	out := map[string]any{}
	var lost []string
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		value := schema[key]
		kept, ok, known := fitKey(key, value)
		switch {
		case !ok:
			return nil, false
		case known && key == "oneOf":
			out["anyOf"] = kept
		case known:
			out[key] = kept
		case key != "$schema" && key != "$id" && key != "$comment" && key != "examples" && key != "default":
			lost = append(lost, fmt.Sprintf("%s: %s", key, compact(value)))
		}
	}
	if isObject(schema) {
		if _, ok := schema["properties"].(map[string]any); !ok && schema["additionalProperties"] != false {
			return nil, false
		}
		out["additionalProperties"] = false
	}
	if len(lost) > 0 {
		said, _ := out["description"].(string)
		out["description"] = strings.TrimSpace(said + " {" + strings.Join(lost, ", ") + "}")
	}
	return out, true
}

// isObject reports whether a schema allows an object.
func isObject(schema map[string]any) bool {
	list, _ := schema["type"].([]any)
	return schema["type"] == "object" || slices.Contains(list, any("object")) || schema["properties"] != nil
}

// fitKey converts the value of a keyword. known is false for one that moves to the description, ok is false if the
// schema cannot be expressed.
func fitKey(key string, value any) (kept any, ok, known bool) {
	switch key {
	case "type", "title", "description", "const", "required", "$ref":
		return value, true, true
	case "enum":
		list, _ := value.([]any)
		plain := !slices.ContainsFunc(list, func(v any) bool {
			switch v.(type) {
			case map[string]any, []any:
				return true
			}
			return false
		})
		return value, true, plain
	case "format":
		return value, true, slices.Contains(formats(), value)
	case "minItems":
		return value, true, value == float64(0) || value == float64(1)
	case "additionalProperties":
		return value, value == false, value == false
	case "items":
		return fitOne(value)
	case "anyOf", "oneOf", "allOf":
		return fitList(value)
	case "properties", "$defs", "definitions":
		return fitAll(value)
	}
	return nil, true, false
}

func fitOne(value any) (any, bool, bool) {
	part, is := value.(map[string]any)
	if !is {
		return nil, true, false
	}
	kept, ok := fitSchema(part)
	return kept, ok, true
}

func fitList(value any) (any, bool, bool) {
	list, _ := value.([]any)
	out := make([]any, 0, len(list))
	for _, v := range list {
		kept, ok, known := fitOne(v)
		if !ok || !known {
			return nil, false, false
		}
		out = append(out, kept)
	}
	return out, true, true
}

func fitAll(value any) (any, bool, bool) {
	parts, _ := value.(map[string]any)
	out := make(map[string]any, len(parts))
	for key, v := range parts {
		kept, ok, known := fitOne(v)
		if !ok || !known {
			return nil, false, false
		}
		out[key] = kept
	}
	return out, true, true
}

// recursive reports whether a schema contains itself, or refers to something outside its definitions.
func recursive(root map[string]any) bool {
	on := map[string]bool{}
	var walk func(v any) bool
	walk = func(v any) bool {
		switch v := v.(type) {
		case []any:
			return slices.ContainsFunc(v, walk)
		case map[string]any:
			for _, e := range v {
				if _, text := e.(string); !text && walk(e) {
					return true
				}
			}
			ref, is := v["$ref"].(string)
			if !is {
				return false
			}
			kind, name, ok := strings.Cut(strings.TrimPrefix(ref, "#/"), "/")
			defs, _ := root[kind].(map[string]any)
			if !ok || defs[name] == nil || on[ref] {
				return true
			}
			on[ref] = true
			defer delete(on, ref)
			return walk(defs[name])
		}
		return false
	}
	return walk(root)
}

func compact(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(data)
}

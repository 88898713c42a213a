package llm

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// argumentNames translates the names of one tool's arguments.
type argumentNames struct {
	sent     map[string]string // as declared: as sent
	declared map[string]string // as sent: as declared
}

// arguments returns the parameters of a tool with argument names that the API accepts, and
// remembers the translation under the tool's name. Only the members of the object of arguments
// have names that an API restricts.
func (n *Names) arguments(tool string, parameters map[string]any) map[string]any {
	properties, _ := parameters["properties"].(map[string]any)
	if n.rules.Argument == nil || !slices.ContainsFunc(slices.Collect(maps.Keys(properties)), func(name string) bool { return !n.rules.Argument.MatchString(name) }) {
		return parameters
	}
	names := argumentNames{make(map[string]string, len(properties)), make(map[string]string, len(properties))}
	for name := range properties { // names that can stay come first
		if n.rules.Argument.MatchString(name) {
			names.declared[name] = name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if names.declared[name] == name {
			continue
		}
		as := name
		for again := 0; !n.rules.Argument.MatchString(as) || names.isUsed(as); again++ {
			as = ToolNameFor(name, again)
		}
		names.sent[name], names.declared[as] = as, name
	}
	if n.argumentsOf == nil {
		n.argumentsOf = map[string]argumentNames{}
	}
	n.argumentsOf[tool] = names
	return names.schema(parameters, properties)
}

func (a argumentNames) isUsed(as string) bool {
	_, used := a.declared[as]
	return used
}

// schema returns the parameters with the names as sent.
func (a argumentNames) schema(parameters, properties map[string]any) map[string]any {
	out := maps.Clone(parameters)
	renamed := make(map[string]any, len(properties))
	for name, s := range properties {
		renamed[translated(a.sent, name)] = s
	}
	out["properties"] = renamed
	switch required := parameters["required"].(type) {
	case []any:
		list := slices.Clone(required)
		for i, name := range list {
			if text, ok := name.(string); ok {
				list[i] = translated(a.sent, text)
			}
		}
		out["required"] = list
	case []string:
		list := slices.Clone(required)
		for i, name := range list {
			list[i] = translated(a.sent, name)
		}
		out["required"] = list
	}
	return out
}

func translated(names map[string]string, name string) string {
	if as, ok := names[name]; ok {
		return as
	}
	return name
}

// renameMembers returns the text of a JSON object with other names of its members; the text as
// it is where none of its members has another name.
func renameMembers(text string, names map[string]string) string {
	if len(names) == 0 {
		return text
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) != nil {
		return text
	}
	out, changed := make(map[string]json.RawMessage, len(object)), false
	for _, name := range slices.Sorted(maps.Keys(object)) {
		as := translated(names, name)
		if _, taken := out[as]; taken || as != name && object[as] != nil {
			return text // a model wrote both names: the tool reports the one that it does not know
		}
		out[as], changed = object[name], changed || as != name
	}
	if !changed {
		return text
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(out) != nil {
		return text
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

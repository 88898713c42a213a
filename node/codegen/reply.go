package codegen

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm/structured"
)

// readObject parses the JSON object that an agent was asked for: one with a boolean under
// one of the names.
func readObject(schema map[string]any, names ...string) func(text string) (engine.Value, error) {
	form := sync.OnceValues(func() (*structured.Form, error) {
		of, as := maps.Clone(schema), maps.Clone(properties(schema))
		var known []any
		for _, name := range names {
			known = append(known, map[string]any{"required": []any{name}})
			as[name] = map[string]any{"type": "boolean"}
		}
		of["anyOf"], of["properties"] = known, as
		return structured.Compile(of)
	})
	return func(text string) (engine.Value, error) {
		f, err := form()
		if err != nil {
			return nil, err
		}
		as, err := f.Read(text)
		if err != nil {
			return nil, err
		}
		return engine.ParseValue([]byte(as))
	}
}

// codeNames returns the members in which models put code in JSON, in lower case and without
// separators.
func codeNames() []string {
	return []string{
		"code", "pythoncode", "starlarkcode", "sourcecode", "generatedcode", "finalcode", "fixedcode", "updatedcode",
		"codesnippet", "python", "starlark", "program", "script", "source", "solution",
	}
}

// codeInValue returns the code in a JSON value: under one of the names in an object, or else
// in the values of its members and elements, at most depth levels below.
func codeInValue(v any, depth int) (string, bool) {
	if depth < 0 {
		return "", false
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if code, ok := codeInValue(e, depth-1); ok {
				return code, true
			}
		}
	case map[string]any:
		members := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			members[strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))] = v[name]
		}
		for _, name := range codeNames() {
			if code, ok := codeLines(members[name]); ok {
				return code, true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if code, ok := codeInValue(members[name], depth-1); ok {
				return code, true
			}
		}
	}
	return "", false
}

// codeLines returns the code that is a text, or a list of lines.
func codeLines(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, strings.TrimSpace(v) != ""
	case []any:
		var lines []string
		for _, e := range v {
			line, ok := e.(string)
			if !ok {
				return "", false
			}
			lines = append(lines, line)
		}
		code := strings.Join(lines, "\n")
		return code, strings.TrimSpace(code) != ""
	}
	return "", false
}

// maxCodeDepth is how deep in a JSON answer code is looked for.
const maxCodeDepth = 4

// codeIn returns the code in a model's answer: the longest fenced block that is not marked
// as another language; the code in a JSON value; the text of a tag <code>; otherwise the whole
// answer. Reasoning is not part of the answer.
func codeIn(answer, language string) string {
	text := strings.ReplaceAll(answer, "\r\n", "\n")
	if plain := structured.Plain(text); plain != strings.TrimSpace(text) {
		text = plain
	}
	best, found := fenced(text, language)
	if !found {
		best = text
	}
	trimmed := strings.TrimSpace(best)
	var quoted string
	if strings.HasPrefix(trimmed, `"`) && json.Unmarshal([]byte(trimmed), &quoted) == nil && strings.TrimSpace(quoted) != "" {
		return codeIn(quoted, language)
	}
	// JSON with code: the whole block or text, or surrounded by prose.
	if (!found && !isOperand(trimmed)) || strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		for _, v := range structured.Values(trimmed) {
			if code, ok := codeInValue(v, maxCodeDepth); ok {
				return codeIn(code, language)
			}
		}
	}
	if _, rest, ok := strings.Cut(trimmed, "<code>"); ok && !found {
		if inside, _, ok := strings.Cut(rest, "</code>"); ok {
			return codeIn(inside, language)
		}
	}
	return trimCode(best)
}

// isOperand reports whether the first object of a text is an operand of code and not an answer
// in JSON: it follows an operator, an open bracket or a keyword.
func isOperand(text string) bool {
	before, _, found := strings.Cut(text, "{")
	before = strings.TrimRight(before, " \t[")
	if !found || before == "" {
		return false
	}
	for _, word := range []string{"return", " in", " or", " and", " not"} {
		if strings.HasSuffix(before, word) {
			return true
		}
	}
	return strings.ContainsAny(before[len(before)-1:], "=(,+|%*/<>")
}

// fenceOf returns the fence that a line begins with, three or more backticks or tildes, and
// what follows it; no fence is "".
func fenceOf(line string) (fence, tag string) {
	line = strings.TrimSpace(line)
	for _, c := range []string{"`", "~"} {
		if tag := strings.TrimLeft(line, c); len(line)-len(tag) >= 3 {
			return line[:len(line)-len(tag)], tag
		}
	}
	return "", ""
}

func fenced(text, language string) (code string, found bool) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		fence, tag := fenceOf(lines[i])
		if fence == "" {
			continue
		}
		var block []string
		for i++; i < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[i]), fence); i++ {
			block = append(block, lines[i])
		}
		if b := strings.Join(block, "\n"); tagMatches(tag, language) && len(strings.TrimSpace(b)) > len(strings.TrimSpace(code)) {
			code, found = b, true
		}
	}
	return code, found
}

// tagMatches reports whether a fence's tag fits code of the language. What follows its first word,
// such as a title, does not matter.
func tagMatches(tag, language string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(tag), " ")
	switch tag = strings.ToLower(strings.Trim(first, "{.}")); tag {
	case "", "code", language:
		return true
	case "py", "python3", "py3", "starlark", "star", "bzl":
		return tag != "starlark" || language == "starlark"
	}
	return false
}

// trimCode removes blank lines at both ends, and the common indent.
func trimCode(code string) string {
	lines := strings.Split(strings.Trim(code, "\n"), "\n")
	shared := -1
	for _, l := range lines {
		rest := strings.TrimLeft(l, " \t")
		if rest == "" {
			continue
		}
		if n := len(l) - len(rest); shared < 0 || n < shared {
			shared = n
		}
	}
	if shared > 0 {
		for i, l := range lines {
			lines[i] = l[min(shared, len(l)):]
		}
	}
	code = strings.TrimSpace(strings.Join(lines, "\n"))
	if code == "" {
		return ""
	}
	return code + "\n"
}

package codegen

import (
	"maps"
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

// codeNames returns the members in which models put code in JSON.
func codeNames() []string {
	return []string{"code", "python_code", "python", "program", "script", "source", "generated_code"}
}

// codeInValue returns the code in a member of a JSON object.
func codeInValue(v any) (string, bool) {
	o, _ := v.(map[string]any)
	for _, name := range codeNames() {
		if code, ok := o[name].(string); ok && strings.TrimSpace(code) != "" {
			return code, true
		}
	}
	return "", false
}

// codeIn returns the code in a model's answer: the longest fenced block that is not marked
// as another language; the member code of a JSON object; otherwise the whole answer.
// Reasoning is not part of the answer.
func codeIn(answer, language string) string {
	text := strings.ReplaceAll(answer, "\r\n", "\n")
	if plain := structured.Plain(text); plain != strings.TrimSpace(text) {
		text = plain
	}
	best, found := fenced(text, language)
	if !found {
		best = text
	}
	// JSON with code: the whole block or text, or surrounded by prose.
	if trimmed := strings.TrimSpace(best); !found || strings.HasPrefix(trimmed, "{") {
		for _, v := range structured.Values(trimmed) {
			if code, ok := codeInValue(v); ok {
				return codeIn(code, language)
			}
		}
	}
	return trimCode(best)
}

// fence opens and closes a block of code.
const fence = "```"

func fenced(text, language string) (code string, found bool) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		tag, opens := strings.CutPrefix(strings.TrimSpace(lines[i]), fence)
		if !opens {
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

// tagMatches reports whether a fence's tag fits code of the language.
func tagMatches(tag, language string) bool {
	switch tag = strings.ToLower(strings.TrimSpace(tag)); tag {
	case "", "code", language:
		return true
	case "py", "python3", "starlark", "star", "bzl":
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

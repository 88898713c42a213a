package codegen

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/weir-run/weir/engine"
)

// mended is the JSON object in an answer of a model that was asked for one: what
// stands around it is left off, and texts and numbers where the schema has
// booleans are read as such. An answer without an object is returned as it is.
func mended(text string, schema map[string]any) string {
	properties, _ := schema["properties"].(map[string]any)
	o := objectIn(text, properties)
	if o == nil {
		return text
	}
	for name, p := range properties {
		s, _ := p.(map[string]any)
		v, given := o[name]
		if given && v == nil {
			delete(o, name)
			continue
		}
		if s["type"] == "boolean" && given {
			if b, ok := truth(v); ok {
				o[name] = b
			}
		}
		if t, ok := v.(string); ok && s["enum"] != nil {
			o[name] = strings.ToLower(strings.TrimSpace(t))
		}
	}
	b, err := engine.AppendValue(nil, o)
	if err != nil {
		return text
	}
	return string(b)
}

// truth reads a boolean as models write it.
func truth(v any) (value, ok bool) {
	switch t := v.(type) {
	case bool:
		return t, true
	case int64:
		return t != 0, true
	case string:
		switch strings.ToLower(strings.TrimSpace(t)) {
		case "true", "yes", "y", "1":
			return true, true
		case "false", "no", "n", "0":
			return false, true
		}
	}
	return false, false
}

// maxBraces bounds at how many places of an answer an object is looked for.
const maxBraces = 500

// objectIn is the first JSON object in a text that has one of the members, else
// the first; nil where there is none.
func objectIn(text string, members map[string]any) map[string]any {
	var first map[string]any
	for at, tries := 0, 0; at < len(text) && tries < maxBraces; tries++ {
		i := strings.IndexByte(text[at:], '{')
		if i < 0 {
			break
		}
		at += i
		d := json.NewDecoder(strings.NewReader(text[at:]))
		d.UseNumber()
		var raw map[string]any
		if err := d.Decode(&raw); err != nil {
			at++
			continue
		}
		o := plainObject(raw)
		for name := range members {
			if _, ok := o[name]; ok {
				return o
			}
		}
		if first == nil && len(o) > 0 {
			first = o
		}
		at += int(d.InputOffset())
	}
	return first
}

// plainObject is decoded JSON as engine values; nothing in it becomes a handle.
func plainObject(raw map[string]any) map[string]any {
	b, err := json.Marshal(raw)
	if err != nil {
		return nil
	}
	v, err := engine.ParseValue(bytes.TrimSpace(b))
	if err != nil {
		return nil
	}
	o, _ := v.(map[string]any)
	return o
}

// codeIn is the code in an answer of a model: what stands in the longest fence, of
// those that say no other language; the member code of an answer that is a JSON
// object; else all of it.
func codeIn(answer, language string) string {
	text := strings.ReplaceAll(answer, "\r\n", "\n")
	if best, found := fenced(text, language); found {
		return tidy(best)
	}
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "{") {
		if o := objectIn(trimmed, map[string]any{"code": nil}); o != nil {
			if code, ok := o["code"].(string); ok {
				return codeIn(code, language)
			}
		}
	}
	return tidy(text)
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
		if b := strings.Join(block, "\n"); speaks(tag, language) && len(strings.TrimSpace(b)) > len(strings.TrimSpace(code)) {
			code, found = b, true
		}
	}
	return code, found
}

// speaks reports whether a fence's tag may stand before code of the language.
func speaks(tag, language string) bool {
	switch tag = strings.ToLower(strings.TrimSpace(tag)); tag {
	case "", "code", language:
		return true
	case "py", "python3", "starlark", "star", "bzl":
		return tag != "starlark" || language == "starlark"
	}
	return false
}

// tidy takes blank lines off both ends, and the indent that all lines share.
func tidy(code string) string {
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

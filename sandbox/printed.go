package sandbox

import (
	"encoding/json"
	"strings"
)

// notJSONMark is the prefix of a text that replaces a word that Python prints and JSON does
// not have.
const notJSONMark = "\x00weir:not-json:"

// lastObject finds the last line of stdout that is a non-empty JSON object, and returns
// stdout without it.
func lastObject(stdout string) (object map[string]any, rest string, found bool) {
	end := len(stdout)
	for end > 0 {
		stop := end
		if stdout[stop-1] == '\n' {
			stop--
		}
		begin := strings.LastIndexByte(stdout[:stop], '\n') + 1
		if object, ok := parseObject(stdout[begin:stop]); ok {
			return object, stdout[:begin] + stdout[end:], true
		}
		end = begin
	}
	return nil, stdout, false
}

func parseObject(line string) (map[string]any, bool) {
	line = strings.TrimSpace(line)
	if len(line) < 2 || line[0] != '{' || line[len(line)-1] != '}' {
		return nil, false
	}
	object, ok := decodeObject(line)
	if !ok && (strings.Contains(line, "NaN") || strings.Contains(line, "Infinity")) {
		object, ok = decodeObject(markWords(line))
	}
	return object, ok && len(object) > 0
}

func decodeObject(line string) (map[string]any, bool) {
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return nil, false
	}
	return object, d.InputOffset() == int64(len(line))
}

// markWords replaces NaN, Infinity and -Infinity with marked texts, so that the line can be
// parsed and the error can name the key.
func markWords(line string) string {
	var b strings.Builder
	inText := false
	for i := 0; i < len(line); {
		c := line[i]
		if inText {
			n := 1
			if c == '\\' && i+1 < len(line) {
				n = 2
			}
			inText = c != '"'
			b.WriteString(line[i : i+n])
			i += n
			continue
		}
		if word := wordAt(line[i:]); word != "" {
			b.WriteString(`"\u0000` + notJSONMark[1:] + word + `"`)
			i += len(word)
			continue
		}
		inText = c == '"'
		b.WriteByte(c)
		i++
	}
	return b.String()
}

func wordAt(s string) string {
	for _, word := range []string{"NaN", "-Infinity", "Infinity"} {
		if strings.HasPrefix(s, word) {
			return word
		}
	}
	return ""
}

// notJSON returns the word that a marked text replaces, "" for other texts.
func notJSON(s string) string {
	if word, ok := strings.CutPrefix(s, notJSONMark); ok {
		return "is " + word
	}
	return ""
}

package sandbox

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/jsonkey"
)

// notJSONMark is the prefix of a text that replaces a word that Python prints and JSON does
// not have.
const notJSONMark = "\x00weir:not-json:"

// lastObject finds the last line of stdout that is a non-empty JSON object, and returns
// stdout without it. A line behind it that was meant as an update and cannot be read as one, such as
// an object that is nested too deep, is an error: passed over, the update would be lost.
func lastObject(stdout string) (object map[string]any, rest string, found bool, err error) {
	end := len(stdout)
	for end > 0 {
		stop := end
		if stdout[stop-1] == '\n' {
			stop--
		}
		begin := strings.LastIndexByte(stdout[:stop], '\n') + 1
		object, ok := parseObject(stdout[begin:stop])
		switch {
		case ok:
			if err := jsonkey.Check([]byte(stdout[begin:stop])); err != nil {
				return nil, stdout, false, &Error{
					Code:    engine.CodeCodeValue,
					Message: "the code printed an object in which " + err.Error(),
					Hint:    "write the object with json.dumps, and give it keys that differ as texts",
				}
			}
			return object, stdout[:begin] + stdout[end:], true, nil
		case isTooDeep(stdout[begin:stop]):
			return nil, stdout, false, &Error{
				Code:    engine.CodeCodeValue,
				Message: "the code printed an object that is nested deeper than " + strconv.Itoa(MaxDepth) + " lists and objects",
				Hint:    "give every key a value that JSON has",
			}
		case namesUpdates(stdout[begin:stop]):
			return nil, stdout, false, &Error{
				Code:    engine.CodeCodeValue,
				Message: "the code printed context_updates, but not as one line that is a JSON object and nothing else",
				Hint:    "print json.dumps({...}) without indent, in a line of its own",
			}
		}
		end = begin
	}
	return nil, stdout, false, nil
}

// namesUpdates reports whether a line has the key context_updates, as JSON or as Python writes it.
func namesUpdates(line string) bool {
	return strings.Contains(line, `"`+updatesKey+`"`) || strings.Contains(line, `'`+updatesKey+`'`)
}

// isTooDeep reports whether a line is a JSON object, as far as its brackets and texts say, that has more levels than
// encoding/json reads.
func isTooDeep(line string) bool {
	line = strings.TrimSpace(line)
	if len(line) < 2*maxJSONDepth || line[0] != '{' || line[len(line)-1] != '}' {
		return false
	}
	depth, deepest, inText := 0, 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			if depth--; depth == 0 && i < len(line)-1 {
				return false
			}
		}
	}
	return depth == 0 && !inText && deepest > maxJSONDepth
}

// maxJSONDepth is the number of levels that encoding/json reads.
const maxJSONDepth = 10_000

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

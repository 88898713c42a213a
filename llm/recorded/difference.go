package recorded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// difference is the first difference of two JSON values.
type difference struct {
	path []string
	// recorded and asked are the differing values, nil if one is missing.
	recorded, requested any
}

// differenceOfJSON describes the first difference of two requests or messages.
func differenceOfJSON(recorded, asked []byte) string {
	a, errA := decode(recorded)
	b, errB := decode(asked)
	if errA != nil || errB != nil {
		return "a place that cannot be shown: it is not JSON"
	}
	d, differs := firstDifference(nil, a, b)
	if !differs {
		return "the order or spelling of its JSON"
	}
	return d.String()
}

func decode(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// firstDifference compares the most informative keys of objects first.
func firstDifference(path []string, a, b any) (difference, bool) {
	at := func(step string) []string { return append(slices.Clone(path), step) }
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		for _, k := range keysOf(x, y) {
			if d, found := firstDifference(at(k), x[k], y[k]); found {
				return d, true
			}
		}
		return difference{}, false
	case []any:
		y, ok := b.([]any)
		if !ok {
			break
		}
		for i := range max(len(x), len(y)) {
			if d, found := firstDifference(at(strconv.Itoa(i+1)), item(x, i), item(y, i)); found {
				return d, true
			}
		}
		return difference{}, false
	default:
		if a == b {
			return difference{}, false
		}
	}
	return difference{path, a, b}, true
}

func item(l []any, i int) any {
	if i < len(l) {
		return l[i]
	}
	return nil
}

// keysOf lists the keys of both objects; model, role and text come first.
func keysOf(a, b map[string]any) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	first := []string{"provider", "model", "system", "messages", "role", "text"}
	rank := func(k string) int {
		if i := slices.Index(first, k); i >= 0 {
			return i
		}
		return len(first)
	}
	return slices.SortedFunc(maps.Keys(all), func(x, y string) int {
		if c := rank(x) - rank(y); c != 0 {
			return c
		}
		return strings.Compare(x, y)
	})
}

// String returns the place and both values, a line each. Of long texts only the part around the first different
// character is shown.
func (d difference) String() string {
	where := strings.Join(d.path, ".")
	if len(d.path) > 1 && d.path[0] == "messages" {
		where = strings.TrimSpace("message " + d.path[1] + " " + strings.Join(d.path[2:], "."))
	}
	rec, asked := show(d.recorded), show(d.requested)
	a, okA := d.recorded.(string)
	b, okB := d.requested.(string)
	if okA && okB {
		n := samePrefix(a, b)
		where += fmt.Sprintf(", character %d", utf8.RuneCountInString(a[:n])+1)
		rec, asked = quoteAround(a, n), quoteAround(b, n)
	}
	return fmt.Sprintf("%s:\n  recorded: %s\n  request:  %s", where, rec, asked)
}

// samePrefix returns the length in bytes of the common prefix of two texts, in whole characters.
func samePrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && (n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])) {
		n--
	}
	return n
}

// quoteAround quotes the part of s around byte n, at which a character begins.
func quoteAround(s string, n int) string {
	const before, after = 30, 60
	from := n
	for i := 0; i < before && from > 0; i++ {
		_, size := utf8.DecodeLastRuneInString(s[:from])
		from -= size
	}
	head, tail := "", ""
	if from > 0 {
		head = "…"
	}
	rest := []rune(s[from:])
	if len(rest) > before+after {
		rest, tail = rest[:before+after], "…"
	}
	return head + strconv.Quote(string(rest)) + tail
}

// show returns a value on one line; a message as its role and text.
func show(v any) string {
	switch t := v.(type) {
	case nil:
		return "(nothing)"
	case string:
		return quoteAround(t, 0)
	case map[string]any:
		if role, ok := t["role"].(string); ok {
			text, _ := t["text"].(string)
			s := role + " " + quoteAround(text, 0)
			if calls, ok := t["calls"].([]any); ok {
				s += fmt.Sprintf(" with %d tool calls", len(calls))
			}
			return s
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return quoteAround(string(b), 0)
}

package draw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// fields writes a JSON object as "month: 2026-10, all: true", which is shorter
// to read, without handles of contexts; any other text stays.
func fields(s string) string {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "{") {
		return s
	}
	d := json.NewDecoder(strings.NewReader(s))
	if _, err := d.Token(); err != nil {
		return s
	}
	var parts []string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return s
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return s
		}
		if bytes.HasPrefix(value, []byte(`{"$context"`)) {
			continue // a handle says nothing to a reader
		}
		var words string
		if json.Unmarshal(value, &words) != nil {
			words = string(value)
		}
		parts = append(parts, fmt.Sprintf("%v: %s", key, words))
	}
	if _, err := d.Token(); err != nil || len(parts) == 0 || d.InputOffset() < int64(len(s)) {
		return s
	}
	return strings.Join(parts, ", ")
}

// attributeText is an attribute as text: text as it is, else as JSON.
func attributeText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

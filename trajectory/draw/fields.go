package draw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// fields formats a JSON object as "month: 2026-10, all: true", without context handles; other text is unchanged.
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
			continue // a handle is of no interest to a reader
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

// attributeText formats an attribute: text unchanged, other values as JSON.
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

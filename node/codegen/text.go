package codegen

import (
	"maps"
	"slices"
)

// Limits of texts in errors and steps, in bytes.
const (
	maxShown = 120
	maxKept  = 4000
)

// shorten truncates s to about n bytes at a character boundary, with a mark.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func listOf(v any) []any {
	l, _ := v.([]any)
	return l
}

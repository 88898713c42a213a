package codegen

import (
	"maps"
	"slices"
)

// How much of a text errors show and steps keep, in bytes.
const (
	maxShown = 120
	maxKept  = 4000
)

// shorten cuts s to about n bytes, whole characters, and says so.
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

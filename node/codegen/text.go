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

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func listOf(v any) []any {
	l, _ := v.([]any)
	return l
}

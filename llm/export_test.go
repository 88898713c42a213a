package llm

import (
	"maps"
	"slices"
	"strings"
)

// Table is the built-in catalogue, by name.
func Table() []Model {
	return slices.SortedFunc(maps.Values(NewCatalogue().models), func(a, b Model) int { return strings.Compare(a.Name, b.Name) })
}

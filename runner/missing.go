package runner

import "github.com/weir-run/weir/flow"

// MissingTypes returns the error that a run cannot continue because its flow does not load
// with the node types of this process.
func MissingTypes(run string, invalid *flow.Invalid) *Missing {
	m := &Missing{Run: run}
	for i := range invalid.Problems {
		m.What = append(m.What, invalid.Problems[i].Message)
	}
	return m
}

package main

import (
	"fmt"

	"github.com/weir-run/weir/flow"
)

// didYouMean names the candidate that was likely meant, in the form
// ` (did you mean "x"?)`; "" where none is near.
func didYouMean(typed string, candidates []string) string {
	best := flow.Nearest(typed, candidates)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

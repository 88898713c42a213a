package anthropic

import (
	"strconv"
	"strings"
)

// modelTraits describes what a model accepts. Source: the vendor's pages "Extended thinking", "Adaptive thinking",
// "Structured outputs" and its migration guides.
type modelTraits struct {
	// adaptive: the model chooses how much it thinks, guided by an effort. Other models have a token budget for
	// thinking.
	adaptive bool
	// sampling: it accepts a temperature.
	sampling bool
	// prefill: a history may end with assistant text, which the model continues.
	prefill bool
	// schema: its answers can be restricted to a JSON Schema.
	schema bool
	// maxEffort is the highest effort that it accepts: "high"; "max"; or "xhigh", which implies that "max" is
	// accepted too.
	maxEffort string
	// maxOutput is its maximum number of output tokens.
	maxOutput int
}

const (
	// newestVersion is assumed for a Claude model whose name has no version.
	newestVersion = 9900
	// unlimitedOutput is larger than any default output.
	unlimitedOutput = 64_000
)

// traitsOf returns the traits of a model. A model that is not a Claude, as compatible servers offer them, is treated
// as the oldest model that thinks.
func traitsOf(model string) modelTraits {
	v, claude := version(model)
	if !claude {
		return modelTraits{sampling: true, prefill: true, maxOutput: unlimitedOutput}
	}
	t := modelTraits{
		adaptive: v >= 406, sampling: v < 407, prefill: v < 406, schema: v >= 405,
		maxEffort: "high", maxOutput: unlimitedOutput,
	}
	switch {
	case v >= 407:
		t.maxEffort = "xhigh"
	case v == 406 && strings.Contains(model, "opus"):
		t.maxEffort = "max"
	case v < 305:
		t.maxOutput = 4096
	case v < 307:
		t.maxOutput = 8192
	}
	return t
}

// version returns 405 for "claude-opus-4-5-20251101" and for "claude-4.5-opus".
func version(model string) (v int, claude bool) {
	_, rest, claude := strings.Cut(strings.ToLower(model), "claude")
	if !claude {
		return 0, false
	}
	words := strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("-._@:/", r) })
	for i, w := range words {
		major, ok := smallNumber(w)
		if !ok {
			continue
		}
		if i+1 < len(words) {
			if minor, ok := smallNumber(words[i+1]); ok {
				return 100*major + minor, true
			}
		}
		return 100 * major, true
	}
	return newestVersion, true
}

// smallNumber parses a number of one or two digits; a date has more.
func smallNumber(word string) (int, bool) {
	n, err := strconv.Atoi(word)
	return n, err == nil && n >= 0 && len(word) <= 2
}

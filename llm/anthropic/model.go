package anthropic

import (
	"strconv"
	"strings"
)

// modelTraits are what one model takes and another refuses, by the vendor's pages
// "Extended thinking", "Adaptive thinking", "Structured outputs" and its
// migration guides.
type modelTraits struct {
	// adaptive: the model decides how much it thinks, guided by an effort;
	// without it thinking has a budget of tokens.
	adaptive bool
	// sampling: it takes a temperature.
	sampling bool
	// prefill: a history may end with words of the assistant, which it goes on from.
	prefill bool
	// schema: it can be held to a JSON Schema.
	schema bool
	// maxEffort is the strongest effort it knows: "high"; "max"; or "xhigh", which
	// has "max" beside it.
	maxEffort string
	// maxOutput is the most tokens it gives.
	maxOutput int
}

const (
	// newestVersion is the version of a Claude that does not say its own.
	newestVersion = 9900
	// unlimitedOutput is an output that no default reaches.
	unlimitedOutput = 64_000
)

// traitsOf are a model's. One that is no Claude, as compatible servers have
// them, is taken for the oldest that thinks.
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

// version reads 405 out of "claude-opus-4-5-20251101" and of "claude-4.5-opus".
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

// smallNumber reads a number of one or two digits; a date has more.
func smallNumber(word string) (int, bool) {
	n, err := strconv.Atoi(word)
	return n, err == nil && n >= 0 && len(word) <= 2
}

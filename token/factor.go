package token

import "slices"

// Factor is what an estimate is multiplied by, in percent: 100 leaves it as it
// is. Whole percents change seldom, and a view that changes breaks the prompt
// cache.
type Factor int

// The bounds of a learned factor. Beyond them it is not the tokenizer that
// differs but what was counted.
const (
	MinFactor Factor = 50
	MaxFactor Factor = 300
)

// EstimateReport is what a call was estimated at, before any factor, and what the vendor
// then reported as its input, both in tokens.
type EstimateReport struct {
	Estimated, Reported int
}

// minLearnTokens is how many estimated tokens a factor is learned from: less is mostly
// overhead.
const minLearnTokens = 1000

// LearnFactor returns the factor that the pairs of a conversation, oldest first,
// show: reported for estimated tokens of the latest that together are estimated
// at 1,000 tokens at least, or of all; rounded up, between LeastFactor and
// MostFactor. A request holds most of what the next one does, so that the
// latest say most. Pairs that are not positive are left out; without any it is
// otherwise.
func LearnFactor(otherwise Factor, pairs ...EstimateReport) Factor {
	estimated, reported := 0, 0
	for _, p := range slices.Backward(pairs) {
		if p.Estimated > 0 && p.Reported > 0 {
			estimated += p.Estimated
			reported += p.Reported
		}
		if estimated >= minLearnTokens {
			break
		}
	}
	if estimated == 0 {
		return otherwise
	}
	f := Factor((100*reported + estimated - 1) / estimated)
	return min(max(f, MinFactor), MaxFactor)
}

// Correct is an estimate of n tokens, corrected and rounded up.
func (f Factor) Correct(n int) int { return (n*int(f) + 99) / 100 }

// LargestEstimate is the largest estimate that, corrected, is not over n tokens.
func (f Factor) LargestEstimate(n int) int { return max(n, 0) * 100 / int(f) }

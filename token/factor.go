package token

import "slices"

// Factor is the factor of an estimate, in percent: 100 leaves it unchanged. Whole percents
// change rarely, and a changed view breaks the prompt cache.
type Factor int

// The limits of a learned factor. Beyond them the difference is not caused by the
// tokenizer.
const (
	MinFactor Factor = 50
	MaxFactor Factor = 300
)

// EstimateReport is the estimate of a call, before any factor, and the input that the
// vendor then reported, both in tokens.
type EstimateReport struct {
	Estimated, Reported int
}

// minLearnTokens is the number of estimated tokens that a factor is learned from: less is
// mostly overhead.
const minLearnTokens = 1000

// LearnFactor returns the factor from the reports of a conversation, oldest first: the
// ratio of reported to estimated tokens of the latest reports with an estimate of at least
// 1,000 tokens together, or of all; rounded up, between LeastFactor and MostFactor. The
// latest reports are the most relevant, because a request contains most of what the next
// one does. Reports that are not positive are ignored; without any it returns otherwise.
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

// Correct returns an estimate of n tokens, corrected and rounded up.
func (f Factor) Correct(n int) int { return (n*int(f) + 99) / 100 }

// LargestEstimate returns the largest estimate that, corrected, is at most n tokens.
func (f Factor) LargestEstimate(n int) int { return max(n, 0) * 100 / int(f) }

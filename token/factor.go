package token

// Factor is what an estimate is multiplied by, in percent: 100 leaves it as it
// is. Whole percents change seldom, and a view that changes breaks the prompt
// cache.
type Factor int

// The bounds of a learned factor. Beyond them it is not the tokenizer that
// differs but what was counted.
const (
	LeastFactor Factor = 50
	MostFactor  Factor = 300
)

// Pair is what a call was estimated at, before any factor, and what the vendor
// then reported as its input, both in tokens.
type Pair struct {
	Estimated, Reported int
}

// Learn returns the factor that the pairs of a conversation show: all reported
// tokens for all estimated ones, so that long requests, where it matters, weigh
// most; rounded up, between LeastFactor and MostFactor. Pairs that are not
// positive are left out; without any it is otherwise.
func Learn(otherwise Factor, pairs ...Pair) Factor {
	estimated, reported := 0, 0
	for _, p := range pairs {
		if p.Estimated > 0 && p.Reported > 0 {
			estimated += p.Estimated
			reported += p.Reported
		}
	}
	if estimated == 0 {
		return otherwise
	}
	f := Factor((100*reported + estimated - 1) / estimated)
	return min(max(f, LeastFactor), MostFactor)
}

// Of is n tokens, corrected and rounded up.
func (f Factor) Of(n int) int { return (n*int(f) + 99) / 100 }

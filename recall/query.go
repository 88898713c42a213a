package recall

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Query asks for items of one scope.
type Query struct {
	Scope Scope
	// Text is what is looked for: whatever a person or a model wrote. Items that
	// hold at least one of its terms are found, the best first; see Search and
	// Rank. Without it the newest are.
	Text string
	// Kind finds items of one kind, "" of all.
	Kind Kind
	// Keyed finds items that have a key.
	Keyed bool
	// Since finds items whose At is not before it.
	Since time.Time
	// Limit is how many items there are at most; 0 is 10, and 1,000 the most.
	Limit int
}

// QueryResult is what a query found.
type QueryResult struct {
	Items []Item
	// Total is how many there are without the limit.
	Total int
}

// Bounds of a query.
const (
	DefaultLimit = 10
	MaxLimit     = 1000
	// MaxCandidates is how many of the items that fit a text are ranked at least.
	// Where more fit, a store may leave out those that seem to fit least.
	MaxCandidates = 1000
)

// Normalized returns the query with its limit; ErrInvalid says what about it cannot
// be used.
func (q Query) Normalized() (Query, error) {
	if err := q.Scope.Check(); err != nil {
		return q, err
	}
	if q.Kind != "" && !slices.Contains(Kinds(), q.Kind) {
		return q, invalid("kind %q: expected fact, episode or procedure", q.Kind)
	}
	if q.Limit < 0 || q.Limit > MaxLimit {
		return q, invalid("a limit of %d: expected 1 to %d", q.Limit, MaxLimit)
	}
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	q.Text = strings.TrimSpace(q.Text)
	return q, nil
}

// Matches reports whether an item is one that the query asks for, leaving aside the
// text.
func (q Query) Matches(i *Item) bool {
	return i.Scope == q.Scope && (q.Kind == "" || q.Kind == i.Kind) && (!q.Keyed || i.Key != "") &&
		(q.Since.IsZero() || !i.At.Before(q.Since))
}

// Stats are what ranking has to know of a scope.
type Stats struct {
	Items, Words int // how many there are in all
	// With is how many items hold each of the terms that are looked for.
	With []int
}

// Candidate is an item to be ranked.
type Candidate struct {
	Terms []string
	At    time.Time
	// Seq tells items apart; of those of one time the higher is the newer.
	Seq int64

	score float64
}

// Rank sorts candidates, the best first: by BM25 (k1 = 1.2, b = 0.75) with the
// statistics of the scope alone, so that no other's memory has a part in it. A
// longer word that begins with a term counts half. Of those that are alike the
// newer comes first.
func Rank(terms []Term, s Stats, list []Candidate) {
	for i := range list {
		list[i].score = score(terms, s, list[i].Terms)
	}
	slices.SortFunc(list, func(a, b Candidate) int {
		switch {
		case a.score != b.score:
			return compareOrder(a.score < b.score)
		case !a.At.Equal(b.At):
			return compareOrder(a.At.Before(b.At))
		}
		return compareOrder(a.Seq < b.Seq)
	})
}

// compareOrder puts a behind b where it is less.
func compareOrder(less bool) int {
	if less {
		return 1
	}
	return -1
}

func score(terms []Term, s Stats, words []string) float64 {
	const k1, b = 1.2, 0.75
	average := max(float64(s.Words)/float64(max(s.Items, 1)), 1)
	length := k1 * (1 - b + b*float64(len(words))/average)
	sum := 0.0
	for i, t := range terms {
		tf := t.countIn(words)
		n := float64(min(s.With[i], s.Items))
		idf := math.Log(1 + (float64(s.Items)-n+0.5)/(n+0.5))
		sum += idf * tf * (k1 + 1) / (tf + length)
	}
	return sum
}

// countIn is how often a term is among words.
func (t Term) countIn(words []string) float64 {
	n := 0.0
	for _, w := range words {
		switch {
		case w == t.Text:
			n++
		case t.Prefix && strings.HasPrefix(w, t.Text):
			n += 0.5
		}
	}
	return n
}

// MatchesAny reports whether one of words is the term.
func (t Term) MatchesAny(words []string) bool { return t.countIn(words) > 0 }

package memory

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Query asks for items of one scope.
type Query struct {
	Scope Scope
	// Text is the search text, in any form. The query finds items that contain at
	// least one of its terms, best first; see SearchTerms and Rank. Without a text it
	// finds the newest items.
	Text string
	// Kind restricts the query to one kind; "" is all.
	Kind Kind
	// Keyed restricts the query to items with a key.
	Keyed bool
	// Since restricts the query to items with At not before it.
	Since time.Time
	// Limit is the maximum number of items: 1 to MaxLimit, 0 is DefaultLimit.
	Limit int
}

// QueryResult is the result of a query.
type QueryResult struct {
	Items []Item
	// Total is the number of matching items without the limit.
	Total int
}

// Bounds of a query.
const (
	DefaultLimit = 10
	MaxLimit     = 1000
	// MaxCandidates is the minimum number of matching items that a store ranks. If
	// more match, it may omit the least promising ones.
	MaxCandidates = 1000
)

// Normalized returns the query with its defaults filled in, or an ErrInvalid that
// names the problem.
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

// Matches reports whether an item meets the conditions of the query other than the
// text.
func (q Query) Matches(i *Item) bool {
	return i.Scope == q.Scope && (q.Kind == "" || q.Kind == i.Kind) && (!q.Keyed || i.Key != "") &&
		(q.Since.IsZero() || !i.At.Before(q.Since))
}

// Stats are the statistics of a scope that Rank uses.
type Stats struct {
	Items, Words int // totals of the scope
	// With has the number of items that contain each search term.
	With []int
}

// Candidate is an item to rank.
type Candidate struct {
	Terms []string
	At    time.Time
	// Seq is unique. Among items of equal At the higher is the newer.
	Seq int64

	score float64
}

// Score returns the score that Rank has given the candidate; 0 if it has no term of the query.
func (c *Candidate) Score() float64 { return c.score }

// Rank sorts candidates, best first, by BM25 (k1 = 1.2, b = 0.75). It uses the
// statistics of the scope alone, so that the memory of other users has no influence.
// A longer word that begins with a prefix term counts half. On equal scores the newer
// candidate is first.
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

// compareOrder orders a after b if it is less.
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

// countIn returns how often the term occurs in words; a prefix match counts half.
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

// MatchesAny reports whether the term matches one of words.
func (t Term) MatchesAny(words []string) bool { return t.countIn(words) > 0 }

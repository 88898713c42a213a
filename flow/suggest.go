package flow

import (
	"slices"
	"strings"
)

// didYouMean returns a hint that names the nearest candidate, "" if none is near.
func didYouMean(got string, candidates []string) string {
	if best := NearestName(got, candidates); best != "" {
		return "did you mean " + best + "?"
	}
	return ""
}

// listCandidates names up to ten candidates after the lead, "" if there are none.
func listCandidates(lead string, candidates []string) string {
	const most = 10
	if len(candidates) == 0 {
		return ""
	}
	c := slices.Clone(candidates)
	slices.Sort(c)
	more := ""
	if len(c) > most {
		c, more = c[:most], ", ..."
	}
	return lead + strings.Join(c, ", ") + more
}

// NearestName returns the candidate with the smallest edit distance to got, ignoring case;
// among equals the first in alphabetical order. It returns "" if all are too different to
// be a misspelling.
func NearestName(got string, candidates []string) string {
	const longest = 100
	best, least := "", len(got)/3+1
	if len(got) > longest {
		return ""
	}
	lower := strings.ToLower(got)
	for _, c := range candidates {
		if d := len(c) - len(got); d >= least || -d >= least || len(c) > longest {
			continue
		}
		if d := editDistance(lower, strings.ToLower(c)); d < least || (d == least && c < best && best != "") {
			best, least = c, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours.
func editDistance(a, b string) int {
	row := make([][]int, 3)
	for i := range row {
		row[i] = make([]int, len(b)+1)
	}
	for j := range row[0] {
		row[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur, prev, before := row[i%3], row[(i+2)%3], row[(i+1)%3]
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
	}
	return row[len(a)%3][len(b)]
}

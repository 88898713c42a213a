package main

import "fmt"

// didYouMean names the candidate nearest to what was typed, in the form
// ` (did you mean "x"?)`; "" where none is near.
func didYouMean(typed string, candidates []string) string {
	best, least := "", len(typed)/2+1
	for _, c := range candidates {
		if d := distance(typed, c); d < least {
			best, least = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// distance is how many letters have to be added, dropped or changed to make b
// of a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := diagonal
			if a[i] != b[j] {
				next = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

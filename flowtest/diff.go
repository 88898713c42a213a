package flowtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/excerpt"
)

// The maximum length of a value, in characters, within a sentence and on a line of its own.
const (
	maxBrief = 100
	maxLine  = 2000
)

// brief formats a value within a sentence.
func brief(v any) string { return excerpt.Chars(encoded(v), maxBrief) }

// line formats a value on a line of its own.
func line(v any) string { return excerpt.Chars(encoded(v), maxLine) }

func encoded(v any) string {
	b, err := engine.AppendValue(nil, v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// firstDifference returns the position at which two texts begin to differ.
func firstDifference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	for i > 0 && i < len(a) && !utf8.RuneStart(a[i]) {
		i--
	}
	before := a[:i]
	n := strings.Count(before, "\n") + 1
	col := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	if strings.Contains(a, "\n") || strings.Contains(b, "\n") {
		return fmt.Sprintf("at line %d, character %d", n, col)
	}
	return fmt.Sprintf("at character %d", col)
}

// diffTexts shows the differences of two texts by line, with a few common lines around them.
func diffTexts(want, got string) []Line {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	var all []Line
	align(len(a), len(b), func(i, j int) bool { return a[i] == b[j] }, func(mark byte, i, j int) {
		if mark == '-' {
			all = append(all, Line{mark, excerpt.Chars(a[i], maxLine)})
			return
		}
		all = append(all, Line{mark, excerpt.Chars(b[j], maxLine)})
	})
	return elideEqualLines(all)
}

// elideEqualLines removes long sequences of common lines.
func elideEqualLines(all []Line) []Line {
	const keep = 3
	show := make([]bool, len(all))
	for i, l := range all {
		if l.Mark == ' ' {
			continue
		}
		for j := max(0, i-keep); j <= min(len(all)-1, i+keep); j++ {
			show[j] = true
		}
	}
	var out []Line
	for i := 0; i < len(all); i++ {
		if show[i] {
			out = append(out, all[i])
			continue
		}
		from := i
		for i+1 < len(all) && !show[i+1] {
			i++
		}
		out = append(out, Line{' ', fmt.Sprintf("... %d more lines that are the same", i-from+1)})
	}
	return out
}

// maxAlignedPairs limits the work of aligning: further pairs are not compared.
const maxAlignedPairs = 4_000_000

// align finds a longest common subsequence of two lists of n and m elements. It calls emit with '-' and i, with '+'
// and j, or with ' ' and both.
func align(n, m int, same func(i, j int) bool, emit func(mark byte, i, j int)) {
	if n*m > maxAlignedPairs {
		for i := range n {
			emit('-', i, 0)
		}
		for j := range m {
			emit('+', 0, j)
		}
		return
	}
	eq := make([][]bool, n)
	length := make([][]int, n+1) // length of the longest one from i, j on
	length[n] = make([]int, m+1)
	for i := n - 1; i >= 0; i-- {
		eq[i], length[i] = make([]bool, m), make([]int, m+1)
		for j := m - 1; j >= 0; j-- {
			eq[i][j] = same(i, j)
			if eq[i][j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < n || j < m {
		switch {
		case i < n && j < m && eq[i][j]:
			emit(' ', i, j)
			i, j = i+1, j+1
		case i < n && (j == m || length[i+1][j] >= length[i][j+1]):
			emit('-', i, j)
			i++
		default:
			emit('+', i, j)
			j++
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

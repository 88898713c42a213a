package engine

import (
	"strings"
	"unicode"
)

// CommandLine is a line for a shell that calls weir with these words, for hints:
// ids and paths among them may hold what a shell would split or expand.
func CommandLine(words ...string) string {
	line := []string{"weir"}
	for _, w := range words {
		line = append(line, ShellWord(w))
	}
	return strings.Join(line, " ")
}

// ShellWord is a word as a shell takes it, in quotes where it needs them.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-+=:,./@%#", r)
	}
	if s != "" && s[0] != '#' && s[0] != '=' && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

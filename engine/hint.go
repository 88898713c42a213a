package engine

import (
	"strings"
	"unicode"
)

// CommandLine returns a shell command line that calls weir with these words, for hints. It
// quotes ids and paths that a shell would split or expand.
func CommandLine(words ...string) string {
	line := []string{"weir"}
	for _, w := range words {
		line = append(line, ShellWord(w))
	}
	return strings.Join(line, " ")
}

// ShellWord returns the word in shell syntax, quoted if necessary.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-+=:,./@%#", r)
	}
	if s != "" && s[0] != '#' && s[0] != '=' && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

package flow

import (
	"fmt"
	"strings"
)

// Problem is one validation problem of a flow.
type Problem struct {
	Pos Pos
	// Code is stable; Codes lists them.
	Code string
	// Message says what is wrong and what was expected, Hint what to do.
	Message, Hint string
	// Setting is the setting that a TypeSpec's Check reports, with dots and list indexes:
	// "branches.2". The loader derives Pos from it.
	Setting string
}

// String returns "file:line:column: message (code)", with the hint after a newline.
func (p Problem) String() string {
	s := fmt.Sprintf("%s: %s (%s)", p.Pos, p.Message, p.Code)
	if p.Hint != "" {
		s += "\n  hint: " + p.Hint
	}
	return s
}

// String returns "file:line:column", without unknown parts.
func (p Pos) String() string {
	s := p.File
	if s == "" {
		s = "flow"
	}
	if p.Line > 0 {
		s += fmt.Sprintf(":%d:%d", p.Line, p.Column)
	}
	return s
}

// Invalid is the error of an invalid flow: all problems, in order of position.
type Invalid struct{ Problems []Problem }

// Error lists all problems, one after another.
func (e *Invalid) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.String())
	}
	return b.String()
}

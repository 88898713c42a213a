// Package expr evaluates Weir's one expression language, CEL: bare expressions
// (Program) and values with {{ }} in them (Template). Evaluation is pure,
// bounded in time and memory, and reads nothing but the Vars it is given. Text
// that comes out of a value is never evaluated again.
//
// It must not know flows, nodes or runs: names are looked up through Vars.
//
// # Language
//
// CEL with its standard functions and macros, and of the extension libraries
// strings, lists, math and encoders; json.parse reads a text as JSON. Every name
// is dynamically typed; integers stay integers; an int and a double compare by
// value, and arithmetic on both gives a double. has(a.b) asks whether a member
// is there. Messages, optionals and asynchronous calls are not part of it.
//
// # Templates
//
// Outside {{ }} all text is literal. A string that is exactly one {{ }} gives
// the expression's value with its type; elsewhere values are rendered, strings
// as they are and everything else as JSON. A literal "{{" is written as
// {{ '{{' }}. An expression ends at the first "}}" that is neither inside a
// string literal nor inside open brackets.
package expr

import (
	"fmt"
	"strings"
)

// The bounds of one expression. What passes them is an error, never a wait.
const (
	// MaxSource is the length of one expression, in bytes.
	MaxSource = 16 << 10
	// MaxNesting is how deep an expression may nest.
	MaxNesting = 100
	// MaxNodes is how many syntax nodes an expression may have, macros expanded.
	MaxNodes = 20_000
	// MaxCost bounds one evaluation in CEL cost units, about 20-50 ns each.
	MaxCost = 1_000_000
	// MaxResult bounds what an expression or template builds: bytes of text,
	// and half as many list elements and map entries in a tree.
	MaxResult = 16 << 20
)

// Vars resolves the root names of expressions: node ids, inputs, state, run,
// secrets.
type Vars interface {
	// Lookup returns the value of a root name and whether there is one. The
	// value may be an Object.
	Lookup(name string) (any, bool)
}

// Object is a map that is read lazily; a Lookup or Get result may be one.
type Object interface {
	// Get returns a member and whether there is one.
	Get(name string) (any, bool)
	// Keys lists the names of all members, in any order.
	Keys() []string
}

// Map is a plain set of variables.
type Map map[string]any

// Lookup implements Vars.
func (m Map) Lookup(name string) (any, bool) {
	v, ok := m[name]
	return v, ok
}

// Ref is one reference of an expression to a root name.
type Ref struct {
	// Root is the name; Path the constant members selected from it, so
	// a.b["c"] has root a and path b, c.
	Root string
	Path []string
	// Offset is where the root stands, in bytes from the start of the source
	// (of a template: of the string that holds it); Len is how many bytes root
	// and path take.
	Offset, Len int
	// IsHas marks has(...): the last member may be absent.
	IsHas bool
	// Conditional marks a reference that evaluating the expression may not read: one
	// in a branch of ?:, on a side of || or &&, inside a macro, or in has().
	Conditional bool
}

// String is the reference as it is written: a.b.c.
func (r Ref) String() string {
	return strings.Join(append([]string{r.Root}, r.Path...), ".")
}

// SyntaxError is an expression or template that cannot be read.
type SyntaxError struct {
	// Offset is the place, in bytes from the start of the source.
	Offset int
	// Message says what is wrong there.
	Message string
}

// Error is the message with its place.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at offset %d", e.Message, e.Offset)
}

// EvalError is an expression that could not be evaluated on the values given.
type EvalError struct {
	// Source is the expression; Offset the place in it (of a template: in the
	// string that holds it), in bytes.
	Source string
	Offset int
	// Message says what is wrong; it names the reference if one did not resolve.
	Message string
	// Missing is the part of the reference that did not resolve, up to the first
	// member that is not there; nil where the error is another one.
	Missing *Ref
}

// Error is the message with the expression and the place.
func (e *EvalError) Error() string {
	return fmt.Sprintf("%s, in {{ %s }} at offset %d", e.Message, shorten(e.Source), e.Offset)
}

// shorten cuts a long source for an error message.
func shorten(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

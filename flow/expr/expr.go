// Package expr evaluates Weir's expression language, CEL: bare expressions (Program) and
// values with {{ }} in them (Template). Evaluation is pure, limited in time and memory, and
// reads only the given Vars. Text that comes from a value is never evaluated again.
//
// It must not know flows, nodes or runs: names are resolved through Vars.
//
// # Language
//
// CEL with its standard functions and macros, the extension libraries strings, lists, math,
// encoders, sets, regex, bindings, optional values and comprehensions with two variables, and
// functions of its own: Functions lists all of them. Every name is dynamically typed;
// integers stay integers; an int and a double compare by value, and arithmetic on both
// gives a double. a["b c"] reads a member whose name is any text. has(a.b) and has(a["b c"])
// test whether a member exists; a.?b, also written a?.b, is an
// optional value. An operand that is an optional value stands for the value. A negative
// position counts from the end of a list. Macros read the keys of an object in sorted order.
// Messages and asynchronous calls are not supported.
//
// # Templates
//
// Outside {{ }} all text is literal. A string that is exactly one {{ }} gives the
// expression's value with its type. Elsewhere values are rendered, strings unchanged and
// everything else as JSON. A literal "{{" is written as {{ '{{' }}. An expression ends at
// the first "}}" that is neither inside a string literal nor inside open brackets.
package expr

import (
	"fmt"

	"github.com/weir-run/weir/internal/excerpt"
)

// The limits of one expression. Exceeding one is an error.
const (
	// MaxSource is the length of one expression, in bytes.
	MaxSource = 16 << 10
	// MaxNesting is the maximum nesting of an expression.
	MaxNesting = 100
	// MaxNodes is the maximum number of syntax nodes in an expression, with macros
	// expanded.
	MaxNodes = 20_000
	// MaxCost limits one evaluation, in CEL cost units of about 20-50 ns each.
	MaxCost = 1_000_000
	// MaxResult limits what an expression or template builds: bytes of text, and half as
	// many list elements and map entries in a tree.
	MaxResult = 16 << 20
)

// Vars resolves the root names of expressions: node ids, inputs, state, run, secrets, now,
// and UUIDSeed if uuid may be used.
type Vars interface {
	// Lookup returns the value of a root name and whether it exists. The value may be an
	// Object.
	Lookup(name string) (any, bool)
}

// Object is a lazily read map. Lookup and Get may return one.
type Object interface {
	// Get returns a member and whether it exists.
	Get(name string) (any, bool)
	// Len returns the number of members.
	Len() int
	// All returns all members, which must not be changed.
	All() map[string]any
}

// Map is a plain set of variables.
type Map map[string]any

// Lookup implements Vars.
func (m Map) Lookup(name string) (any, bool) {
	v, ok := m[name]
	return v, ok
}

// Ref is one reference in an expression to a root name.
type Ref struct {
	// Root is the name; Path has the constant members selected from it, so a.b["c"] has
	// root a and path b, c.
	Root string
	Path []string
	// Offset is the position of the root, in bytes from the start of the source (of a
	// template: of the string that contains it); Len is the length of root and path in
	// bytes.
	Offset, Len int
	// IsHas marks has(...): the last member may be absent.
	IsHas bool
	// Conditional marks a reference that an evaluation may not read: in a branch of ?:, on
	// a side of || or &&, inside a macro, or in has().
	Conditional bool
}

// SyntaxError means that an expression or template is invalid.
type SyntaxError struct {
	// Offset is the position in bytes from the start of the source.
	Offset int
	// Message says what is wrong there.
	Message string
}

// Error returns the message with its position.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at offset %d", e.Message, e.Offset)
}

// EvalError means that an expression could not be evaluated with the given values.
type EvalError struct {
	// Source is the expression; Offset the position in it (of a template: in the string
	// that contains it), in bytes.
	Source string
	Offset int
	// Message says what is wrong. It names the reference if one did not resolve.
	Message string
	// Missing is the part of the reference that did not resolve, up to the first missing
	// member; nil for other errors.
	Missing *Ref
	// Absent means that the expression was evaluated and is an optional value without a
	// value, such as a.?b where a has no b.
	Absent bool
}

// maxQuoted is the maximum length of a quoted source in a message, in bytes.
const maxQuoted = 120

// Error returns the message with the expression and the position.
func (e *EvalError) Error() string {
	return fmt.Sprintf("%s, in {{ %s }} at offset %d", e.Message, excerpt.Bytes(e.Source, 120), e.Offset)
}

package otel

import (
	"crypto/sha256"
	"encoding/hex"
)

// TraceID identifies a trace.
type TraceID [16]byte

// SpanID identifies a span of a trace.
type SpanID [8]byte

// String returns the id in hexadecimal.
func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

// String returns the id in hexadecimal.
func (s SpanID) String() string { return hex.EncodeToString(s[:]) }

// IsZero reports whether there is no span.
func (s SpanID) IsZero() bool { return s == SpanID{} }

// TraceOf returns the id of the trace of a tree of runs; root is the run at its root.
func TraceOf(root string) (t TraceID) {
	sum := sha256.Sum256([]byte("weir trace\x00" + root))
	copy(t[:], sum[:])
	return t
}

// spanOf returns the id of a span of a run. Key is "" for the run itself, PATH@ATTEMPT for
// an attempt of a node, and EFFECT@ATTEMPT for an effect.
func spanOf(run, key string) (s SpanID) {
	sum := sha256.Sum256([]byte("weir span\x00" + run + "\x00" + key))
	copy(s[:], sum[:])
	return s
}

// Kind is the kind of a span, with the numbers of OTLP.
type Kind int

// The kinds of spans that runs have.
const (
	Internal Kind = 1
	Client   Kind = 3
)

// Span is a span that has ended.
type Span struct {
	Trace  TraceID
	ID     SpanID
	Parent SpanID // zero for the root of the trace
	Name   string
	Kind   Kind
	// Start and End are Unix times in nanoseconds. Journals have milliseconds, and
	// microseconds for the duration of an effect.
	Start, End int64
	Attributes []Attribute
	Events     []Event
	// Failed says that the span failed; Code is the error's, from the table of error codes.
	Failed bool
	Code   string
	// Links are the spans from which a fork was made.
	Links []Link

	last int64 // number of the event that ended it
}

// Attribute is a name with a value: a string, an int64, a bool or a []string.
type Attribute struct {
	Name  string
	Value any
}

// Event is something that happened during a span: a wait, a resumption or a retry.
type Event struct {
	At         int64 // Unix time in nanoseconds
	Name       string
	Attributes []Attribute
}

// Link refers to a span of another trace.
type Link struct {
	Trace TraceID
	Span  SpanID
}

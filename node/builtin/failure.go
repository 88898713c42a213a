package builtin

import (
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/excerpt"
)

// The codes with which the types of this package fail.
const (
	// CodeExpression: an expression or template could not be evaluated, or
	// gave a value of the wrong kind.
	CodeExpression = engine.CodeExpression
	// CodeAnswer: an answer or event does not fit the schema that asks for it.
	CodeAnswer = engine.CodeAnswer
	// CodeAnswerTimeout: no answer arrived in time.
	CodeAnswerTimeout = engine.CodeAnswerTimeout
	// CodeEventTimeout: the event did not come in time.
	CodeEventTimeout = engine.CodeEventTimeout
	// CodeToolUnknown: a tool is named that this process does not offer.
	CodeToolUnknown = engine.CodeToolUnknown
	// CodeBranch: a decision gave a result that is not one of its branches.
	CodeBranch = engine.CodeBranch
	// CodeInput: a value that came in on a port cannot be used.
	CodeInput = engine.CodeInput
	// CodeOutput: a value does not fit the schema of an output.
	CodeOutput = engine.CodeOutputInvalid
	// CodeLoopLimit: a loop reached max and its condition never held.
	CodeLoopLimit = engine.CodeLoopLimit
	// CodeRaceFailed: every branch of a race failed.
	CodeRaceFailed = engine.CodeRaceFailed
	// CodeJSON: text that has to be JSON is not.
	CodeJSON = engine.CodeJSON
	// CodeHTTPRequest: the request cannot be made as the settings say.
	CodeHTTPRequest = engine.CodeHTTPRequest
	// CodeHTTPBlocked: the address is one that requests may not reach.
	CodeHTTPBlocked = engine.CodeHTTPBlocked
	// CodeHTTPStatus: the answer's status is not one the node expects.
	CodeHTTPStatus = engine.CodeHTTPStatus
	// CodeHTTPFailed: no answer came, and the request was not received.
	CodeHTTPFailed = engine.CodeHTTPFailed
	// CodeHTTPUnknown: no answer came, and the request may have been acted on.
	CodeHTTPUnknown = engine.CodeHTTPUnknown
	// CodeHTTPTimeout: no answer came in time to a request that may be repeated.
	CodeHTTPTimeout = engine.CodeHTTPTimeout
	// CodeHTTPTooLarge: the answer's body is longer than maxBytes.
	CodeHTTPTooLarge = engine.CodeHTTPTooLarge
	// CodeCache: the cache could not be read or written.
	CodeCache = engine.CodeCache
	// CodeFileUnreadable: a file cannot be read, or may not be.
	CodeFileUnreadable = engine.CodeFileUnreadable
	// CodeFailed is what `fail` fails with unless its settings say otherwise.
	CodeFailed = engine.CodeFailed
)

// permanentError returns a permanent error: trying again would end the same way.
func permanentError(code, format string, args ...any) *engine.Error {
	return &engine.Error{Code: code, Message: fmt.Sprintf(format, args...), Permanent: true}
}

// transientError returns an error that another attempt may not meet.
func transientError(code, format string, args ...any) *engine.Error {
	return &engine.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// withHint adds what to do next.
func withHint(e *engine.Error, format string, args ...any) *engine.Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// maxValueBytes bounds how much of a value an error shows, in bytes.
const maxValueBytes = 80

// describeValue shows a value in an error message.
func describeValue(v engine.Value) string {
	b, err := engine.AppendValue(nil, v)
	if err != nil {
		return fmt.Sprintf("a %T", v)
	}
	return excerpt.Bytes(string(b), maxValueBytes)
}

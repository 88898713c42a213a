// Package llmtest tests model providers and their users. It contains a Server that
// implements the vendors' APIs strictly and answers from a script, and the conformance
// suite for providers.
//
// It must not use a vendor's SDK: the server follows the vendors' public references,
// so that it can disagree with an SDK.
package llmtest

import (
	"context"
	"net/http"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// Turn is what the model answers to one request.
type Turn struct {
	// Text is the answer, streamed in pieces of Piece runes (3 if 0).
	Text  string
	Piece int
	// Refusal is the text with which the model refuses to answer.
	Refusal string
	// Reasoning is streamed before the text: as a summary (Responses) or as
	// reasoning_content (Chat).
	Reasoning string
	// Calls are streamed after the text, their arguments in pieces.
	Calls []convo.Call
	// Usage is reported at the end; the zero value counts nothing.
	Usage llm.Usage
	// Stop is "" (the end, or calls), "length" or "filter".
	Stop string
	// Failure refuses the request instead of answering it.
	Failure *Failure
	// Break ends the stream early.
	Break *Break
	// Raw replaces the answer: each string is one write to the connection, after the headers. A Turn with Raw uses
	// only Type, Break and Before besides.
	Raw []string
	// Type is the Content-Type of Raw, text/event-stream if empty.
	Type string
	// Open keeps the connection open after the last event, until the client has disconnected. The last Unsent events
	// are not sent then.
	Open   bool
	Unsent int
	// Before is called before each event of the stream (or write of Raw), to delay it; its ctx ends when the client
	// has disconnected.
	Before func(ctx context.Context, event int)
}

// Failure is an HTTP error in the vendor's format.
type Failure struct {
	Status  int
	Code    string
	Type    string
	Message string
	Param   string
	// After is sent as Retry-After, in whole seconds if it is at least one,
	// else in milliseconds as Retry-After-Ms.
	After time.Duration
	// Header is added to the headers of the answer.
	Header http.Header
	// Body replaces the vendor's JSON.
	Body string
}

// Break describes where and how a stream ends early.
type Break struct {
	// After is the number of events that are written first.
	After int
	// Fault, if not nil, is written as an error event; then the stream ends.
	Fault *Failure
	// Clean ends the body properly; otherwise the connection is cut.
	Clean bool
}

// StallAt returns a Turn.Before that stops the stream before an event until the client has disconnected.
func StallAt(event int) func(ctx context.Context, event int) {
	return func(ctx context.Context, n int) {
		if n == event {
			<-ctx.Done()
		}
	}
}

// Text returns a turn with that text.
func Text(text string) Turn { return Turn{Text: text} }

// Request is one request that the Server received.
type Request struct {
	// API is "responses", "chat", "anthropic" or "gemini".
	API string
	// Header and Body are unchanged.
	Header http.Header
	Body   []byte
	// Key is the idempotency key.
	Key string
	// Model, Messages and Tools are the content of the request, converted to Weir's types: instructions are system
	// messages at the front, a tool result is a message, and so is each text of a user's message. Returned reasoning
	// is in Message.Reasoning (Chat) or, as its encrypted content, in Message.Native.
	Model    string
	Messages []convo.Message
	Tools    []llm.Tool
	// Choice is the choice of tools as in llm.Request, "" if none was sent.
	Choice string
	// Session is the conversation at the vendor that the request continues; Kept means that the vendor is to store
	// the result.
	Session string
	Kept    bool
	// Problems are the API rules that the request breaks; such a request is refused with status 400 and uses no turn.
	Problems []string
}

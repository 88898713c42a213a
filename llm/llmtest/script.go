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
	// Refusal is what the model says where it refuses to answer.
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
	// Raw replaces the answer: each string is one write to the connection,
	// after the headers. A Turn that has it uses nothing else but Type, Break
	// and Before.
	Raw []string
	// Type is the Content-Type that goes with Raw, text/event-stream if empty.
	Type string
	// Before is called before each event of the stream (or write of Raw), to
	// slow or hold it; its ctx ends when the client has gone.
	Before func(ctx context.Context, event int)
}

// Failure is an HTTP error as the vendor writes it.
type Failure struct {
	Status  int
	Code    string
	Type    string
	Message string
	Param   string
	// After is sent as Retry-After, in whole seconds if it is at least one,
	// else in milliseconds as Retry-After-Ms.
	After time.Duration
	// Header is added to the answer's.
	Header http.Header
	// Body replaces the vendor's JSON.
	Body string
}

// Break is how and where a stream ends early.
type Break struct {
	// After is how many events are written first.
	After int
	// Fault, where not nil, is written as an error event; then the stream ends.
	Fault *Failure
	// Clean ends the body properly; else the connection is cut.
	Clean bool
}

// StallAt is a Turn.Before that holds the stream before an event until the
// client has gone.
func StallAt(event int) func(ctx context.Context, event int) {
	return func(ctx context.Context, n int) {
		if n == event {
			<-ctx.Done()
		}
	}
}

// Text is a turn that says text.
func Text(text string) Turn { return Turn{Text: text} }

// Request is one request that the Server got.
type Request struct {
	// API is the wire it came in: "responses", "chat", "anthropic" or "gemini".
	API string
	// Header and Body are as they came.
	Header http.Header
	Body   []byte
	// Key is the idempotency key.
	Key string
	// Model, Messages and Tools are what the request says, in Weir's words:
	// instructions are system messages at the front, a result of a tool is a
	// message, and so is each text of a user's message. Reasoning that came back
	// is in Message.Reasoning (Chat) or, as its encrypted content, in
	// Message.Native.
	Model    string
	Messages []convo.Message
	Tools    []llm.Tool
	// Choice is the choice of tools as in llm.Request, "" where none was sent.
	Choice string
	// Session is the conversation at the vendor that it goes on with, and Kept
	// says that the vendor is to keep what comes of it.
	Session string
	Kept    bool
	// Problems are the rules of the wire that it breaks; such a request is
	// refused with status 400 and takes no turn.
	Problems []string
}

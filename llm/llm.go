// Package llm makes all model calls. A Provider implements one vendor's API. The Service
// builds a call from a context and a message, runs it as an effect, streams it, and adds
// the turn to the context through its manager.
//
// It must not know flows, graphs, stores or types of vendors; each provider's folder
// contains its own.
package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/convo"
)

// Provider calls the models of one vendor. It must be safe for concurrent use and store no
// conversation: the Request has everything that a call needs.
type Provider interface {
	// Generate makes one model call. It passes pieces to emit as they arrive (never
	// concurrently) and returns the whole answer. Errors are *Error if the provider knows
	// the reason. When ctx ends it must return at once; the service abandons a call that
	// takes longer than a second. Usage reported by the vendor is emitted even if the call
	// then fails. An answer without usage is charged at an estimate, unless it is Unbilled.
	Generate(ctx context.Context, req *Request, emit func(Chunk)) (*Response, error)
}

// Request is one model call with provider-valid content: calls and results paired, in
// order.
type Request struct {
	// Key is the effect key, sent as the idempotency key if the vendor has one.
	Key string
	// Provider is the configured name of the provider.
	Provider string
	// Model is the vendor's name of the model, without the provider.
	Model    string
	System   string
	Messages []convo.Message
	Tools    []Tool
	// ToolChoice is "", "auto", "none", "required" or a tool's name.
	ToolChoice  string
	Temperature *float64
	MaxOutput   int // tokens; 0 means the vendor's default
	Reasoning   string
	// Schema requests an answer that is JSON of this schema; nil means text.
	Schema map[string]any
	// StablePrefix is the number of first messages that are the same as in the previous
	// call. A provider whose cache needs marks sets one after them.
	StablePrefix int
	// KeepSession asks the vendor to store the conversation, so that a later call may refer
	// to it. Providers without this ability ignore it.
	KeepSession bool
	// Session is the Session of an earlier Response: the vendor has the first Held
	// messages, and only the others are sent. Providers without this ability send all. If
	// the vendor has lost the conversation, the error is model_session_lost, and the
	// service repeats the call without it.
	Session      string
	HeldMessages int

	// The following fields are for the host and are not sent.

	// AnswerPosition is the position of the answer in the history of its context.
	AnswerPosition int
	// User is the user of the run, who takes turns with others where calls wait for limits.
	User string
	// Purpose is what the call is for: PurposeTurn or PurposeSummary.
	Purpose string
	// Timeouts bound the call in place of the provider's; zero fields leave those.
	Timeouts Timeouts
	// Estimate is the maximum usage of the call: its input, the output reserved for it, and
	// their cost.
	Estimate Usage
	// OutputCost is the part of Estimate.CostMicros for the output. Unpriced says that both
	// are unknown, because the model has no price.
	OutputCost int64
	Unpriced   bool
	// Failed is the number of other models that were asked for this answer before and
	// failed. Their calls and this one share an ordinal.
	Failed int
	// GrantedOutput, if not 0, is the number of output tokens that a budget leaves; the
	// host sets it.
	GrantedOutput int
	// AllowRetry, if set, is called before a failed call is repeated, with the cost of the
	// failed try. It returns an error if a budget has no room for both. The host sets it.
	AllowRetry func(spent Usage) error `json:"-"`
	// Manifest says which part of their context the messages show; nil if they show all of
	// it.
	Manifest *Manifest

	// fallsBackOn, if set, reports whether another model is asked after a failure with that
	// code, which is then not retried.
	fallsBackOn func(code string) bool
	// digests, if set, has the digest of the previous request; of is its key.
	digests   *digestCache
	digestKey digestKey
}

// The purposes of a model call.
const (
	PurposeTurn    = ""
	PurposeSummary = "summary"
)

// Manifest describes the input of a model call, in tokens.
type Manifest struct {
	convo.Manifest
	// Window is the model's or the configured window; Reserve is reserved in it for the
	// answer; System and Tools are the sizes of these parts.
	Window  int `json:"window"`
	Reserve int `json:"reserve"`
	System  int `json:"system,omitempty"`
	Tools   int `json:"tools,omitempty"`
	// Factor is the factor of estimates, in per cent; 0 if counts are exact.
	Factor int `json:"factor,omitempty"`
	// HeldMessages is the number of first messages that were not sent, because the vendor
	// has them.
	HeldMessages int `json:"held,omitempty"`
}

// Tool is the description of a tool for a model.
type Tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters,omitempty"` // JSON Schema
}

// The reasons in Response.Stop.
const (
	StopEnd    = "end"    // the answer is complete
	StopCalls  = "calls"  // the model calls tools
	StopLength = "length" // the limit of tokens cut the answer off
	StopFilter = "filter" // the vendor withheld the answer
	// StopInterrupted: a person ended the answer where it was.
	StopInterrupted = "interrupted"
)

// Response is the result of one model call.
type Response struct {
	// Message is the assistant's message: text, reasoning, calls, native blocks.
	Message convo.Message `json:"message"`
	Usage   Usage         `json:"usage"`
	// Unbilled says that no vendor generated the answer, and that Usage is its whole cost,
	// including zeros. Scripts, mocks and recorded conversations set it. For other answers
	// the service estimates tokens that were not reported.
	Unbilled bool `json:"unbilled,omitempty"`
	// Stop is the reason of the end, one of the Stop constants.
	Stop string `json:"stop,omitempty"`
	// Model and ID are as reported by the vendor.
	Model string `json:"model,omitempty"`
	ID    string `json:"id,omitempty"`
	// Session identifies the conversation, including this answer, at the vendor if it was
	// asked to store it.
	Session string `json:"session,omitempty"`
	// RetryCost is the cost of the tries before this one, set by the service.
	RetryCost RetryCost `json:"lost,omitzero"`
}

// HasAnswer reports whether there is an answer, as opposed to only the cost of failed
// tries.
func (r *Response) HasAnswer() bool { return r.Message.Role != "" }

// Usage counts tokens as reported by the vendor. Cached (read from the vendor's cache) and
// Written (written to it) are parts of Input; Reasoning is a part of Output.
type Usage struct {
	Input     int `json:"input,omitempty"`
	Cached    int `json:"cached,omitempty"`
	Written   int `json:"written,omitempty"`
	Output    int `json:"output,omitempty"`
	Reasoning int `json:"reasoning,omitempty"`
	// CostMicros is in millionths of a US dollar; the service computes it from the model's
	// price.
	CostMicros int64 `json:"cost,omitempty"`
	// Estimated says that the vendor did not report everything; the missing part was
	// counted here.
	Estimated bool `json:"estimated,omitempty"`
}

// RetryCost is the cost of the failed tries of a call.
type RetryCost struct {
	// Tries is the number of tries that the vendor may bill, Estimated the number of those
	// without reported usage.
	Tries     int   `json:"tries,omitempty"`
	Estimated int   `json:"estimated,omitempty"`
	Usage     Usage `json:"usage,omitzero"`
}

// Add adds a try.
func (l *RetryCost) Add(u Usage) {
	l.Tries++
	if u.Estimated {
		l.Estimated++
	}
	l.Usage = l.Usage.Add(u)
}

// Chunk is a piece of a stream. Apart from Effect and the parts of Call, exactly one field
// is set.
type Chunk struct {
	// Effect is the key of the effect; the service sets it.
	Effect    string `json:"effect,omitempty"`
	Text      string `json:"text,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	// Stdout and Stderr are the output of running code.
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	// Call announces a tool call as soon as its name is known.
	Call  *convo.Call `json:"call,omitempty"`
	Usage *Usage      `json:"usage,omitempty"`
	// Wait is the minimum time that the service waits before it makes or repeats the call;
	// earlier pieces of the call are void. WaitReason and WaitDetail describe the reason.
	Wait time.Duration `json:"wait,omitempty"`
	// WaitReason is WaitLimit, and WaitDetail the limit's name; WaitStopped, and WaitDetail
	// says who stopped the model and why; or the code of the vendor's error, such as
	// model_rate_limited, and WaitDetail its message.
	WaitReason string `json:"why,omitempty"`
	WaitDetail string `json:"about,omitempty"`
}

// WaitLimit is the Chunk.WaitReason of a call that waits for one of Limits.
const WaitLimit = "limit"

// WaitStopped is the Chunk.WaitReason of a call that waits because a person has stopped its
// model.
const WaitStopped = "stopped"

// ErrNoProvider means that the model names a provider that is not configured, or none
// although there are several. It is the cause of a model_unknown_provider.
var ErrNoProvider = errors.New("no such provider")

// Error is a failed model call.
type Error struct {
	// Code is from engine's table: model_rate_limited, model_overloaded, model_auth,
	// model_invalid_request, model_context_length, model_filtered, model_unavailable,
	// model_timeout, model_session_lost, replay_divergence, or from the service:
	// model_unknown_provider, turn_too_long.
	Code    string
	Message string
	// Status is the HTTP status, 0 if there was none.
	Status int
	// Retry says that the same request may succeed later; After is the wait that the vendor
	// requested, 0 if it requested none.
	Retry      bool
	RetryAfter time.Duration
	// Retried says that the provider has already retried; only the node's retry remains.
	Retried bool
	// OutcomeUnknown says that the connection broke, or the time ran out, when the vendor
	// may have processed the call: it is charged without an answer.
	OutcomeUnknown bool
	Err            error
}

// Error returns message and code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%s)", e.Message, e.Code) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Recording is one model call in a recording, a JSON object a line.
type Recording struct {
	Key string `json:"key"`
	// Request is the request as sent to the model, without the key.
	Request  json.RawMessage `json:"request"`
	Response *Response       `json:"response,omitempty"`
	Error    *RecordedError  `json:"error,omitempty"`
}

// RecordedError is a failed call in a recording.
type RecordedError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

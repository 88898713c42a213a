// Package llm makes all model calls. A Provider implements one vendor's API. The
// Service turns a context and a message into a call, runs it as an effect, streams it,
// and adds the turn to the context through its manager.
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

// Provider is one way of calling models. It must be safe for concurrent use
// and keep no conversation: everything a call needs is in the Request.
type Provider interface {
	// Generate makes one model call, giving pieces to emit as they come (never
	// concurrently) and returning the whole. Errors are *Error where the
	// provider can say what went wrong. When ctx ends it returns at once; the service
	// abandons a call that does not within a second. Usage that the vendor reports
	// is emitted, also where the call then fails. An answer without usage is charged
	// at an estimate, unless it is Unbilled.
	Generate(ctx context.Context, req *Request, emit func(Chunk)) (*Response, error)
}

// Request is one model call, provider-valid in content: calls and results
// paired, in order.
type Request struct {
	// Key is the effect key, sent as idempotency key where the vendor has one.
	Key string
	// Provider is the name under which the provider is configured.
	Provider string
	// Model is the vendor's name of the model, without the provider.
	Model    string
	System   string
	Messages []convo.Message
	Tools    []Tool
	// ToolChoice is "", "auto", "none", "required" or a tool's name.
	ToolChoice  string
	Temperature *float64
	MaxOutput   int // tokens; 0 leaves it to the vendor
	Reasoning   string
	// Schema asks for an answer that is JSON of this schema; nil is text.
	Schema map[string]any
	// StablePrefix is how many of the first messages are the same as in the call
	// before; a provider whose cache wants marks sets one behind them.
	StablePrefix int
	// KeepSession asks the vendor to keep the conversation on its side, so that a later
	// call may name it; a provider that cannot ignores it.
	KeepSession bool
	// Session is what an earlier Response gave as Session: the vendor holds the
	// first Held of the messages under it and is sent the rest alone. A provider
	// that cannot sends all. One whose vendor has lost it fails with
	// model_session_lost, and the service asks again without.
	Session      string
	HeldMessages int

	// What follows is for the host and not sent.

	// AnswerPosition is where the answer will be in the history of its context.
	AnswerPosition int
	// Purpose is what the call is for: PurposeTurn or PurposeSummary.
	Purpose string
	// Estimate is what the call may take at most: its input, the output that is
	// reserved for it, and what they cost.
	Estimate Usage
	// OutputCost is what the output costs of Estimate.CostMicros. Unpriced says
	// that neither is known, since the model has no price.
	OutputCost int64
	Unpriced   bool
	// GrantedOutput, where not 0, is how many tokens of output a budget leaves; the
	// host sets it.
	GrantedOutput int
	// AllowRetry, where set, is asked before a call that failed is tried again, with what
	// the failed try has cost: an error where a budget has no room for both. The
	// host sets it.
	AllowRetry func(spent Usage) error `json:"-"`
	// Manifest says what the messages show of their context and what not; nil
	// where they show all of it.
	Manifest *Manifest

	// digests, where set, has the digest of the request before this one; of says
	// whose it is.
	digests   *digestCache
	digestKey digestKey
}

// The purposes of a model call.
const (
	PurposeTurn    = ""
	PurposeSummary = "summary"
)

// Manifest says what a model call was given, in tokens.
type Manifest struct {
	convo.Manifest
	// Window is the model's or the one set, Reserve is kept free in it for the
	// answer, System and Tools take theirs.
	Window  int `json:"window"`
	Reserve int `json:"reserve"`
	System  int `json:"system,omitempty"`
	Tools   int `json:"tools,omitempty"`
	// Factor, in per cent, is what estimates were multiplied by; 0 where counts
	// are exact.
	Factor int `json:"factor,omitempty"`
	// HeldMessages is how many of the first messages were not sent, since the vendor keeps
	// them.
	HeldMessages int `json:"held,omitempty"`
}

// Tool is a tool as a model is told of it.
type Tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters,omitempty"` // JSON Schema
}

// Response is what one model call returned.
type Response struct {
	// Message is the assistant's message: text, reasoning, calls, native blocks.
	Message convo.Message `json:"message"`
	Usage   Usage         `json:"usage"`
	// Unbilled says that no vendor made the answer, and that Usage is all that it
	// costs, zeros included. Scripts, mocks and recorded conversations set it. Of any
	// other answer the service estimates the tokens that were not reported.
	Unbilled bool `json:"unbilled,omitempty"`
	// Stop is why it ended: "end", "calls", "length", "filter".
	Stop string `json:"stop,omitempty"`
	// Model and ID are as the vendor reports them.
	Model string `json:"model,omitempty"`
	ID    string `json:"id,omitempty"`
	// Session names the conversation up to and with this answer on the vendor's
	// side, where it was asked to keep it.
	Session string `json:"session,omitempty"`
	// RetryCost is what tries before this one have cost; the service fills it in.
	RetryCost RetryCost `json:"lost,omitzero"`
}

// HasAnswer reports whether there is an answer, and not only what was lost on tries for
// one.
func (r *Response) HasAnswer() bool { return r.Message.Role != "" }

// Usage counts tokens as the vendor reports them. Cached (read from the
// vendor's cache) and Written (written to it) are parts of Input, Reasoning is
// one of Output.
type Usage struct {
	Input     int `json:"input,omitempty"`
	Cached    int `json:"cached,omitempty"`
	Written   int `json:"written,omitempty"`
	Output    int `json:"output,omitempty"`
	Reasoning int `json:"reasoning,omitempty"`
	// CostMicros is in millionths of a US dollar; the service fills it in from
	// the model's price.
	CostMicros int64 `json:"cost,omitempty"`
	// Estimated says that the vendor did not report all of it: what is missing was
	// counted here.
	Estimated bool `json:"estimated,omitempty"`
}

// RetryCost is the cost of the tries of a call that brought no answer.
type RetryCost struct {
	// Tries is how many the vendor may bill, Estimated of how many it did not report
	// the usage.
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

// Chunk is a piece of a stream. Besides Effect and Call's parts exactly one field is set.
type Chunk struct {
	// Effect is the key of the effect that the piece is of; the service sets it.
	Effect    string `json:"effect,omitempty"`
	Text      string `json:"text,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	// Stdout and Stderr are what code writes while it runs.
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	// Call announces a tool call once its name is known.
	Call  *convo.Call `json:"call,omitempty"`
	Usage *Usage      `json:"usage,omitempty"`
	// Wait is how long the service waits at least before it makes the call, or
	// tries again; what the call gave so far is void. Why and About go with it.
	Wait time.Duration `json:"wait,omitempty"`
	// WaitReason is WaitLimit, and About the limit's name; or the code of what the vendor
	// answered, as model_rate_limited, and About what it said.
	WaitReason string `json:"why,omitempty"`
	WaitDetail string `json:"about,omitempty"`
}

// WaitLimit is the Chunk.Why of a call that waits for one of Limits.
const WaitLimit = "limit"

// ErrNoProvider: the model names a provider that is not configured, or none
// where there is more than one. It is the cause of a model_unknown_provider.
var ErrNoProvider = errors.New("no such provider")

// Error is a failed model call.
type Error struct {
	// Code is from engine's table: model_rate_limited, model_overloaded,
	// model_auth, model_invalid_request, model_context_length, model_filtered,
	// model_unavailable, model_timeout, model_session_lost, replay_divergence, or of the service:
	// model_unknown_provider, turn_too_long.
	Code    string
	Message string
	// Status is the HTTP status, 0 where there was none.
	Status int
	// Retry says that the same request may succeed later; After is how long
	// the vendor asked to wait, 0 where it did not say.
	Retry      bool
	RetryAfter time.Duration
	// Retried says that the provider has tried again itself: what is left is the
	// node's retry.
	Retried bool
	// OutcomeUnknown says that the connection broke, or the time ran out, when the vendor
	// may have worked already: the call is charged, although it brought nothing.
	OutcomeUnknown bool
	Err            error
}

// Error is the code and message.
func (e *Error) Error() string { return fmt.Sprintf("%s (%s)", e.Message, e.Code) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Recording is one model call as recordings keep it, a JSON object a line.
type Recording struct {
	Key string `json:"key"`
	// Request is what the model was sent, without the key.
	Request  json.RawMessage `json:"request"`
	Response *Response       `json:"response,omitempty"`
	Error    *RecordedError  `json:"error,omitempty"`
}

// RecordedError is a failed call in a recording.
type RecordedError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

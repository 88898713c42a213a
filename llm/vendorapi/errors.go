package vendorapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/llm"
)

const (
	maxRead    = 64 << 10 // bytes of a server's message that are examined
	maxExcerpt = 600      // bytes of it that are passed on
	maxError   = 1000     // maximum length of an error's text, in bytes
)

// ErrorFormatter formats the errors of a provider. It has the provider's name and the function that removes its key
// from a text.
type ErrorFormatter struct {
	Name  string
	Scrub func(string) string
}

// Excerpt returns the server's message without the key, at most 600 bytes. The key is removed first, because a cut
// could leave half of it.
func (s ErrorFormatter) Excerpt(said string) string { return s.truncate(said, maxExcerpt) }

func (s ErrorFormatter) truncate(text string, limit int) string {
	return excerpt.Bytes(s.Scrub(text[:min(len(text), maxRead)]), limit)
}

// Describe returns the text of an error: the provider, the status (0 inside a stream) and the server's message.
func (s ErrorFormatter) Describe(status int, said string) string {
	at := ""
	if status != 0 {
		at = strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status))) + ": "
	}
	switch {
	case said != "":
	case status >= 300 && status < 400:
		said = "the server answered with a redirect, which is not followed: check the base URL"
	default:
		said = "the server gave no reason"
	}
	return s.Name + ": " + at + s.Excerpt(said)
}

// Ping is e.Ping with errors of the provider. invalid is why the provider's options are invalid, nil if they are valid.
func (s ErrorFormatter) Ping(ctx context.Context, e *Endpoint, address string, invalid error) error {
	if invalid != nil {
		return s.InvalidRequest("%v", invalid)
	}
	if err := e.Ping(ctx, address); err != nil {
		return s.Failure(ctx, err)
	}
	return nil
}

// InvalidRequest returns the error of a request that cannot be sent and must not be repeated.
func (s ErrorFormatter) InvalidRequest(format string, args ...any) *llm.Error {
	return s.scrubbed(&llm.Error{Code: engine.CodeModelRequest, Message: s.Name + ": " + fmt.Sprintf(format, args...)})
}

// StreamCut returns the error of a stream that ended before its answer did.
func StreamCut(provider string) *llm.Error {
	e := unavailable(provider, "the stream ended before the answer did")
	e.OutcomeUnknown = true
	return e
}

// UnreadableAnswer returns the error of an answer with an unreadable part. Its text did not pass through Failure, so
// it may contain anything.
func UnreadableAnswer(provider string, err error) *llm.Error {
	e := unavailable(provider, "the stream contains an invalid event: "+err.Error())
	e.OutcomeUnknown = true
	return e
}

func unavailable(provider, how string) *llm.Error {
	return &llm.Error{Code: engine.CodeModelUnavailable, Message: provider + ": " + how, Retry: true}
}

// Failure converts err for a provider's caller: without types of an SDK, addresses and the key. The result is an
// *llm.Error or, if ctx was cancelled, an error that wraps ctx's.
func (s ErrorFormatter) Failure(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		if errors.Is(cause, context.DeadlineExceeded) {
			return &llm.Error{Code: engine.CodeModelTimeout, Message: s.Name + ": the call took too long", Retry: true, OutcomeUnknown: true, Err: cause}
		}
		return fmt.Errorf("%s: generate: %w", s.Name, cause)
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return s.scrubbed(e)
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &llm.Error{Code: engine.CodeModelTimeout, Message: s.Name + ": the server did not answer in time", Retry: true, OutcomeUnknown: mayHaveReachedServer(err)}
	}
	for u, ok := errors.AsType[*url.Error](err); ok; u, ok = errors.AsType[*url.Error](err) {
		err = u.Err // the address may contain a secret
	}
	e := unavailable(s.Name, err.Error())
	e.OutcomeUnknown = mayHaveReachedServer(err)
	return s.scrubbed(e)
}

// mayHaveReachedServer reports whether a request that failed may have reached the server.
func mayHaveReachedServer(err error) bool {
	if errors.Is(err, ErrNotAPI) { // no API has answered
		return false
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return false
	}
	_, unresolved := errors.AsType[*net.DNSError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return !unresolved && !untrusted
}

// scrubbed returns the text of e without the key and within the length limit.
func (s ErrorFormatter) scrubbed(e *llm.Error) *llm.Error {
	short := *e
	short.Message = s.truncate(e.Message, maxError)
	return &short
}

// CodeOfStatus returns the code for an answer's status, 0 inside a stream, and whether a retry may succeed.
func CodeOfStatus(status int) (code string, retry bool) {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return engine.CodeModelAuth, false
	case http.StatusPaymentRequired:
		return engine.CodeModelRateLimited, false // waiting does not help
	case http.StatusTooManyRequests:
		return engine.CodeModelRateLimited, true
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return engine.CodeModelTimeout, true
	case http.StatusServiceUnavailable, 529:
		return engine.CodeModelOverloaded, true
	case http.StatusConflict, http.StatusTooEarly, 499, 0: // 499: a gateway lost the server
		return engine.CodeModelUnavailable, true
	}
	if status >= 500 {
		return engine.CodeModelUnavailable, true
	}
	return engine.CodeModelRequest, false
}

// FindError returns where a server's answer describes an error: in {"error": ...}, in {"message": ...}, which is then
// the body itself, or in {"detail": ...}. For any other body raw is nil and plain is its text.
func FindError(body []byte) (raw json.RawMessage, plain string) {
	var top struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	switch {
	case json.Unmarshal(body, &top) != nil:
	case IsSet(top.Error):
		return top.Error, ""
	case IsSet(top.Message):
		return body, ""
	case IsSet(top.Detail):
		return nil, ScalarText(top.Detail)
	}
	return nil, PlainText(body)
}

// IsSet reports whether a JSON value is present and not null.
func IsSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// ScalarText returns the text of a JSON string, the JSON of any other value, and "" for null.
func ScalarText(raw json.RawMessage) string {
	if !IsSet(raw) {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// PlainText returns the text of a body that is not JSON, "" for a page of HTML.
func PlainText(body []byte) string {
	s := strings.TrimSpace(string(body))
	if strings.HasPrefix(s, "<") {
		return ""
	}
	return s
}

package wire

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
	"github.com/weir-run/weir/llm"
)

const (
	maxRead  = 64 << 10 // bytes of a server's words that are looked at
	maxWords = 600      // bytes of them that are passed on
	maxError = 1000     // bytes of an error's text
)

// Speaker is who tells of failures: a provider by its name, and the function
// that takes its key out of a text.
type Speaker struct {
	Name  string
	Scrub func(string) string
}

// Words is what a server said, as far as it is passed on: without the key, and
// no more than 600 bytes. The key goes first, since a cut could leave half.
func (s Speaker) Words(said string) string { return s.short(said, maxWords) }

func (s Speaker) short(text string, limit int) string {
	text = s.Scrub(text[:min(len(text), maxRead)])
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "") + "..."
	}
	return text
}

// Describe is the text of an error: the provider, the status (0 inside a
// stream) and what the server said.
func (s Speaker) Describe(status int, said string) string {
	at := ""
	if status != 0 {
		at = strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status))) + ": "
	}
	switch {
	case said != "":
	case status >= 300 && status < 400:
		said = "the server sends elsewhere, which is not followed: is the base URL right?"
	default:
		said = "the server gave no reason"
	}
	return s.Name + ": " + at + s.Words(said)
}

// Refused is a request that cannot be sent, which no repetition mends.
func (s Speaker) Refused(format string, args ...any) *llm.Error {
	return s.tell(&llm.Error{Code: engine.CodeModelRequest, Message: s.Name + ": " + fmt.Sprintf(format, args...)})
}

// Cut is a stream of a provider's that ended before its answer did.
func Cut(provider string) *llm.Error {
	e := unavailable(provider, "the stream ended before the answer did")
	e.Unknown = true
	return e
}

// Garbled is an answer of which a part cannot be read. Its text is what Failure
// has not seen: it may hold anything.
func Garbled(provider string, err error) *llm.Error {
	e := unavailable(provider, "the stream holds what is no event: "+err.Error())
	e.Unknown = true
	return e
}

func unavailable(provider, how string) *llm.Error {
	return &llm.Error{Code: engine.CodeModelUnavailable, Message: provider + ": " + how, Retry: true}
}

// Failure is err as a provider's caller sees it, nothing of an SDK's, no
// address and no key in it: an *llm.Error, or, where ctx was cancelled, an
// error that wraps ctx's.
func (s Speaker) Failure(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		if errors.Is(cause, context.DeadlineExceeded) {
			return &llm.Error{Code: engine.CodeModelTimeout, Message: s.Name + ": the call took too long", Retry: true, Unknown: true, Err: cause}
		}
		return fmt.Errorf("%s: generate: %w", s.Name, cause)
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return s.tell(e)
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &llm.Error{Code: engine.CodeModelTimeout, Message: s.Name + ": the server did not answer in time", Retry: true, Unknown: sent(err)}
	}
	for u, ok := errors.AsType[*url.Error](err); ok; u, ok = errors.AsType[*url.Error](err) {
		err = u.Err // the address may hold a secret
	}
	e := unavailable(s.Name, err.Error())
	e.Unknown = sent(err)
	return s.tell(e)
}

// sent reports whether a request that failed may have reached the server.
func sent(err error) bool {
	if errors.Is(err, ErrPage) { // no API has answered
		return false
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return false
	}
	_, unresolved := errors.AsType[*net.DNSError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return !unresolved && !untrusted
}

// tell is e as far as it may be told.
func (s Speaker) tell(e *llm.Error) *llm.Error {
	told := *e
	told.Message = s.short(e.Message, maxError)
	return &told
}

// ByStatus is the code of an answer's status, 0 inside a stream, and whether
// asking again may help.
func ByStatus(status int) (code string, retry bool) {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return engine.CodeModelAuth, false
	case http.StatusPaymentRequired:
		return engine.CodeModelRateLimited, false // no wait mends it
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

// Fault finds where a server says what went wrong: in {"error": ...}, in
// {"message": ...}, which is then the body itself, or in {"detail": ...}. Where
// the body is none of these, raw is nil and plain is its text.
func Fault(body []byte) (raw json.RawMessage, plain string) {
	var top struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	switch {
	case json.Unmarshal(body, &top) != nil:
	case Given(top.Error):
		return top.Error, ""
	case Given(top.Message):
		return body, ""
	case Given(top.Detail):
		return nil, Scalar(top.Detail)
	}
	return nil, Plain(body)
}

// Given says that a JSON value is there and not null.
func Given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// Scalar is a JSON string's text, any other value as it is written, "" of null.
func Scalar(raw json.RawMessage) string {
	if !Given(raw) {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// Plain is a body that is not JSON; a page of HTML says nothing worth keeping.
func Plain(body []byte) string {
	s := strings.TrimSpace(string(body))
	if strings.HasPrefix(s, "<") {
		return ""
	}
	return s
}

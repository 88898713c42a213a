package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// The codes of engine's table that a call can end with.
const (
	codeRateLimited = engine.CodeModelRateLimited
	codeOverloaded  = engine.CodeModelOverloaded
	codeAuth        = engine.CodeModelAuth
	codeInvalid     = engine.CodeModelRequest
	codeContext     = engine.CodeModelContextLength
	codeFiltered    = engine.CodeModelFiltered
	codeUnavailable = engine.CodeModelUnavailable
	codeTimeout     = engine.CodeModelTimeout
)

const (
	maxErrorBody    = 1 << 20 // bytes read of a refusal
	maxErrorMessage = 600     // bytes of a server's words that are passed on
	maxWait         = 24 * time.Hour
)

// fault is what a server says went wrong.
type fault struct{ Type, Message string }

// refuse turns every answer that is not a success into an *llm.Error, before
// the SDK makes an error of its own that carries the request and its headers.
func (p *Provider) refuse(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	if err != nil || res.StatusCode < 300 {
		return res, err
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	if err := res.Body.Close(); err != nil {
		return nil, fmt.Errorf("close refusal: %w", err)
	}
	e := p.classify(res.StatusCode, parseFault(body))
	e.After = retryAfter(res.Header)
	switch res.Header.Get("X-Should-Retry") {
	case "true":
		e.Retry = true
	case "false":
		e.Retry = false
	}
	return nil, e
}

// parseFault reads {"type": "error", "error": {"type", "message"}} and what
// gateways write instead; what is none of them is kept as text.
func parseFault(body []byte) fault {
	var top struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &top) != nil {
		s := strings.TrimSpace(string(body))
		if strings.HasPrefix(s, "<") {
			s = "" // a page says nothing worth keeping
		}
		return fault{Message: s}
	}
	var f struct{ Type, Message json.RawMessage }
	switch {
	case given(top.Error) && json.Unmarshal(top.Error, &f) == nil:
		return fault{Type: scalar(f.Type), Message: scalar(f.Message)}
	case given(top.Error):
		return fault{Message: scalar(top.Error)}
	case given(top.Message):
		return fault{Message: scalar(top.Message)}
	case given(top.Detail):
		return fault{Message: scalar(top.Detail)}
	}
	return fault{Message: strings.TrimSpace(string(body))}
}

// given says that a JSON value is there and not null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// scalar is a JSON string's text, any other value as it is written, "" of null.
func scalar(raw json.RawMessage) string {
	if !given(raw) {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// classify maps a status (0 inside a stream) and what the server said.
func (p *Provider) classify(status int, f fault) *llm.Error {
	code, retry := byStatus(status)
	if status == 0 || status == http.StatusBadRequest {
		if c, r, ok := byType(f.Type); ok {
			code, retry = c, r
		}
	}
	if code == codeInvalid {
		code = byWords(f.Message)
	}
	return &llm.Error{Code: code, Retry: retry, Status: status, Message: p.describe(status, f)}
}

func byStatus(status int) (code string, retry bool) {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return codeAuth, false
	case http.StatusPaymentRequired:
		return codeRateLimited, false // no wait mends it
	case http.StatusTooManyRequests:
		return codeRateLimited, true
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return codeTimeout, true
	case http.StatusServiceUnavailable, 529:
		return codeOverloaded, true
	case http.StatusConflict, http.StatusTooEarly, 0:
		return codeUnavailable, true
	}
	if status >= 500 {
		return codeUnavailable, true
	}
	return codeInvalid, false
}

// byType knows the vendor's error types ("Errors", HTTP errors).
func byType(kind string) (code string, retry, known bool) {
	switch kind {
	case "invalid_request_error", "not_found_error", "request_too_large":
		return codeInvalid, false, true
	case "authentication_error", "permission_error":
		return codeAuth, false, true
	case "billing_error":
		return codeRateLimited, false, true
	case "rate_limit_error":
		return codeRateLimited, true, true
	case "timeout_error":
		return codeTimeout, true, true
	case "overloaded_error":
		return codeOverloaded, true, true
	case "api_error":
		return codeUnavailable, true, true
	}
	return "", false, false
}

// byWords tells the invalid requests apart that have no type of their own.
func byWords(message string) string {
	m := strings.ToLower(message)
	for _, known := range []struct{ words, code string }{
		{"prompt is too long", codeContext},
		{"exceed context limit", codeContext},
		{"exceeds the context", codeContext},
		{"context window", codeContext},
		{"maximum context length", codeContext},
		{"content filtering policy", codeFiltered},
		{"credit balance is too low", codeRateLimited},
	} {
		if strings.Contains(m, known.words) {
			return known.code
		}
	}
	return codeInvalid
}

func (p *Provider) describe(status int, f fault) string {
	var b strings.Builder
	b.WriteString("anthropic: ")
	if status != 0 {
		fmt.Fprintf(&b, "%d", status)
		if text := http.StatusText(status); text != "" {
			b.WriteString(" " + text)
		}
		b.WriteString(": ")
	}
	message := p.scrub(f.Message) // before it is cut, which could leave half a key
	if message == "" {
		message = "the server gave no reason"
	}
	if len(message) > maxErrorMessage {
		message = strings.ToValidUTF8(message[:maxErrorMessage], "") + "..."
	}
	b.WriteString(message)
	return b.String()
}

// retryAfter reads how long a server asks to wait, at most a day, 0 where it
// does not say. The header is seconds or a date (RFC 9110, 10.2.3), the date
// read against the server's own clock; Retry-After-Ms is finer.
func retryAfter(h http.Header) time.Duration {
	if v, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return bounded(v * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return bounded(s * float64(time.Second))
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	sent, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return bounded(float64(at.Sub(sent)))
}

func bounded(ns float64) time.Duration {
	switch {
	case math.IsNaN(ns) || ns <= 0:
		return 0
	case ns >= float64(maxWait):
		return maxWait
	}
	return time.Duration(ns)
}

// failure is err as a caller sees it: nothing of the SDK's, no address, no key.
func (p *Provider) failure(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		if errors.Is(cause, context.DeadlineExceeded) {
			return &llm.Error{Code: codeTimeout, Message: "anthropic: the call took too long", Retry: true, Err: cause}
		}
		return fmt.Errorf("anthropic: generate: %w", cause)
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &llm.Error{Code: codeTimeout, Message: "anthropic: the server did not answer in time", Retry: true}
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the address may hold a secret
	}
	return &llm.Error{Code: codeUnavailable, Message: p.scrub("anthropic: " + err.Error()), Retry: true}
}

// scrubber returns a function that takes key out of a text.
func scrubber(key string) func(string) string {
	return func(s string) string {
		if key == "" {
			return s
		}
		return strings.ReplaceAll(s, key, "[key]")
	}
}

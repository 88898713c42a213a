package openai

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

	"github.com/openai/openai-go/v3/option"

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
	codeSession     = engine.CodeModelSessionLost
)

const (
	maxErrorBody    = 1 << 20 // bytes read of a refusal
	maxErrorMessage = 600     // bytes of a server's words that are passed on
	maxWait         = 24 * time.Hour
)

// fault is what a server says went wrong, in whichever shape it says it.
type fault struct {
	Message string
	Type    string
	Code    string
	Param   string
}

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

// parseFault reads {"error": {...}}, {"error": "text"}, {"message": "text"}
// and {"detail": ...}; what is none of them is kept as text.
func parseFault(body []byte) fault {
	var top struct {
		Error   json.RawMessage `json:"error"`
		Detail  json.RawMessage `json:"detail"`
		Message json.RawMessage `json:"message"`
	}
	if json.Unmarshal(body, &top) != nil {
		return fault{Message: plain(body)}
	}
	switch {
	case given(top.Error):
		return decodeFault(top.Error)
	case given(top.Message):
		return decodeFault(body)
	case given(top.Detail):
		return fault{Message: scalar(top.Detail)}
	}
	return fault{Message: plain(body)}
}

func decodeFault(raw json.RawMessage) fault {
	var f struct {
		Message, Type, Code, Param json.RawMessage
	}
	if json.Unmarshal(raw, &f) != nil {
		return fault{Message: scalar(raw)}
	}
	return fault{Message: scalar(f.Message), Type: scalar(f.Type), Code: scalar(f.Code), Param: scalar(f.Param)}
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

// plain is a body that is not JSON; a page of HTML says nothing worth keeping.
func plain(body []byte) string {
	s := strings.TrimSpace(string(body))
	if strings.HasPrefix(s, "<") {
		return ""
	}
	return s
}

// classify maps a status (0 inside a stream) and what the server said.
func (p *Provider) classify(status int, f fault) *llm.Error {
	if n, err := strconv.Atoi(f.Code); err == nil && status == 0 && n >= 400 && n < 600 {
		status = n // gateways say it so inside a stream
	}
	code, retry := byStatus(status)
	if status == 0 && (f.Type == "invalid_request_error" || f.Code == "invalid_request_error") {
		code, retry = codeInvalid, false
	}
	if c, r, ok := byWord(f.Type); ok {
		code, retry = c, r
	}
	if c, r, ok := byWord(f.Code); ok {
		code, retry = c, r
	}
	if code == codeInvalid && longPrompt(f.Message) {
		code, retry = codeContext, false
	}
	return &llm.Error{Code: code, Retry: retry, Status: status, Message: p.describe(status, f)}
}

func byStatus(status int) (code string, retry bool) {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return codeAuth, false
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

// byWord knows the error codes and types that say more than a status does.
func byWord(word string) (code string, retry, known bool) {
	switch word {
	case "context_length_exceeded", "exceed_context_size_error", "string_above_max_length":
		return codeContext, false, true
	case "insufficient_quota", "billing_hard_limit_reached":
		return codeRateLimited, false, true // no wait mends it
	case "rate_limit_exceeded", "rate_limit_error":
		return codeRateLimited, true, true
	case "invalid_api_key", "authentication_error", "permission_error", "account_deactivated":
		return codeAuth, false, true
	case "previous_response_not_found":
		return codeSession, false, true
	case "content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation":
		return codeFiltered, false, true
	case "invalid_prompt", "invalid_image", "invalid_image_format", "image_parse_error",
		"image_too_large", "model_not_found", "unsupported_value":
		return codeInvalid, false, true
	case "server_is_overloaded", "overloaded_error", "slow_down", "engine_overloaded":
		return codeOverloaded, true, true
	}
	return "", false, false
}

// longPrompt knows the words of servers that have no code for a full window.
func longPrompt(message string) bool {
	m := strings.ToLower(message)
	for _, words := range []string{
		"maximum context length", "exceeds the context window", "exceeds the available context size",
		"context length exceeded", "prompt is too long", "exceed context window",
	} {
		if strings.Contains(m, words) {
			return true
		}
	}
	return false
}

func (p *Provider) describe(status int, f fault) string {
	var b strings.Builder
	b.WriteString("openai: ")
	if status != 0 {
		fmt.Fprintf(&b, "%d", status)
		if text := http.StatusText(status); text != "" {
			b.WriteString(" " + text)
		}
		b.WriteString(": ")
	}
	message := f.Message
	if message == "" {
		message = "the server gave no reason"
	}
	if len(message) > maxErrorMessage {
		message = strings.ToValidUTF8(message[:maxErrorMessage], "") + "..."
	}
	b.WriteString(message)
	if f.Param != "" && !strings.Contains(message, f.Param) {
		fmt.Fprintf(&b, " (at %s)", f.Param)
	}
	return p.scrub(b.String())
}

// retryAfter reads how long a server asks to wait, at most a day, 0 where it
// does not say. The header is seconds or a date (RFC 9110, 10.2.3), the date
// read against the server's own clock; Retry-After-Ms is OpenAI's.
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
			return &llm.Error{Code: codeTimeout, Message: "openai: the call took too long", Retry: true, Err: cause}
		}
		return fmt.Errorf("openai: generate: %w", cause)
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &llm.Error{Code: codeTimeout, Message: "openai: the server did not answer in time", Retry: true}
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the address may hold a secret
	}
	return &llm.Error{Code: codeUnavailable, Message: p.scrub("openai: " + err.Error()), Retry: true}
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

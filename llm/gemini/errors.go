package gemini

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

// fault is what a server says went wrong: a google.rpc.Status under "error", or
// what gateways make of one.
type fault struct {
	Code    int    // an HTTP status
	Word    string // the status by name: RESOURCE_EXHAUSTED, or invalid_request
	Message string
	// Reason is the ErrorInfo's, such as API_KEY_INVALID; Delay the RetryInfo's.
	Reason string
	Delay  time.Duration
	// Daily says that a quota of the day is what is used up.
	Daily bool
}

// refuse turns an answer that is not a success into an *llm.Error.
func (p *Provider) refuse(res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // half an error still says something
	if err := res.Body.Close(); err != nil {
		return fmt.Errorf("close refusal: %w", err)
	}
	f := parseFault(body)
	f.Delay = max(f.Delay, retryAfter(res.Header))
	return p.classify(res.StatusCode, f)
}

// parseFault reads {"error": {...}} (also in a list, as streams without
// alt=sse have it), {"error": "text"} and text.
func parseFault(body []byte) fault {
	raw := json.RawMessage(body)
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		raw = list[0]
	}
	var top struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
	}
	switch {
	case json.Unmarshal(raw, &top) != nil:
		return fault{Message: plain(body)}
	case given(top.Error):
		return decodeFault(top.Error)
	case given(top.Message):
		return decodeFault(raw)
	}
	return fault{Message: plain(body)}
}

func decodeFault(raw json.RawMessage) fault {
	var f struct {
		Code, Message, Status json.RawMessage
		Details               []struct {
			Reason     string `json:"reason"`
			RetryDelay string `json:"retryDelay"`
			Violations []struct {
				QuotaID string `json:"quotaId"`
			} `json:"violations"`
		}
	}
	if json.Unmarshal(raw, &f) != nil {
		return fault{Message: scalar(raw)}
	}
	out := fault{Message: scalar(f.Message), Word: scalar(f.Status)}
	if n, err := strconv.Atoi(scalar(f.Code)); err == nil {
		out.Code = n
	} else if out.Word == "" {
		out.Word = scalar(f.Code) // the Interactions API has names for codes
	}
	for _, d := range f.Details {
		out.Reason = orElse(out.Reason, d.Reason)
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil {
			out.Delay = min(max(out.Delay, wait), maxWait)
		}
		for _, v := range d.Violations {
			out.Daily = out.Daily || strings.Contains(v.QuotaID, "PerDay")
		}
	}
	return out
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
	if status == 0 && f.Code >= 400 && f.Code < 600 {
		status = f.Code
	}
	code, retry := byStatus(status)
	if c, r, ok := byWord(f.Word); ok && (status == 0 || status == http.StatusBadRequest || status == http.StatusTooManyRequests) {
		code, retry = c, r
	}
	switch {
	case strings.HasPrefix(f.Reason, "API_KEY_") || f.Reason == "SERVICE_DISABLED" || f.Reason == "ACCESS_TOKEN_EXPIRED":
		code, retry = codeAuth, false
	case code == codeInvalid && (f.Reason == "PROHIBITED_CONTENT" || f.Reason == "SAFETY" || f.Reason == "BLOCKLIST"):
		code, retry = codeFiltered, false
	case code == codeInvalid && longPrompt(f.Message):
		code, retry = codeContext, false
	case code == codeInvalid && strings.Contains(strings.ToLower(f.Message), "api key not valid"):
		code, retry = codeAuth, false
	case code == codeRateLimited && f.Daily:
		retry = false // no wait that a call can make mends it
	}
	e := &llm.Error{Code: code, Retry: retry, Status: status, Message: p.describe(status, f)}
	if retry {
		e.After = f.Delay
	}
	return e
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
	case http.StatusConflict, http.StatusTooEarly, 499, 0:
		return codeUnavailable, true
	}
	if status >= 500 {
		return codeUnavailable, true
	}
	return codeInvalid, false
}

// byWord knows the names of google.rpc.Code and of the Interactions API.
func byWord(word string) (code string, retry, known bool) {
	switch strings.ToUpper(word) {
	case "RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED":
		return codeRateLimited, true, true
	case "UNAVAILABLE", "OVERLOADED":
		return codeOverloaded, true, true
	case "DEADLINE_EXCEEDED":
		return codeTimeout, true, true
	case "UNAUTHENTICATED", "PERMISSION_DENIED":
		return codeAuth, false, true
	case "INVALID_ARGUMENT", "INVALID_REQUEST", "NOT_FOUND", "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNIMPLEMENTED":
		return codeInvalid, false, true
	case "CONTENT_FILTERED", "SAFETY", "CONTENT_BLOCKED":
		return codeFiltered, false, true
	case "INTERNAL", "UNKNOWN", "ABORTED", "CANCELLED", "DATA_LOSS":
		return codeUnavailable, true, true
	}
	return "", false, false
}

// longPrompt knows the vendor's words for a full window; it has no code.
func longPrompt(message string) bool {
	m := strings.ToLower(message)
	for _, words := range []string{
		"exceeds the maximum number of tokens", "input token count", "maximum context length", "context window",
		"input context is too long", "prompt is too long",
	} {
		if strings.Contains(m, words) {
			return true
		}
	}
	return false
}

// mislaid is err, or, where it means that the vendor no longer has req's
// session, that.
func (p *Provider) mislaid(req *llm.Request, err error) error {
	e, ok := err.(*llm.Error) //nolint:errorlint // failure has unwrapped it
	if !ok || !goesOn(req) || !lost(e) {
		return err
	}
	return &llm.Error{Code: codeSession, Message: e.Message, Status: e.Status}
}

// lost says whether a refusal of a call that named a session means that the
// vendor no longer has it. It says so as not found, and the words name the
// interaction; what else is not found is a model, which is named as one.
func lost(e *llm.Error) bool {
	m := strings.ToLower(e.Message)
	about := strings.Contains(m, "interaction") || strings.Contains(m, "previous")
	switch e.Status {
	case http.StatusNotFound, http.StatusGone:
		return about || !strings.Contains(m, "model")
	case http.StatusBadRequest, http.StatusForbidden:
		return about && (strings.Contains(m, "not found") || strings.Contains(m, "expired") ||
			strings.Contains(m, "does not exist") || strings.Contains(m, "deleted"))
	}
	return false
}

func (p *Provider) describe(status int, f fault) string {
	var b strings.Builder
	b.WriteString("gemini: ")
	if status != 0 {
		fmt.Fprintf(&b, "%d", status)
		if text := http.StatusText(status); text != "" {
			b.WriteString(" " + text)
		}
		b.WriteString(": ")
	}
	message := orElse(f.Message, "the server gave no reason")
	if len(message) > maxErrorMessage {
		message = strings.ToValidUTF8(message[:maxErrorMessage], "") + "..."
	}
	b.WriteString(message)
	for _, word := range []string{f.Word, f.Reason} {
		if word != "" && !strings.Contains(message, word) && len(word) <= 64 {
			fmt.Fprintf(&b, " (%s)", word)
		}
	}
	return p.scrub(b.String())
}

// retryAfter reads how long a server asks to wait, at most a day, 0 where it
// does not say. The header is seconds or a date (RFC 9110, 10.2.3), the date
// read against the server's own clock; Retry-After-Ms is what some gateways add.
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
			return &llm.Error{Code: codeTimeout, Message: "gemini: the call took too long", Retry: true, Err: cause}
		}
		return fmt.Errorf("gemini: generate: %w", cause)
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &llm.Error{Code: codeTimeout, Message: "gemini: the server did not answer in time", Retry: true}
	}
	for {
		u, ok := errors.AsType[*url.Error](err)
		if !ok {
			break
		}
		err = u.Err // the address may hold a secret
	}
	return &llm.Error{Code: codeUnavailable, Message: p.scrub("gemini: " + err.Error()), Retry: true}
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

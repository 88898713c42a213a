package gemini

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/httpcall"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// fault is an error that a server reported: a google.rpc.Status under "error", or another form that gateways use.
type fault struct {
	Code       int    // an HTTP status
	StatusName string // the name of the status: RESOURCE_EXHAUSTED, or invalid_request
	Message    string
	// Reason is that of the ErrorInfo, such as API_KEY_INVALID; Delay is that of the RetryInfo.
	Reason string
	Delay  time.Duration
	// Daily is set if a daily quota is exhausted.
	Daily bool
}

// parseFault reads {"error": {...}} (also in a list, as streams without alt=sse contain it), {"error": "text"} and
// text.
func parseFault(body []byte) fault {
	raw := json.RawMessage(body)
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		raw = list[0]
	}
	found, plain := vendorapi.FindError(raw)
	if found == nil {
		return fault{Message: plain}
	}
	return decodeFault(found)
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
		return fault{Message: vendorapi.ScalarText(raw)}
	}
	out := fault{Message: vendorapi.ScalarText(f.Message), StatusName: vendorapi.ScalarText(f.Status)}
	if n, err := strconv.Atoi(vendorapi.ScalarText(f.Code)); err == nil {
		out.Code = n
	} else if out.StatusName == "" {
		out.StatusName = vendorapi.ScalarText(f.Code) // the Interactions API has names for codes
	}
	for _, d := range f.Details {
		out.Reason = cmp.Or(out.Reason, d.Reason)
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil {
			out.Delay = min(max(out.Delay, wait), httpcall.MaxWait)
		}
		for _, v := range d.Violations {
			out.Daily = out.Daily || strings.Contains(v.QuotaID, "PerDay")
		}
	}
	return out
}

// classify returns the error for a status (0 inside a stream) and the server's fault.
func (p *Provider) classify(status int, f fault) *llm.Error {
	if status == 0 && f.Code >= 400 && f.Code < 600 {
		status = f.Code
	}
	code, retry := vendorapi.CodeOfStatus(status)
	if c, r, ok := codeOfStatusName(f.StatusName); ok && (status == 0 || status == http.StatusBadRequest || status == http.StatusTooManyRequests) {
		code, retry = c, r
	}
	switch {
	case strings.HasPrefix(f.Reason, "API_KEY_") || f.Reason == "SERVICE_DISABLED" || f.Reason == "ACCESS_TOKEN_EXPIRED":
		code, retry = engine.CodeModelAuth, false
	case code == engine.CodeModelRequest && (f.Reason == "PROHIBITED_CONTENT" || f.Reason == "SAFETY" || f.Reason == "BLOCKLIST"):
		code, retry = engine.CodeModelFiltered, false
	case code == engine.CodeModelRequest && isContextLengthError(f.Message):
		code, retry = engine.CodeModelContextLength, false
	case code == engine.CodeModelRequest && strings.Contains(strings.ToLower(f.Message), "api key not valid"):
		code, retry = engine.CodeModelAuth, false
	case code == engine.CodeModelRateLimited && f.Daily:
		retry = false // the quota lasts longer than any wait of a call
	}
	e := &llm.Error{Code: code, Retry: retry, Status: status, Message: p.describe(status, f)}
	if retry {
		e.RetryAfter = f.Delay
	}
	return e
}

// codeOfStatusName maps the names of google.rpc.Code and of the Interactions API.
func codeOfStatusName(word string) (code string, retry, known bool) {
	switch strings.ToUpper(word) {
	case "RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED":
		return engine.CodeModelRateLimited, true, true
	case "UNAVAILABLE", "OVERLOADED":
		return engine.CodeModelOverloaded, true, true
	case "DEADLINE_EXCEEDED":
		return engine.CodeModelTimeout, true, true
	case "UNAUTHENTICATED", "PERMISSION_DENIED":
		return engine.CodeModelAuth, false, true
	case "INVALID_ARGUMENT", "INVALID_REQUEST", "NOT_FOUND", "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNIMPLEMENTED":
		return engine.CodeModelRequest, false, true
	case "CONTENT_FILTERED", "SAFETY", "CONTENT_BLOCKED":
		return engine.CodeModelFiltered, false, true
	case "INTERNAL", "UNKNOWN", "ABORTED", "CANCELLED", "DATA_LOSS":
		return engine.CodeModelUnavailable, true, true
	}
	return "", false, false
}

// isContextLengthError recognizes the vendor's messages for a full window, which has no code.
func isContextLengthError(message string) bool {
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

// sessionError returns model_session_lost if err means that the vendor no longer has req's session, otherwise err.
func (p *Provider) sessionError(req *llm.Request, err error) error {
	e, ok := err.(*llm.Error) //nolint:errorlint // llm.Error was unwrapped before
	if !ok || !continuesSession(req) || !isSessionLost(e) {
		return err
	}
	return &llm.Error{Code: engine.CodeModelSessionLost, Message: e.Message, Status: e.Status}
}

// isSessionLost reports whether the refusal of a call with a session means that the vendor no longer has it. The
// status is then not found, and the message names the interaction; a missing model has the same status, and a message
// that names the model.
func isSessionLost(e *llm.Error) bool {
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

// describe returns the server's message and the codes that it used.
func (p *Provider) describe(status int, f fault) string {
	text := p.errors.Describe(status, f.Message)
	for _, word := range []string{p.errors.Excerpt(f.StatusName), p.errors.Excerpt(f.Reason)} {
		if word != "" && !strings.Contains(text, word) && len(word) <= 64 {
			text += " (" + word + ")"
		}
	}
	return text
}

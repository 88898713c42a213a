package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/wire"
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

// fault is what a server says went wrong.
type fault struct{ Type, Message string }

// refuse turns every answer that is not a success into an *llm.Error, before
// the SDK makes an error of its own that carries the request and its headers.
func (p *Provider) refuse(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	if err != nil || res.StatusCode < 300 {
		return res, err
	}
	body, err := wire.Refusal(res)
	if err != nil {
		return nil, err
	}
	e := p.classify(res.StatusCode, parseFault(body))
	wire.Advise(e, res.Header)
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
		return fault{Message: wire.Plain(body)}
	}
	var f struct{ Type, Message json.RawMessage }
	switch {
	case wire.Given(top.Error) && json.Unmarshal(top.Error, &f) == nil:
		return fault{Type: wire.Scalar(f.Type), Message: wire.Scalar(f.Message)}
	case wire.Given(top.Error):
		return fault{Message: wire.Scalar(top.Error)}
	case wire.Given(top.Message):
		return fault{Message: wire.Scalar(top.Message)}
	case wire.Given(top.Detail):
		return fault{Message: wire.Scalar(top.Detail)}
	}
	return fault{Message: strings.TrimSpace(string(body))}
}

// classify maps a status (0 inside a stream) and what the server said.
func (p *Provider) classify(status int, f fault) *llm.Error {
	code, retry := wire.ByStatus(status)
	if status == 0 || status == http.StatusBadRequest {
		if c, r, ok := byType(f.Type); ok {
			code, retry = c, r
		}
	}
	if code == codeInvalid {
		code = byWords(f.Message)
	}
	return &llm.Error{Code: code, Retry: retry, Status: status, Message: p.speaker.Describe(status, f.Message)}
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

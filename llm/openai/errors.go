package openai

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/openai/openai-go/v3/option"

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
	codeSession     = engine.CodeModelSessionLost
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
	body, err := wire.Refusal(res)
	if err != nil {
		return nil, err
	}
	e := p.classify(res.StatusCode, parseFault(body))
	wire.Advise(e, res.Header)
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
		return fault{Message: wire.Plain(body)}
	}
	switch {
	case wire.Given(top.Error):
		return decodeFault(top.Error)
	case wire.Given(top.Message):
		return decodeFault(body)
	case wire.Given(top.Detail):
		return fault{Message: wire.Scalar(top.Detail)}
	}
	return fault{Message: wire.Plain(body)}
}

func decodeFault(raw json.RawMessage) fault {
	var f struct {
		Message, Type, Code, Param json.RawMessage
	}
	if json.Unmarshal(raw, &f) != nil {
		return fault{Message: wire.Scalar(raw)}
	}
	return fault{Message: wire.Scalar(f.Message), Type: wire.Scalar(f.Type), Code: wire.Scalar(f.Code), Param: wire.Scalar(f.Param)}
}

// classify maps a status (0 inside a stream) and what the server said.
func (p *Provider) classify(status int, f fault) *llm.Error {
	if n, err := strconv.Atoi(f.Code); err == nil && status == 0 && n >= 400 && n < 600 {
		status = n // gateways say it so inside a stream
	}
	code, retry := wire.ByStatus(status)
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

// describe is what the server said, and of which parameter.
func (p *Provider) describe(status int, f fault) string {
	text := p.speaker.Describe(status, f.Message)
	if param := p.speaker.Words(f.Param); param != "" && !strings.Contains(text, param) {
		text += " (at " + param + ")"
	}
	return text
}

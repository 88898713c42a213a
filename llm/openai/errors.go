package openai

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// fault is an error that a server reported, in any of the supported forms.
type fault struct {
	Message string
	Type    string
	Code    string
	Param   string
}

// parseFault reads {"error": {...}}, {"error": "text"}, {"message": "text"} and {"detail": ...}. Anything else
// becomes the message.
func parseFault(body []byte) fault {
	raw, plain := vendorapi.FindError(body)
	if raw == nil {
		return fault{Message: plain}
	}
	return decodeFault(raw)
}

func decodeFault(raw json.RawMessage) fault {
	var f struct {
		Message, Type, Code, Param json.RawMessage
	}
	if json.Unmarshal(raw, &f) != nil {
		return fault{Message: vendorapi.ScalarText(raw)}
	}
	return fault{Message: vendorapi.ScalarText(f.Message), Type: vendorapi.ScalarText(f.Type), Code: vendorapi.ScalarText(f.Code), Param: vendorapi.ScalarText(f.Param)}
}

// classify returns the error for a status (0 inside a stream) and the server's fault.
func (p *Provider) classify(status int, f fault) *llm.Error {
	if n, err := strconv.Atoi(f.Code); err == nil && status == 0 && n >= 400 && n < 600 {
		status = n // gateways report errors inside a stream this way
	}
	code, retry := vendorapi.CodeOfStatus(status)
	if status == 0 && (f.Type == "invalid_request_error" || f.Code == "invalid_request_error") {
		code, retry = engine.CodeModelRequest, false
	}
	if c, r, ok := codeOfWord(f.Type); ok {
		code, retry = c, r
	}
	if c, r, ok := codeOfWord(f.Code); ok {
		code, retry = c, r
	}
	if code == engine.CodeModelRequest && isContextLengthError(f.Message) {
		code, retry = engine.CodeModelContextLength, false
	}
	return &llm.Error{Code: code, Retry: retry, Status: status, Message: p.describe(status, f)}
}

// codeOfWord maps the error codes and types that are more specific than a status.
func codeOfWord(word string) (code string, retry, known bool) {
	switch word {
	case "context_length_exceeded", "exceed_context_size_error", "string_above_max_length":
		return engine.CodeModelContextLength, false, true
	case "insufficient_quota", "billing_hard_limit_reached":
		return engine.CodeModelRateLimited, false, true // waiting does not help
	case "rate_limit_exceeded", "rate_limit_error":
		return engine.CodeModelRateLimited, true, true
	case "invalid_api_key", "authentication_error", "permission_error", "account_deactivated":
		return engine.CodeModelAuth, false, true
	case "previous_response_not_found":
		return engine.CodeModelSessionLost, false, true
	case "content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation":
		return engine.CodeModelFiltered, false, true
	case "invalid_prompt", "invalid_image", "invalid_image_format", "image_parse_error",
		"image_too_large", "model_not_found", "unsupported_value":
		return engine.CodeModelRequest, false, true
	case "server_is_overloaded", "overloaded_error", "slow_down", "engine_overloaded":
		return engine.CodeModelOverloaded, true, true
	}
	return "", false, false
}

// isContextLengthError recognizes the messages of servers that have no code for a full window.
func isContextLengthError(message string) bool {
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

// describe returns the server's message and the parameter that it concerns.
func (p *Provider) describe(status int, f fault) string {
	text := p.errors.Describe(status, f.Message)
	if param := p.errors.Excerpt(f.Param); param != "" && !strings.Contains(text, param) {
		text += " (at " + param + ")"
	}
	return text
}

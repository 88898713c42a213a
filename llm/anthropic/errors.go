package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// fault is an error that a server reported.
type fault struct{ Type, Message string }

// parseFault reads {"type": "error", "error": {"type", "message"}} and the forms that gateways use instead. Anything
// else becomes the message.
func parseFault(body []byte) fault {
	raw, plain := vendorapi.FindError(body)
	if raw == nil {
		return fault{Message: plain}
	}
	var f struct{ Type, Message json.RawMessage }
	if json.Unmarshal(raw, &f) != nil {
		return fault{Message: vendorapi.ScalarText(raw)}
	}
	return fault{Type: vendorapi.ScalarText(f.Type), Message: vendorapi.ScalarText(f.Message)}
}

// classify returns the error for a status (0 inside a stream) and the server's fault.
func (p *Provider) classify(status int, f fault) *llm.Error {
	code, retry := vendorapi.CodeOfStatus(status)
	if status == 0 || status == http.StatusBadRequest {
		if c, r, ok := codeOfType(f.Type); ok {
			code, retry = c, r
		}
	}
	if code == engine.CodeModelRequest {
		code = codeOfMessage(f.Message)
	}
	return &llm.Error{Code: code, Retry: retry, Status: status, Message: p.errors.Describe(status, f.Message)}
}

// codeOfType maps the vendor's error types ("Errors", HTTP errors).
func codeOfType(kind string) (code string, retry, known bool) {
	switch kind {
	case "invalid_request_error", "not_found_error", "request_too_large":
		return engine.CodeModelRequest, false, true
	case "authentication_error", "permission_error":
		return engine.CodeModelAuth, false, true
	case "billing_error":
		return engine.CodeModelRateLimited, false, true
	case "rate_limit_error":
		return engine.CodeModelRateLimited, true, true
	case "timeout_error":
		return engine.CodeModelTimeout, true, true
	case "overloaded_error":
		return engine.CodeModelOverloaded, true, true
	case "api_error":
		return engine.CodeModelUnavailable, true, true
	}
	return "", false, false
}

// codeOfMessage distinguishes invalid requests that have no error type of their own.
func codeOfMessage(message string) string {
	m := strings.ToLower(message)
	for _, known := range []struct{ words, code string }{
		{"prompt is too long", engine.CodeModelContextLength},
		{"exceed context limit", engine.CodeModelContextLength},
		{"exceeds the context", engine.CodeModelContextLength},
		{"context window", engine.CodeModelContextLength},
		{"maximum context length", engine.CodeModelContextLength},
		{"content filtering policy", engine.CodeModelFiltered},
		{"credit balance is too low", engine.CodeModelRateLimited},
	} {
		if strings.Contains(m, known.words) {
			return known.code
		}
	}
	return engine.CodeModelRequest
}

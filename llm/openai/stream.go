package openai

import (
	"encoding/json"
	"net/http"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// faultIn returns the error inside a successful answer, if there is one: {"error": ...}, or the Responses API's event
// of type error.
func (p *Provider) faultIn(data []byte) *llm.Error {
	var top struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
		// A failed Response has its error next to its object.
		Object string `json:"object"`
	}
	said := json.Unmarshal(data, &top) == nil && top.Object != "response"
	switch {
	case said && vendorapi.IsSet(top.Error):
		return p.classify(0, decodeFault(top.Error))
	case said && top.Type == "error":
		f := decodeFault(data)
		f.Type = ""
		return p.classify(0, f)
	}
	return nil // also for invalid JSON, which the reader reports
}

// errorOfResponse converts an unsuccessful answer to an error.
func (p *Provider) errorOfResponse(status int, header http.Header, body []byte) *llm.Error {
	e := p.classify(status, parseFault(body))
	vendorapi.AddRetryAdvice(e, header)
	return e
}

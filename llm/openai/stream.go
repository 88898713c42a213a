package openai

import (
	"encoding/json"
	"net/http"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/wire"
)

// faultIn finds an error said inside a successful answer: {"error": ...}, or the
// Responses API's event of type error.
func (p *Provider) faultIn(data []byte) *llm.Error {
	var top struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
		// A Response that failed carries its error beside its object.
		Object string `json:"object"`
	}
	said := json.Unmarshal(data, &top) == nil && top.Object != "response"
	switch {
	case said && wire.IsSet(top.Error):
		return p.classify(0, decodeFault(top.Error))
	case said && top.Type == "error":
		f := decodeFault(data)
		f.Type = ""
		return p.classify(0, f)
	}
	return nil // also of what is no JSON, which the reader reports
}

// errorOfResponse is an answer that is not a success as an error.
func (p *Provider) errorOfResponse(status int, header http.Header, body []byte) *llm.Error {
	e := p.classify(status, parseFault(body))
	wire.AddRetryAdvice(e, header)
	return e
}

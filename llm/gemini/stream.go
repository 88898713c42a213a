package gemini

import (
	"encoding/json"
	"net/http"

	"github.com/weir-run/weir/internal/httpcall"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// asList decodes a list of objects that would be events in a stream.
func asList(data []byte) ([]json.RawMessage, bool) {
	var list []json.RawMessage
	return list, json.Unmarshal(data, &list) == nil
}

func (p *Provider) readList(list []json.RawMessage, r vendorapi.AnswerReader) error {
	for _, data := range list {
		if fault := p.faultIn(data); fault != nil {
			return fault
		}
		if done, err := r.Event(data); err != nil || done {
			return err
		}
	}
	return r.End(false, nil)
}

// faultIn returns the error inside a successful answer, if there is one.
func (p *Provider) faultIn(data []byte) *llm.Error {
	var top struct {
		Error json.RawMessage `json:"error"`
		// A failed interaction has its errors among its fields.
		Object string `json:"object"`
	}
	if json.Unmarshal(data, &top) == nil && top.Object != "interaction" && vendorapi.IsSet(top.Error) {
		return p.classify(0, decodeFault(top.Error))
	}
	return nil // also for invalid JSON, which the reader reports
}

// errorOfResponse converts an unsuccessful answer to an error.
func (p *Provider) errorOfResponse(status int, header http.Header, body []byte) *llm.Error {
	f := parseFault(body)
	f.Delay = max(f.Delay, httpcall.RetryAfter(header))
	return p.classify(status, f)
}

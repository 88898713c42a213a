package anthropic

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// maxPauses is the maximum number of continuations of one turn.
const maxPauses = 16

// generate makes a call. If the vendor pauses a long turn ("pause_turn"), the answer so far is sent back to continue
// it.
func (p *Provider) generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	params, err := p.params(req)
	if err != nil {
		return nil, err
	}
	a := &answerBuilder{StreamedText: vendorapi.StreamedText{Emit: emit}, key: req.Key, requestedModel: req.Model, model: req.Model}
	asked := slices.Clip(params.Messages)
	for pauses := 0; ; pauses++ {
		body, err := p.encode(params)
		if err != nil {
			return nil, err
		}
		a.stop, a.paused = "", false
		r := newReader(p, a)
		if err := p.server.Post(ctx, p.address, nil, body, r); err != nil {
			r.addUsage()
			a.emitUsage()
			return nil, err
		}
		called := slices.ContainsFunc(a.blocks, func(b *blockBuilder) bool { return b.call != nil })
		if !a.paused || called || len(a.blocks) == 0 {
			return a.complete(p), nil
		}
		if pauses == maxPauses {
			return nil, &llm.Error{Code: engine.CodeModelUnavailable, Message: "anthropic: the server paused its turn too often"}
		}
		sofar := apiMessage{Role: roleAssistant}
		for _, raw := range a.raw() {
			sofar.Content = append(sofar.Content, contentBlock{raw: raw})
		}
		params.Messages = append(asked, sofar)
	}
}

// faultIn returns the error inside a successful answer, if there is one.
func (p *Provider) faultIn(data []byte) *llm.Error {
	var top struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &top) == nil && (top.Type == "error" || vendorapi.IsSet(top.Error)) {
		return p.classify(0, parseFault(data))
	}
	return nil // also for invalid JSON, which the reader reports
}

// errorOfResponse converts an unsuccessful answer to an error.
func (p *Provider) errorOfResponse(status int, header http.Header, body []byte) *llm.Error {
	e := p.classify(status, parseFault(body))
	vendorapi.AddRetryAdvice(e, header)
	return e
}

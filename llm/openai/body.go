package openai

import (
	"encoding/json"
	"fmt"

	"github.com/weir-run/weir/llm"
)

// Body is the body that Generate would send for req, which it does not send. It
// fails as Generate does before it sends.
func (p *Provider) Body(req *llm.Request) ([]byte, error) {
	if err := p.check(req); err != nil {
		return nil, err
	}
	req, _ = p.bounds().Request(req, p.heldOf(req))
	streamed := map[string]any{"stream": true}
	var body any
	if p.api == Chat {
		params, err := p.chatParams(req)
		if err != nil {
			return nil, err
		}
		params.SetExtraFields(streamed)
		body = params
	} else {
		params, err := p.responsesParams(req)
		if err != nil {
			return nil, err
		}
		params.SetExtraFields(streamed)
		body = params
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return data, nil
}

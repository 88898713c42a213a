package openai

import (
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// Body returns the body that Generate would send for req, without sending it. Errors are those of Generate before it
// sends.
func (p *Provider) Body(req *llm.Request) ([]byte, error) {
	if err := p.check(req); err != nil {
		return nil, err
	}
	sent, _ := p.bounds().Rename(req, p.heldOf(req))
	return p.body(sent)
}

func (p *Provider) body(req *llm.Request) ([]byte, error) {
	write := p.chatBody
	if p.api == Responses {
		write = p.responsesBody
	}
	body, err := write(req)
	if err != nil {
		return nil, err
	}
	data, err := vendorapi.Encode(body)
	if err != nil {
		return nil, p.errors.InvalidRequest("%v", err)
	}
	return data, nil
}

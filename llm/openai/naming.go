package openai

import (
	"regexp"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/wire"
)

// What the APIs take as names and ids. They document the length of ids; that no
// white space or control character is in them is what every server takes.
var (
	toolPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	chatBounds  = wire.Bounds{Tool: toolPattern, ID: regexp.MustCompile(`^[!-~]{1,40}$`), Prefix: "call_"}
	itemBounds  = wire.Bounds{Tool: toolPattern, ID: regexp.MustCompile(`^[!-~]{1,64}$`), Prefix: "call_"}
)

// bounds are those of the provider's API.
func (p *Provider) bounds() wire.Bounds {
	if p.api == Chat {
		return chatBounds
	}
	return itemBounds
}

// heldOf is how many of the first messages the vendor holds.
func (p *Provider) heldOf(req *llm.Request) int {
	if p.api == Responses && goesOn(req) {
		return req.Held
	}
	return 0
}

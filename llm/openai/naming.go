package openai

import (
	"regexp"

	"github.com/weir-run/weir/llm"
)

// What the APIs take as names and ids. They document the length of ids; that no
// white space or control character is in them is what every server takes.
var (
	toolPattern   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	chatIDPattern = regexp.MustCompile(`^[!-~]{1,40}$`)
	callIDPattern = regexp.MustCompile(`^[!-~]{1,64}$`)
)

// bounds are those of the provider's API.
func (p *Provider) bounds() llm.NameRules {
	b := llm.NameRules{Tool: toolPattern, ID: callIDPattern, Prefix: "call_"}
	if p.api == Chat {
		b.ID = chatIDPattern
	}
	return b
}

// heldOf is how many of the first messages the vendor holds.
func (p *Provider) heldOf(req *llm.Request) int {
	if p.api == Responses && continuesSession(req) {
		return req.HeldMessages
	}
	return 0
}

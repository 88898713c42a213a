package openai

import (
	"regexp"
	"sync"

	"github.com/weir-run/weir/llm"
)

// Patterns for names and ids that the APIs accept. The documentation limits the length of ids; every server accepts
// ids without white space and control characters. The patterns are compiled on first use, because compiling them
// takes longer than the rest of the package's start.
var (
	toolPattern   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) }) //nolint:gochecknoglobals // a compiled table
	chatIDPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[!-~]{1,40}$`) })         //nolint:gochecknoglobals // a compiled table
	callIDPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[!-~]{1,64}$`) })         //nolint:gochecknoglobals // a compiled table
)

// bounds returns the rules for names and ids of the provider's API.
func (p *Provider) bounds() llm.NameRules {
	b := llm.NameRules{Tool: toolPattern(), ID: callIDPattern(), Prefix: "call_"}
	if p.api == Chat {
		b.ID = chatIDPattern()
	}
	return b
}

// heldOf returns how many of the first messages the vendor has.
func (p *Provider) heldOf(req *llm.Request) int {
	if p.api == Responses && continuesSession(req) {
		return req.HeldMessages
	}
	return 0
}

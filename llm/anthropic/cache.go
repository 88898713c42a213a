package anthropic

import "github.com/weir-run/weir/llm"

// setCacheMarks sets the marks of the prompt cache, which holds what comes before each:
// the tools, the system text, the messages that the call before had too, and
// all. These are four, the most that a request may have.
func setCacheMarks(params *messagesRequest, h *historyBuilder, req *llm.Request) {
	ephemeral := &cacheMark{Type: "ephemeral"}
	if n := len(params.Tools); n > 0 {
		params.Tools[n-1].Cache = ephemeral
	}
	if n := len(params.System); n > 0 {
		params.System[n-1].Cache = ephemeral
	}
	var stable, last *block
	same := true
	for b := range h.blocks {
		same = same && b.messageIndex < req.StablePrefix
		if !canMark(b) {
			continue
		}
		last = b
		if same && b.messageIndex >= 0 {
			stable = b
		}
	}
	for _, b := range []*block{stable, last} {
		if b != nil {
			b.wire.Cache = ephemeral
		}
	}
}

// blocks gives all blocks in the order of the wire.
func (h *historyBuilder) blocks(yield func(*block) bool) {
	for _, t := range h.turns {
		for _, list := range [][]block{t.results, t.blocks} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// canMark says that a block may carry a mark: thoughts may not, and what is
// sent verbatim is left so.
func canMark(b *block) bool { return b.wire.raw == nil }

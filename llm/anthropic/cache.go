package anthropic

import "github.com/weir-run/weir/llm"

// setCacheMarks sets the cache marks: after the tools, the system text, the messages that the previous call had too,
// and the last message. A request may have at most four marks.
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
			b.encoded.Cache = ephemeral
		}
	}
}

// blocks returns all blocks in the order in which they are sent.
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

// canMark reports whether a block may have a mark. Thinking blocks may not, and raw blocks are not changed.
func canMark(b *block) bool { return b.encoded.raw == nil }

package node

import "github.com/weir-run/weir/engine"

// Scope implements llm.Scoped: the main context of a round is its session's.
func (h llmHost) Scope(contextID string) string {
	if i := h.c.info; i.Session != "" && contextID == engine.MainContext {
		return "session " + i.Session
	}
	return h.c.info.Run
}

package llm

import "github.com/weir-run/weir/convo"

// ContextScoper is implemented by a Host whose contexts may continue over many runs, so
// that cached data about them is reused.
type ContextScoper interface {
	// Scope returns what distinguishes contexts with that id: the run, or what the context
	// belongs to beyond it.
	Scope(contextID string) string
}

// scope returns the key of cached views of a context.
func (t *turn) scope(c convo.Context) string {
	if s, ok := t.host.(ContextScoper); ok {
		return s.Scope(c.ID)
	}
	return t.host.Run()
}

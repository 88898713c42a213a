package llm

import "github.com/weir-run/weir/convo"

// ContextScoper is implemented by a Host whose contexts may go on over many runs, so
// that what is known of one need not be found out in each.
type ContextScoper interface {
	// Scope tells contexts of that id apart: the run, or what the context is of
	// beyond it.
	Scope(contextID string) string
}

// scope is what the views of a context are kept by.
func (t *turn) scope(c convo.Context) string {
	if s, ok := t.host.(ContextScoper); ok {
		return s.Scope(c.ID)
	}
	return t.host.Run()
}

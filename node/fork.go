package node

import (
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// Forker is a Host that can create a context that shares the history of another, at a cost
// that does not depend on its length.
type Forker interface {
	// Fork creates an isolated context from the node's snapshot of the context behind h;
	// init is the creating change, as for New.
	Fork(h engine.Handle, init convo.Change) (engine.Handle, error)
}

// ForkContext creates an isolated context with the history of the one behind h, as the node
// sees it, and the settings of init. If the host is no Forker, the messages of the current
// epoch are copied.
func (c *Ctx) ForkContext(h engine.Handle, init convo.Change) (engine.Handle, error) {
	if f, ok := c.host.(Forker); ok {
		return f.Fork(h, init)
	}
	from, err := c.ContextOf(h)
	if err != nil {
		return engine.Handle{}, err
	}
	messages, err := from.Get().Messages()
	if err != nil {
		return engine.Handle{}, fmt.Errorf("fork context %s: %w", h.ID, err)
	}
	fork, err := c.NewContext(init)
	if err != nil {
		return engine.Handle{}, err
	}
	to, err := c.ContextOf(fork)
	if err != nil {
		return engine.Handle{}, err
	}
	if _, err := to.AddAll(messages); err != nil {
		return engine.Handle{}, fmt.Errorf("fork context %s: %w", h.ID, err)
	}
	return fork, nil
}

package node

import (
	"errors"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// Forker is a Host that can make a context which begins with the history of
// another, at no cost for its length.
type Forker interface {
	// Fork makes an isolated context from a snapshot of the one behind h, which
	// the node can reach; init is what creates it, as for New.
	Fork(h engine.Handle, init convo.Change) (engine.Handle, error)
}

// ErrCannotFork: what runs the node cannot fork contexts.
var ErrCannotFork = errors.New("contexts cannot be forked here")

// ForkContext makes an isolated context that begins with the history of the
// one behind h, as it is now, and the settings of init.
func (c *Ctx) ForkContext(h engine.Handle, init convo.Change) (engine.Handle, error) {
	f, ok := c.host.(Forker)
	if !ok {
		return engine.Handle{}, ErrCannotFork
	}
	return f.Fork(h, init)
}

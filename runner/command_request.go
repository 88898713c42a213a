package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// WithRequest lets the event of an answer or a manual repair carry the id of the request that made it, in the commit that
// records it.
func WithRequest(c Command, id string) Command {
	return func(r *engine.Run) (engine.Event, error) {
		e, err := c(r)
		if child, ok := errors.AsType[*childCommand](err); ok {
			return nil, &childCommand{child.child, WithRequest(child.command, id)}
		}
		switch e := e.(type) {
		case *engine.InterruptAnswered:
			e.Request = id
		case *engine.NodeOverridden:
			e.Request = id
		}
		return e, err
	}
}

// HasRequest reports whether a run or one of its child runs has an event that carries the id of a request.
func (l *Local) HasRequest(ctx context.Context, run, id string) (bool, error) {
	return l.findEvent(ctx, run, func(e engine.Event) bool {
		switch e := e.(type) {
		case *engine.InterruptAnswered:
			return e.Request == id
		case *engine.NodeOverridden:
			return e.Request == id
		}
		return false
	})
}

// findEvent reports whether a run or one of its child runs has an event in its journal.
func (l *Local) findEvent(ctx context.Context, run string, is func(engine.Event) bool) (bool, error) {
	var children []string
	for c, err := range l.store.Commits(ctx, run, 0) {
		if err != nil {
			return false, fmt.Errorf("read run %s: %w", run, err)
		}
		for _, e := range c.Events {
			if is(e) {
				return true, nil
			}
			children = append(children, childrenAwaited(e)...)
		}
	}
	for _, child := range children {
		found, err := l.findEvent(ctx, child, is)
		if errors.Is(err, store.ErrNotFound) { // it has not started
			continue
		}
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

package weir

import (
	"cmp"
	"context"
	"errors"

	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// Steering is a message of a person to a node of a run that works, such as an agent.
type Steering = runner.Steering

// Steer sends a message to a node of a run that works, whichever process executes it, and
// returns the path of the node. It is durable then; the next model call of the node takes it,
// and an agent that was about to end makes one more call. With s.Interrupt, the model's answer
// ends where it is. The error is runner.ErrSteeringLate if no node works that could take it, and
// input_invalid if several do and s.Path names none.
func (w *Weir) Steer(ctx context.Context, run string, s Steering) (node string, err error) {
	known := s.ID != ""
	s.ID = cmp.Or(s.ID, runner.NewID())
	if err := s.Check(); err != nil {
		return "", err
	}
	if known {
		if path, unread := w.local.FindSteering(ctx, run, s.ID); unread == nil && path != "" {
			return path, nil // sent before, perhaps to another node
		}
	}
	_, err = w.do(ctx, run, runner.Steer(s, &node))
	if errors.Is(err, store.ErrOwned) {
		node, err = w.local.PostSteering(ctx, run, s)
	}
	if err == nil && w.runner != nil { // no worker executes the run if this process has recorded the message
		_, err = w.wake(ctx, run)
	}
	if err != nil {
		return "", err
	}
	return node, nil
}

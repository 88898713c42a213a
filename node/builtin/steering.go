package builtin

import (
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
)

// steeredEffect is the name of the model calls that take messages of people.
const steeredEffect = "model"

// steerTurn lets a turn take what people send to the node. Each message is passed to add, in
// the order of the history.
func steerTurn(ctx *node.Ctx, t *llm.Turn, add func(convo.Message) error) {
	t.Steer = func() ([]convo.Message, error) { return takeSteering(ctx, add) }
	t.MoreSteering = func() bool { return ctx.MoreSteering(steeredEffect, true, false) }
}

func takeSteering(ctx *node.Ctx, add func(convo.Message) error) ([]convo.Message, error) {
	taken := ctx.TakeSteering(steeredEffect)
	if len(taken) == 0 {
		return nil, nil
	}
	out := make([]convo.Message, len(taken))
	for i, m := range taken {
		out[i] = m.Message(ctx)
		if err := add(out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// userInputs adds messages to a context that stay in the record even if the node fails.
func userInputs(m *convo.Manager) func(convo.Message) error {
	return func(msg convo.Message) error {
		_, err := m.AddUserInput(msg)
		return err
	}
}

// steer lets the turns of the queues take what people send to the agent, unless the work is
// over or the queue post is processed.
func (w *agentWorker) steer(m *convo.Manager) {
	w.base.Steer = func() ([]convo.Message, error) {
		if w.closed || w.prefix != "" {
			return nil, nil
		}
		return takeSteering(w.ctx, userInputs(m))
	}
	w.base.MoreSteering = func() bool { return w.moreSteering(false) }
}

// moreSteering reports whether another call takes messages. At a limit they stay in the
// history instead.
func (w *agentWorker) moreSteering(last bool) bool {
	if w.closed || w.prefix != "" || !w.ctx.MoreSteering(steeredEffect, last, last && len(w.post) > 0) {
		return false
	}
	stop, err := w.limits.reached()
	return stop == "" && err == nil
}

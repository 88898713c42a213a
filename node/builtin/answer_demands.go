package builtin

import (
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
)

// answerDemands are what the client that started the run demands of a node's answer; the zero value demands nothing.
type answerDemands struct{ *convo.AnswerDemands }

// demandsOn returns the demands on a node, which the settings of its context have. It is not inlined, so that no context is on
// the stack of a node that waits for a model.
//
//go:noinline
func demandsOn(ctx *node.Ctx, m *convo.Manager) answerDemands {
	d := m.Get().Settings.Demands
	if d == nil || !slices.Contains(d.Nodes, ctx.Info().Path) {
		return answerDemands{}
	}
	return answerDemands{d}
}

func (d answerDemands) schema() map[string]any {
	if d.AnswerDemands == nil {
		return nil
	}
	return d.Schema
}

// apply changes a turn so that its answer complies.
func (d answerDemands) apply(t *llm.Turn) {
	if d.AnswerDemands == nil {
		return
	}
	if d.Schema != nil {
		t.Schema, t.CanonicalAnswer = d.Schema, true
	}
	t.MustCall = d.MustCall
}

// check refuses the result of a turn that was cut off before the answer.
func (d answerDemands) check(r *llm.Result) error {
	if d.schema() == nil || r.Value != nil {
		return nil
	}
	return withHint(permanentError(engine.CodeModelAnswer, "the turn ended without an answer that fits the schema of the client"),
		"the last answer ended with %q; let the model answer after its last call of a tool", r.Stop)
}

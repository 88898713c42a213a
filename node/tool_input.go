package node

import (
	"errors"
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/guard"
	"github.com/weir-run/weir/tool"
)

// AnswerDecline is the answer of a person who does not give the input that a tool requires.
const AnswerDecline = "decline"

// requiredInput is the key of the recorded result of a call that requires input, beside an
// empty text.
const requiredInput = "inputRequired"

// maxPrompt limits the prompt of a tool's question in bytes.
const maxPrompt = 8 << 10

// inputRequired returns the recorded result of a call whose error requires input.
func inputRequired(t *tool.Tool, err error) (map[string]any, error) {
	need, ok := guard.Find[*tool.InputRequired](err)
	if !ok {
		return nil, err
	}
	if err := need.Check(); err != nil {
		return nil, fmt.Errorf("tool %s cannot be continued: %w", t.DisplayName(), err)
	}
	safe := tool.InputRequired{State: need.State, Questions: make([]tool.Question, len(need.Questions))}
	for i, q := range need.Questions {
		q.Prompt = tool.Cut(tool.Clean(q.Prompt), maxPrompt)
		if _, err := CompileSchema(q.Schema); err != nil {
			return nil, fmt.Errorf("tool %s asks %q with a form that cannot be used: %w", t.DisplayName(), q.Name, err)
		}
		safe.Questions[i] = q
	}
	return map[string]any{"text": "", requiredInput: safe}, nil
}

// readRequiredInput returns what a recorded result requires, nil for a completed call.
func readRequiredInput(v engine.Value) (*tool.InputRequired, error) {
	o, _ := v.(map[string]any)
	if o[requiredInput] == nil || o["text"] != "" {
		return nil, nil
	}
	need := &tool.InputRequired{}
	return need, decodeValue(o[requiredInput], need)
}

// askInput asks a person the questions of a call. All are asked before the node is suspended.
// The names of the questions follow from the position of the call, not from its arrival.
func (h *toolHost) askInput(index, round int, t *tool.Tool, call convo.Call, need *tool.InputRequired) (*tool.Input, error) {
	in := &tool.Input{State: need.State, Answers: make(map[string]tool.InputAnswer, len(need.Questions))}
	var waits error
	for i, q := range need.Questions {
		a, err := h.c.Ask(fmt.Sprintf("%sinput.%d.%d.%d", h.prefix, index, round, i+1), inputInterrupt(t, call, q))
		switch {
		case errors.Is(err, ErrSuspended):
			waits = err
		case err != nil:
			return nil, err
		case !a.Given || a.Value == AnswerDecline:
			in.Answers[q.Name] = tool.InputAnswer{Declined: true}
		default:
			in.Answers[q.Name] = tool.InputAnswer{Value: a.Value}
		}
	}
	return in, waits
}

// inputInterrupt returns the interrupt with a question of a tool.
func inputInterrupt(t *tool.Tool, call convo.Call, q tool.Question) engine.Interrupt {
	arguments := tool.Cut(tool.Clean(call.Arguments), maxPrompt)
	if arguments == "" {
		arguments = "no arguments"
	}
	form := q.Schema
	if form == nil {
		form = map[string]any{"type": "string"}
	}
	return engine.Interrupt{
		Kind: engine.AwaitInput,
		Prompt: fmt.Sprintf("The tool %s, called with %s, asks: %s Answer as the form says, or %s.",
			t.DisplayName(), arguments, q.Prompt, AnswerDecline),
		Schema: map[string]any{"anyOf": []any{form, map[string]any{"type": "string", "enum": []any{AnswerDecline}}}},
	}
}

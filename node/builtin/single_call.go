package builtin

import (
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
)

// singleCallNode asks a model about one message, outside the conversation: the model
// receives the node's own instructions and that message, and nothing is added to the
// context.
type singleCallNode struct {
	ModelSettings
	FallbackSettings
}

// message returns the message that the call is about: the value of the port, or else the
// current output of the context. Its id is the one that the context has for it.
func (n *singleCallNode) message(ctx *node.Ctx, m *convo.Manager) (convo.Message, error) {
	own := ctx.MessageID(ctx.Info().Path + ".user")
	if v, ok := ctx.Input("message"); ok && v != nil {
		if origin := ctx.Origin("message"); origin != "" {
			own = ctx.MessageID(origin)
		}
		msg, err := messageOf(v, own)
		if err != nil {
			return msg, permanentError(CodeInput, "message: %v", err)
		}
		return msg, nil
	}
	now := m.Get()
	if now.Output != "" {
		return convo.Message{ID: own, Role: convo.User, Text: now.Output}, nil
	}
	ms, err := now.Messages()
	if err != nil {
		return convo.Message{}, err
	}
	if len(ms) == 0 {
		return convo.Message{}, withHint(permanentError(CodeInput, "there is nothing to look at: the context has no messages and none was given"),
			"wire the port message")
	}
	last := ms[len(ms)-1]
	if last.Role == convo.Tool { // a result is its call's; what is passed on is its text
		last = convo.Message{ID: own, Role: convo.User, Text: last.Text}
	}
	return last, nil
}

// ask asks the model for an answer to a message under the node's own instructions, with the
// model and limits of the context. read parses the answer; if it is nil, the schema does.
func (n *singleCallNode) ask(
	ctx *node.Ctx, m *convo.Manager, system string, about convo.Message,
	schema map[string]any, read func(text string) (engine.Value, error),
) (*llm.Result, error) {
	alone := convo.Context{ID: m.ID() + "@" + ctx.Info().Path, Kind: convo.Isolated, Settings: m.Get().Settings}
	t, err := n.turn(ctx, convo.NewManager(alone, true))
	if err != nil {
		return nil, err
	}
	if t.System != "" {
		system += "\n\n" + t.System
	}
	t.System, t.Schema, t.ParseAnswer, t.SkipHistory = system, schema, read, true
	t.Fallback, t.Timeouts = n.fallback(), n.CallTimeout.bounds()
	t.Message = &convo.Message{Role: convo.User, Text: about.Text, Parts: about.Parts}
	result, err := ctx.LLM().Turn(ctx, ctx.LLMHost(), t)
	if err != nil {
		return nil, node.ModelError(err)
	}
	return result, nil
}

// messageValue returns a message as a port carries it.
func messageValue(m convo.Message) map[string]any {
	return map[string]any{"id": m.ID, "role": string(m.Role), "text": m.Text}
}

// outputUsage outputs the usage of that many model calls.
func outputUsage(ctx *node.Ctx, u llm.Usage, calls int) {
	usage := map[string]any{
		"input": int64(u.Input), "cached": int64(u.Cached), "output": int64(u.Output),
		"reasoning": int64(u.Reasoning), "calls": int64(calls),
	}
	ctx.Output("usage", usage)
	ctx.Meta("tokenUsage", usage)
}

// singleCallSettings returns the model settings, documented for nodes of a single call.
const singleCallSettings = "| `model`, `provider` | the model as `provider/model`; the context's where not given |\n" +
	fallbackDoc +
	"| `system` | instructions beside the node's own, a template; those of the context are not sent |\n" +
	"| `temperature`, `maxOutput`, `reasoning`, `thinkingBudget`, `budget` | as for `llmRequest` |"

// singleCallOutputs returns the outputs that all nodes of a single call have.
const singleCallOutputs = "| `usage` | `{input, cached, output, reasoning, calls}`: tokens, and how many model calls |\n" +
	"| `limit` | alone, where a budget with `onLimit: branch` does not cover the call |\n" +
	"| `context` | the context's handle |\n" +
	"| `error` | the failure, where the port is wired |"

// singleCallPorts returns the ports that all nodes of a single call have.
func singleCallPorts(in ...flow.Port) flow.Ports {
	return flow.Ports{
		In: append(in, contextIn()),
		Out: []flow.Port{
			{Name: "usage", Type: flow.TypeObject, Description: "Tokens used, and model calls made."},
			limitPort(),
			contextOut(),
		},
		AnyIn: true,
	}
}

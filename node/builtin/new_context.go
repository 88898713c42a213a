package builtin

import (
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// newContextNode makes an isolated context.
type newContextNode struct {
	ModelSettings
	FallbackSettings
	Base     string       `json:"base"`
	Label    template     `json:"label"`
	Messages []newMessage `json:"messages"`
}

func newContextType() node.Type {
	return define[newContextNode](&flow.TypeSpec{
		Name:     "newContext",
		Category: "context",
		Summary:  "Creates a separate conversation beside the main one.",
		Doc: `Messages in the new context stay there: the context that it is made from is read and never
changed. The output is a handle; wire it to the ` + "`context`" + ` port of the nodes that are to
work in it. It lives as long as the run.

| setting | what |
|---|---|
| ` + "`base`" + ` | ` + "`fresh`" + ` (default) begins without messages; ` + "`fork`" + ` begins with those of the context it comes from |
| ` + "`model`, `provider`, `temperature`, `maxOutput`, `reasoning`, `thinkingBudget`, `history`, `budget`, `view`" + ` | as in the flow's ` + "`context:`" + `; what is not given is taken from the context it comes from |
| ` + "`models`, `on`, `callTimeout`" + ` | in place of ` + "`model`" + `: [several models](../fallback.md), and limits of each model call |
| ` + "`system`" + ` | its instructions, a template; not given: those of the context with ` + "`fork`" + `, none with ` + "`fresh`" + ` |
| ` + "`label`" + ` | a name for people, a template |
| ` + "`messages`" + ` | what has been said in it to begin with, in order |

The context it comes from is the one on the ` + "`context`" + ` port, else the main context.`,
		Ports: flow.Ports{
			In: []flow.Port{contextIn()},
			Out: []flow.Port{{
				Name: contextPort, Type: flow.TypeContext,
				Description: "The handle of the new context.",
			}},
			AnyIn: true,
		},
		Settings: objectSchema(withFallbackSettings(withModelSettings(map[string]any{
			"base":     choiceSchema("What the context begins with.", "fresh", "fork"),
			"label":    templateSchema("string", "A name for people."),
			"messages": messagesSchema("What has been said in it to begin with."),
		}))),
		Check:      checkFallbackSettings,
		Context:    flow.ContextRead,
		NewContext: true,
		Examples: []flow.Example{{
			Name: "a second opinion that main does not hear",
			Flow: `
weir: 1
name: second-opinion
context: {model: script/demo}
inputs:
  question: {type: text, required: true}
nodes:
  first:
    type: llmRequest
    in: {message: "{{ run.inputs.question }}"}
  aside:
    type: newContext
    after: first
    with:
      system: You doubt everything.
      messages: [{role: user, text: "Somebody asked: {{ run.inputs.question }}"}]
  second:
    type: llmRequest
    in: {context: "{{ aside.context }}", message: "{{ first.text }} Is that right?"}
outputs: {first: "{{ first.text }}", second: "{{ second.text }}"}
`,
			Inputs:  map[string]any{"question": "Is it late?"},
			Script:  []string{"Yes.", "I doubt it."},
			Outputs: map[string]any{"first": "Yes.", "second": "I doubt it."},
		}},
	})
}

func (n *newContextNode) setDefaults() {
	if n.Base == "" {
		n.Base = "fresh"
	}
}

// Run creates the context, adds its first messages and outputs its handle.
func (n *newContextNode) Run(ctx *node.Ctx) error {
	from, err := ctx.Context()
	if err != nil {
		return err
	}
	init, err := n.initial(ctx, from.Get().Settings)
	if err != nil {
		return err
	}
	h, err := n.create(ctx, from, init)
	if err != nil {
		return err
	}
	if err := n.addMessages(ctx, h); err != nil {
		return err
	}
	ctx.Output(contextPort, h)
	return nil
}

// initial returns the change that creates the context, with what it takes over.
func (n *newContextNode) initial(ctx *node.Ctx, s convo.Settings) (convo.Change, error) {
	label, err := n.Label.text(ctx, "label")
	if err != nil {
		return convo.Change{}, err
	}
	if err := n.checkView(s.View); err != nil {
		return convo.Change{}, err
	}
	s = n.applyFallback(n.applyTo(s))
	if n.System.isSet() || n.Base == "fresh" {
		if s.System, err = n.System.text(ctx, "system"); err != nil {
			return convo.Change{}, err
		}
	}
	return convo.Change{Create: true, Kind: convo.Isolated, Label: label, Settings: &s}, nil
}

func (n *newContextNode) create(ctx *node.Ctx, from *convo.Manager, init convo.Change) (engine.Handle, error) {
	if n.Base == "fork" {
		return ctx.ForkContext(engine.Handle{ID: from.ID()}, init)
	}
	return ctx.NewContext(init)
}

// addMessages adds the messages of the settings to the new context.
func (n *newContextNode) addMessages(ctx *node.Ctx, h engine.Handle) error {
	if len(n.Messages) == 0 {
		return nil
	}
	m, err := ctx.ContextOf(h)
	if err != nil {
		return err
	}
	for i, msg := range n.Messages {
		said, err := msg.message(ctx, ctx.MessageID(fmt.Sprintf("%s.%d", ctx.Info().Path, i+1)))
		if err != nil {
			return err
		}
		if _, err := m.Upsert(said); err != nil {
			return err
		}
	}
	return nil
}

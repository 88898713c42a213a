package builtin

import (
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// contextPort is the name of the port, in and out, that carries a handle.
const contextPort = "context"

// contextIn returns the port that binds a node to a context other than main.
func contextIn() flow.Port {
	return flow.Port{
		Name: contextPort, Type: flow.TypeContext,
		Description: "The context to use; the main context where nothing is wired.",
	}
}

// contextOut passes on the context that the node used.
func contextOut() flow.Port {
	return flow.Port{Name: contextPort, Type: flow.TypeContext, Description: "The context the node used."}
}

// outputContext returns the manager of the node's context, and passes its handle on.
func outputContext(ctx *node.Ctx) (*convo.Manager, error) {
	m, err := ctx.Context()
	if err != nil {
		return nil, err
	}
	ctx.Output(contextPort, engine.Handle{ID: m.ID()})
	return m, nil
}

// newMessage is a message as settings and ports write it.
type newMessage struct {
	ID       string   `json:"id"`
	Role     string   `json:"role"`
	Text     template `json:"text"`
	Pinned   bool     `json:"pinned"`
	Priority int      `json:"priority"`
}

// messageSchema returns the JSON Schema of one message in the settings.
func messageSchema() map[string]any {
	return map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{"text"},
		"properties": map[string]any{
			"id":       settingSchema("string", "Names the message; writing one again under its id replaces it. Default: made from the node's path."),
			"role":     choiceSchema("Who speaks.", string(convo.User), string(convo.Assistant), string(convo.System)),
			"text":     templateSchema("string", "What is said."),
			"pinned":   settingSchema("boolean", "Keep it in every view of the context, whatever is cut."),
			"priority": map[string]any{"type": "integer", "minimum": 0, "maximum": 100, "description": "What is cut first: the lowest. Default: 50."},
		},
	}
}

// messagesSchema returns the JSON Schema of a list of messages in the settings.
func messagesSchema(description string) map[string]any {
	return map[string]any{"type": "array", "description": description, "items": messageSchema()}
}

// message renders one message of the settings; fallback is its id where the
// settings give none.
func (n newMessage) message(ctx *node.Ctx, fallback string) (convo.Message, error) {
	text, err := n.Text.text(ctx, "messages")
	if err != nil {
		return convo.Message{}, err
	}
	m := convo.Message{ID: n.ID, Role: convo.Role(n.Role), Text: text, Pinned: n.Pinned, Priority: n.Priority}
	if m.ID == "" {
		m.ID = fallback
	}
	if m.Role == "" {
		m.Role = convo.User
	}
	return m, nil
}

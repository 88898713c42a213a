package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/tool"
)

// withClientTools adds the tools of the client that started the round, which the settings of the context have. A call of one is a
// question that the client answers with the output.
func withClientTools(m *convo.Manager, offered []*tool.Tool) ([]*tool.Tool, error) {
	given := m.Get().Settings.ClientTools
	if given == nil {
		return offered, nil
	}
	for _, c := range given.List {
		if slices.ContainsFunc(offered, func(t *tool.Tool) bool { return t.Name == c.Name }) {
			return nil, permanentError(CodeInput, "the client has a tool with the name %s of a tool of the node", c.Name)
		}
		offered = append(slices.Clip(offered), clientTool(c))
	}
	return offered, nil
}

func clientTool(c convo.ClientTool) *tool.Tool {
	return &tool.Tool{
		Name: c.Name, Description: c.Description, Parameters: c.Parameters, Origin: tool.ClientOrigin,
		ReadOnly: true, // to ask for an output has no effect
		Call: func(_ context.Context, call tool.Call) (string, error) {
			const output = "output"
			if call.Input == nil {
				return "", &tool.InputRequired{Questions: []tool.Question{{Name: output, Prompt: "what is its output?", Schema: clientCallSchema(c.Name, &call)}}}
			}
			a := call.Input.Answers[output]
			if a.Declined { // an output may be that word
				return node.AnswerDecline, nil
			}
			return node.TextOf(a.Value), nil
		},
	}
}

// clientCallSchema is the schema of the output of a call. The client finds the call in it.
func clientCallSchema(name string, call *tool.Call) map[string]any {
	id := sha256.Sum256([]byte(call.Caller.Run + " " + call.Key))
	return map[string]any{"type": "string", convo.ClientCallKey: map[string]any{
		"id": "call_" + hex.EncodeToString(id[:12]), "name": name, "arguments": call.Arguments,
	}}
}

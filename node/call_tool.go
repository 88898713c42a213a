package node

import (
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

// CallTool makes a tool call that no model has asked for, through a host that
// LLMHost or LLMHostAs made. It is an effect as a model's call is, under the index
// that it is given among those, and waits for a person's leave where the tool asks
// for it.
//
// What the tool says went wrong is a failed result, which stays what it is in the
// attempts that follow. With insist it is an error with the code tool_failed
// instead, and a later attempt calls again. A person's refusal is a failed result
// either way.
func CallTool(h llm.Host, index int, t *tool.Tool, call convo.Call, insist bool) (llm.ToolResult, error) {
	if th, ok := h.(toolHost); ok {
		th.byNode, th.insist = true, insist
		h = th
	}
	return h.ToolCall(index, t, call)
}

func toolFailed(t *tool.Tool, why string) *engine.Error {
	return &engine.Error{Code: engine.CodeToolFailed, Message: "tool " + t.Name + ": " + why}
}

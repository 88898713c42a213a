package node

import (
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

// CallTool makes a tool call on behalf of the node instead of a model, through a host from
// LLMHost or LLMHostAs. It is an effect like a model's call, with the given index among
// those, and waits for approval if the tool requires it.
//
// An error of the tool is a failed result, which later attempts reuse. With insist it is an
// error with the code tool_failed instead, and a later attempt calls again. A refusal by a
// person is a failed result in both cases.
func CallTool(h llm.Host, index int, t *tool.Tool, call convo.Call, insist bool) (llm.ToolResult, error) {
	if th, ok := h.(*toolHost); ok {
		own := *th
		own.byNode, own.insist = true, insist
		h = &own
	}
	return h.ToolCall(index, t, call)
}

func toolFailed(t *tool.Tool, why string) *engine.Error {
	return &engine.Error{Code: engine.CodeToolFailed, Message: "tool " + t.Name + ": " + why}
}

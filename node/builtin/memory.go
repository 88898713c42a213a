package builtin

import (
	"maps"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/tool"
)

// The tools of the long-term memory, as package tool/memory names them.
const (
	memoryIdentifyTool = "identifyUser"
	memoryReadTool     = "memoryRead"
	memoryWriteTool    = "memoryWrite"
	memoryForgetTool   = "memoryForget"
)

// memoryDoc is the part of the documentation that all memory nodes share.
const memoryDoc = `

The node uses the long-term memory of this process ([docs/memory.md](../memory.md)) through the tool ` + "`%s`" + `, without a model: the call has the
same limits, the same approval policy and the same record as a model's. The memory is that of the run's user, or of its session if it has no user; no
setting selects another one. A process without memory does not load the flow (` + "`unknown_tool`" + `); a run with neither user nor session fails with
` + "`tool_error`" + `. What is written carries ` + "`node`" + ` as its writer.`

// memoryType returns a type whose nodes call one tool of the long-term memory.
func memoryType(t node.Type, name string) node.Type {
	return toolCaller{Type: t, calls: func(*flow.Graph, *flow.Node) directCall { return directCall{tool: name} }}
}

// callMemory calls a tool of the memory with the arguments that are set, and returns the
// members of its value.
func callMemory(ctx *node.Ctx, name string, arguments map[string]any) (map[string]any, string, error) {
	maps.DeleteFunc(arguments, func(_ string, v any) bool { return v == nil || v == "" })
	r, err := callTool(ctx, name, arguments, func(*tool.Tool) {})
	if err != nil {
		return nil, "", err
	}
	o, _ := r.Value.(map[string]any)
	return o, r.Text, nil
}

// outputMembers sets output ports from the members of a value. A member that is missing,
// because a person said what the call returned, is not set.
func outputMembers(ctx *node.Ctx, o map[string]any, ports ...string) {
	for _, port := range ports {
		if v, ok := o[port]; ok {
			ctx.Output(port, v)
		}
	}
}

// templateArguments evaluates settings to arguments of a tool.
func templateArguments(ctx *node.Ctx, settings map[string]template) (map[string]any, error) {
	out := make(map[string]any, len(settings))
	for name, t := range settings { // order: each setting is evaluated alone.
		v, err := t.value(ctx, name)
		if err != nil {
			return nil, err
		}
		if number, ok := v.(int64); ok && name != "limit" {
			v = node.TextOf(number)
		}
		out[name] = engine.Copy(v)
	}
	return out, nil
}

package builtin

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/tool"
)

// ToolSettings are the tool settings that all nodes which offer tools to a model share.
type ToolSettings struct {
	MaxSteps int                      `json:"maxSteps"`
	AtMax    string                   `json:"atMax"`
	Approve  map[string]tool.Approval `json:"approve"`
}

// withToolSettings adds the settings of ToolSettings.
func withToolSettings(properties map[string]any) map[string]any {
	properties["maxSteps"] = map[string]any{
		"type": "integer", "minimum": 1, "maximum": 1000,
		"description": fmt.Sprintf("The most model calls. Default: %d.", llm.DefaultMaxSteps),
	}
	properties["atMax"] = choiceSchema("What to do when the model still calls tools at a limit.", "fail", "stop")
	properties["approve"] = map[string]any{
		"type": "object", "description": "Tools, by name, whose calls a person has to allow here: always, or once.",
		"additionalProperties": map[string]any{"enum": []any{"always", "once", "never"}},
	}
	return properties
}

// approveDoc is the row of the setting approve.
const approveDoc = "| `approve` | `{TOOL: always}` or `{TOOL: once}`: a person has to allow calls of the tool, " +
	"also where it does not ask for that itself. A tool that asks is asked for, whatever stands here |"

// approvalDoc documents how a person approves tool calls.
const approvalDoc = `If a call needs approval, the calls of the same answer that need none are made first;
then the run pauses, with a question for each call that does (of a tool with ` + "`once`" + ` one at a time). The answers are ` + "`approve`" + `,
` + "`reject`" + `, or ` + "`{\"approve\": false, \"reason\": \"...\"}`" + `, and the model gets the reason. ` + "`once`" + ` means once
in the run: an approval in one node applies to all nodes. The result records who answered.

A tool that is a flow runs as a child run after the other calls of the same answer. Its questions are questions of this run, with
ids of the form ` + "`PATH:toolN#1>ID`" + `.`

// offeredTools returns the tools of the port tools, with the approval policy of the
// settings.
func (s *ToolSettings) offeredTools(ctx *node.Ctx) ([]*tool.Tool, error) {
	in, _ := ctx.Input("tools")
	names, err := toolNames(in)
	if err != nil {
		return nil, err
	}
	tools, err := toolsNamed(ctx.Tools(), names)
	if err != nil {
		return nil, err
	}
	return s.withApproval(tools)
}

// withApproval returns the tools with the approval policy of the settings if it is stricter
// than that of a tool.
func (s *ToolSettings) withApproval(tools []*tool.Tool) ([]*tool.Tool, error) {
	for _, name := range slices.Sorted(maps.Keys(s.Approve)) {
		policy := s.Approve[name]
		i := slices.IndexFunc(tools, func(t *tool.Tool) bool { return t.Name == name || t.Alias == name && name != "" })
		if i < 0 {
			return nil, withHint(permanentError(CodeToolUnknown, "approve: the node is not offered the tool %q", name),
				"correct the name, or wire the tool to the node's port tools")
		}
		if stricter := stricterApproval(tools[i].Approve, policy); stricter != tools[i].Approve {
			t := *tools[i]
			t.Approve = stricter
			tools[i] = &t
		}
	}
	return tools, nil
}

package tool_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/tool"
)

func TestVerdictsFollowFromPolicyAndAnswers(t *testing.T) {
	t.Parallel()
	remove := answering("")
	remove.Name, remove.Alias = "mcp__fs__remove", "mcp:fs/remove"
	changed := *remove
	changed.Description = "Removes everything."
	other := *remove
	other.Name, other.Alias = "mcp__fs__move", "mcp:fs/move"

	first := tool.Call{Key: "r/n/tool#0", Arguments: `{"path":"a"}`}
	second := tool.Call{Key: "r/n/tool#1", Arguments: `{"path":"b"}`}
	twisted := tool.Call{Key: first.Key, Arguments: `{"path":"/"}`}
	yes, no := remove.ApprovalAnswer(first, true, "ann", ""), remove.ApprovalAnswer(first, false, "ann", "not that one")

	for _, c := range []struct {
		name    string
		tool    *tool.Tool
		policy  tool.Approval
		call    tool.Call
		earlier []tool.ApprovalAnswer
		want    tool.Verdict
	}{
		{"without a policy nothing is asked", remove, "", first, nil, tool.Allowed},
		{"never asks nothing, whatever was answered before", remove, tool.ApproveNever, first, []tool.ApprovalAnswer{no}, tool.Allowed},
		{"always asks", remove, tool.ApproveAlways, first, nil, tool.NeedsAnswer},
		{"always is answered for its call", remove, tool.ApproveAlways, first, []tool.ApprovalAnswer{yes}, tool.Allowed},
		{"a no is a no", remove, tool.ApproveAlways, first, []tool.ApprovalAnswer{no}, tool.Denied},
		{"always asks about the next call", remove, tool.ApproveAlways, second, []tool.ApprovalAnswer{yes}, tool.NeedsAnswer},
		{"an answer holds for its arguments only", remove, tool.ApproveAlways, twisted, []tool.ApprovalAnswer{yes}, tool.NeedsAnswer},
		{"once asks", remove, tool.ApproveOnce, first, nil, tool.NeedsAnswer},
		{"once is enough", remove, tool.ApproveOnce, second, []tool.ApprovalAnswer{yes}, tool.Allowed},
		{"once refused asks again", remove, tool.ApproveOnce, second, []tool.ApprovalAnswer{no}, tool.NeedsAnswer},
		{"once refused is refused", remove, tool.ApproveOnce, first, []tool.ApprovalAnswer{no}, tool.Denied},
		{
			"once: the no to this call outweighs the yes to another", remove, tool.ApproveOnce, first,
			[]tool.ApprovalAnswer{remove.ApprovalAnswer(second, true, "", ""), no},
			tool.Denied,
		},
		{"once ends where the tool changes", &changed, tool.ApproveOnce, second, []tool.ApprovalAnswer{yes}, tool.NeedsAnswer},
		{"once is for one tool", &other, tool.ApproveOnce, second, []tool.ApprovalAnswer{yes}, tool.NeedsAnswer},
	} {
		tl := *c.tool
		tl.Approve = c.policy
		if got, _ := tl.Verdict(c.call, c.earlier); got != c.want {
			t.Errorf("%s: verdict %d, expected %d", c.name, got, c.want)
		}
	}
	if got := no.DenialText(); !strings.Contains(got, "mcp:fs/remove: not that one") {
		t.Error(got)
	}
	if q := remove.ApprovalRequest(tool.Call{Key: "k", Arguments: "{\"a\":\"\x1b[1m\"}"}); q.Arguments != `{"a":"␛[1m"}` || q.Tool != "mcp:fs/remove" {
		t.Errorf("%+v", q)
	}
}

package builtin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
	memorytool "github.com/weir-run/weir/tool/memory"
)

func TestMemoryNodesUseTheMemoryOfTheRunsUser(t *testing.T) {
	t.Parallel()
	tools, err := memorytool.Tools(memory.New(), memorytool.Options{Namespace: "desk"})
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, weir.Options{Store: memory.New(), Tools: tools})
	play := func(id, user, nodes string) weir.Result {
		t.Helper()
		f, err := w.Parse("flow.yaml", []byte("weir: 1\nname: "+id+"\nnodes:\n"+nodes))
		if err != nil {
			t.Fatal(err)
		}
		run, err := w.Start(t.Context(), f, weir.Start{ID: id, User: user})
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	play("one", "ada", "  a: {type: remember, with: {text: Likes trams., key: likes}}\n")
	look := "  a: {type: recall, with: {query: trams}}\noutputs: {total: \"{{ a.total }}\"}\n"
	for user, total := range map[string]int64{"ada": 1, "bert": 0} {
		r := play("look_"+user, user, look)
		if n, err := weir.Output[int64](r, "total"); err != nil || n != total {
			t.Errorf("%s finds %d, %v, %v", user, n, err, r.Error)
		}
	}
	if r := play("nobody", "", look); r.Error == nil || r.Error.Code != engine.CodeToolError {
		t.Errorf("a run without user: %s %v", r.Status, r.Error)
	}
	if r := play("wrong", "ada", "  a: {type: forget, with: {id: none}}\n"); r.Error == nil || r.Error.Code != engine.CodeToolError {
		t.Errorf("an unknown id: %s %v", r.Status, r.Error)
	}
	bare := open(t, weir.Options{Store: memory.New()})
	if _, err := bare.Parse("flow.yaml", []byte("weir: 1\nname: f\nnodes:\n"+look)); err == nil || !strings.Contains(err.Error(), flow.CodeUnknownTool) || !strings.Contains(err.Error(), "tools: {memory: true}") {
		t.Errorf("without memory: %v", err)
	}
}

func TestMemoryNodesNameTheToolsOfTheMemory(t *testing.T) {
	t.Parallel()
	offered, err := memorytool.Tools(memory.New(), memorytool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(offered...)
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, weir.Options{Store: memory.New(), Tools: offered})
	for typ, name := range map[string]string{"remember": memorytool.Write, "recall": memorytool.Read, "forget": memorytool.Forget, "identifyUser": memorytool.Identify} {
		with := map[string]string{"remember": ", with: {text: x}", "forget": ", with: {id: x}"}[typ]
		f, err := w.Parse("flow.yaml", []byte("weir: 1\nname: f\nnodes:\n  a: {type: "+typ+with+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if names, all := runner.ToolNames(&f.Graph); all || !slices.Equal(names, []string{name}) || set.Get(name) == nil {
			t.Errorf("%s names %q", typ, names)
		}
	}
}

func TestAliasesOfOtherSystemsLeadToTypes(t *testing.T) {
	t.Parallel()
	for alias, name := range map[string]string{
		"portalInput": "portalIn", "portalOutput": "portalOut", "router": "switch", "filter": "transform", "human_confirmation": "approvalGate",
		"extractor": "extract", "deep_agent": "agent", "code": "action", "end": "output",
	} {
		if s := builtin.Catalogue().Lookup(alias); s == nil || s.Name != name {
			t.Errorf("%s leads to %v, expected %s", alias, s, name)
		}
	}
	f, err := flow.Parse("flow.yaml", []byte("weir: 1\nname: f\nnodes:\n  a: {type: human_confirmation, with: {prompt: Go?}}\n"), builtin.Catalogue())
	if err != nil || f.Nodes[0].Type != "approvalGate" {
		t.Errorf("%v, %v", f, err)
	}
}

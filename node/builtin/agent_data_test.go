package builtin_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/weirtest"
)

func TestArtifactsOfAgentEntriesAreInTheTrajectory(t *testing.T) {
	look := &weir.Tool{Name: "look", Parameters: map[string]any{"type": "object"}, Call: func(_ context.Context, c tool.Call) (string, error) {
		return "seen", c.Declare(trajectory.Artifact{Type: trajectory.Table, Name: c.Arguments})
	}}
	turns := append(append(weirtest.Says("around"), weirtest.Calls("look", map[string]any{"at": 2})), weirtest.Says("done")...)
	w := open(t, weir.Options{Tools: []*weir.Tool{look}, Replay: recorded.NewScriptedTurns(turns, nil)})
	f, err := w.Parse("flow.yaml", []byte(queues(`
pre: [Look around., {tool: look, arguments: {at: 1}}]
post: [{tool: look, arguments: {at: 3}}]
`)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.Start(t.Context(), f, weir.Start{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := r.Wait(t.Context()); err != nil || res.Status != engine.Completed {
		t.Fatal(res.Status, res.Error, err)
	}
	var got []string
	for sub := range 2 {
		g, err := w.Trajectory(t.Context(), "r", sub)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range g.Nodes {
			if n.ID.Type() == trajectory.Table {
				got = append(got, fmt.Sprint(sub, " ", n.Name))
			}
		}
	}
	if want := []string{`0 {"at":1}`, `0 {"at":3}`, `1 {"at":2}`}; !slices.Equal(got, want) {
		t.Errorf("the tables are %q, want %q", got, want)
	}
}

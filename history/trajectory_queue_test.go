package history_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/trajectory"
)

func TestQueuedFlowHasItsOwnTrajectory(t *testing.T) {
	s := memoryTables()
	w := openLookingUp(t, weir.Options{Trajectories: &weir.TrajectoryOptions{Storage: s}})
	hours, err := w.Parse("hours", []byte(`
weir: 1
name: hours
inputs: {day: {type: text, required: true}}
nodes: {say: {type: template, with: {text: "{{ run.inputs.day }}: from nine"}}}
outputs: {text: "{{ say.text }}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("flow.yaml", []byte(`
weir: 1
name: two
context: {model: clerk/m}
inputs: {q: {type: text, required: true}}
nodes:
  work:
    type: agent
    in: {message: "{{ run.inputs.q }}"}
    with: {pre: [{flow: hours, in: {day: mon}}, {flow: hours, in: {day: tue}}], post: [{flow: hours, in: {day: wed}}]}
outputs: {x: "{{ work.text }}"}
`), hours)
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.Start(t.Context(), f, weir.Start{ID: "r1", Inputs: map[string]any{"q": "why?"}})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := r.Wait(t.Context()); err != nil || res.Status != engine.Completed {
		t.Fatal(res.Status, res.Error, err)
	}
	agents, err := w.Agents(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	var days []string
	for _, a := range agents {
		g, err := w.Trajectory(t.Context(), "r1", a.Sub)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := g.Nodes[0].Attributes[trajectory.AttrText].(string); strings.HasSuffix(a.Name, ">hours") {
			days = append(days, text)
		} else if a.Name == "work" && text != "why?" {
			t.Errorf("the agent's own trajectory is\n%s", graphText(g))
		}
	}
	if slices.Sort(days); !slices.Equal(days, []string{"mon", "tue", "wed"}) || len(agents) != 5 {
		t.Errorf("agents %v, with runs of the flow for %v", agents, days)
	}
	checkStored(t, w, s, "", "r1")
}

func TestTrajectoryOfHandledFailureEndsInOutcome(t *testing.T) {
	w := openLookingUp(t, weir.Options{})
	res := runOf(t, w, `
weir: 1
name: handled
nodes:
  boom: {type: fail, with: {message: it broke}}
  say: {type: template, after: boom.error, with: {text: handled}}
outputs: {x: "{{ say.text }}"}
`, weir.Start{ID: "r1"})
	if res.Status != engine.Completed {
		t.Fatal(res.Status, res.Error)
	}
	g, err := w.Trajectory(t.Context(), "r1", 0)
	if err != nil {
		t.Fatal(err)
	}
	last := g.Nodes[len(g.Nodes)-1]
	if last.Attributes[trajectory.AttrText] != "handled" || last.Attributes[trajectory.AttrFailed] != nil {
		t.Errorf("got\n%s", graphText(g))
	}
}

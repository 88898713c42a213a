package trajectory_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

func TestInvalidRecordsAreRejected(t *testing.T) {
	t.Parallel()
	type record = trajectory.Record
	for want, spoil := range map[string]func(*record){
		"a round has at most one query": func(r *record) {
			r.Nodes = append(r.Nodes, trajectory.Node{ID: "Query(query00001)", Type: trajectory.Query, Round: 1})
		},
		"Action(action00000) occurs twice":    func(r *record) { r.Nodes = append(r.Nodes, r.Nodes[1]) },
		"is not the id of a node":             func(r *record) { r.Nodes[0].ID = "Query(1)" },
		"has the type Skill":                  func(r *record) { r.Nodes[0].Type = trajectory.Skill },
		"belongs to an earlier round":         func(r *record) { r.First[trajectory.Query] = 1 },
		"belongs to round 2":                  func(r *record) { r.Nodes[1].Round = 2 },
		"sub-agent 1":                         func(r *record) { r.Nodes[1].Sub = 1 },
		"one of the two does not exist":       func(r *record) { r.Edges[0].Target = "State(state00777)" },
		"-> Action(action00000) occurs twice": func(r *record) { r.Edges = append(r.Edges, r.Edges[0]) },
		"has no relationship":                 func(r *record) { r.Edges[0].Relationship = "" },
		"no edge within a round may lead":     func(r *record) { r.Edges[0].Target = r.Nodes[0].ID },
		"joins rounds":                        func(r *record) { r.Edges[0].Relationship = trajectory.ContinuesTo },
		"is on a cycle":                       func(r *record) { r.Edges[0].Source = r.Edges[0].Target },
		"the initial node":                    func(r *record) { r.Initial = "State(state00777)" },
		"the pointer State(state00777)":       func(r *record) { r.Current[0] = "State(state00777)" },
	} {
		r := trajectorytest.Sample(t, round(1), 0)
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		spoil(&r)
		if err := r.Check(); !errors.Is(err, trajectory.ErrRecord) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an ErrRecord that says %q", err, want)
		}
	}
}

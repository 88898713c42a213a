package follow_test

import (
	"slices"
	"testing"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/trajectory"
)

// one is a catalogue of one type.
type one struct{ spec *flow.TypeSpec }

func (c one) Lookup(name string) *flow.TypeSpec {
	if name == c.spec.Name {
		return c.spec
	}
	return nil
}

func (c one) Specs() []*flow.TypeSpec { return []*flow.TypeSpec{c.spec} }

func (one) Settings() *flow.SettingsSchemas { return &flow.SettingsSchemas{} }

// Package flow checks artifacts when a file is read, and does not know package
// trajectory, which checks them when they are made.
func TestFlowFilesTakeTheArtifactsThatTrajectoriesTake(t *testing.T) {
	relations := []string{
		"", "my_own", "triggers", "has_conclusion", "continues_to", "produces", "generates", "tool_output", "has_script", "has_column",
		"refers_to", "has_additional_file", "has_additional_table", "find_relevant_data", "find_relevant_knowledge", "find_relevant_tool",
		"Upper", "1st", "a-b", "_a",
	}
	types := append([]string{"", "file", "Other"}, flow.ArtifactTypes()...)
	for _, kind := range trajectory.Types() {
		if !slices.Contains(types, string(kind)) {
			types = append(types, string(kind))
		}
	}
	for _, kind := range types {
		for _, relation := range relations {
			want := trajectory.Artifact{Type: trajectory.Type(kind), Name: "x", Relation: trajectory.Relation(relation)}.Check()
			f := &flow.Flow{Name: "f", Graph: flow.Graph{Nodes: []*flow.Node{{
				ID: "a", Type: "a", Artifacts: []flow.Artifact{{Type: kind, Name: "x", Relation: relation}},
			}}}}
			if _, got := flow.Build(f, one{&flow.TypeSpec{Name: "a", Version: 1}}); (got == nil) != (want == nil) {
				t.Errorf("%s %q: a flow file says %v, a trajectory %v", kind, relation, got, want)
			}
		}
	}
}

package history_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/trajectory"
)

// dataOf runs a flow to its end and returns its trajectory, which is the same kept
// and made of the journal.
func dataOf(t *testing.T, text string) *trajectory.Graph {
	t.Helper()
	s := memoryTables()
	w := openLookingUp(t, weir.Options{Trajectories: &weir.TrajectoryOptions{Storage: s}})
	res := runOf(t, w, text, weir.Start{ID: "r", User: "ann"})
	if res.Status != engine.Completed {
		t.Fatal(res.Status, res.Error)
	}
	checkStored(t, w, s, "ann", "r")
	g, err := w.Trajectory(t.Context(), "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// datum returns the one node of a type and a name.
func datum(t *testing.T, g *trajectory.Graph, kind trajectory.Type, name string) trajectory.Node {
	t.Helper()
	var found []trajectory.Node
	for _, n := range g.Nodes {
		if n.ID.Type() == kind && n.Name == name {
			found = append(found, n)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d %s %q in\n%s", len(found), kind, name, graphText(g))
	}
	return found[0]
}

// sourcesOf returns the name and kind of what leads to a node, and by which relation.
func sourcesOf(t *testing.T, g *trajectory.Graph, n trajectory.Node) []string {
	t.Helper()
	var out []string
	for _, e := range g.Edges {
		if e.Target != n.ID {
			continue
		}
		i := slices.IndexFunc(g.Nodes, func(n trajectory.Node) bool { return n.ID == e.Source })
		out = append(out, fmt.Sprintf("%s %s %s", g.Nodes[i].ID.Type(), g.Nodes[i].Name, e.Relationship))
	}
	return out
}

func TestNodeDeclaresItsKeyArtifacts(t *testing.T) {
	g := dataOf(t, `
weir: 1
name: found
nodes:
  fetch:
    type: transform
    in: {topic: prices}
    with:
      expr: "{'table': inputs.topic, 'columns': ['id', 'price'], 'rows': [1, 2, 3], 'hits': [{'title': 'A', 'text': 'about A'}, {'title': 'B', 'text': ''}]}"
    artifacts:
      - {type: Table, name: "{{ outputs.value.table }}", columns: "{{ outputs.value.columns }}", attributes: {rows: "{{ size(outputs.value.rows) }}", mean: 2.5}}
      - {type: Knowledge, each: "{{ outputs.value.hits }}", name: "{{ item.title }}", description: "{{ item.text }}", relation: find_relevant_knowledge, attributes: {place: "{{ index + 1 }}"}}
      - {type: File, name: "{{ inputs.topic }}-{{ run.flow }}.csv", attributes: "{{ {'of': outputs.value.table} }}"}
      - {type: Skill, each: [], name: none}
      - {type: Skill, each: "{{ null }}", name: none}
`)
	prices := datum(t, g, trajectory.Table, "prices")
	if want := (trajectory.Attributes{"rows": int64(3), "mean": 2.5}); !reflect.DeepEqual(prices.Attributes, want) {
		t.Errorf("the table has %#v", prices.Attributes)
	}
	if got := sourcesOf(t, g, prices); !slices.Equal(got, []string{"Action fetch produces"}) {
		t.Errorf("the table comes of %q", got)
	}
	if got := sourcesOf(t, g, datum(t, g, trajectory.Column, "prices.price")); !slices.Equal(got, []string{"Table prices has_column"}) {
		t.Errorf("the column comes of %q", got)
	}
	a, b := datum(t, g, trajectory.Knowledge, "A"), datum(t, g, trajectory.Knowledge, "B")
	if a.Description != "about A" || b.Description != "" || b.Attributes["place"] != int64(2) {
		t.Errorf("the knowledge is %+v and %+v", a, b)
	}
	if got := sourcesOf(t, g, a); !slices.Equal(got, []string{"Action fetch find_relevant_knowledge"}) {
		t.Errorf("the knowledge comes of %q", got)
	}
	if f := datum(t, g, trajectory.File, "prices-found.csv"); f.Attributes["of"] != "prices" {
		t.Errorf("the file is %+v", f)
	}
	if n := len(slices.DeleteFunc(slices.Clone(g.Nodes), func(n trajectory.Node) bool { return n.ID.Type() != trajectory.Skill })); n > 0 {
		t.Errorf("%d artifacts were made of empty lists", n)
	}
}

func TestEveryNodeTypeDeclaresArtifacts(t *testing.T) {
	g := dataOf(t, `
weir: 1
name: kinds
context: {model: clerk/m}
nodes:
  say: {type: llmRequest, in: {message: hello}, artifacts: [{type: Knowledge, name: said, description: "{{ outputs.text }}"}]}
  ask: {type: agent, in: {message: look, tools: [look]}, artifacts: [{type: Knowledge, name: answered, description: "{{ outputs.text }}"}]}
  pick: {type: decision, with: {expr: "'a'", branches: [a, b]}, artifacts: [{type: Knowledge, name: picked, description: "{{ outputs.result }}"}]}
  turn:
    type: loop
    in: {n: 1}
    artifacts: [{type: File, name: "{{ outputs.n }} {{ outputs.iterations }} {{ inputs.n }}"}]
    with:
      max: 2
      body:
        nodes: {x: {type: transform, in: {n: "{{ inputs.n }}"}, with: {expr: inputs.n * 2}, artifacts: [{type: Script, name: "x {{ inputs.n }}"}]}}
        outputs: {n: "{{ x.value }}"}
  each:
    type: forEach
    in: {items: [p, q]}
    artifacts: [{type: File, each: "{{ outputs.results }}", name: "{{ item.text }}"}]
    with:
      body:
        nodes: {x: {type: template, in: {i: "{{ inputs.item }}"}, with: {text: "the {{ inputs.i }}"}}}
        outputs: {text: "{{ x.text }}"}
  kept: {type: template, cache: true, with: {text: t}, artifacts: [{type: Skill, name: "{{ outputs.text }}"}]}
  again: {type: template, after: kept, cache: true, with: {text: t}, artifacts: [{type: Tool, name: "{{ outputs.text }}"}]}
  set: {type: transform, with: {expr: "1"}, artifacts: [{type: Table, name: "{{ has(state.nothing) }}"}]}
`)
	for _, want := range []struct {
		kind trajectory.Type
		name string
		from string
	}{
		{trajectory.Knowledge, "said", "State  produces"},
		{trajectory.Knowledge, "answered", "State  produces"},
		{trajectory.Knowledge, "picked", "Action pick produces"},
		{trajectory.File, "4 2 1", "Action turn produces"},
		{trajectory.Script, "x 1", "Action turn#1/x produces"},
		{trajectory.Script, "x 2", "Action turn#2/x produces"},
		{trajectory.File, "the p", "Action each produces"},
		{trajectory.File, "the q", "Action each produces"},
		{trajectory.Skill, "t", "Action kept produces"},
		{trajectory.Tool, "t", "Action again produces"},
		{trajectory.Table, "false", "Action set produces"},
	} {
		if got := sourcesOf(t, g, datum(t, g, want.kind, want.name)); !slices.Equal(got, []string{want.from}) {
			t.Errorf("%s %q comes of %q; want %q", want.kind, want.name, got, want.from)
		}
	}
	if got := sourcesOf(t, g, actionNode(t, g, "turn")); !slices.Equal(got, []string{"Action turn#2/x triggers"}) {
		t.Errorf("what the loop declares comes of %q", got)
	}
}

// actionNode returns the Action of a node of the flow.
func actionNode(t *testing.T, g *trajectory.Graph, path string) trajectory.Node {
	t.Helper()
	i := slices.IndexFunc(g.Nodes, func(n trajectory.Node) bool { return n.ID.Type() == trajectory.Action && n.Name == path })
	if i < 0 {
		t.Fatalf("node %s is not in\n%s", path, graphText(g))
	}
	return g.Nodes[i]
}

func TestInvalidArtifactIsReportedWithoutFailingTheRun(t *testing.T) {
	g := dataOf(t, `
weir: 1
name: bad
nodes:
  fetch:
    type: transform
    with: {expr: "{'hits': [{'title': 'A'}, {}, {'title': ''}], 'n': 5, 'long': 'x'}"}
    artifacts:
      - {type: Knowledge, each: "{{ outputs.value.hits }}", name: "{{ item.title }}"}
      - {type: Knowledge, each: "{{ outputs.value.n }}", name: "{{ item }}"}
      - {type: File, name: "{{ outputs.value.nothing }}"}
      - {type: File, name: f, attributes: "{{ outputs.value.n }}"}
      - {type: File, name: good, attributes: {n: "{{ outputs.value.n }}"}}
  after: {type: decision, after: fetch, with: {expr: "'a'", branches: [a, b]}}
`)
	message, _ := actionNode(t, g, "fetch").Attributes["artifact_error"].(string)
	for _, want := range []string{
		`artifact 1 (Knowledge), element 2: name: item has no member "title"`,
		`artifact 1 (Knowledge), element 3: artifact Knowledge "" cannot be declared: it has no name`,
		`artifact 2 (Knowledge): each: expected a list, this is a number`,
		`artifact 3 (File): name: outputs.value has no member "nothing"`,
		`artifact 4 (File): attributes: expected an object, this is a number`,
	} {
		if !strings.Contains(message, want) {
			t.Errorf("%q does not receive in %q", want, message)
		}
	}
	datum(t, g, trajectory.Knowledge, "A")
	datum(t, g, trajectory.File, "good")
	if n := actionNode(t, g, "after"); n.Attributes["artifact_error"] != nil {
		t.Errorf("a node without artifacts has %v", n.Attributes)
	}
}

func TestArtifactsOfOneNodeAreBounded(t *testing.T) {
	for name, tt := range map[string]struct{ artifact, says string }{
		"many":  {`{type: File, each: "{{ lists.range(1500) }}", name: "{{ item }}"}`, "at most 1000 artifacts"},
		"bytes": {`{type: File, each: "{{ lists.range(100) }}", name: "{{ item }}", description: "{{ inputs.long }}"}`, "at most 1048576 bytes"},
		"name":  {`{type: File, name: "{{ inputs.long }}"}`, "a name has at most 1000"},
		"wrong": {`{type: File, each: "{{ lists.range(1500) }}", name: "{{ item.a }}"}`, "and 996 more"},
		"cost":  {`{type: File, name: "{{ lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0)) }}"}`, "takes more than"},
	} {
		t.Run(name, func(t *testing.T) {
			g := dataOf(t, fmt.Sprintf(`
weir: 1
name: bounds
nodes:
  make: {type: template, in: {long: %q}, with: {text: "{{ has(inputs.long) }}"}, artifacts: [%s]}
`, strings.Repeat("long ", 10_000), tt.artifact))
			if message, _ := actionNode(t, g, "make").Attributes["artifact_error"].(string); !strings.Contains(message, tt.says) || len(message) > 2000 {
				t.Errorf("it says %q; want %q", message, tt.says)
			}
		})
	}
}

// notesOf returns the notes of a run's nodes, each with the kind of the event after it.
func notesOf(t *testing.T, s weir.Store, run string) (out []string) {
	t.Helper()
	for c, err := range s.Commits(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range c.Events {
			if n, ok := e.(*engine.NoteRecorded); ok {
				after := "the end of the commit"
				if i+1 < len(c.Events) {
					after = c.Events[i+1].Kind()
				}
				key, _, _ := strings.Cut(n.Key, ".")
				out = append(out, key+" "+after)
			}
		}
	}
	return out
}

// unreliableType returns a node type that asks a person, then fails, then writes what the state does
// not take, and then completes.
func unreliableType() weir.Type {
	type out struct{ Text string }
	tries := 0
	return weir.Func("wavering", func(ctx weir.Ctx, _ struct{}) (out, error) {
		if _, given, err := ctx.Wait("ok", engine.Interrupt{Kind: engine.AwaitInput, Prompt: "Go on?"}); err != nil || !given {
			return out{}, err
		}
		switch tries++; tries {
		case 1:
			return out{"one"}, errors.New("not yet")
		case 2:
			return out{"two"}, ctx.State().Set("n", "no number")
		}
		return out{"three"}, nil
	})
}

// waitForResult returns how a run ends whose questions are all answered.
func waitForResult(t *testing.T, r *weir.Run) weir.Result {
	t.Helper()
	for {
		res, err := r.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if res.Status != engine.Paused {
			return res
		}
		if err := r.Answer(t.Context(), res.Interrupts[0].ID, "yes"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestArtifactsAreRecordedOnceWithNodeCompletion(t *testing.T) {
	s := memory.New()
	w := openLookingUp(t, weir.Options{Store: s, Types: []weir.Type{unreliableType()}})
	f, err := w.Define(weir.Definition{
		Name: "wavering", State: map[string]any{"n": map[string]any{"schema": map[string]any{"type": "number"}}},
		Nodes: map[string]weir.NodeSpec{"go": {
			Type: "wavering", Retry: map[string]any{"attempts": 2},
			Artifacts: []map[string]any{{"type": "Knowledge", "name": "{{ outputs.text }}"}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.Start(t.Context(), f, weir.Start{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if res := waitForResult(t, r); res.Status != engine.Failed {
		t.Fatal("a state that its schema refuses:", res.Status, res.Error)
	}
	if got := notesOf(t, s, "r"); got != nil {
		t.Errorf("a node that did not complete has declared %q", got)
	}
	if err := r.OverrideNode(t.Context(), "retry", "go", nil); err != nil {
		t.Fatal(err)
	}
	if res := waitForResult(t, r); res.Status != engine.Completed {
		t.Fatal(res.Status, res.Error)
	}
	if got := notesOf(t, s, "r"); !slices.Equal(got, []string{"go/artifacts#1 node.completed"}) {
		t.Errorf("the notes are %q", got)
	}
}

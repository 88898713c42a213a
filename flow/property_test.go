package flow_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/flow"
)

// randomFlow draws a valid flow in authoring form: each node reads from nodes
// drawn before it, whatever their ids.
func randomFlow(t *rapid.T) object {
	ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}_[0-9]?`), 1, 12, rapid.ID).Draw(t, "ids")
	nodes := object{}
	kinds := map[string]string{}
	var edges []any
	for i, id := range ids {
		n := randomNode(t, ids[:i], kinds, id, &edges)
		if rapid.Bool().Draw(t, "described") {
			n["description"] = rapid.String().Draw(t, "description")
		}
		nodes[id] = n
	}
	f := object{"weir": 1, "name": "random", "nodes": nodes, "outputs": object{"last": "{{ " + ids[len(ids)-1] + ".error }}"}}
	if len(edges) > 0 {
		f["edges"] = edges
	}
	if rapid.Bool().Draw(t, "state") {
		f["state"] = object{"k": object{"reducer": "append", "initial": randomValue(t, 2)}}
	}
	return f
}

func randomNode(t *rapid.T, before []string, kinds map[string]string, id string, edges *[]any) object {
	kinds[id] = rapid.SampledFrom([]string{"template", "collect", "decision", "loop", "userInput"}).Draw(t, "kind")
	ref := func() string {
		from := rapid.SampledFrom(before).Draw(t, "from")
		return "{{ " + from + "." + textPort(kinds[from]) + " }}"
	}
	n := object{"type": kinds[id]}
	if len(before) > 0 && rapid.Bool().Draw(t, "after") {
		n["after"] = rapid.SliceOfNDistinct(rapid.SampledFrom(before), 1, len(before), rapid.ID).Draw(t, "afters")
	}
	in := object{"lit": randomValue(t, 2)}
	switch kinds[id] {
	case "template":
		n["with"] = object{"text": "hi {{ inputs.lit }}"}
	case "decision":
		n["with"] = object{"expr": "'a'", "branches": []any{"a", "b"}}
	case "loop":
		n["with"] = object{"max": 1, "body": object{"nodes": object{"x": object{"type": "template", "in": object{"y": "{{ inputs.lit }}"}, "with": object{"text": "t"}}}, "outputs": object{"text": "{{ x.text }}"}}}
	case "collect":
		in = object{"parts": []any{"{{ run.id }}"}}
		if len(before) > 0 {
			in["parts"] = rapid.SliceOfN(rapid.Custom(func(*rapid.T) any { return ref() }), 1, 5).Draw(t, "parts")
		}
	case "userInput":
		in = nil
	}
	if in != nil {
		n["in"] = in
	}
	if rapid.Bool().Draw(t, "declares") {
		n["artifacts"] = rapid.SliceOfN(rapid.Custom(randomArtifact), 0, 3).Draw(t, "artifacts")
	}
	if in != nil && kinds[id] != "collect" && len(before) > 0 {
		in["one"] = ref()
		if rapid.Bool().Draw(t, "partial") {
			in["mixed"] = []any{ref() + " and " + ref(), randomValue(t, 1)}
		}
		from := rapid.SampledFrom(before).Draw(t, "edge from")
		*edges = append(*edges, object{
			"from": from + "." + textPort(kinds[from]), "to": id + ".extra",
			"id": "e_" + id, "metadata": object{"m": randomValue(t, 2)},
		})
	}
	return n
}

// randomArtifact draws an entry of `artifacts` that any node of randomNode may have.
func randomArtifact(t *rapid.T) any {
	kind := rapid.SampledFrom(flow.ArtifactTypes()).Draw(t, "type")
	a := object{"type": kind, "name": rapid.SampledFrom([]string{"n", "{{ run.id }}", "é {{ size(outputs) }}"}).Draw(t, "name")}
	if kind == "Table" && rapid.Bool().Draw(t, "columned") {
		a["columns"] = rapid.SampledFrom([]any{[]any{"a", "{{ run.flow }}"}, "{{ ['x'] }}", []any{}}).Draw(t, "columns")
	}
	if rapid.Bool().Draw(t, "more") {
		a["each"] = rapid.SampledFrom([]any{"{{ [1, 2] }}", []any{"{{ state.k }}", nil}}).Draw(t, "each")
		a["attributes"] = object{"item": "{{ item }}", "value": randomValue(t, 2)}
		a["relation"] = rapid.StringMatching(`[a-z]_[a-z0-9_]{0,20}`).Draw(t, "relation")
	}
	return a
}

func textPort(kind string) string {
	if kind == "decision" {
		return "result"
	}
	return "text"
}

// randomValue draws a value without templates.
func randomValue(t *rapid.T, depth int) any {
	switch rapid.IntRange(0, 6+min(depth, 1)*2).Draw(t, "value") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Int64().Draw(t, "int")
	case 3:
		return json.RawMessage(fmt.Sprintf("%d.25e%d", rapid.Int32().Draw(t, "float"), rapid.IntRange(-290, 290).Draw(t, "exp")))
	case 4:
		return json.RawMessage("-0.0")
	case 7:
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return randomValue(t, depth-1) }), 0, 3).Draw(t, "list")
	case 8:
		return rapid.MapOfN(rapid.String(), rapid.Custom(func(t *rapid.T) any { return randomValue(t, depth-1) }), 0, 3).Draw(t, "map")
	default:
		return strings.ReplaceAll(rapid.String().Draw(t, "text"), "{{", "{")
	}
}

// written is JSON with the keys of every object in the given order.
func written(v any, order func([]string)) string {
	switch t := v.(type) {
	case object:
		keys := slices.Sorted(maps.Keys(t))
		order(keys)
		parts := make([]string, len(keys))
		for i, k := range keys {
			parts[i] = written(k, order) + ":" + written(t[k], order)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(t))
		for i, e := range t {
			parts[i] = written(e, order)
		}
		return "[" + strings.Join(parts, ",\n") + "]"
	default:
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
}

func TestRandomFlowsSurviveTheirNormalForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := written(randomFlow(t), func([]string) {})
		f, err := flow.Parse("x.json", []byte(data), testCatalogue())
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		text, err := f.Normal()
		if err != nil {
			t.Fatal(err)
		}
		back, err := flow.Parse("y.json", text, testCatalogue())
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !reflect.DeepEqual(withoutPositions(f), withoutPositions(back)) {
			t.Fatalf("the flow changed:\n%s\n%s", data, text)
		}
		built, err := flow.Build(f, testCatalogue())
		if err != nil || built.Fingerprint() != f.Fingerprint() {
			t.Fatalf("Build: %v", err)
		}
	})
}

func TestTheFingerprintDoesNotDependOnTheOrderOfKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := randomFlow(t)
		a := written(v, func([]string) {})
		b := written(v, func(keys []string) {
			shuffled := rapid.Permutation(keys).Draw(t, "keys")
			copy(keys, shuffled)
		})
		fa, errA := flow.Parse("a.json", []byte(a), testCatalogue())
		fb, errB := flow.Parse("b.json", []byte("\n "+b), testCatalogue())
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if fa.Fingerprint() != fb.Fingerprint() {
			t.Fatalf("two fingerprints:\n%s\n%s", a, b)
		}
	})
}

func TestNodesStandInTopologicalOrderTiesByID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, err := flow.Parse("x.json", []byte(written(randomFlow(t), func([]string) {})), testCatalogue())
		if err != nil {
			t.Fatal(err)
		}
		done := map[string]bool{}
		waits := func(id string) bool {
			return slices.ContainsFunc(f.Edges, func(e *flow.Edge) bool { return e.To == id && !done[e.From] })
		}
		for _, n := range f.Nodes {
			var ready []string
			for _, m := range f.Nodes {
				if !done[m.ID] && !waits(m.ID) {
					ready = append(ready, m.ID)
				}
			}
			if want := slices.Min(ready); n.ID != want {
				t.Fatalf("%s stands where %s is due", n.ID, want)
			}
			done[n.ID] = true
		}
	})
}

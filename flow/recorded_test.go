package flow_test

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow"
)

// storedFlows returns the normal forms of a flow and of all flows that it uses.
func storedFlows(t *testing.T, f *flow.Flow) func(string) ([]byte, error) {
	t.Helper()
	forms := map[string][]byte{}
	for _, used := range f.Dependencies() {
		data, err := used.Normal()
		if err != nil {
			t.Fatal(err)
		}
		forms[used.Fingerprint()] = data
	}
	return func(fingerprint string) ([]byte, error) {
		if data, ok := forms[fingerprint]; ok {
			return data, nil
		}
		return nil, fmt.Errorf("flow %s: %w", fingerprint, fs.ErrNotExist)
	}
}

func TestRecordedFlowIsReadWithItsRecordedNodeTypes(t *testing.T) {
	t.Parallel()
	f := parseUsing(t, flow.Source{Files: sharedState()}, "at/parent.yaml", parent)
	digest, data, err := flow.SpecsOf(f, testCatalogue()).Encode()
	if err != nil || !strings.HasPrefix(digest, "sha256:") || len(digest) != 71 {
		t.Fatalf("%s, %v", digest, err)
	}
	specs, err := flow.DecodeSpecs(data)
	if err != nil {
		t.Fatal(err)
	}
	read, inferred, err := flow.RecordedFlows{ByFingerprint: storedFlows(t, f), Specs: specs}.Read(f.Fingerprint())
	if err != nil || len(inferred) != 0 {
		t.Fatalf("%v, inferred %v", err, inferred)
	}
	if !read.Recorded() || f.Recorded() || read.Name != f.Name || read.Fingerprint() != f.Fingerprint() || len(read.Uses) != len(f.Uses) {
		t.Errorf("read %+v", read)
	}
	for i, n := range f.Nodes {
		got, want := read.Nodes[i].SpecIn(nil), n.SpecIn(testCatalogue())
		if read.Nodes[i].ID != n.ID || got.Name != want.Name || got.Version != want.Version || got.Context != want.Context {
			t.Errorf("node %s has the spec %+v, want %+v", n.ID, got, want)
		}
	}
	if len(read.Edges) != len(f.Edges) {
		t.Errorf("%d edges, want %d", len(read.Edges), len(f.Edges))
	}
	for i, e := range f.Edges {
		if got := read.Edges[i]; got.ID != e.ID || got.Kind != e.Kind || got.From != e.From || got.ToPort != e.ToPort {
			t.Errorf("edge %+v, want %+v", got, e)
		}
	}
	if changes := specs.Changes(f.Fingerprint(), flow.SpecsOf(f, testCatalogue())); len(changes) != 0 {
		t.Errorf("the node types have changed: %v", changes)
	}
}

func TestRecordedFlowInfersUnknownNodeTypes(t *testing.T) {
	t.Parallel()
	for name, data := range validFiles(t) {
		f, err := flow.Parse(name, []byte(data), testCatalogue())
		if err != nil {
			continue // it uses other files
		}
		read, inferred, err := flow.RecordedFlows{ByFingerprint: storedFlows(t, f)}.Read(f.Fingerprint())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		types := map[string]bool{}
		for _, n := range f.Nodes {
			types[n.Type] = true
		}
		if len(inferred) < len(types) || len(read.Nodes) != len(f.Nodes) || len(read.Edges) != len(f.Edges) {
			t.Errorf("%s: inferred %v, %d nodes and %d edges", name, inferred, len(read.Nodes), len(read.Edges))
		}
	}
}

func TestRecordedFlowThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	forms := map[string]string{
		"list": "[]", "text": "x", "empty": "{}",
		"edge":  `{"weir":1,"name":"n","nodes":{"a":{"type":"start"}},"edges":[{"id":"e","from":"a.x","to":"b.y"}]}`,
		"child": `{"weir":1,"name":"n","uses":{"other":"gone"},"nodes":{"a":{"type":"flow","with":{"flow":"other"}}}}`,
	}
	r := flow.RecordedFlows{Types: testCatalogue(), ByFingerprint: func(fingerprint string) ([]byte, error) {
		if data, ok := forms[fingerprint]; ok {
			return []byte(data), nil
		}
		return nil, fs.ErrNotExist
	}}
	for fingerprint := range forms {
		if fingerprint == "empty" {
			continue
		}
		if f, _, err := r.Read(fingerprint); err == nil {
			t.Errorf("%s was read as %+v", fingerprint, f)
		}
	}
	if _, _, err := r.Read("missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing flow: %v", err)
	}
	for _, data := range []string{"", "[]", `{"specs":"other"}`} {
		if s, err := flow.DecodeSpecs([]byte(data)); err == nil {
			t.Errorf("%q was read as %+v", data, s)
		}
	}
}

func TestReadDataKeepsValuesAndPositions(t *testing.T) {
	t.Parallel()
	v, err := flow.ReadData("x.yaml", []byte("a: text\nb: [1, 2.5, true]\nc: {d: null}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": "text", "b": []any{int64(1), 2.5, true}, "c": map[string]any{"d": nil}}
	if !v.IsObject() || v.Kind() != "an object" || !reflect.DeepEqual(v.Value(), want) {
		t.Errorf("%s: %v", v.Kind(), v.Value())
	}
	var keys []string
	for _, e := range v.Entries() {
		keys = append(keys, fmt.Sprintf("%s@%d", e.Key, e.Pos.Line))
	}
	if strings.Join(keys, " ") != "a@1 b@2 c@3" {
		t.Errorf("the entries are %v", keys)
	}
	items := v.Get("b").Items()
	text := func(v *flow.FileValue) string {
		s, ok := v.Text()
		return fmt.Sprint(s, ok)
	}
	if !v.Get("b").IsList() || len(items) != 3 || text(items[0]) != "1true" || text(items[2]) != "truetrue" || items[1].Pos().Column != 8 {
		t.Errorf("the items are %v", items)
	}
	if a := v.Get("a"); !a.IsText() || text(a) != "texttrue" || a.Items() != nil || a.Entries() != nil || a.IsNull() {
		t.Errorf("the text is %v", a.Value())
	}
	if !v.Get("c").Get("d").IsNull() {
		t.Error("null was not read as null")
	}
	var invalid *flow.Invalid
	for name, bad := range map[string]string{"x.yaml": "a: [", "x.json": `{"a": }`, "utf8.yaml": "a: \xff"} {
		if _, err := flow.ReadData(name, []byte(bad)); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

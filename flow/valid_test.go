package flow_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/weir-run/weir/flow"
)

// parse reads a flow that must be valid.
func parse(tb testing.TB, name, data string) *flow.Flow {
	tb.Helper()
	f, err := flow.Parse(name, []byte(data), testCatalogue())
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return f
}

func normal(tb testing.TB, f *flow.Flow) string {
	tb.Helper()
	b, err := f.Normal()
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// withoutPositions returns the flow without what its text's layout decides.
func withoutPositions(f *flow.Flow) *flow.Flow {
	c := *f
	c.File = ""
	c.Inputs, c.State = slices.Clone(f.Inputs), slices.Clone(f.State)
	for i := range c.Inputs {
		c.Inputs[i].Pos = flow.Pos{}
	}
	for i := range c.State {
		c.State[i].Pos = flow.Pos{}
	}
	c.Graph = graphWithoutPositions(f.Graph)
	return &c
}

func graphWithoutPositions(g flow.Graph) flow.Graph {
	out := flow.Graph{Outputs: bindingsWithoutPositions(g.Outputs)}
	for _, n := range g.Nodes {
		c := *n
		c.Pos, c.Places, c.In, c.Artifacts = flow.Pos{}, nil, bindingsWithoutPositions(n.In), slices.Clone(n.Artifacts)
		for i := range c.Artifacts {
			c.Artifacts[i].Pos = flow.Pos{}
		}
		if n.Body != nil {
			b := graphWithoutPositions(*n.Body)
			c.Body = &b
		}
		c.Branches = slices.Clone(n.Branches)
		for i := range c.Branches {
			c.Branches[i].Graph = graphWithoutPositions(n.Branches[i].Graph)
		}
		out.Nodes = append(out.Nodes, &c)
	}
	for _, e := range g.Edges {
		c := *e
		c.Pos = flow.Pos{}
		out.Edges = append(out.Edges, &c)
	}
	return out
}

func bindingsWithoutPositions(bs []flow.Binding) []flow.Binding {
	out := slices.Clone(bs)
	for i := range out {
		out[i].Pos = flow.Pos{}
	}
	return out
}

func validFiles(tb testing.TB) map[string]string {
	tb.Helper()
	paths, err := filepath.Glob("testdata/valid/*")
	if err != nil || len(paths) < 9 {
		tb.Fatalf("the corpus of valid flows has %d files (%v)", len(paths), err)
	}
	files := map[string]string{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			tb.Fatal(err)
		}
		files[filepath.Base(p)] = string(b)
	}
	return files
}

func TestTheNormalFormIsReadBackAsTheSameFlow(t *testing.T) {
	for name, data := range validFiles(t) {
		t.Run(name, func(t *testing.T) {
			f := parse(t, name, data)
			text := normal(t, f)
			back := parse(t, "back.json", text)
			if !reflect.DeepEqual(withoutPositions(f), withoutPositions(back)) {
				t.Errorf("the flow changed:\n%s\n%s", text, normal(t, back))
			}
			if again := normal(t, back); again != text {
				t.Errorf("the normal form changed:\n%s\n%s", text, again)
			}
			if f.Fingerprint() != back.Fingerprint() || !strings.HasPrefix(f.Fingerprint(), "sha256:") {
				t.Errorf("fingerprints: %s and %s", f.Fingerprint(), back.Fingerprint())
			}
			if err := f.Check(testCatalogue()); err != nil {
				t.Errorf("Check: %v", err)
			}
			trusted, err := flow.Source{AlreadyValid: true}.Parse("back.json", []byte(text), testCatalogue())
			if err != nil || !reflect.DeepEqual(withoutPositions(trusted), withoutPositions(back)) {
				t.Errorf("read as one that was found valid before, the flow is another, %v", err)
			}
		})
	}
}

func TestValidFlowsAndTheirNormalFormsFitTheSchema(t *testing.T) {
	raw, err := flow.Schema(testCatalogue())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("flow.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("flow.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range validFiles(t) {
		f := parse(t, name, data)
		if name != "normal.json" && name != "yaml12.yaml" { // YAML 1.1 habits of the decoder used here
			var v any
			if err := yaml.Unmarshal([]byte(data), &v); err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(texts(v))
			if err != nil {
				t.Fatal(err)
			}
			fitsSchema(t, schema, name, b)
		}
		fitsSchema(t, schema, name+" (normal form)", []byte(normal(t, f)))
	}
	broken, err := jsonschema.UnmarshalJSON(strings.NewReader(`{"weir": 1, "name": "x", "nodes": {"a": {"type": "template"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if schema.Validate(broken) == nil {
		t.Error("the schema lets a template node without its text pass")
	}
}

// texts makes the keys of maps text and branch names too, as flow files do.
func texts(v any) any {
	switch t := v.(type) {
	case map[any]any:
		m := map[string]any{}
		for k, e := range t {
			m[fmt.Sprint(k)] = texts(e)
		}
		return m
	case map[string]any:
		for k, e := range t {
			t[k] = texts(e)
			if list, ok := e.([]any); ok && (k == "branches" || k == "on") {
				for i := range list {
					list[i] = fmt.Sprint(list[i])
				}
			}
		}
	case []any:
		for i := range t {
			t[i] = texts(t[i])
		}
	}
	return v
}

func fitsSchema(t *testing.T, s *jsonschema.Schema, name string, data []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// drawn lists nodes and edges, a line each, for comparison.
func drawn(g *flow.Graph) string {
	var b strings.Builder
	for _, n := range g.Nodes {
		b.WriteString(n.ID + " ")
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "\n%s %s", e.ID, e.Kind)
		if e.Partial {
			b.WriteString(" partial")
		}
	}
	return b.String()
}

func TestInputsAndControlBecomeEdgesInFlowOrder(t *testing.T) {
	files := validFiles(t)
	for name, want := range map[string]string{
		"invoice.yaml": `extract check ask reply 
extract->check control
check.high->ask control
check.low->reply control`,
		"contexts.yaml": `begin ask side critic again reply 
begin.context->ask.context context
side.context->critic.context context
ask.text->critic.message data
ask.context->again.context context
critic.text->again.message data partial
critic->reply control`,
		"merge.yaml": `fetch either size big small one all mixed 
fetch.body->either.value data
failed data
size.true->big control
size.false->small control
small.text->one.value data
big.text->one.value data
one.value->all.parts data
small.text->all.parts data
big.text->all.parts data
big.text->mixed.parts data partial
one.value->mixed.parts data partial`,
		"portals.yaml": `ask kit out y more z reply 
ask.text->out.value data
portal:question data
y.value->more.message data
kit.tools->more.tools tools
portal:question#2 data
z.value->reply.message data`,
	} {
		if got := drawn(&parse(t, name, files[name]).Graph); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
		}
	}
}

func TestFlowKeepsAllSettingsOfItsFile(t *testing.T) {
	files := validFiles(t)
	f := parse(t, "yaml12.yaml", files["yaml12.yaml"])
	in := map[string]any{}
	for _, b := range f.Node("a").In {
		in[b.Name] = b.Value
	}
	want := map[string]any{
		"y": "yes", "n": "no", "o": "off", "oct": int64(15), "hex": int64(255), "old": int64(777),
		"f": 1000.0, "neg": int64(-7), "half": 0.5, "none": nil, "t": true,
	}
	if !reflect.DeepEqual(in, want) {
		t.Errorf("in: %v\nwant %v", in, want)
	}
	if got := f.Node("d").With; !reflect.DeepEqual(got, map[string]any{
		"prompt": "5", "schema": map[string]any{"type": "string", "enum": []any{"true", "no", "1"}},
	}) {
		t.Errorf("with: %v", got)
	}
	if f.Node("c").Retry.Attempts != 3 || f.Inputs[1].Default != "yes" || f.Inputs[0].Default != "2024-01-01" {
		t.Errorf("retry %+v, inputs %+v", f.Node("c").Retry, f.Inputs)
	}
	loop := parse(t, "loops.yaml", files["loops.yaml"]).Node("refine")
	if got := drawn(loop.Body); got != "write score each \ngraded data\nscore.value->each.items data" {
		t.Errorf("body: %s", got)
	}
	if n := parse(t, "merge.yaml", files["merge.yaml"]).Node("size"); !reflect.DeepEqual(n.With["branches"], []any{"true", "false"}) {
		t.Errorf("branches: %v", n.With["branches"])
	}
}

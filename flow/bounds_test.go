package flow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/flow"
)

// chain returns a flow of n nodes, each after the one before, as YAML.
func chain(n int) string {
	var b strings.Builder
	b.WriteString("weir: 1\nname: chain\nnodes:\n  n0: {type: start}\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "  n%d: {type: start, after: n%d}\n", i, i-1)
	}
	return b.String()
}

func codesOf(tb testing.TB, name, data string) []string {
	tb.Helper()
	_, err := flow.Parse(name, []byte(data), testCatalogue())
	bad := new(flow.Invalid)
	if !errors.As(err, &bad) {
		tb.Fatalf("%T: %.200v", err, err)
	}
	var codes []string
	for _, p := range bad.Problems {
		codes = append(codes, p.Code)
	}
	return codes
}

// hostile are files made to cost time or memory. Each must be refused, or read,
// in a moment.
func hostile() map[string]string {
	head := "weir: 1\nname: x\nnodes:\n  a: {type: start}\n"
	many := func(n int, f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(f(i))
		}
		return b.String()
	}
	return map[string]string{
		"yaml over the size":      head + "description: " + strings.Repeat("x", flow.MaxYAML),
		"deep flow lists":         head + "outputs: {x: " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}",
		"deep unclosed":           head + "outputs: {x: " + strings.Repeat("[{", 100_000),
		"deep block":              head + "outputs:\n" + many(1500, func(i int) string { return strings.Repeat(" ", i+1) + "k:\n" }),
		"dashes":                  head + "outputs:\n  x: " + strings.Repeat("- ", 100_000),
		"many unknown references": head + "outputs:\n" + many(50_000, func(i int) string { return fmt.Sprintf("  o%d: '{{ zz%d.text }}'\n", i, i) }),
		"many unknown keys":       head + many(50_000, func(i int) string { return fmt.Sprintf("key%d: 1\n", i) }),
		"one port many times":     "weir: 1\nname: x\nnodes:\n  a: {type: userInput}\n  b: {type: collect, in: {parts: [" + strings.Repeat("'{{ a.text }}', ", 100_000) + "]}}\n  a: {}\n",
		"many edges to one port":  "weir: 1\nname: x\nnodes:\n  a: {type: userInput}\n  b: {type: llmRequest}\nedges:\n" + strings.Repeat("  - {from: a.text, to: b.message}\n", 80_000),
		"many cycles": "weir: 1\nname: x\nnodes:\n" + many(20_000, func(i int) string {
			return fmt.Sprintf("  n%d: {type: start, after: [n%d, n%d]}\n", i, i^1, (i+2)%20_000)
		}),
		"many writers": "weir: 1\nname: x\nnodes:\n  d: {type: decision, with: {expr: state.x, branches: [p, q]}}\n" + many(20_000, func(i int) string {
			return fmt.Sprintf("  n%d: {type: action, after: d.p, with: {code: x, writes: [k]}}\n", i)
		}),
		"long expression":     head + "outputs: {x: '{{ " + strings.Repeat("1+", 200_000) + "1 }}'}",
		"unclosed templates":  head + "outputs: {x: '" + strings.Repeat("{{", 500_000) + "'}",
		"bad templates":       head + "outputs: {x: '" + strings.Repeat("{{ 1 + }}", 100_000) + "'}",
		"anchors":             head + "outputs:\n" + many(20_000, func(i int) string { return fmt.Sprintf("  a%d: &a%d [*a%d]\n", i+1, i+1, i) }),
		"long key":            head + "? " + strings.Repeat("k", 1_000_000) + "\n: 1\n",
		"comments":            head + many(300_000, func(int) string { return "# c\n" }) + "bad: 1\n",
		"json depth.json":     `{"weir": 1, "name": "x", "nodes": {"a": {"type": "start"}}, "outputs": {"x": ` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}}`,
		"json depth far.json": strings.Repeat(`{"a":`, 1_000_000),
		"json one line.json":  `{"weir": 1, "name": "x", "nodes": {` + strings.TrimSuffix(many(100_000, func(i int) string { return fmt.Sprintf(`"n%d": {"type": "strat"},`, i) }), ",") + `}}`,
	}
}

func TestHostileFilesAreRejectedQuickly(t *testing.T) {
	for name, data := range hostile() {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			codes := codesOf(t, name, data)
			if len(codes) > flow.MaxProblems+1 {
				t.Errorf("%d problems", len(codes))
			}
			t.Logf("%d bytes in %v: %d problems, first %s", len(data), time.Since(start), len(codes), codes[0])
		})
	}
}

func TestProblemListIsBounded(t *testing.T) {
	codes := codesOf(t, "x.yaml", hostile()["many unknown keys"])
	if len(codes) != flow.MaxProblems+1 || codes[len(codes)-1] != flow.CodeTooManyProblems {
		t.Errorf("%d problems, the last %s", len(codes), codes[len(codes)-1])
	}
}

func TestAJSONFileHasTheSamePlacesAsAnEditorShows(t *testing.T) {
	for data, want := range map[string]string{
		"{\n \"weir\": 1,\n \"nmae\": \"x\",\n \"nodes\": {\"a\": {\"type\": \"start\"}}\n}": "x.json:1:1 x.json:3:2",
		`{"weir": 1, "name": "äö", "nodes": {"ü": {"type": "start"}}}`:                       "x.json:1:37",
		"{\"weir\": 1,\n\"name\": }": "x.json:2:9",
		"{\"weir\": 1, \"weir\": 1, \"name\": \"x\", \"nodes\": {\"a\": {\"type\": \"start\"}}}":                         "x.json:1:13",
		"{\"weir\": 1, \"name\": \"x\", \"nodes\": {\"a\": {\"type\": \"wait\", \"in\": {\"seconds\": 1e999}}}}":         "x.json:1:76",
		"{\"weir\": 1, \"name\": \"x\", \"nodes\": {\"a\": {\"type\": \"start\"}}, \"outputs\": {\"x\": \"{{ b.c }}\"}}": "x.json:1:82",
	} {
		_, err := flow.Parse("x.json", []byte(data), testCatalogue())
		bad := new(flow.Invalid)
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", data, err)
			continue
		}
		var got []string
		for _, p := range bad.Problems {
			got = append(got, p.Pos.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s:\n%v\nwant %s", data, err, want)
		}
	}
}

func TestAFlowBuiltInGoIsCheckedByTheSameRules(t *testing.T) {
	f := &flow.Flow{Name: "built", Graph: flow.Graph{Nodes: []*flow.Node{
		{ID: "reply", Type: "llmRequest", In: []flow.Binding{{Name: "message", Value: "{{ ask.text }}"}}},
		{ID: "ask", Type: "userInput", With: map[string]any{"prompt": "?"}},
	}}}
	got, err := flow.Build(f, testCatalogue())
	if err != nil {
		t.Fatal(err)
	}
	if want := "ask reply \nask.text->reply.message data"; drawn(&got.Graph) != want || got.Node("reply").Type != "llmRequest" {
		t.Errorf("%s\nwant %s", drawn(&got.Graph), want)
	}
	f.Nodes[1].Type = "usrInput"
	err = f.Check(testCatalogue())
	bad := new(flow.Invalid)
	if !errors.As(err, &bad) || bad.Problems[0].Code != flow.CodeUnknownType || bad.Problems[0].Pos.Line != 0 {
		t.Errorf("%v", err)
	}
	f.Nodes[1].With = map[string]any{"prompt": make(chan int)}
	if err := f.Check(testCatalogue()); err == nil || errors.As(err, &bad) && bad == nil {
		t.Errorf("a channel among the settings: %v", err)
	}
}

func TestThePortTypesThatFitAreThoseOfTheTable(t *testing.T) {
	all := []flow.PortType{"text", "number", "bool", "object", "list", "message", "messages", "context", "tools", "file", "any"}
	pairs := " text>message message>text message>messages message>object messages>list number>text bool>text file>object "
	for _, a := range all {
		for _, b := range all {
			want := a == b || a == "any" || b == "any" || strings.Contains(pairs, fmt.Sprintf(" %s>%s ", a, b))
			if flow.Assignable(a, b) != want {
				t.Errorf("Assignable(%s, %s) is %v", a, b, !want)
			}
		}
	}
}

func BenchmarkLoad100k(b *testing.B) {
	data := []byte(chain(100_000))
	c := testCatalogue()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := flow.Parse("chain.yaml", data, c)
		if err != nil || len(f.Nodes) != 100_000 {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad100kNormal(b *testing.B) {
	f := parse(b, "chain.yaml", chain(100_000))
	data := []byte(normal(b, f))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := flow.Parse("chain.json", data, testCatalogue()); err != nil {
			b.Fatal(err)
		}
	}
}

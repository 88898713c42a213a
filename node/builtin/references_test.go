package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
)

// sources are what a reference may find, with the reference to it.
var sources = map[string]string{
	"value":                         "said.value",
	"null":                          "nothing.value",
	"a node that was skipped":       "skipped.value",
	"a node that failed, handled":   "broken.value",
	"a port that a node left empty": "check.no",
	"a state key that is not there": "state.gone",
}

// shapes are how an expression reads a reference R.
var shapes = map[string]string{
	"bare":          `"{{ R }}"`,
	"has":           `"{{ has(R) }}"`,
	"ternary":       `"{{ has(R) ? R : 'none' }}"`,
	"optional":      `"{{ R.?Q.orValue('none') }}"`,
	"question":      `"{{ R?.Q.orValue('none') }}"`,
	"or, decided":   `"{{ R == 'v' || true }}"`,
	"or, undecided": `"{{ R == 'v' || false }}"`,
	"text":          `"x {{ R }}"`,
	"list":          `["{{ R }}"]`,
	"object":        `{k: "{{ R }}"}`,
	"call":          `"{{ [R, R].size() }}"`,
}

// outcomes are what each shape gives for a value and for null. What is not
// there gives "false", "none" and "true" where the expression does not need it,
// and is an error, or explicitly absent, everywhere else.
var outcomes = map[string][2]string{
	"bare":          {`v`, `null`},
	"has":           {`true`, `true`},
	"ternary":       {`v`, `null`},
	"optional":      {`v`, `null`},
	"question":      {`v`, `null`},
	"or, decided":   {`true`, `true`},
	"or, undecided": {`true`, `false`},
	"text":          {`x v`, `x null`},
	"list":          {`["v"]`, `[null]`},
	"object":        {`{"k":"v"}`, `{"k":null}`},
	"call":          {`2`, `2`},
}

// referencePlaces are where an expression V may stand, with what there is to read the
// result from: the output r, or for a bare reference that gave nothing the
// output r that is absent. The last column says whether a bare reference may be
// absent there.
var referencePlaces = map[string]struct {
	flow  string
	reads bool // the place reads the port of a node, bound by a bare reference
}{
	"outputs":                {flow: `outputs: {r: V}`},
	"in, with another edge":  {flow: "  use: {type: transform, in: {p: V, other: \"{{ said.value }}\"}, with: {expr: \"inputs.other == 'v' && has(inputs.p) ? inputs.p : 'absent'\"}}\noutputs: {r: \"{{ use.value }}\"}"},
	"in, alone":              {flow: "  use: {type: transform, in: {p: V}, with: {expr: \"has(inputs.p) ? inputs.p : 'absent'\"}}\noutputs: {r: \"{{ use.value }}\"}"},
	"in, of a required port": {flow: "  use: {type: forEach, in: {items: [V], other: \"{{ said.value }}\"}, with: {body: {nodes: {n: {type: transform, in: {i: \"{{ inputs.item }}\", o: \"{{ inputs.other }}\"}, with: {expr: \"inputs.o == 'v' ? inputs.i : 0\"}}}, outputs: {result: \"{{ n.value }}\"}}}}\n  one: {type: transform, in: {l: \"{{ use.results }}\"}, with: {expr: \"inputs.l[0]\"}}\noutputs: {r: \"{{ one.value }}\"}"},
	"outputs of a body":      {flow: "  use: {type: loop, with: {max: 1, body: {nodes: {BODY}, outputs: {r: V}}}}\noutputs: {r: \"{{ use.r }}\"}"},
	"results of a body":      {flow: "  use: {type: forEach, in: {items: [1]}, with: {body: {nodes: {BODY}, outputs: {r: V}}}}\n  one: {type: transform, in: {l: \"{{ use.results }}\"}, with: {expr: \"has(inputs.l[0].r) ? inputs.l[0].r : 'absent'\"}}\noutputs: {r: \"{{ one.value }}\"}"},
	"settings":               {flow: "  use: {type: template, after: said, in: {p: \"{{ SOURCE }}\"}, with: {text: V}}\noutputs: {r: \"{{ use.text }}\"}", reads: true},
	"an expression setting":  {flow: "  use: {type: transform, after: said, in: {p: \"{{ SOURCE }}\"}, with: {expr: V}}\noutputs: {r: \"{{ use.value }}\"}", reads: true},
}

func sourceNodes() []string {
	return []string{
		`check: {type: decision, with: {expr: "'yes'", branches: ["yes", "no"]}}`,
		`said: {type: transform, with: {expr: "'v'"}}`,
		`nothing: {type: transform, with: {expr: "null"}}`,
		`skipped: {type: transform, after: check.no, with: {expr: "1"}}`,
		`broken: {type: transform, with: {expr: "1/0"}}`,
		`handled: {type: transform, in: {e: "{{ broken.error }}"}, with: {expr: "inputs.e.code"}}`,
	}
}

// flowOf returns a flow whose place holds the shape of a reference.
func flowOf(place, shape, source string) string {
	ref := source
	p := referencePlaces[place]
	if p.reads {
		ref = "inputs.p"
	}
	owner, member, _ := strings.Cut(ref, ".")
	value := strings.NewReplacer("R.?Q", owner+".?"+member, "R?.Q", owner+"?."+member, "R", ref).Replace(shapes[shape])
	if p.reads {
		if strings.Contains(p.flow, "expr: V") {
			value = strings.NewReplacer(`"{{ `, `"`, ` }}"`, `"`).Replace(value)
		}
	}
	var b strings.Builder
	b.WriteString("weir: 1\nname: references\nnodes:\n")
	for _, n := range sourceNodes() {
		b.WriteString("  " + n + "\n")
	}
	text := strings.NewReplacer("BODY", strings.Join(sourceNodes(), ", "), "SOURCE", source).Replace(p.flow)
	b.WriteString(strings.Replace(text, "V", value, 1))
	return b.String()
}

// resultText returns what a run did with output r: its text, "absent" or "error".
func resultText(t *testing.T, r weir.Result) string {
	t.Helper()
	if r.Status == engine.Failed {
		if !strings.Contains(r.Error.Message, "flow.yaml:") {
			t.Errorf("the error has no place: %v", r.Error)
		}
		return "error"
	}
	v, ok := r.Outputs.Get("r")
	if why, absent := r.Absent.Get("r"); absent != !ok || absent && why == "" {
		t.Errorf("outputs %v, absent %v", r.Outputs, r.Absent)
	}
	if !ok {
		return "absent"
	}
	text, isText := v.(string)
	if !isText {
		b, err := engine.AppendValue(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	return text
}

// modelEntry returns what the place, shape and source must give.
func modelEntry(place, shape, source string) string {
	switch source {
	case "value":
		return outcomes[shape][0]
	case "null":
		return outcomes[shape][1]
	}
	state := strings.HasPrefix(sources[source], "state.")
	switch shape {
	case "has":
		return "false"
	case "ternary", "optional", "question":
		return "none"
	}
	if place == "in, alone" && !state {
		return "absent" // nothing leads to the node: it is skipped
	}
	if shape == "or, decided" {
		return "true"
	}
	if place == "in, of a required port" && shape != "or, undecided" && !state {
		return "absent" // the node is skipped: what it needs in any case is not there
	}
	if shape == "bare" && !state && !referencePlaces[place].reads {
		return "absent"
	}
	return "error"
}

// isAllowed says whether the shape of the reference may stand in the place.
func isAllowed(place, shape, ref string) bool {
	p := referencePlaces[place]
	if p.reads && strings.HasPrefix(ref, "state.") {
		return false // is no input; settings read it as in: does
	}
	if p.reads && (shape == "list" || shape == "object") || strings.Contains(p.flow, "expr: V") && (shape == "text" || shape == "list" || shape == "object") {
		return false // the setting takes no such value
	}
	return true
}

func TestEveryReferenceGivesAValueErrorOrAbsence(t *testing.T) {
	for place := range referencePlaces {
		for shape := range shapes {
			for source, ref := range sources {
				if !isAllowed(place, shape, ref) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", place, shape, source), func(t *testing.T) {
					text := flowOf(place, shape, ref)
					got, want := resultText(t, play(t, weir.Options{}, text, nil, nil)), modelEntry(place, shape, source)
					if got != want {
						t.Errorf("gave %s, want %s:\n%s", got, want, text)
					}
				})
			}
		}
	}
}

package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
)

// withTypes returns a catalogue of the built-in types and more.
func withTypes(t *testing.T, types ...weir.Type) *node.Catalogue {
	t.Helper()
	cat, err := node.NewCatalogue(append(builtin.Types(), types...)...)
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

// retryProblem parses a flow and returns what is reported about codes of retry.
func retryProblem(text string, files map[string]string, cat *node.Catalogue) string {
	_, err := flow.Source{Files: flow.MemFiles(files)}.Parse("flow.yaml", []byte(text), cat)
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestEveryRetryCodeOfEveryTypeIsKnownOrRefused tries each code of the table, and each of them
// with one letter missing, on each node type.
func TestEveryRetryCodeOfEveryTypeIsKnownOrRefused(t *testing.T) {
	t.Parallel()
	stages := minimalFlows()
	cat, nodeCodes := withTypes(t), make(map[string]bool)
	for _, code := range engine.NodeCodes() {
		nodeCodes[code] = true
	}
	for _, typ := range allTypes() {
		s := stages[typ]
		s.typ = typ
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			for _, row := range engine.Codes() {
				on := func(code string) string {
					s := withIsolation(s, typ).key("retry", "{attempts: 2, on: ["+code+"]}")
					return retryProblem(s.text(), s.files, cat)
				}
				known := nodeCodes[row.Code] && !flow.NeverRetried(row.Code)
				if got := on(row.Code); (got == "") != known && (typ != "tool" || flow.NeverRetried(row.Code)) {
					t.Errorf("%s: %q", row.Code, got)
				}
				misspelt := row.Code[:2] + row.Code[3:]
				if got := on(misspelt); known && (!strings.Contains(got, misspelt) || !strings.Contains(got, "did you mean "+row.Code+"?")) {
					t.Errorf("%s: %q", misspelt, got)
				}
			}
		})
	}
}

func TestCodesOfRetryIncludeThoseOfInnerNodes(t *testing.T) {
	t.Parallel()
	cat := withTypes(t, weir.Func("stock", func(weir.Ctx, struct{}) (struct{}, error) { return struct{}{}, nil }))
	files := map[string]string{
		"no.yaml":    "weir: 1\nname: no\nnodes: {a: {type: fail, with: {code: sold_out, message: none}}}\n",
		"stock.yaml": "weir: 1\nname: s\nnodes: {a: {type: stock}}\n",
	}
	const retry = "retry: {attempts: 2, on: %s}, "
	const inner = "{type: fail, with: {code: sold_out, message: none}}"
	for text, want := range map[string]string{
		"{type: fail, " + retry + "with: {code: sold_out, message: none}}":                                                  "",
		"{type: fail, " + retry + "with: {message: none}}":                                                                  "never fails",
		"{type: loop, isolation: fork, " + retry + "with: {max: 2, body: {nodes: {a: " + inner + "}}}}":                     "",
		"{type: loop, isolation: fork, " + retry + "with: {max: 2, body: {nodes: {a: {type: template, with: {text: x}}}}}}": "never fails",
		"{type: race, " + retry + "with: {branches: {x: {nodes: {a: " + inner + "}}, y: {nodes: {b: " + inner + "}}}}}":     "",
		"{type: flow, " + retry + "with: {flow: no.yaml}}":                                                                  "",
		"{type: flow, " + retry + "with: {flow: {from: [no.yaml, stock.yaml], name: '{{ run.id }}'}}}":                      "",
		"{type: flow, " + retry + "with: {flow: stock.yaml}}":                                                               "",
		"{type: stock, " + retry + "with: {}}":                                                                              "",
		"{type: agent, in: {message: hi}, " + retry + "with: {pre: [{flow: no.yaml}]}}":                                     "",
		"{type: agent, in: {message: hi}, " + retry + "with: {instructions: Be brief.}}":                                    "never fails",
	} {
		flowText := "weir: 1\nname: f\ncontext: {model: openai/gpt-5-mini}\nnodes:\n  n: " + fmt.Sprintf(text, "sold_out") + "\n"
		got := retryProblem(flowText, files, cat)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		flowText = "weir: 1\nname: f\ncontext: {model: openai/gpt-5-mini}\nnodes:\n  n: " + fmt.Sprintf(text, "node_timout") + "\n"
		if got := retryProblem(flowText, files, cat); !strings.Contains(got, "did you mean node_timeout?") {
			t.Errorf("%s with a misspelt code: %q", text, got)
		}
	}
}

package history_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm/recorded"
)

func TestMovesOfNodesAndSettings(t *testing.T) {
	const say = `{"type":"manualInput","with":{"text":"%s"}}`
	node := func(text string) string { return fmt.Sprintf(say, text) }
	for _, c := range []struct{ name, a, b, want string }{
		{"a node with another id", `"one":` + node("x"), `"two":` + node("x"), `one -> two: `},
		{"a node with another id and text", `"one":` + node("x"), `"two":` + node("y"), ``},
		{
			"a setting that goes to a node that was there", `"one":{"type":"llmRequest","with":{"system":"S"}},"two":{"type":"llmRequest"}`,
			`"one":{"type":"llmRequest"},"two":{"type":"llmRequest","with":{"system":"S"}}`, `one -> two: with.system`,
		},
		{
			"a setting that replaces another", `"one":{"type":"llmRequest","with":{"system":"S"}},"two":{"type":"llmRequest","with":{"system":"T"}}`,
			`"one":{"type":"llmRequest"},"two":{"type":"llmRequest","with":{"system":"S"}}`, `one -> two: with.system`,
		},
		{
			"settings that change places", `"one":{"type":"llmRequest","with":{"system":"S"}},"two":{"type":"llmRequest","with":{"system":"T"}}`,
			`"one":{"type":"llmRequest","with":{"system":"T"}},"two":{"type":"llmRequest","with":{"system":"S"}}`, `one -> two: with.system, two -> one: with.system`,
		},
		{
			"a setting that goes to a node that is new", `"one":{"type":"llmRequest","with":{"system":"S","temperature":0.5}}`,
			`"one":{"type":"llmRequest","with":{"temperature":0.5}},"two":{"type":"llmRequest","with":{"system":"S"}}`, `one -> two: with.system`,
		},
		{
			"a setting of a node that is gone", `"one":{"type":"llmRequest","with":{"system":"S"}},"two":{"type":"manualInput","with":{"text":"x"}}`,
			`"two":{"type":"llmRequest","with":{"system":"S"}}`, `one -> two: with.system`,
		},
		{
			"a setting under another key stays where it is", `"one":{"type":"llmRequest","with":{"system":"S"}},"two":{"type":"manualInput","with":{"text":"x"}}`,
			`"one":{"type":"llmRequest"},"two":{"type":"manualInput","with":{"text":"S"}}`, ``,
		},
		{
			"a setting that two nodes lose", `"one":{"type":"llmRequest","with":{"system":"S"}},"two":{"type":"llmRequest","with":{"system":"S"}},"three":{"type":"llmRequest"}`,
			`"one":{"type":"llmRequest"},"two":{"type":"llmRequest"},"three":{"type":"llmRequest","with":{"system":"S"}}`, ``,
		},
		{
			"a setting that two nodes gain", `"one":{"type":"llmRequest","with":{"system":"S"}},"two":{"type":"llmRequest"},"three":{"type":"llmRequest"}`,
			`"one":{"type":"llmRequest"},"two":{"type":"llmRequest","with":{"system":"S"}},"three":{"type":"llmRequest","with":{"system":"S"}}`, ``,
		},
		{"two equal nodes with other ids", `"one":` + node("x") + `,"two":` + node("x"), `"three":` + node("x") + `,"four":` + node("x"), ``},
		{"nothing", `"one":` + node("x"), `"one":` + node("x"), ``},
	} {
		list, err := history.CompareFlows(flowWith(t, c.a), flowWith(t, c.b))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range history.MovesOf(list) {
			got = append(got, m.From+" -> "+m.To+": "+m.Key)
			if text, err := json.Marshal(m.Value); err != nil || !strings.Contains(c.a, strings.Trim(string(text), `{}"`)) && m.Key != "" {
				t.Errorf("%s: the value is %s (%v)", c.name, text, err)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, strings.Join(got, ", "), c.want)
		}
	}
}

// flowWith returns a flow with nodes in JSON.
func flowWith(t *testing.T, nodes string) *flow.Flow {
	t.Helper()
	f, err := weirkit.Open(t, weir.Options{Providers: map[string]weir.Provider{"m": &recorded.Scripted{}}}).Parse("moves", []byte(`{"weir":1,"name":"moves","context":{"model":"m/m"},"nodes":{`+nodes+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

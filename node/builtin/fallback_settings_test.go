package builtin

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
)

func TestFallbackDocListsTheDefaultCodes(t *testing.T) {
	if known := flow.FallbackCodes(); !slices.Equal(known, llm.AllFallbackCodes()) {
		t.Errorf("the context of a flow takes %q, and nodes %q", known, llm.AllFallbackCodes())
	}
	if want := "(default `" + strings.Join(llm.FallbackCodes(), "`, `") + "`)"; !strings.Contains(fallbackDoc, want) {
		t.Errorf("the table of settings lacks %s:\n%s", want, fallbackDoc)
	}
}

func TestFallbackSettingsThatMeanNothingAreRefused(t *testing.T) {
	list := []any{"a/b", "a/c"}
	for name, with := range map[string]map[string]any{
		"model":    {"models": list, "model": "a/b"},
		"provider": {"models": list, "provider": "a"},
		"on":       {"on": []any{"model_timeout"}},
	} {
		if got := checkFallbackSettings(with); len(got) != 1 || got[0].Setting != name {
			t.Errorf("%v: %v", with, got)
		}
	}
	if got := checkFallbackSettings(map[string]any{"models": list, "on": []any{"model_timeout"}}); got != nil {
		t.Errorf("valid settings: %v", got)
	}
}

func TestCallSettingsThatContradictAreRefused(t *testing.T) {
	for name, with := range map[string]map[string]any{
		"thinkingBudget": {"thinkingBudget": int64(2048), "reasoning": "high"},
		"callTimeout":    {"callTimeout": map[string]any{"first": "0s"}},

		"callTimeout.first": {"callTimeout": map[string]any{"first": "10m", "idle": "1s", "total": "20s"}},
		"callTimeout.idle":  {"callTimeout": map[string]any{"idle": "20s", "total": "20s"}},
		"budget.reserve":    {"budget": map[string]any{"window": int64(50), "reserve": int64(50)}},
	} {
		for _, typ := range []string{"llmRequest", "agent", "categorizer", "extract", "summarize"} {
			spec := Catalogue().Lookup(typ)
			if got := spec.Check(with); !slices.ContainsFunc(got, func(p flow.Problem) bool { return p.Setting == name }) {
				t.Errorf("%s of %s: %v", name, typ, got)
			}
		}
	}
}

package builtin

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

func TestEveryTypeHasADescription(t *testing.T) {
	for _, s := range Catalogue().Specs() {
		t.Run(s.Name, func(t *testing.T) {
			if s.Summary == "" || !strings.HasSuffix(s.Summary, ".") || strings.Contains(s.Summary, "\n") {
				t.Errorf("the summary is %q, expected one sentence", s.Summary)
			}
			if len(s.Doc) < 100 {
				t.Errorf("the doc is %q, expected something to work from", s.Doc)
			}
			if !slices.Contains([]string{"flow", "context", "model", "data", "io", "control"}, s.Category) {
				t.Errorf("the category is %q", s.Category)
			}
			if s.Version < 1 || len(s.Examples) == 0 {
				t.Errorf("version %d, %d examples; expected at least 1 of each", s.Version, len(s.Examples))
			}
			if s.Pure && s.Context == flow.ContextWrite {
				t.Error("the type is pure and writes a context")
			}
		})
	}
}

func TestEverySettingIsDescribedByAValidSchemaAndNamedInTheDoc(t *testing.T) {
	for _, s := range Catalogue().Specs() {
		t.Run(s.Name, func(t *testing.T) {
			if _, err := node.CompileSchema(s.Settings); err != nil {
				t.Fatalf("the settings are no JSON Schema: %v", err)
			}
			if s.Settings["additionalProperties"] != false {
				t.Error("unknown settings are not refused")
			}
			for name, p := range s.Settings["properties"].(map[string]any) {
				if d, _ := p.(map[string]any)["description"].(string); d == "" {
					t.Errorf("setting %s has no description", name)
				}
				if !strings.Contains(s.Doc, "`"+name+"`") {
					t.Errorf("the doc does not name the setting %s", name)
				}
			}
		})
	}
}

func TestEverySettingOfTheSchemaIsReadByTheType(t *testing.T) {
	for _, s := range Catalogue().Specs() {
		t.Run(s.Name, func(t *testing.T) {
			_, err := Catalogue().Type(s.Name).Prepare(map[string]any{"no such setting": 1})
			if err == nil {
				t.Fatal("an unknown setting is accepted")
			}
			for name := range s.Settings["properties"].(map[string]any) {
				if name != "body" && name != "branches" && !strings.Contains(err.Error(), name) {
					t.Errorf("the settings struct does not have %s: %v", name, err)
				}
			}
		})
	}
}

func TestPortShapesAcceptAnySettings(t *testing.T) {
	odd := []map[string]any{
		nil,
		{"branches": 5, "cases": "x", "default": []any{}, "fields": []any{1}, "mode": 3, "format": true, "schema": 1},
		{"branches": []any{nil, 1.5, true}, "cases": []any{1, map[string]any{"to": nil}}, "fields": map[string]any{"a": 1}},
	}
	for _, s := range Catalogue().Specs() {
		for _, with := range odd {
			if s.PortsFor != nil {
				uniquePorts(t, s.Name, s.PortsFor(with))
			}
			if s.Check != nil {
				s.Check(with)
			}
			if s.ContextFor != nil {
				s.ContextFor(with)
			}
			if s.Writes != nil {
				s.Writes(with)
			}
		}
		uniquePorts(t, s.Name, s.Ports)
	}
}

func uniquePorts(t *testing.T, name string, p flow.Ports) {
	t.Helper()
	for _, side := range [][]flow.Port{p.In, p.Out} {
		seen := map[string]bool{}
		for _, port := range side {
			if seen[port.Name] || port.Name == "" || port.Name == "error" || port.Type == "" || port.Description == "" {
				t.Errorf("%s: port %+v is not usable", name, port)
			}
			seen[port.Name] = true
		}
	}
}

func TestAliasesResolveToTheirTypes(t *testing.T) {
	c := Catalogue()
	for alias, name := range map[string]string{"chat": "llmRequest", "defaultContextStart": "start"} {
		if s := c.Lookup(alias); s == nil || s.Name != name {
			t.Errorf("%s leads to %v, expected %s", alias, s, name)
		}
	}
}

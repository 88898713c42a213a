package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/app/config"
)

func TestE2BIsOfferedWithKey(t *testing.T) {
	local := []string{"python", "starlark"}
	all := []string{"python", "starlark", "e2b"}
	for _, tt := range []struct {
		text string
		vars map[string]string
		want []string
		key  string
	}{
		{"", nil, local, ""},
		{"", map[string]string{"E2B_API_KEY": ""}, local, ""},
		{"", map[string]string{"E2B_API_KEY": "k"}, all, "k"},
		{"executors: {e2b: {template: mine}}\n", map[string]string{"E2B_API_KEY": "k"}, all, "k"},
		{"executors: {e2b: {key: {env: OTHER}}}\n", map[string]string{"E2B_API_KEY": "k", "OTHER": "o"}, all, "o"},
		{"executors: {order: [e2b, starlark]}\n", map[string]string{"E2B_API_KEY": "k"}, []string{"e2b", "starlark"}, "k"},
		{"executors: {order: [starlark]}\n", map[string]string{"E2B_API_KEY": "k"}, []string{"starlark"}, "k"},
	} {
		p := newFixture(t)
		p.vars = tt.vars
		if tt.text != "" {
			p.project(tt.text)
		}
		e := p.load().Executors
		if !slices.Equal(e.Order, tt.want) || value(t, e.E2B.Key) != tt.key {
			t.Errorf("%q with %v offers %v, %s", tt.text, tt.vars, e.Order, e.E2B.Key)
		}
	}
}

func TestEnvironmentKeyGoesOnlyToE2B(t *testing.T) {
	p := newFixture(t)
	p.vars["E2B_API_KEY"], p.vars["E2B_API_URL"], p.vars["MINE"] = "k", "https://elsewhere.example.com", "m"
	p.project("executors: {e2b: {url: \"https://own.example.com\", key: {env: MINE}}}\n")
	if e := p.load().Executors.E2B; e.URL != "https://own.example.com" || value(t, e.Key) != "m" {
		t.Errorf("the cloud is %+v", e)
	}
	p = newFixture(t)
	p.vars["E2B_API_KEY"], p.vars["E2B_API_URL"], p.vars["E2B_SANDBOX_URL"] = "k", "http://127.0.0.1:1", "http://127.0.0.1:2"
	if e := p.load().Executors.E2B; e.URL != "http://127.0.0.1:1" || e.SandboxURL != "http://127.0.0.1:2" {
		t.Errorf("the environment gives %+v", e)
	}
}

func TestE2BKeyIsCheckedButNotPrinted(t *testing.T) {
	p := newFixture(t)
	p.write(filepath.Join(p.o.Dir, "keys", "cloud"), fakeSecret)
	p.project("executors: {e2b: {key: {file: keys/cloud}, domain: own.example.com}}\n")
	find := func() config.Finding {
		t.Helper()
		for _, f := range p.load().Findings() {
			if f.About == "executor e2b" {
				return f
			}
		}
		t.Fatal("nothing is said of the cloud")
		return config.Finding{}
	}
	if f := find(); f.State != "ok" || !strings.Contains(f.Detail, "api.own.example.com") || strings.Contains(f.Detail, fakeSecret) {
		t.Errorf("the finding is %+v", f)
	}
	if err := os.Remove(filepath.Join(p.o.Dir, "keys", "cloud")); err != nil {
		t.Fatal(err)
	}
	if f := find(); f.State != "bad" || f.Remedy == "" {
		t.Errorf("without the file the finding is %+v", f)
	}
	p = newFixture(t)
	p.project("executors: {order: [e2b]}\n")
	if f := find(); f.State != "bad" || !strings.Contains(f.Remedy, "E2B_API_KEY") {
		t.Errorf("without a key the finding is %+v", f)
	}
}

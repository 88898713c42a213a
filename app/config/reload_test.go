package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/app/config"
)

// changedSettings has a configuration for each field of Config, which differs from no configuration in that field.
func changedSettings() map[string]string {
	return map[string]string{
		"parallel": "parallel: 3", "drain": "drain: 3s", "sync": "sync: full", "storage": "storage: {compress: true}", "models": "models: [{name: x/y, window: 1000}]", "limits": "limits: {x: {requests: 5}}",
		"http": "http: {allowPrivate: [10.0.0.1]}", "flows": "flows: {folders: [/x]}", "tools": "tools: {http: [{name: a, description: A, url: \"http://example.org\", method: GET, parameters: {type: object}}]}",
		"executors": "executors: {e2b: {key: {env: X}}}", "trajectory": "trajectory: {files: /x}", "otel": "otel: {endpoint: \"http://example.org\"}", "server": "server: {audit: {entries: 5000}}",
		"runner": "runner: local", "temporal": "temporal: {namespace: x}",
		"providers": "providers: {x: {type: openai-compatible, baseURL: \"http://example.org\"}}", "secrets": "secrets: {X: {env: Y}}",
	}
}

func TestEverySettingIsLiveOrFixed(t *testing.T) {
	t.Parallel()
	load := func(text string) *config.Config {
		t.Helper()
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(config.Options{File: file, Env: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return cfg
	}
	settings := changedSettings()
	for field := range reflect.TypeFor[config.Config]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		text, ok := settings[name]
		if !ok {
			t.Errorf("%s: say in changedSettings how it is changed", name)
			continue
		}
		none, some := load("{}"), load(text)
		got, same := config.Compare(none, some), config.Compare(some, load(text))
		if n := len(got.Live) + len(got.Fixed); n != 1 || len(same.Live)+len(same.Fixed) != 0 || (len(got.Live) == 1) != (name == "secrets") || !strings.HasPrefix(fmt.Sprint(got.Live, got.Fixed), map[bool]string{true: "[" + name, false: "[] [" + name}[name == "secrets"]) {
			t.Errorf("%s: %+v; with itself: %+v", name, got, same)
		}
	}
	provider := func(more string) *config.Config {
		return load("providers: {x: {type: openai, baseURL: \"http://example.org\"" + more + "}}")
	}
	for field, c := range map[string]struct {
		more string
		live bool
	}{
		"key": {", key: {env: K}", true}, "api": {", api: chat", true}, "organization": {", organization: o", true}, "project": {", project: p", true}, "summary": {", summary: auto", true},
		"timeouts": {", timeouts: {first: 1s}", false}, "breaker": {", breaker: {failures: 3}", false},
	} {
		got := config.Compare(provider(""), provider(c.more))
		if c.live && fmt.Sprint(got) != "{[providers.x."+field+"] []}" || !c.live && fmt.Sprint(got) != "{[] [providers.x."+field+"]}" {
			t.Errorf("%s: %+v", field, got)
		}
	}
}

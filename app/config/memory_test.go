package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/app/config"
)

func TestMemoryIsOfferedIfTrueOrConfigured(t *testing.T) {
	settings := config.Memory{Offered: true, Namespace: "desk", MaxItems: 50, Approve: "once"}
	for name, c := range map[string]struct {
		user, project string
		want          config.Memory
	}{
		"nothing":          {"", "parallel: 2\n", config.Memory{}},
		"true":             {"", "tools: {memory: true}\n", config.Memory{Offered: true}},
		"no settings":      {"", "tools: {memory: {}}\n", config.Memory{Offered: true}},
		"settings":         {"", "tools: {memory: {namespace: desk, maxItems: 50, approve: once}}\n", settings},
		"false over it":    {"tools: {memory: {namespace: desk}}\n", "tools: {memory: false}\n", config.Memory{}},
		"true over it":     {"tools: {memory: {namespace: desk}}\n", "tools: {memory: true}\n", config.Memory{Offered: true}},
		"settings over it": {"tools: {memory: {namespace: mine, maxItems: 50}}\n", "tools: {memory: {namespace: desk, approve: once}}\n", settings},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFixture(t)
			if c.user != "" {
				p.user(c.user)
			}
			p.project(c.project)
			if got := p.load().Tools.Memory; got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestInvalidMemorySettingsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{namespace: \"\"}":     "tools.memory.namespace",
		"{namespace: \"a\\n\"}": "tools.memory.namespace",
		"{maxItems: 0}":         "is to be at least 1",
		"{approve: sometimes}":  "is none of always, once, never",
		"{user: ada}":           "there is no such key",
		"{offered: true}":       "there is no such key",
		"[fact]":                "is to be boolean or object",
	} {
		p := newFixture(t)
		p.project("tools:\n  memory: " + text + "\n")
		_, err := config.Load(p.o)
		if _, ok := errors.AsType[*config.Invalid](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/app/config"
)

const fakeSecret = "sk-CANARY-4711"

func TestInvalidSettingsAreReportedWithPosition(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string // in the one problem, or in each of several lines
	}{
		{"providers:\n  local: {baseAddress: x}\n", []string{
			":2:11: providers.local.baseAddress: there is no such key (known here: api, apiKeyEnv, baseURL",
		}},
		{"provider: {}\n", []string{":1:1: provider: there is no such key (known here: drain, executors, flows, http, limits, models"}},
		{"providers:\n  openai:\n    key: " + fakeSecret + "\n", []string{":3:5: providers.openai.key: a key is never written into the file (say where"}},
		{"secrets: {a: " + fakeSecret + "}\n", []string{":1:11: secrets.a: a key is never written into the file"}},
		{"providers: {openai: {apiKey: " + fakeSecret + "}}\n", []string{"providers.openai.apiKey: there is no such key (a key is never written"}},
		{"providers: {openai: {key: {env: " + fakeSecret + "}}}\n", []string{"key.env: is to be the name of an environment variable"}},
		{"providers: {openai: {apiKeyEnv: " + fakeSecret + "}}\n", []string{"apiKeyEnv: is to be the name of an environment variable"}},
		{"providers: {openai: {key: {env: A, file: b}}}\n", []string{"is to hold one of env and file"}},
		{"providers: {openai: {key: {}}}\n", []string{"is to hold one of env and file"}},
		{"providers: {openai: {key: {env: A}, apiKeyEnv: A}}\n", []string{"apiKeyEnv: is short for key"}},
		{"providers: {local: {api: chat}}\n", []string{"providers.local: needs baseURL"}},
		{"providers: {local: {baseURL: localhost}}\n", []string{"is to begin with https:// or http://"}},
		{"providers: {script: {baseURL: http://x}}\n", []string{"weir has a provider of this name"}},
		{"providers: {a/b: {baseURL: http://x}}\n", []string{":1:13: providers.a/b: a name of this form"}},
		{"providers: {x: {type: mistral}}\n", []string{"type: is none of openai, anthropic, gemini, openai-compatible"}},
		{"providers: {x: {type: gemini, api: chat}}\n", []string{"api: has no meaning for a provider of type gemini"}},
		{"models: [{window: 5}]\n", []string{":1:10: models.0: needs name"}},
		{"models:\n- name: a/b\n  window: many\n", []string{":3:3: models.0.window: is to be integer, not string"}},
		{"models:\n- {name: a/b}\n- {name: a/b}\n", []string{":3:3: models.1: this name is already in the list"}},
		{"models: [{name: a/b, price: {input: -1}}]\n", []string{"price.input: is to be at least 0"}},
		{"models: [{name: a/b, price: {long: {inputs: 1}}}]\n", []string{"long.inputs: there is no such key (known here: cached, input,"}},
		{"limits: {openai: {rpm: 1}}\n", []string{"rpm: there is no such key (known here: concurrent, requests, tokens)"}},
		{"limits: {openai: {requests: 0}}\n", []string{"is to be at least 1"}},
		{"tools: {mcp: {m: {tools: [a]}}}\n", []string{"needs command or url"}},
		{"tools: {mcp: {m: {command: a, url: http://x, tools: [a]}}}\n", []string{"needs command or url"}},
		{"tools: {mcp: {m: {command: a}}}\n", []string{"tools.mcp.m: needs tools"}},
		{"tools: {mcp: {m: {command: a, tools: []}}}\n", []string{"is to hold at least one"}},
		{"tools: {mcp: {m: {url: http://x, args: [a], tools: [a]}}}\n", []string{"args: has no meaning"}},
		{"tools: {http: [{name: a, url: http://x, timeout: soon}]}\n", []string{"timeout: is to be a duration"}},
		{"tools: {http: [{name: a, url: http://x}, {name: a, url: http://y}]}\n", []string{"tools.http.1: this name is already in the list"}},
		{"executors: {e2b: {key: " + fakeSecret + "}}\n", []string{"executors.e2b.key: a key is never written into the file (say where"}},
		{"executors: {e2b: {apiKey: " + fakeSecret + "}}\n", []string{"executors.e2b.apiKey: there is no such key (a key is never written"}},
		{"executors: {e2b: {url: http://x}}\n", []string{"executors.e2b: needs key, as it names a server of its own"}},
		{"executors: {order: [python, docker]}\n", []string{"order.1: is none of python, starlark, e2b"}},
		{"executors: {order: [python, python]}\n", []string{":1:29: executors.order.1: this name is already in the list"}},
		{"executors: {order: []}\n", []string{"executors.order: is to hold at least one"}},
		{"server: {audit: {keep: 0s}}\n", []string{"server.audit.keep: is to be a duration of at least a minute (such as 90m or 24h)"}},
		{"server: {audit: {keep: 30d}}\n", []string{"server.audit.keep: is to be a duration of at least a minute"}},
		{"server: {audit: {keep: 0}}\n", []string{"server.audit.keep: is to be string"}},
		{"server: {audit: {entries: 0}}\n", []string{"server.audit.entries: is to be at least 1000"}},
		{"server: {audit: {days: 3}}\n", []string{"server.audit.days: there is no such key (known here: entries, keep)"}},
		{"server: {backup: {folder: b, every: 0h}}\n", []string{"server.backup.every: is to be a duration of at least a minute"}},
		{"server: {backup: {folder: b, every: -1h}}\n", []string{"server.backup.every: is to be a duration of at least a minute"}},
		{"server: {backup: {folder: b, every: 1ms}}\n", []string{"server.backup.every: is to be a duration of at least a minute"}},
		{"server: {backup: {folder: b, keep: 0}}\n", []string{"server.backup.keep: is to be at least 1"}},
		{"server: {backup: {every: 24h}}\n", []string{"server.backup: needs folder"}},
		{"server: {retention: {keep: 24h}}\n", []string{"server.retention: there is no such key"}},
		{"- a\n", []string{"is to be object, not array"}},
		{"a: 1\n---\nb: 2\n", []string{"a second YAML document"}},
		{"a: [1\n", []string{"not YAML"}},
		{"parallel: &x 1\nhttp: {allowPrivate: [*x]}\n", []string{":2:23: an alias"}},
		{"paralel: 1\nlimit: {}\n", []string{":1:1: paralel: ", ":2:1: limit: "}},
		{strings.Repeat("# long\n", 200_000), []string{"there may be at most"}},
	} {
		p := newFixture(t)
		path := p.project(tt.text)
		_, err := config.Load(p.o)
		invalid, ok := errors.AsType[*config.Invalid](err)
		if !ok || len(invalid.Problems) != len(tt.want) {
			t.Errorf("%.80q: the error is %v, want %d problems", tt.text, err, len(tt.want))
			continue
		}
		for i, want := range tt.want {
			if got := invalid.Problems[i].String(); !strings.HasPrefix(got, path) || !strings.Contains(got, want) {
				t.Errorf("%.80q: the problem is\n  %s\nwant\n  %s", tt.text, got, want)
			}
		}
		if strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%.80q: the error shows the key: %v", tt.text, err)
		}
	}
}

func TestEmptyFileIsValid(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "{}\n"} {
		p := newFixture(t)
		p.project(text)
		if c := p.load(); len(c.Files) != 1 {
			t.Errorf("%q: files are %v", text, c.Files)
		}
	}
}

func FuzzAFileIsReadOrRefused(f *testing.F) {
	f.Add("providers: {openai: {key: {env: A}}}")
	f.Add("models: [{name: a/b, price: {long: {input: 1}}}]")
	f.Add("tools: {mcp: {m: {command: a, tools: [b], env: {A: b, C: {file: d}}}}}")
	f.Add("? [a]\n: b")
	f.Add("1: {2: 3}")
	f.Fuzz(func(t *testing.T, text string) {
		p := newFixture(t)
		p.project(text)
		c, err := config.Load(p.o)
		if err != nil {
			if _, ok := errors.AsType[*config.Invalid](err); !ok {
				t.Errorf("the error is not one of the file: %v", err)
			}
			return
		}
		for name, provider := range c.Providers {
			if provider.Type == "" {
				t.Errorf("provider %s has no type", name)
			}
		}
		c.Findings()
	})
}

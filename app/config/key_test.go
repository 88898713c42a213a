package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/app/config"
)

// Keys are looked for in all that a configuration can be turned into.
func TestKeysAreNeverPrinted(t *testing.T) {
	p := newFixture(t)
	p.vars["OPENAI_API_KEY"], p.vars["TOKEN"] = fakeSecret, fakeSecret
	p.write(filepath.Join(p.o.Dir, "key"), fakeSecret)
	p.project(`
providers: {work: {type: gemini, key: {file: key}}, at: {baseURL: "https://user:` + fakeSecret + `@example.com/v1"}}
tools:
  http: [{name: h, url: "https://` + fakeSecret + `@example.com/x?key=` + fakeSecret + `"}]
  mcp:
    m: {command: c, tools: [t], env: {A: {env: TOKEN}, B: ` + fakeSecret + `}}
    n: {url: "https://example.com/?token=` + fakeSecret + `", tools: [t], headers: {C: ` + fakeSecret + `}}
secrets: {s: {env: TOKEN}}
`)
	c := p.load()
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("x", "key", c.Providers["work"].Key, "provider", c.Providers["openai"], "text", c.Tools.MCP["m"].Env["B"])
	}
	texts := map[string]string{"log": log.String(), "findings": fmt.Sprint(c.Findings())}
	c.Providers["at"] = c.Providers["work"] // an address is shown as it is written
	c.Tools.HTTP = nil                      // the same
	n := c.Tools.MCP["n"]
	n.URL = ""
	c.Tools.MCP["n"] = n
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for name, v := range map[string]any{"config": *c, "key": c.Providers["work"].Key, "texts": c.Tools.MCP} {
			texts[name+" "+verb] = fmt.Sprintf(verb, v)
		}
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	texts["json"] = string(b)
	for how, text := range texts {
		if strings.Contains(text, fakeSecret) || strings.Contains(text, fmt.Sprintf("%x", fakeSecret)) {
			t.Errorf("%s shows a key: %s", how, text)
		}
		if len(text) < 5 {
			t.Errorf("%s says nothing: %q", how, text)
		}
	}
	if !strings.Contains(texts["json"], `"key in OPENAI_API_KEY"`) {
		t.Errorf("json does not say where the key is: %s", texts["json"])
	}
}

func TestMissingKeyNamesItsSource(t *testing.T) {
	p := newFixture(t)
	p.vars["EMPTY"] = " "
	p.write(filepath.Join(p.o.Dir, "empty"), "\n")
	p.write(filepath.Join(p.o.Dir, "two"), fakeSecret+"\n"+fakeSecret+"\n")
	p.project(`
secrets:
  unset: {env: NOWHERE}
  blank: {env: EMPTY}
  gone: {file: gone}
  empty: {file: empty}
  two: {file: two}
`)
	c := p.load()
	for name, want := range map[string]string{
		"unset": "NOWHERE is not set", "blank": "EMPTY is not set", "gone": "gone", "empty": "is empty", "two": "more than one line",
	} {
		v, err := c.Secrets[name].Value()
		if v != "" || !errors.Is(err, config.ErrNoKey) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), fakeSecret) {
			t.Errorf("%s: %q, %v", name, v, err)
		}
		if v, ok := c.Secret(name); ok || v != "" {
			t.Errorf("%s: the secret is %q", name, v)
		}
	}
	if v, err := (config.Key{}).Value(); v != "" || err != nil {
		t.Errorf("a key that is not said to be anywhere: %q, %v", v, err)
	}
}

func TestKeyIsReadLazily(t *testing.T) {
	p := newFixture(t)
	p.project("secrets: {a: {env: LATER}}")
	c := p.load()
	p.vars["LATER"] = "now"
	if v, ok := c.Secret("a"); !ok || v != "now" {
		t.Errorf("the secret is %q, %t", v, ok)
	}
}

func TestFindingsReportWhatWillFail(t *testing.T) {
	p := newFixture(t)
	p.vars["SET"] = "x"
	p.project(`
providers:
  openai: {}
  local: {baseURL: "http://localhost:1/v1"}
  gateway: {baseURL: "https://g/v1", key: {env: UNSET}}
  file: {type: gemini, key: {file: nowhere}}
models: [{name: local/x, window: 100, price: {input: 1, output: 2}}]
limits: {locl: {requests: 5, tokens: 6}, local: {concurrent: 1}}
tools:
  http: [{name: h, url: "https://h/x"}]
  mcp: {m: {command: c, tools: [a, b], env: {A: {env: UNSET}}}}
secrets: {good: {env: SET}, bad: {env: UNSET}}
`)
	got := map[string]config.Finding{}
	for _, f := range p.load().Findings() {
		got[f.About] = f
	}
	for about, want := range map[string][2]string{
		"provider openai":  {"bad", "api.openai.com, no key: the environment variable OPENAI_API_KEY is not set"},
		"provider local":   {"ok", "http://localhost:1/v1, without a key"},
		"provider gateway": {"bad", "https://g/v1, no key: the environment variable UNSET is not set"},
		"provider file":    {"bad", "generativelanguage.googleapis.com, as gemini, no key: "},
		"model local/x":    {"ok", "100 tokens of window, $1 in and $2 out a million"},
		"limit locl":       {"note", "5 requests a minute, 6 tokens a minute"},
		"limit local":      {"ok", "1 at the same time"},
		"tool h":           {"ok", "GET https://h/x"},
		"mcp m":            {"bad", "starts c, may call a, b; A: no key"},
		"secret good":      {"ok", "in SET"},
		"secret bad":       {"bad", "UNSET is not set"},
	} {
		if f := got[about]; f.State != want[0] || !strings.Contains(f.Detail, want[1]) {
			t.Errorf("%s is %+v, want %v", about, f, want)
		}
	}
	if list := newFixture(t).load().Findings(); len(list) != 1 || list[0].State != "note" || !strings.Contains(list[0].Remedy, "ANTHROPIC_API_KEY") {
		t.Errorf("without anything: %+v", list)
	}
}

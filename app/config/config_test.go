package config_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/llm"
)

// fixture is where a test's configuration is.
type fixture struct {
	t    *testing.T
	o    config.Options
	vars map[string]string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	p := &fixture{t: t, vars: map[string]string{}}
	p.o = config.Options{
		Dir: filepath.Join(t.TempDir(), ".weir"), UserDir: t.TempDir(), Reserved: []string{"script"},
		Env: func(name string) (string, bool) { v, ok := p.vars[name]; return v, ok },
	}
	return p
}

func (p *fixture) write(path, text string) string {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p *fixture) project(text string) string {
	p.t.Helper()
	return p.write(filepath.Join(p.o.Dir, "config.yaml"), text)
}

func (p *fixture) user(text string) string {
	p.t.Helper()
	return p.write(filepath.Join(p.o.UserDir, "weir", "config.yaml"), text)
}

func (p *fixture) load() *config.Config {
	p.t.Helper()
	c, err := config.Load(p.o)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func value(t *testing.T, k config.Key) string {
	t.Helper()
	v, err := k.Value()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEverySettingIsRead(t *testing.T) {
	p := newFixture(t)
	p.vars["GATEWAY_KEY"], p.vars["CRM_TOKEN"] = "k1", "k2"
	p.write(filepath.Join(p.o.Dir, "keys", "work"), "k3\n")
	path := p.project(`
parallel: 8
providers:
  gateway: {baseURL: "https://llm.example.com/v1", key: {env: GATEWAY_KEY}, api: chat}
  work: {type: anthropic, key: {file: keys/work}}
  old: {baseURL: "http://localhost:1/v1", apiKeyEnv: GATEWAY_KEY}
models:
  - {name: gateway/llama-4.1, window: 32000, maxOutput: 4000, encoding: cl100k_base, price: {input: 0.5, output: 1, longOver: 9000, long: {input: 1, output: 2}}}
limits:
  gateway: {requests: 60, concurrent: 4}
  gateway/llama-4.1: {tokens: 100000}
http: {allowPrivate: ["10.1.2.0/24"]}
tools:
  http:
    - {name: weather, description: The weather., url: "https://example.com/{{ args.city }}", parameters: {properties: {city: {type: string}}, required: [city]},
       headers: {Authorization: "Bearer {{ secrets.crm }}"}, body: {a: [1, "x"]}, method: POST, timeout: 1m30s, approve: once, maxOutput: 100}
  mcp:
    files: {command: mcp-files, args: [--root, .], env: {TOKEN: {env: CRM_TOKEN}, MODE: read}, tools: [list, read], timeout: 5s}
    remote: {url: "https://mcp.example.com", headers: {Authorization: {file: keys/work}}, tools: [find], approve: always}
secrets:
  crm: {env: CRM_TOKEN}
`)
	c := p.load()
	gateway := c.Providers["gateway"]
	if gateway.Type != config.Compatible || gateway.API != "chat" || value(t, gateway.Key) != "k1" {
		t.Errorf("the gateway is %+v", gateway)
	}
	if work := c.Providers["work"]; work.Type != config.Anthropic || value(t, work.Key) != "k3" {
		t.Errorf("the provider with its key in a file is %+v", work)
	}
	if old := c.Providers["old"]; value(t, old.Key) != "k1" || old.APIKeyEnv != "" {
		t.Errorf("the short form gives %+v", old)
	}
	want := []llm.Model{{
		Name: "gateway/llama-4.1", Window: 32000, MaxOutput: 4000, Encoding: "cl100k_base",
		Price: llm.Price{Input: 0.5, Output: 1, LongOver: 9000, Long: &llm.Price{Input: 1, Output: 2}},
	}}
	if !reflect.DeepEqual(c.Models, want) {
		t.Errorf("models are %+v", c.Models)
	}
	if !reflect.DeepEqual(c.Limits, map[string]llm.Limit{"gateway": {Requests: 60, Concurrent: 4}, "gateway/llama-4.1": {Tokens: 100000}}) {
		t.Errorf("limits are %+v", c.Limits)
	}
	tool := c.Tools.HTTP[0]
	if tool.Timeout != 90*time.Second || tool.Method != "POST" || !reflect.DeepEqual(tool.Body, map[string]any{"a": []any{1, "x"}}) || tool.Parameters["required"] == nil {
		t.Errorf("the tool is %+v", tool)
	}
	files, remote := c.Tools.MCP["files"], c.Tools.MCP["remote"]
	token, _ := files.Env["TOKEN"].Value()
	mode, _ := files.Env["MODE"].Value()
	header, _ := remote.Headers["Authorization"].Value()
	if token != "k2" || mode != "read" || header != "k3" || files.Timeout != 5*time.Second || !slices.Equal(files.Args, []string{"--root", "."}) {
		t.Errorf("the servers are %+v and %+v with %q %q %q", files, remote, token, mode, header)
	}
	if v, ok := c.Secret("crm"); !ok || v != "k2" {
		t.Errorf("the secret is %q, %t", v, ok)
	}
	if c.Parallel != 8 || !slices.Equal(c.HTTP.AllowPrivate, []string{"10.1.2.0/24"}) || !slices.Equal(c.Files, []string{path}) {
		t.Errorf("parallel %d, allowPrivate %v, files %v", c.Parallel, c.HTTP.AllowPrivate, c.Files)
	}
}

func TestLaterFilesOverrideEarlierOnes(t *testing.T) {
	p := newFixture(t)
	user := p.user(`
parallel: 4
providers: {a: {baseURL: "http://a/v1", key: {env: A}}, b: {baseURL: "http://b/v1"}}
models: [{name: a/x, window: 5}, {name: a/y, window: 6}]
tools: {http: [{name: one, url: "http://one"}], mcp: {m: {command: m, tools: [t]}}}
http: {allowPrivate: [here]}
`)
	project := p.project(`
providers: {a: {baseURL: "http://elsewhere/v1"}}
models: [{name: a/x, window: 7}]
tools: {http: [{name: two, url: "http://two"}]}
`)
	c := p.load()
	if a := c.Providers["a"]; a.BaseURL != "http://elsewhere/v1" || a.Key.Set() {
		t.Errorf("a is %+v, want the project's alone: a key of one file must not go to the address of another", a)
	}
	if c.Providers["b"].BaseURL == "" || c.Parallel != 4 || c.Tools.MCP["m"].Command != "m" || len(c.HTTP.AllowPrivate) != 1 {
		t.Errorf("what only the user's says is gone: %+v", c)
	}
	if !reflect.DeepEqual(c.Models, []llm.Model{{Name: "a/y", Window: 6}, {Name: "a/x", Window: 7}}) {
		t.Errorf("models are %+v", c.Models)
	}
	if names := []string{c.Tools.HTTP[0].Name, c.Tools.HTTP[1].Name}; !slices.Equal(names, []string{"one", "two"}) {
		t.Errorf("tools are %v", names)
	}
	if !slices.Equal(c.Files, []string{user, project}) {
		t.Errorf("files are %v", c.Files)
	}
	p.vars["WEIR_PARALLEL"] = "2"
	if got := p.load().Parallel; got != 2 {
		t.Errorf("parallel is %d, want the environment's", got)
	}
	p.vars["WEIR_PARALLEL"] = "many"
	if _, err := config.Load(p.o); err == nil || !strings.Contains(err.Error(), "environment") {
		t.Errorf("the error is %v", err)
	}
}

func TestNamedFileMustExistAndIsUsedAlone(t *testing.T) {
	p := newFixture(t)
	p.user("parallel: 3")
	p.project("parallel: 4")
	p.vars["WEIR_CONFIG"] = p.write(filepath.Join(t.TempDir(), "ci.yaml"), "providers: {a: {baseURL: http://a}}")
	if c := p.load(); c.Parallel != 0 || c.Providers["a"].BaseURL == "" || len(c.Files) != 1 {
		t.Errorf("WEIR_CONFIG gives %+v", c)
	}
	p.o.File = p.write(filepath.Join(t.TempDir(), "flag.yaml"), "parallel: 5")
	if c := p.load(); c.Parallel != 5 || len(c.Providers) != 0 {
		t.Errorf("the flag's file gives %+v", c)
	}
	p.o.File += ".gone"
	if _, err := config.Load(p.o); err == nil || !strings.Contains(err.Error(), "flag.yaml.gone") {
		t.Errorf("the error is %v", err)
	}
}

func TestEnvironmentGivesProvidersWithoutFiles(t *testing.T) {
	for _, tt := range []struct {
		vars map[string]string
		want map[string]string // key by provider
	}{
		{nil, map[string]string{}},
		{map[string]string{"OPENAI_API_KEY": "o"}, map[string]string{"openai": "o"}},
		{map[string]string{"ANTHROPIC_API_KEY": "a", "GOOGLE_API_KEY": "g"}, map[string]string{"anthropic": "a", "gemini": "g"}},
		{map[string]string{"GEMINI_API_KEY": "first", "GOOGLE_API_KEY": "second"}, map[string]string{"gemini": "first"}},
		{map[string]string{"GEMINI_API_KEY": "", "GOOGLE_API_KEY": "second"}, map[string]string{"gemini": "second"}},
	} {
		p := newFixture(t)
		maps.Copy(p.vars, tt.vars)
		got := map[string]string{}
		for name, provider := range p.load().Providers {
			got[name] = value(t, provider.Key)
			if provider.Type != name {
				t.Errorf("%v: %s is of type %s", tt.vars, name, provider.Type)
			}
		}
		if !maps.Equal(got, tt.want) {
			t.Errorf("%v gives %v, want %v", tt.vars, got, tt.want)
		}
	}
	p := newFixture(t)
	p.vars["OPENAI_BASE_URL"] = "http://localhost:9/v1"
	if o := p.load().Providers["openai"]; o.BaseURL != "http://localhost:9/v1" {
		t.Errorf("an address alone gives %+v", o)
	}
	p.vars["WEIR_SECRET_crm"] = "s"
	if v, ok := p.load().Secret("crm"); !ok || v != "s" {
		t.Errorf("the secret is %q, %t", v, ok)
	}
}

func TestEnvironmentKeyGoesOnlyToItsVendor(t *testing.T) {
	p := newFixture(t)
	p.vars["ANTHROPIC_API_KEY"], p.vars["OPENAI_API_KEY"] = "a", "o"
	p.project(`
providers:
  openai: {api: chat}
  second: {type: anthropic}
  proxy: {type: anthropic, baseURL: "http://proxy"}
  local: {baseURL: "http://local/v1"}
`)
	c := p.load()
	if value(t, c.Providers["openai"].Key) != "o" || value(t, c.Providers["second"].Key) != "a" {
		t.Errorf("the vendors' own have no key: %v", c.Providers)
	}
	if c.Providers["proxy"].Key.Set() || c.Providers["local"].Key.Set() {
		t.Errorf("another host was given the vendor's key: %v", c.Providers)
	}
	if _, ok := c.Providers["anthropic"]; !ok {
		t.Error("the vendor itself is gone because of another provider of its type")
	}
}

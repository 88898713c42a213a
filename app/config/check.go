package config

import (
	"maps"
	"slices"
	"strconv"
)

// check finds what the schema cannot say.
func (d *document) check(reserved []string) {
	for name, v := range mapAt(d.values, "providers") {
		p, _ := v.(map[string]any)
		d.checkProvider(name, p, reserved)
	}
	for name, v := range mapAt(d.values, "tools", "mcp") {
		s, _ := v.(map[string]any)
		d.checkMCP(name, s)
	}
	d.checkExecutors()
	d.checkNames("models")
	d.checkNames("tools", "http")
	d.checkNames("tools", "flows")
	sortProblems(d.problems)
}

func (d *document) checkProvider(name string, p map[string]any, reserved []string) {
	path := []string{"providers", name}
	kind := typeOf(name, p)
	if slices.Contains(reserved, name) {
		d.report(path, "weir has a provider of this name; choose another", "")
	}
	if kind == Compatible && p["baseURL"] == nil {
		d.report(path, "needs baseURL", "or type: openai, anthropic or gemini for a vendor's own")
	}
	if p["key"] != nil && p["apiKeyEnv"] != nil {
		d.report(append(path, "apiKeyEnv"), "is short for key, which is there as well", "keep one of them")
	}
	if kind == OpenAI || kind == Compatible {
		return
	}
	for _, key := range []string{"api", "organization", "project", "summary"} {
		if p[key] != nil {
			d.report([]string{"providers", name, key}, "has no meaning for a provider of type "+kind, "")
		}
	}
}

// typeOf returns the type of a provider of a file.
func typeOf(name string, p map[string]any) string {
	kind, _ := p["type"].(string)
	return defaultType(name, kind)
}

func defaultType(name, kind string) string {
	switch {
	case kind != "":
		return kind
	case name == OpenAI || name == Anthropic || name == Gemini:
		return name
	default:
		return Compatible
	}
}

func (d *document) checkMCP(name string, s map[string]any) {
	path := []string{"tools", "mcp", name}
	command, url := s["command"] != nil, s["url"] != nil
	if command == url {
		d.report(path, "needs command or url, and not both", "")
		return
	}
	foreign := map[bool][]string{true: {"headers"}, false: {"args", "env"}}[command]
	for _, key := range foreign {
		if s[key] != nil {
			d.report(append(slices.Clone(path), key), "has no meaning for a server of this kind", "command goes with args and env, url with headers")
		}
	}
}

// checkNames reports names that a list has twice.
func (d *document) checkNames(path ...string) {
	parent, last := mapAt(d.values, path[:len(path)-1]...), path[len(path)-1]
	items, _ := parent[last].([]any)
	seen := make(map[any]bool, len(items))
	for i, item := range items {
		if name := nameOf(item); seen[name] {
			d.report(append(slices.Clone(path), strconv.Itoa(i)), "this name is already in the list", "")
		}
		seen[nameOf(item)] = true
	}
}

// checkUnique reports texts that a list has twice.
func (d *document) checkUnique(path ...string) {
	items, _ := mapAt(d.values, path[:len(path)-1]...)[path[len(path)-1]].([]any)
	for i, item := range items {
		if slices.Contains(items[:i], item) {
			d.report(append(slices.Clone(path), strconv.Itoa(i)), "this name is already in the list", "")
		}
	}
}

// vendors are the providers that the environment alone can give: by the
// variables that hold the key, the first one strongest, and the address.
type vendor struct {
	name string
	keys []string
	base string
}

func vendors() []vendor {
	return []vendor{
		{OpenAI, []string{"OPENAI_API_KEY"}, "OPENAI_BASE_URL"},
		{Anthropic, []string{"ANTHROPIC_API_KEY"}, "ANTHROPIC_BASE_URL"},
		{Gemini, []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "GOOGLE_GEMINI_BASE_URL"},
	}
}

// applyDefaults adds what the environment gives and what follows from the rest.
func (c *Config) applyDefaults() {
	providers := make(map[string]Provider, len(c.Providers)+3)
	for name, p := range c.Providers {
		p.Type = defaultType(name, p.Type)
		if p.APIKeyEnv != "" {
			p.Key, p.APIKeyEnv = Key{Env: p.APIKeyEnv}, ""
		}
		providers[name] = p
	}
	for _, v := range vendors() {
		c.addProviderFromEnvironment(v, providers)
	}
	for name, p := range providers {
		p.Key.getenv = c.env
		providers[name] = p
	}
	c.Providers = providers
	c.applyExecutorDefaults()
	c.Server.OIDC.ClientSecret.getenv = c.env
	c.setStorageEnv()
	for name, k := range c.Secrets {
		k.getenv = c.env
		c.Secrets[name] = k
	}
	for _, s := range c.Tools.MCP {
		for _, texts := range []map[string]Text{s.Env, s.Headers} {
			for name, t := range texts {
				t.getenv = c.env
				texts[name] = t
			}
		}
	}
}

// addProviderFromEnvironment fills in the vendor's key where a provider of its type calls
// the vendor, or has its name; and adds one of its name if there is none and
// the environment has its key or address.
func (c *Config) addProviderFromEnvironment(v vendor, providers map[string]Provider) {
	key, found := v.keys[0], false
	for _, k := range slices.Backward(v.keys) {
		if value, _ := c.env(k); value != "" {
			key, found = k, true
		}
	}
	base, _ := c.env(v.base)
	for _, name := range slices.Collect(maps.Keys(providers)) {
		p := providers[name]
		if name == v.name && p.Type == v.name && p.BaseURL == "" {
			p.BaseURL = base
		}
		if !p.Key.Set() && p.Type == v.name && (name == v.name || p.BaseURL == "") {
			p.Key = Key{Env: key, assumed: true}
		}
		providers[name] = p
	}
	if _, configured := providers[v.name]; !configured && (found || base != "") {
		providers[v.name] = Provider{Type: v.name, BaseURL: base, Key: Key{Env: key, assumed: true}}
	}
}

package config

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Finding is one thing that is configured.
type Finding struct {
	About string
	// State is "ok", "note" (worth knowing) or "bad" (something will fail).
	State  string
	Detail string
	Remedy string
}

// Findings lists what is configured and what about it will fail. Keys are
// looked for and never shown; no server is called and no program started.
func (c *Config) Findings() []Finding {
	var list []Finding
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		list = append(list, providerFinding(name, c.Providers[name]))
	}
	if len(c.Providers) == 0 {
		list = append(list, Finding{
			"providers", "note", "no model can be called, only scripts and recordings",
			"set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or name a server in .weir/config.yaml: " +
				`providers: {local: {baseURL: "http://localhost:11434/v1"}}`,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Limits)) {
		l := c.Limits[name]
		parts := countOf(l.Requests, "requests a minute")
		parts = append(parts, countOf(l.Tokens, "tokens a minute")...)
		parts = append(parts, countOf(l.Concurrent, "at the same time")...)
		f := Finding{About: "limit " + name, State: "ok", Detail: strings.Join(parts, ", ")}
		if provider, _, _ := strings.Cut(name, "/"); c.Providers[provider].Type == "" {
			f.State, f.Remedy = "note", "no provider is named "+provider
		}
		list = append(list, f)
	}
	for _, m := range c.Models {
		parts := append(countOf(m.Window, "tokens of window"), countOf(m.MaxOutput, "of output")...)
		if m.Price.Known() {
			parts = append(parts, fmt.Sprintf("$%v in and $%v out a million", m.Price.Input, m.Price.Output))
		}
		list = append(list, Finding{About: "model " + m.Name, State: "ok", Detail: strings.Join(parts, ", ")})
	}
	return slices.Concat(list, c.executorFindings(), c.toolFindings(), c.secretFindings())
}

// RedactedURL returns an address without what may be a secret in it.
func RedactedURL(address string) string {
	address, _, _ = strings.Cut(address, "?")
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	host, path, _ := strings.Cut(rest, "/")
	if _, after, ok := strings.Cut(host, "@"); ok {
		rest = after + "/" + path
	}
	return scheme + "://" + rest
}

func countOf(n int, what string) []string {
	if n == 0 {
		return nil
	}
	return []string{strconv.Itoa(n) + " " + what}
}

func providerFinding(name string, p Provider) Finding {
	f := Finding{About: "provider " + name, State: "ok", Detail: RedactedURL(p.BaseURL)}
	if f.Detail == "" {
		f.Detail = map[string]string{
			OpenAI: "api.openai.com", Anthropic: "api.anthropic.com", Gemini: "generativelanguage.googleapis.com",
		}[p.Type]
	}
	if p.Type != name && p.Type != Compatible {
		f.Detail += ", as " + p.Type
	}
	_, err := p.Key.Value()
	switch {
	case err == nil:
		f.Detail += ", " + p.Key.String()
	case p.BaseURL == "" || !p.Key.Optional():
		f.State, f.Remedy = "bad", "set "+p.Key.Env
		if p.Key.File != "" {
			f.Remedy = "write the key into " + p.Key.File
		}
		f.Detail += ", " + err.Error()
	default: // a server of one's own may want none
		f.Detail += ", without a key: " + p.Key.Env + " is not set"
	}
	return f
}

func (c *Config) toolFindings() []Finding {
	var list []Finding
	for _, t := range c.Tools.HTTP {
		method := t.Method
		if method == "" {
			method = "GET"
		}
		list = append(list, Finding{About: "tool " + t.Name, State: "ok", Detail: method + " " + RedactedURL(t.URL)})
	}
	for _, t := range c.Tools.Flows {
		f := Finding{About: "tool " + t.Name, State: "ok", Detail: "runs " + t.File}
		if _, err := os.Stat(t.File); err != nil {
			f.State, f.Detail, f.Remedy = "bad", err.Error(), "correct file: it begins at the folder of the configuration"
		}
		list = append(list, f)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tools.MCP)) {
		s := c.Tools.MCP[name]
		f := Finding{About: "mcp " + name, State: "ok", Detail: RedactedURL(s.URL)}
		if s.Command != "" {
			f.Detail = "starts " + s.Command
		}
		f.Detail += ", may call " + strings.Join(s.Tools, ", ")
		for _, texts := range []map[string]Text{s.Env, s.Headers} {
			for _, key := range slices.Sorted(maps.Keys(texts)) {
				if _, err := texts[key].Value(); err != nil {
					f.State, f.Detail = "bad", f.Detail+"; "+key+": "+err.Error()
				}
			}
		}
		list = append(list, f)
	}
	return list
}

func (c *Config) secretFindings() []Finding {
	var list []Finding
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		k := c.Secrets[name]
		f := Finding{About: "secret " + name, State: "ok", Detail: strings.Replace(k.String(), "key in", "in", 1)}
		if _, err := k.Value(); err != nil {
			f.State, f.Detail = "bad", err.Error()
		}
		list = append(list, f)
	}
	return list
}

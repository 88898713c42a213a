package main

import (
	"maps"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/llm/openai"
)

// Names of providers that are there without configuration.
const (
	openaiProvider = "openai"
	scriptProvider = "script"
)

// providers are those of the configuration, OpenAI where the environment has
// its key or address, and the one that reads scripts.
func (p *program) providers(cfg *config) map[string]weir.Provider {
	out := map[string]weir.Provider{scriptProvider: newScripts()}
	for name, c := range p.servers(cfg) {
		key, _ := p.env(c.APIKeyEnv)
		out[name] = openai.New(openai.Options{
			APIKey: key, BaseURL: c.BaseURL, API: c.API,
			Organization: c.Organization, Project: c.Project, Summary: c.Summary,
		})
	}
	return out
}

// servers are the providers that call a server, as configured or found in the
// environment.
func (p *program) servers(cfg *config) map[string]providerConfig {
	out := make(map[string]providerConfig, len(cfg.Providers)+1)
	maps.Copy(out, cfg.Providers)
	c, configured := out[openaiProvider]
	if c.APIKeyEnv == "" {
		c.APIKeyEnv = "OPENAI_API_KEY"
	}
	if c.BaseURL == "" {
		c.BaseURL, _ = p.env("OPENAI_BASE_URL")
	}
	if key, _ := p.env(c.APIKeyEnv); configured || key != "" || c.BaseURL != "" {
		out[openaiProvider] = c
	}
	return out
}

package app

import (
	"context"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/anthropic"
	"github.com/weir-run/weir/llm/gemini"
	"github.com/weir-run/weir/llm/openai"
	"github.com/weir-run/weir/llm/recorded"
)

// providers returns the configured providers and the one that reads scripts.
func providers(cfg *config.Config) map[string]weir.Provider {
	out := map[string]weir.Provider{ScriptProvider: recorded.NewScriptFiles()}
	for name, c := range cfg.Providers {
		out[name] = providerOf(name, c)
	}
	return out
}

// timeouts returns the configured timeouts, by provider.
func timeouts(cfg *config.Config) map[string]llm.Timeouts {
	out := make(map[string]llm.Timeouts, len(cfg.Providers))
	for name, p := range cfg.Providers {
		out[name] = llm.Timeouts(p.Timeouts)
	}
	return out
}

// breakers returns the configured settings of circuit breakers, by provider.
func breakers(cfg *config.Config) map[string]llm.Breaker {
	out := make(map[string]llm.Breaker, len(cfg.Providers))
	for name, p := range cfg.Providers {
		out[name] = llm.Breaker(p.Breaker)
	}
	return out
}

// models returns the catalogue of models. A provider with a name of its own has the models
// of the vendor of its type.
func models(cfg *config.Config) *llm.Catalogue {
	c := llm.NewCatalogue(cfg.Models...)
	c.Vendors = make(map[string]string, len(cfg.Providers))
	for name, p := range cfg.Providers {
		if p.Type != config.Compatible {
			c.Vendors[name] = p.Type
		}
	}
	return c
}

// modelServer is a provider that can be asked whether it answers.
type modelServer interface {
	weir.Provider
	// Ping fails if the server does not answer or does not accept the key. It costs nothing.
	Ping(ctx context.Context) error
}

// providerOf returns a provider. If its key is missing, calls to it fail and name the key,
// so that the models of other providers can still be used.
func providerOf(name string, c config.Provider) modelServer {
	key, err := c.Key.Value()
	if err != nil && (c.BaseURL == "" || !c.Key.Optional()) { // a server of one's own may need no key
		return providerWithoutKey{name, err}
	}
	switch c.Type {
	case config.Anthropic:
		return anthropic.New(anthropic.Options{APIKey: key, BaseURL: c.BaseURL})
	case config.Gemini:
		return gemini.New(gemini.Options{APIKey: key, BaseURL: c.BaseURL})
	default: // openai and openai-compatible
		return openai.New(openai.Options{
			APIKey: key, BaseURL: c.BaseURL, API: c.API,
			Organization: c.Organization, Project: c.Project, Summary: c.Summary,
		})
	}
}

// providerWithoutKey is a provider whose key is missing.
type providerWithoutKey struct {
	name string
	err  error
}

// Ping fails and names the missing key.
func (k providerWithoutKey) Ping(context.Context) error { return k.err }

// Generate fails and names the missing key.
func (k providerWithoutKey) Generate(context.Context, *llm.Request, func(llm.Chunk)) (*llm.Response, error) {
	return nil, &llm.Error{
		Code: engine.CodeModelAuth, Message: "provider " + k.name + ": " + k.err.Error(), Err: k.err,
	}
}

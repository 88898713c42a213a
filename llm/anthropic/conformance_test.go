package anthropic_test

import (
	"testing"

	"github.com/weir-run/weir/llm/anthropic"
	"github.com/weir-run/weir/llm/llmtest"
)

// lacks lists what Anthropic's API does not have.
func lacks() []llmtest.Ability {
	return []llmtest.Ability{llmtest.Idempotency, llmtest.Sessions, llmtest.Empty, llmtest.Separate, llmtest.Verbatim}
}

func TestConformance(t *testing.T) {
	for name, model := range map[string]string{
		"a model with a thinking budget": "claude-sonnet-4-5",
		"a model that thinks adaptively": "claude-opus-4-8",
		"a compatible server":            "local-model",
	} {
		t.Run(name, func(t *testing.T) {
			llmtest.Run(t, func(_ *testing.T, s *llmtest.Server) llmtest.Subject {
				return llmtest.Subject{
					Provider: anthropic.New(anthropic.Options{BaseURL: s.Root, APIKey: s.APIKey, HTTPClient: s.Client}), Model: model, Lacks: lacks(),
				}
			})
		})
	}
}

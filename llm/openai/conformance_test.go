package openai_test

import (
	"testing"

	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/llm/openai"
)

func TestConformance(t *testing.T) {
	t.Run("responses", func(t *testing.T) {
		llmtest.Run(t, func(_ *testing.T, s *llmtest.Server) llmtest.Subject {
			return llmtest.Subject{
				Provider: openai.New(openai.Options{BaseURL: s.URL, API: openai.Responses, APIKey: s.APIKey, HTTPClient: s.Client}),
				Model:    "gpt-5-mini",
			}
		})
	})
	t.Run("chat", func(t *testing.T) {
		llmtest.Run(t, func(_ *testing.T, s *llmtest.Server) llmtest.Subject {
			return llmtest.Subject{
				Provider: openai.New(openai.Options{BaseURL: s.URL, APIKey: s.APIKey, HTTPClient: s.Client}),
				Model:    "local-model",
				Lacks:    []llmtest.Ability{llmtest.ToolParts, llmtest.Sessions},
			}
		})
	})
}

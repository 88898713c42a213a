package gemini_test

import (
	"testing"

	"github.com/weir-run/weir/llm/gemini"
	"github.com/weir-run/weir/llm/llmtest"
)

func TestConformance(t *testing.T) {
	lacks := []llmtest.Ability{llmtest.Idempotency, llmtest.Empty, llmtest.Separate, llmtest.Verbatim}
	llmtest.Run(t, func(_ *testing.T, s *llmtest.Server) llmtest.Subject {
		return llmtest.Subject{
			Provider: gemini.New(gemini.Options{BaseURL: s.Root}), Model: "gemini-3-pro-preview", Lacks: lacks,
		}
	})
}

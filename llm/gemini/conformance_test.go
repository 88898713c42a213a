package gemini_test

import (
	"context"
	"slices"
	"testing"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/gemini"
	"github.com/weir-run/weir/llm/llmtest"
)

func TestConformance(t *testing.T) {
	lacks := []llmtest.Ability{llmtest.Idempotency, llmtest.Empty, llmtest.Separate, llmtest.Verbatim}
	t.Run("generate", func(t *testing.T) {
		llmtest.Run(t, func(_ *testing.T, s *llmtest.Server) llmtest.Subject {
			return llmtest.Subject{
				Provider: gemini.New(gemini.Options{BaseURL: s.Root, APIKey: s.APIKey, HTTPClient: s.Client}), Model: "gemini-3-pro-preview", Lacks: lacks,
			}
		})
	})
	t.Run("interactions", func(t *testing.T) {
		llmtest.Run(t, func(_ *testing.T, s *llmtest.Server) llmtest.Subject {
			return llmtest.Subject{
				Provider: keeper{gemini.New(gemini.Options{BaseURL: s.Root, APIKey: s.APIKey, HTTPClient: s.Client})}, Model: "gemini-3-pro-preview",
				Lacks: append(slices.Clone(lacks), llmtest.Files, llmtest.ToolParts), // files have no names there
			}
		})
	})
}

// keeper asks the vendor to keep every conversation but one that begins with
// "One?", so that the whole suite is had by way of interactions.
type keeper struct{ llm.Provider }

// Generate makes the call.
func (k keeper) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	kept := *req
	kept.KeepSession = len(req.Messages) == 0 || req.Messages[0].Text != "One?"
	return k.Provider.Generate(ctx, &kept, emit)
}

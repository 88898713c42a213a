package gemini_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/gemini"
	"github.com/weir-run/weir/llm/llmtest"
)

// FuzzAnyAnswer makes a call that is answered with any bytes, and checks what
// holds of any answer and any failure.
func FuzzAnyAnswer(f *testing.F) {
	for _, c := range oddities() {
		f.Add(c.keep, c.kind, strings.Join(c.raw, ""))
	}
	f.Fuzz(func(t *testing.T, keep bool, kind, body string) {
		p := gemini.New(gemini.Options{
			BaseURL: "http://fuzz.test", HTTPClient: llmtest.CannedClient(kind, body),
		})
		req := hello()
		req.KeepSession, req.Tools = keep, []llm.Tool{{Name: "ping"}}
		var chunks []llm.Chunk
		res, err := p.Generate(t.Context(), req, func(c llm.Chunk) { chunks = append(chunks, c) })
		if !llmtest.CheckOutcome(t, res, err, chunks) {
			return
		}
		// Signatures of the fuzzer's need not be base64, nor its media be any.
		comesBack(t, p, req, res.Message, len(res.Message.Parts) == 0 && !strings.Contains(body, "ignature"))
	})
}

// comesBack checks that an answer is a history that can be sent.
func comesBack(t *testing.T, p *gemini.Provider, req *llm.Request, m convo.Message, clean bool) {
	t.Helper()
	req.Messages = append(req.Messages, m)
	for _, c := range m.Calls {
		req.Messages = append(req.Messages, result(c.ID, "x"))
	}
	for api, check := range []func([]byte) []string{llmtest.CheckGemini, llmtest.CheckInteraction} {
		req.KeepSession = api == 1
		next, err := p.Body(req)
		if err != nil {
			t.Fatalf("the answer cannot be sent back: %v", err)
		}
		if problems := check(next); len(problems) > 0 && clean {
			t.Errorf("the answer comes back as\n%s\nwhich breaks %q", next, problems)
		}
	}
}

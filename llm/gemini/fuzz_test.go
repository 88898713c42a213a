package gemini_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/gemini"
	"github.com/weir-run/weir/llm/llmtest"
)

// canned answers every request with the same bytes.
type canned struct{ kind, body string }

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {c.kind}},
		Body: io.NopCloser(strings.NewReader(c.body)), Request: req,
	}, nil
}

// FuzzAnyAnswer makes a call that is answered with any bytes, and checks what
// holds of any answer and any failure.
func FuzzAnyAnswer(f *testing.F) {
	for _, c := range oddities() {
		f.Add(c.keep, c.kind, strings.Join(c.raw, ""))
	}
	f.Fuzz(func(t *testing.T, keep bool, kind, body string) {
		p := gemini.New(gemini.Options{
			BaseURL: "http://fuzz.test", HTTPClient: &http.Client{Transport: canned{kind, body}},
		})
		req := hello()
		req.Keep, req.Tools = keep, []llm.Tool{{Name: "ping"}}
		var chunks []llm.Chunk
		res, err := p.Generate(t.Context(), req, func(c llm.Chunk) { chunks = append(chunks, c) })
		if err != nil {
			var e *llm.Error
			if !errors.As(err, &e) || e.Code == "" || e.Message == "" || res != nil {
				t.Fatalf("the failure is a %T: %v", err, err)
			}
			return
		}
		checkAnswer(t, res, chunks)
		// Signatures of the fuzzer's need not be base64, nor its media be any.
		comesBack(t, p, req, res.Message, len(res.Message.Parts) == 0 && !strings.Contains(body, "ignature"))
	})
}

// checkAnswer checks what holds of any answer.
func checkAnswer(t *testing.T, res *llm.Response, chunks []llm.Chunk) {
	t.Helper()
	m := res.Message
	if text, thought, _ := streamed(chunks); m.Text != text || m.Reasoning != thought {
		t.Errorf("text %q, streamed %q; reasoning %q, streamed %q", m.Text, text, m.Reasoning, thought)
	}
	if !slices.Contains([]string{"end", "calls", "length", "filter"}, res.Stop) || (res.Stop == "calls" && len(m.Calls) == 0) {
		t.Errorf("stop %q with %d calls", res.Stop, len(m.Calls))
	}
	if (m.Native != nil) != (m.Provider != "") || (m.Native != nil && !json.Valid(m.Native)) {
		t.Errorf("the native blocks of %q are %q", m.Provider, m.Native)
	}
	for _, c := range m.Calls {
		if c.ID == "" || c.Name == "" || c.Arguments == "" {
			t.Errorf("the call is %+v", c)
		}
	}
}

// comesBack checks that an answer is a history that can be sent.
func comesBack(t *testing.T, p *gemini.Provider, req *llm.Request, m convo.Message, clean bool) {
	t.Helper()
	req.Messages = append(req.Messages, m)
	for _, c := range m.Calls {
		req.Messages = append(req.Messages, result(c.ID, "x"))
	}
	for api, check := range []func([]byte) []string{llmtest.CheckGemini, llmtest.CheckInteraction} {
		req.Keep = api == 1
		next, err := p.Body(req)
		if err != nil {
			t.Fatalf("the answer cannot be sent back: %v", err)
		}
		if problems := check(next); len(problems) > 0 && clean {
			t.Errorf("the answer comes back as\n%s\nwhich breaks %q", next, problems)
		}
	}
}

package llmtest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/llm"
)

// CannedClient answers every request with the same bytes, for fuzz tests of providers.
func CannedClient(contentType, body string) *http.Client {
	return &http.Client{Transport: cannedTransport{contentType, body}}
}

type cannedTransport struct{ contentType, body string }

// RoundTrip implements http.RoundTripper.
func (c cannedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {c.contentType}},
		Body: io.NopCloser(strings.NewReader(c.body)), Request: req,
	}, nil
}

// CheckOutcome checks the invariants of any outcome of a call, and reports whether there is an answer. A failure is
// an *llm.Error with a code and a text; an answer equals what was streamed, its calls are complete and its native
// blocks are JSON.
func CheckOutcome(t *testing.T, res *llm.Response, err error, chunks []llm.Chunk) bool {
	t.Helper()
	if err != nil {
		var e *llm.Error
		if !errors.As(err, &e) || e.Code == "" || e.Message == "" || res != nil {
			t.Fatalf("the failure is a %T: %v", err, err)
		}
		return false
	}
	m := res.Message
	var text, reasoning strings.Builder
	for _, c := range chunks {
		text.WriteString(c.Text)
		reasoning.WriteString(c.Reasoning)
	}
	if m.Text != text.String() || m.Reasoning != reasoning.String() {
		t.Errorf("text %q, streamed %q; reasoning %q, streamed %q", m.Text, &text, m.Reasoning, &reasoning)
	}
	if !slices.Contains([]string{"end", "calls", "length", "filter"}, res.Stop) || (res.Stop == "calls" && len(m.Calls) == 0) {
		t.Errorf("stop %q with %d calls", res.Stop, len(m.Calls))
	}
	for _, c := range m.Calls {
		if c.ID == "" || c.Name == "" || c.Arguments == "" {
			t.Errorf("the call is %+v", c)
		}
	}
	if (m.Native != nil) != (m.Provider != "") || (m.Native != nil && !json.Valid(m.Native)) {
		t.Errorf("the native blocks of %q are %q", m.Provider, m.Native)
	}
	return true
}

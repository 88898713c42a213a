package anthropic_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/anthropic"
	"github.com/weir-run/weir/llm/llmtest"
)

const canary = "sk-ant-canary-7f3a"

func TestTheKeyIsInNoErrorAndNoChunk(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	s.APIKey = canary
	p := anthropic.New(anthropic.Options{BaseURL: s.Root, APIKey: canary})
	s.Script(
		llmtest.Text("Yes."),
		llmtest.Turn{Failure: &llmtest.Failure{Status: 401, Message: "invalid x-api-key: " + canary}},
		llmtest.Turn{Failure: &llmtest.Failure{Status: 500, Body: "X-Api-Key: " + canary}},
		llmtest.Turn{Failure: &llmtest.Failure{Status: 400, Body: strings.Repeat("x", 590) + canary}},
		raw(`{"type":"error","error":{"type":"api_error","message":"key `+canary+`"}}`),
		raw(canary),
		raw(start, `{"type":"content_block_start","index":0,"content_block":"`+canary+`"}`),
		llmtest.Turn{Type: "text/html", Raw: []string{canary}},
	)
	emit := func(c llm.Chunk) { mute(t, c) }
	if _, err := p.Generate(t.Context(), hello(), emit); err != nil {
		t.Fatal(err)
	}
	for range 7 {
		_, err := p.Generate(t.Context(), hello(), emit)
		if err == nil {
			t.Fatal("a failure was an answer")
		}
		mute(t, err)
	}
	mute(t, p)
	if body, err := p.Body(hello()); err != nil || bytes.Contains(body, []byte(canary)) {
		t.Errorf("%v: %s", err, body)
	}
	s.Close()
	_, err := p.Generate(t.Context(), hello(), emit)
	mute(t, err)
	for _, base := range []string{"http://user:" + canary + "@127.0.0.1:1", "http://127.0.0.1:1/" + canary, "http://[" + canary, canary} {
		_, err := anthropic.New(anthropic.Options{BaseURL: base, APIKey: canary}).Generate(t.Context(), hello(), nil)
		if err == nil {
			t.Fatalf("%s answered", base)
		}
		mute(t, err)
	}
}

// mute fails if any way of printing v shows the key, or part of it.
func mute(t *testing.T, v any) {
	t.Helper()
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Error("call", "value", v)
	for _, s := range []string{fmt.Sprint(v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v), log.String()} {
		if strings.Contains(s, canary[:len(canary)-4]) {
			t.Errorf("the key is shown: %s", s)
		}
	}
	for err, ok := v.(error); ok && err != nil; {
		if kind := fmt.Sprintf("%T", err); strings.Contains(kind, "apierror") || strings.Contains(kind, "url.Error") {
			t.Errorf("the error wraps a %s, which holds the request", kind)
		}
		u, is := err.(interface{ Unwrap() error })
		if !is {
			break
		}
		err = u.Unwrap()
	}
}

func TestEnvironmentIsNotRead(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", canary)
	t.Setenv("ANTHROPIC_AUTH_TOKEN", canary)
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/env")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Env: yes")
	t.Setenv("ANTHROPIC_PROFILE", "env")
	s := llmtest.New(t, llmtest.Text("Yes."))
	if _, err := anthropic.New(anthropic.Options{BaseURL: s.Root}).Generate(t.Context(), hello(), nil); err != nil {
		t.Fatal(err)
	}
	if h := s.Last().Header; h.Get("X-Api-Key") != "" || h.Get("Authorization") != "" || h.Get("X-Env") != "" {
		t.Errorf("the headers are %v", h)
	}
}

func TestABaseURLMayEndInV1(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"", "/", "/v1", "/v1/"} {
		s := llmtest.New(t, llmtest.Text("Yes."))
		if _, err := anthropic.New(anthropic.Options{BaseURL: s.Root + end}).Generate(t.Context(), hello(), nil); err != nil {
			t.Errorf("%q: %v", end, err)
		}
	}
}

func TestUnusableOptionsFailTheCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options    anthropic.Options
		code, says string
	}{
		{anthropic.Options{}, "model_auth", "no API key"},
		{anthropic.Options{BaseURL: "localhost:11434"}, "model_invalid_request", "base URL"},
		{anthropic.Options{BaseURL: "ftp://example.com"}, "model_invalid_request", "base URL"},
	} {
		_, err := anthropic.New(c.options).Generate(t.Context(), hello(), nil)
		wantError(t, err, c.code, c.says, false)
		_, err = anthropic.New(c.options).Body(hello())
		wantError(t, err, c.code, c.says, false)
	}
}

func TestRefusalsAreUnderstood(t *testing.T) {
	t.Parallel()
	html := http.Header{"Content-Type": {"text/html"}}
	for _, c := range []struct {
		failure    llmtest.Failure
		code, says string
		retry      bool
		after      time.Duration
	}{
		{failure: llmtest.Failure{Status: 529, Message: "Overloaded"}, code: "model_overloaded", says: "Overloaded", retry: true},
		{failure: llmtest.Failure{Status: 402, Message: "Pay"}, code: "model_rate_limited", says: "Pay"},
		{failure: llmtest.Failure{Status: 400, Message: "Your credit balance is too low to access the API."}, code: "model_rate_limited", says: "credit"},
		{failure: llmtest.Failure{Status: 400, Message: "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}, code: "model_context_length", says: "190000"},
		{failure: llmtest.Failure{Status: 400, Message: "max_tokens: 99999 > 64000, which is the maximum"}, code: "model_invalid_request", says: "64000"},
		{failure: llmtest.Failure{Status: 400, Body: `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`}, code: "model_overloaded", says: "busy", retry: true},
		{failure: llmtest.Failure{Status: 404, Body: `{"error":"model 'x' not found"}`}, code: "model_invalid_request", says: "model 'x' not found"},
		{failure: llmtest.Failure{Status: 403, Body: `{"message":"Forbidden"}`}, code: "model_auth", says: "Forbidden"},
		{failure: llmtest.Failure{Status: 422, Body: `{"detail":[{"msg":"field required"}]}`}, code: "model_invalid_request", says: "field required"},
		{failure: llmtest.Failure{Status: 503, Body: "<html>busy</html>", Header: html}, code: "model_overloaded", says: "no reason", retry: true},
		{failure: llmtest.Failure{Status: 500, Body: ""}, code: "model_unavailable", says: "500", retry: true},
		{failure: llmtest.Failure{Status: 301, Body: "moved"}, code: "model_invalid_request", says: "moved"},
		{failure: llmtest.Failure{Status: 400, Body: strings.Repeat("é", 4000)}, code: "model_invalid_request", says: "éé…"},
		{failure: llmtest.Failure{Status: 429, Message: "m", Header: http.Header{"Retry-After": {"1.5"}}}, code: "model_rate_limited", retry: true, after: 1500 * time.Millisecond},
		{failure: llmtest.Failure{Status: 429, Message: "m", Header: http.Header{"Retry-After": {"9"}, "Retry-After-Ms": {"120"}}}, code: "model_rate_limited", retry: true, after: 120 * time.Millisecond},
		{failure: llmtest.Failure{Status: 429, Message: "m", Header: http.Header{"Retry-After": {"-3"}}}, code: "model_rate_limited", retry: true},
		{failure: llmtest.Failure{Status: 429, Message: "m", Header: http.Header{"Retry-After": {"1e300"}}}, code: "model_rate_limited", retry: true, after: 24 * time.Hour},
		{failure: llmtest.Failure{Status: 429, Message: "m", Header: http.Header{"Retry-After": {"soon"}}}, code: "model_rate_limited", retry: true},
		{failure: llmtest.Failure{Status: 529, Message: "m", Header: http.Header{
			"Retry-After": {"Fri, 31 Dec 1999 23:59:59 GMT"}, "Date": {"Fri, 31 Dec 1999 23:59:29 GMT"},
		}}, code: "model_overloaded", retry: true, after: 30 * time.Second},
		{failure: llmtest.Failure{Status: 400, Message: "m", Header: http.Header{"X-Should-Retry": {"true"}}}, code: "model_invalid_request", retry: true},
		{failure: llmtest.Failure{Status: 500, Message: "m", Header: http.Header{"X-Should-Retry": {"false"}}}, code: "model_unavailable"},
	} {
		_, _, err := answerTo(t, llmtest.Turn{Failure: &c.failure})
		wantError(t, err, c.code, c.says, c.retry)
		if e, ok := err.(*llm.Error); ok && (e.RetryAfter != c.after || e.Status != c.failure.Status || len(e.Message) > 700) { //nolint:errorlint // its very type is what is tested
			t.Errorf("%+v: after %v, status %d, %d bytes", c.failure, e.RetryAfter, e.Status, len(e.Message))
		}
	}
}

// parameters are those of anthropic-sdk-go v1.84.0, whose types are generated
// from the API's own description.
const parameters = `
	cache_control container diagnostics inference_geo max_tokens messages metadata model output_config
	service_tier speed stop_sequences stream system temperature thinking tool_choice tools top_k top_p`

// TestTheServersRulesKnowEveryParameter keeps llmtest's rules, written from the
// reference, and the API's own description from drifting apart.
func TestTheServersRulesKnowEveryParameter(t *testing.T) {
	t.Parallel()
	known := strings.Fields(parameters)
	if got := llmtest.Parameters("anthropic"); !slices.Equal(got, known) {
		t.Errorf("the rules know %q,\nthe vendor %q", got, known)
	}
}

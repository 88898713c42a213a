package openai_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/llm/openai"
)

const canary = "sk-canary-3141592653589793"

func hello() *llm.Request {
	return &llm.Request{Model: "gpt-5-mini", Messages: []convo.Message{{Role: convo.User, Text: "Hello."}}}
}

func TestKeyIsSentAndNeverShown(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	s.APIKey = canary
	for _, api := range []string{openai.Chat, openai.Responses} {
		p := openai.New(openai.Options{BaseURL: s.URL, API: api, APIKey: canary})
		s.Script(
			llmtest.Text("Yes."),
			llmtest.Turn{Failure: &llmtest.Failure{Status: 401, Message: "Incorrect API key provided: " + canary + "."}},
			llmtest.Turn{Failure: &llmtest.Failure{Status: 500, Body: "Authorization: Bearer " + canary}},
			llmtest.Turn{Raw: []string{sse(`{"error":{"message":"key ` + canary + `"}}`)}},
			llmtest.Turn{Raw: []string{sse(canary)}},
			llmtest.Turn{Raw: []string{sse(`{"choices":[{"delta":{},"finish_reason":"` + canary + `"}]`)}},
		)
		if _, err := p.Generate(t.Context(), hello(), nil); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			_, err := p.Generate(t.Context(), hello(), nil)
			if err == nil {
				t.Fatal("a failure was an answer")
			}
			mute(t, err)
		}
		mute(t, p)
		s.Close()
		_, err := p.Generate(t.Context(), hello(), nil)
		mute(t, err)
		s = llmtest.New(t)
		s.APIKey = canary
	}
	for _, base := range []string{"http://user:" + canary + "@127.0.0.1:1/v1", "http://127.0.0.1:1/" + canary, "http://[" + canary, canary} {
		_, err := openai.New(openai.Options{BaseURL: base, APIKey: canary}).Generate(t.Context(), hello(), nil)
		if err == nil {
			t.Fatalf("%s answered", base)
		}
		mute(t, err)
	}
}

// mute fails if any way of printing v shows the key.
func mute(t *testing.T, v any) {
	t.Helper()
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Error("call", "value", v)
	for _, s := range []string{fmt.Sprint(v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v), log.String()} {
		if strings.Contains(s, canary) {
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
	t.Setenv("OPENAI_API_KEY", canary)
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/env")
	t.Setenv("OPENAI_ORG_ID", "org-env")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Env: yes")
	s := llmtest.New(t, llmtest.Text("Yes."), llmtest.Text("Yes."))
	for _, api := range []string{openai.Chat, openai.Responses} {
		if _, err := openai.New(openai.Options{BaseURL: s.URL, API: api}).Generate(t.Context(), hello(), nil); err != nil {
			t.Fatal(err)
		}
		h := s.Last().Header
		if h.Get("Authorization") != "" || h.Get("OpenAI-Organization") != "" || h.Get("X-Env") != "" {
			t.Errorf("%s sent %v", api, h)
		}
	}
}

func TestOrganizationAndProjectAreHeaders(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t, llmtest.Text("Yes."))
	p := openai.New(openai.Options{BaseURL: s.URL + "/", Organization: "org-1", Project: "proj-1"})
	if _, err := p.Generate(t.Context(), hello(), nil); err != nil {
		t.Fatal(err)
	}
	if h := s.Last().Header; h.Get("OpenAI-Organization") != "org-1" || h.Get("OpenAI-Project") != "proj-1" {
		t.Errorf("the headers are %v", h)
	}
}

// redirect sends every request to a test server, whatever its host.
type redirect struct{ to string }

func (r redirect) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = "http", strings.TrimSuffix(strings.TrimPrefix(r.to, "http://"), "/v1")
	return http.DefaultTransport.RoundTrip(req)
}

func TestTheAPIIsChosenByTheHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ base, api, want, limit string }{
		{"", "", "responses", `"max_output_tokens":100`},
		{"https://api.openai.com/v1", "", "responses", `"max_output_tokens":100`},
		{"https://api.openai.com/v1", openai.Chat, "chat", `"max_completion_tokens":100`},
		{"http://localhost:11434/v1", "", "chat", `"max_tokens":100`},
		{"https://example.com/v1", openai.Responses, "responses", `"max_output_tokens":100`},
	} {
		s := llmtest.New(t, llmtest.Text("Yes."))
		p := openai.New(openai.Options{
			APIKey: canary, BaseURL: c.base, API: c.api, HTTPClient: &http.Client{Transport: redirect{s.URL}},
		})
		req := hello()
		req.MaxOutput = 100
		if _, err := p.Generate(t.Context(), req, nil); err != nil {
			t.Fatalf("%q %q: %v", c.base, c.api, err)
		}
		if got := s.Last(); got.API != c.want || !strings.Contains(string(got.Body), c.limit) {
			t.Errorf("%q %q: asked by %s: %s", c.base, c.api, got.API, got.Body)
		}
	}
}

func TestUnusableOptionsFailTheCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options    openai.Options
		code, says string
	}{
		{openai.Options{}, "model_auth", "no API key"},
		{openai.Options{BaseURL: "localhost:11434"}, "model_invalid_request", "base URL"},
		{openai.Options{BaseURL: "ftp://example.com"}, "model_invalid_request", "base URL"},
		{openai.Options{BaseURL: "http://127.0.0.1:1", API: "assistants"}, "model_invalid_request", "assistants"},
	} {
		_, err := openai.New(c.options).Generate(t.Context(), hello(), nil)
		wantError(t, err, c.code, c.says, false)
	}
}

func TestRefusalsOfManyServersAreUnderstood(t *testing.T) {
	t.Parallel()
	html := http.Header{"Content-Type": {"text/html"}}
	for _, c := range []struct {
		failure    llmtest.Failure
		code, says string
		retry      bool
		after      time.Duration
	}{
		{failure: llmtest.Failure{Status: 404, Body: `{"error":"model 'x' not found"}`}, code: "model_invalid_request", says: "model 'x' not found"},
		{failure: llmtest.Failure{Status: 422, Body: `{"detail":[{"loc":["body"],"msg":"field required"}]}`}, code: "model_invalid_request", says: "field required"},
		{failure: llmtest.Failure{Status: 401, Body: `{"detail":"Unauthorized"}`}, code: "model_auth", says: "Unauthorized"},
		{failure: llmtest.Failure{Status: 400, Body: `{"object":"error","message":"This model's maximum context length is 8 tokens","code":400}`}, code: "model_context_length", says: "8 tokens"},
		{failure: llmtest.Failure{Status: 400, Body: `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`}, code: "model_context_length", says: "context size"},
		{failure: llmtest.Failure{Status: 400, Body: `{"error":{"message":"filtered","code":"content_filter","param":"prompt"}}`}, code: "model_filtered", says: "(at prompt)"},
		{failure: llmtest.Failure{Status: 429, Code: "insufficient_quota", Message: "You exceeded your current quota."}, code: "model_rate_limited", says: "quota"},
		{failure: llmtest.Failure{Status: 503, Body: "<html>busy</html>", Header: html}, code: "model_overloaded", says: "no reason", retry: true},
		{failure: llmtest.Failure{Status: 500, Body: ""}, code: "model_unavailable", says: "500", retry: true},
		{failure: llmtest.Failure{Status: 301, Body: "moved"}, code: "model_invalid_request", says: "moved"},
		{failure: llmtest.Failure{Status: 400, Body: strings.Repeat("é", 4000)}, code: "model_invalid_request", says: "éé…"},
		{failure: llmtest.Failure{Status: 429, Message: "m", Header: http.Header{"Retry-After": {"1.5"}}}, code: "model_rate_limited", retry: true, after: 1500 * time.Millisecond},
		{failure: llmtest.Failure{Status: 429, Message: "m", Header: http.Header{"Retry-After": {"-3"}}}, code: "model_rate_limited", retry: true},
		{failure: llmtest.Failure{Status: 429, Message: "m", Header: http.Header{"Retry-After": {"1e300"}}}, code: "model_rate_limited", retry: true, after: 24 * time.Hour},
		{failure: llmtest.Failure{Status: 429, Message: "m", Header: http.Header{"Retry-After": {"NaN"}}}, code: "model_rate_limited", retry: true},
		{failure: llmtest.Failure{Status: 429, Message: "m", Header: http.Header{"Retry-After": {"soon"}}}, code: "model_rate_limited", retry: true},
		{failure: llmtest.Failure{Status: 503, Message: "m", Header: http.Header{
			"Retry-After": {"Fri, 31 Dec 1999 23:59:59 GMT"}, "Date": {"Fri, 31 Dec 1999 23:59:29 GMT"},
		}}, code: "model_overloaded", retry: true, after: 30 * time.Second},
		{failure: llmtest.Failure{Status: 400, Message: "m", Header: http.Header{"X-Should-Retry": {"true"}}}, code: "model_invalid_request", retry: true},
		{failure: llmtest.Failure{Status: 500, Message: "m", Header: http.Header{"X-Should-Retry": {"false"}}}, code: "model_unavailable"},
	} {
		_, _, err := answerTo(t, openai.Chat, llmtest.Turn{Failure: &c.failure})
		wantError(t, err, c.code, c.says, c.retry)
		if e, ok := err.(*llm.Error); ok && (e.RetryAfter != c.after || e.Status != c.failure.Status || len(e.Message) > 700) { //nolint:errorlint // its very type is what is tested
			t.Errorf("%+v: after %v, status %d, %d bytes", c.failure, e.RetryAfter, e.Status, len(e.Message))
		}
	}
}

// The parameters of openai-go v3.95.0, whose types are generated from the API's
// own description.
const (
	chatParameters = `
	audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens
	messages metadata modalities model moderation n parallel_tool_calls prediction presence_penalty
	prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format
	safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools
	top_logprobs top_p user verbosity web_search_options`
	responsesParameters = `
	access_programs background context_management conversation include input instructions
	max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls previous_response_id
	prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier
	service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p
	truncation user`
)

// TestTheServersRulesKnowEveryParameter keeps llmtest's rules, written from the
// reference, and the API's own description from drifting apart.
func TestTheServersRulesKnowEveryParameter(t *testing.T) {
	t.Parallel()
	for api, parameters := range map[string]string{"chat": chatParameters, "responses": responsesParameters} {
		known := strings.Fields(parameters)
		if got := llmtest.Parameters(api); !slices.Equal(got, known) {
			t.Errorf("%s: the rules know %q,\nthe vendor %q", api, got, known)
		}
	}
}

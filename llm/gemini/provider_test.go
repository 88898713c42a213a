package gemini_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/gemini"
	"github.com/weir-run/weir/llm/llmtest"
)

const canary = "AIza-canary-3141592653589793"

func hello() *llm.Request {
	return &llm.Request{Model: "gemini-3-flash", Messages: []convo.Message{{Role: convo.User, Text: "Hello."}}}
}

func sse(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\r\n\r\n")
	}
	return b.String()
}

func wantError(t *testing.T, err error, code, says string, retry bool) {
	t.Helper()
	_ = failureOf(t, err, code, says, retry) // it fails by itself
}

// failureOf is wantError and the error.
func failureOf(t *testing.T, err error, code, says string, retry bool) *llm.Error {
	t.Helper()
	var e *llm.Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is a %T: %v", err, err)
	}
	if e.Code != code || e.Retry != retry || !strings.Contains(e.Message, says) {
		t.Errorf("the error is %v, retry %v; want %s that says %q, retry %v", e, e.Retry, code, says, retry)
	}
	return e
}

func TestKeyIsSentAndNeverShown(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		s := llmtest.New(t,
			llmtest.Text("Yes."),
			llmtest.Turn{Failure: &llmtest.Failure{Status: 400, Message: "API key not valid: " + canary + "."}},
			llmtest.Turn{Failure: &llmtest.Failure{Status: 500, Body: "x-goog-api-key: " + canary}},
			llmtest.Turn{Raw: []string{sse(`{"error":{"message":"key ` + canary + `"}}`)}},
			llmtest.Turn{Raw: []string{sse(canary)}},
			llmtest.Turn{Raw: []string{sse(`{"promptFeedback":{"blockReason":"`+canary+`"}}`, `{"event_type":"interaction.completed","interaction":{"status":"`+canary+`"}}`)}},
			llmtest.Turn{Raw: []string{sse(`{"candidates":[{"finishReason":"` + canary + `"}]}`)}},
		)
		s.APIKey = canary
		p := gemini.New(gemini.Options{BaseURL: s.Root, APIKey: canary})
		req := hello()
		req.KeepSession = keep
		var chunks []llm.Chunk
		emit := func(c llm.Chunk) { chunks = append(chunks, c) }
		if _, err := p.Generate(t.Context(), req, emit); err != nil {
			t.Fatal(err)
		}
		for range 6 {
			_, err := p.Generate(t.Context(), req, emit)
			if err == nil {
				t.Fatal("a failure was an answer")
			}
			mute(t, err)
		}
		mute(t, p)
		mute(t, chunks)
		body, err := p.Body(req)
		mute(t, string(body))
		mute(t, err)
		s.Close()
		_, err = p.Generate(t.Context(), req, nil)
		mute(t, err)
	}
	for _, base := range []string{"http://user:" + canary + "@127.0.0.1:1", "http://127.0.0.1:1/" + canary, "http://[" + canary, canary} {
		_, err := gemini.New(gemini.Options{BaseURL: base, APIKey: canary}).Generate(t.Context(), hello(), nil)
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
	for err, ok := v.(error); ok && err != nil; err = errors.Unwrap(err) {
		if kind := fmt.Sprintf("%T", err); strings.Contains(kind, "genai") || strings.Contains(kind, "url.Error") {
			t.Errorf("the error wraps a %s, which holds the request", kind)
		}
	}
}

func TestEnvironmentIsNotRead(t *testing.T) {
	for _, name := range []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"} {
		t.Setenv(name, canary)
	}
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	t.Setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1/env")
	s := llmtest.New(t, llmtest.Text("Yes."), llmtest.Text("Yes."))
	p := gemini.New(gemini.Options{BaseURL: s.Root})
	for _, keep := range []bool{false, true} {
		req := hello()
		req.KeepSession = keep
		if _, err := p.Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		if h := s.Last().Header; h.Get("X-Goog-Api-Key") != "" || h.Get("Authorization") != "" {
			t.Errorf("keep %v sent %v", keep, h)
		}
	}
}

func TestVersionComesFromAddressOrDefault(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":              "/v1beta/models/m:streamGenerateContent",
		"/":             "/v1beta/models/m:streamGenerateContent",
		"/v1beta":       "/v1beta/models/m:streamGenerateContent",
		"/proxy/v1/":    "/proxy/v1/models/m:streamGenerateContent",
		"/proxy/gemini": "/proxy/gemini/v1beta/models/m:streamGenerateContent",
	} {
		var path string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			path = r.URL.Path
			w.WriteHeader(http.StatusTeapot)
		}))
		req := hello()
		req.Model = "m"
		_, err := gemini.New(gemini.Options{BaseURL: s.URL + base}).Generate(t.Context(), req, nil)
		wantError(t, err, "model_invalid_request", "418", false)
		s.Close()
		if path != want {
			t.Errorf("%q asks at %s, want %s", base, path, want)
		}
	}
}

func TestUnusableOptionsAndRequestsFailTheCall(t *testing.T) {
	t.Parallel()
	hot := func(r *llm.Request) { nan := 0.0; nan /= nan; r.Temperature = &nan }
	for name, c := range map[string]struct {
		options    gemini.Options
		change     func(*llm.Request)
		code, says string
	}{
		"no key":               {gemini.Options{}, func(*llm.Request) {}, "model_auth", "no API key"},
		"no scheme":            {gemini.Options{BaseURL: "localhost:8080"}, func(*llm.Request) {}, "model_invalid_request", "base URL"},
		"the model is missing": {gemini.Options{APIKey: "k"}, func(r *llm.Request) { r.Model = "" }, "model_invalid_request", "the model is missing"},
		"a bad model":          {gemini.Options{APIKey: "k"}, func(r *llm.Request) { r.Model = "../x?y" }, "model_invalid_request", "model"},
		"no temperature":       {gemini.Options{APIKey: "k"}, hot, "model_invalid_request", "temperature"},
		"bad reasoning":        {gemini.Options{APIKey: "k"}, func(r *llm.Request) { r.Reasoning = "some" }, "model_invalid_request", "some"},
		"a schema of no JSON":  {gemini.Options{APIKey: "k"}, func(r *llm.Request) { r.Schema = map[string]any{"x": func() {}} }, "model_invalid_request", "json"},
		"tools of no JSON": {gemini.Options{APIKey: "k"}, func(r *llm.Request) {
			r.Tools = []llm.Tool{{Name: "a", Parameters: map[string]any{"x": func() {}}}}
		}, "model_invalid_request", "json"},
		"two tools of a name": {gemini.Options{APIKey: "k"}, func(r *llm.Request) { r.Tools = []llm.Tool{{Name: "a"}, {Name: "a"}} }, "model_invalid_request", "two tools have the name"},
		"a call without result": {gemini.Options{APIKey: "k"}, func(r *llm.Request) {
			r.Messages = append(r.Messages, convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: "a", Name: "x"}}})
		}, "model_invalid_request", "no result"},
		"a result of no call": {gemini.Options{APIKey: "k"}, func(r *llm.Request) {
			r.Messages = append(r.Messages, convo.Message{Role: convo.Tool, CallID: "a"})
		}, "model_invalid_request", "calls tools"},
		"a result too many": {gemini.Options{APIKey: "k"}, func(r *llm.Request) {
			r.Messages = append(r.Messages, convo.Message{Role: convo.Assistant, Text: "x"}, convo.Message{Role: convo.Tool, CallID: "a"})
		}, "model_invalid_request", "belongs to no call"},
	} {
		req := hello()
		c.change(req)
		p := gemini.New(c.options)
		if _, err := p.Body(req); c.options.APIKey != "" {
			wantError(t, err, c.code, c.says, false)
		}
		ctx := t.Context()
		_, err := p.Generate(ctx, req, nil)
		e := failureOf(t, err, c.code, c.says, false)
		if strings.Contains(e.Message, "contents") || len(e.Message) > 200 {
			t.Errorf("%s: the error tells the request: %v", name, e)
		}
	}
}

func TestRefusalsAreUnderstood(t *testing.T) {
	t.Parallel()
	detail := func(code int, status, message, details string) string {
		return fmt.Sprintf(`{"error":{"code":%d,"status":%q,"message":%q,"details":[%s]}}`, code, status, message, details)
	}
	for _, c := range []struct {
		failure    llmtest.Failure
		code, says string
		retry      bool
		after      time.Duration
	}{
		{failure: llmtest.Failure{Status: 429, Body: detail(429, "RESOURCE_EXHAUSTED", "Quota exceeded.", `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}`)}, code: "model_rate_limited", says: "Quota", retry: true, after: 34500 * time.Millisecond},
		{failure: llmtest.Failure{Status: 429, Body: detail(429, "RESOURCE_EXHAUSTED", "Quota exceeded.", `{"retryDelay":"3s","violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}`)}, code: "model_rate_limited", says: "Quota"},
		{failure: llmtest.Failure{Status: 429, Body: "[" + detail(429, "RESOURCE_EXHAUSTED", "Slow.", "") + "]", After: 2 * time.Second}, code: "model_rate_limited", says: "Slow", retry: true, after: 2 * time.Second},
		{failure: llmtest.Failure{Status: 400, Body: detail(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", `{"reason":"API_KEY_INVALID"}`)}, code: "model_auth", says: "API_KEY_INVALID"},
		{failure: llmtest.Failure{Status: 400, Body: detail(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", "")}, code: "model_auth", says: "not valid"},
		{failure: llmtest.Failure{Status: 400, Body: detail(400, "FAILED_PRECONDITION", "User location is not supported.", "")}, code: "model_invalid_request", says: "location"},
		{failure: llmtest.Failure{Status: 400, Body: detail(400, "INVALID_ARGUMENT", "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).", "")}, code: "model_context_length", says: "2000000"},
		{failure: llmtest.Failure{Status: 403, Body: detail(403, "PERMISSION_DENIED", "Denied.", "")}, code: "model_auth", says: "Denied"},
		{failure: llmtest.Failure{Status: 404, Body: detail(404, "NOT_FOUND", "models/x is not found for API version v1beta", "")}, code: "model_invalid_request", says: "models/x"},
		{failure: llmtest.Failure{Status: 503, Body: detail(503, "UNAVAILABLE", "The model is overloaded.", "")}, code: "model_overloaded", says: "overloaded", retry: true},
		{failure: llmtest.Failure{Status: 500, Body: detail(500, "INTERNAL", "Internal.", "")}, code: "model_unavailable", says: "Internal", retry: true},
		{failure: llmtest.Failure{Status: 504, Body: detail(504, "DEADLINE_EXCEEDED", "Too long.", "")}, code: "model_timeout", says: "Too long", retry: true},
		{failure: llmtest.Failure{Status: 499, Body: detail(499, "CANCELLED", "Gone.", "")}, code: "model_unavailable", says: "Gone", retry: true},
		{failure: llmtest.Failure{Status: 400, Body: `{"error":{"message":"Bad.","code":"invalid_request"}}`}, code: "model_invalid_request", says: "invalid_request"},
		{failure: llmtest.Failure{Status: 302, Body: "moved", Header: http.Header{"Location": {"http://127.0.0.1:1/"}}}, code: "model_invalid_request", says: "moved"},
		{failure: llmtest.Failure{Status: 400, Body: strings.Repeat("é", 4000)}, code: "model_invalid_request", says: "éé…"},
		{failure: llmtest.Failure{Status: 503, Message: "m", Header: http.Header{
			"Retry-After": {"Fri, 31 Dec 1999 23:59:59 GMT"}, "Date": {"Fri, 31 Dec 1999 23:59:29 GMT"},
		}}, code: "model_overloaded", retry: true, after: 30 * time.Second},
	} {
		s := llmtest.New(t, llmtest.Turn{Failure: &c.failure})
		_, err := gemini.New(gemini.Options{BaseURL: s.Root}).Generate(t.Context(), hello(), nil)
		e := failureOf(t, err, c.code, c.says, c.retry)
		if e.RetryAfter != c.after || e.Status != c.failure.Status || len(e.Message) > 700 {
			t.Errorf("%+v: after %v, status %d, %d bytes", c.failure, e.RetryAfter, e.Status, len(e.Message))
		}
	}
}

func TestASessionIsLostOnlyWhereTheVendorSaysSo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status     int
		body, code string
	}{
		{404, `{"error":{"code":"not_found","message":"Interaction v1_9 not found."}}`, "model_session_lost"},
		{404, `{"error":{"code":404,"status":"NOT_FOUND","message":"Requested entity was not found."}}`, "model_session_lost"},
		{400, `{"error":{"code":"invalid_request","message":"previous_interaction_id v1_9 has expired."}}`, "model_session_lost"},
		{404, `{"error":{"code":404,"status":"NOT_FOUND","message":"models/x is not found"}}`, "model_invalid_request"},
		{400, `{"error":{"code":"invalid_request","message":"Unknown parameter."}}`, "model_invalid_request"},
		{403, `{"error":{"code":403,"status":"PERMISSION_DENIED","message":"Denied."}}`, "model_auth"},
	} {
		s := llmtest.New(t, llmtest.Turn{Failure: &llmtest.Failure{Status: c.status, Body: c.body}}, llmtest.Turn{Failure: &llmtest.Failure{Status: c.status, Body: c.body}})
		req := hello()
		req.Messages = append(req.Messages, convo.Message{Role: convo.Assistant, Text: "Hi."}, convo.Message{Role: convo.User, Text: "And?"})
		req.Session, req.HeldMessages = "v1_9", 2
		p := gemini.New(gemini.Options{BaseURL: s.Root, HTTPClient: &http.Client{Transport: refusing{c.status, c.body}}})
		_, err := p.Generate(t.Context(), req, nil)
		wantError(t, err, c.code, "", false)
		req.Session = ""
		if _, err = p.Generate(t.Context(), req, nil); strings.Contains(err.Error(), "session_lost") {
			t.Errorf("without a session: %v", err)
		}
	}
}

// refusing answers every request with a refusal.
type refusing struct {
	status int
	body   string
}

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.WriteHeader(r.status)
	_, _ = w.WriteString(r.body) // a recorder takes all
	res := w.Result()
	res.Request = req
	return res, nil
}

func TestRequestBodyMatchesGolden(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		s := llmtest.New(t, llmtest.Text("Yes."))
		p := gemini.New(gemini.Options{BaseURL: s.Root})
		req := hello()
		req.KeepSession, req.Tools = keep, []llm.Tool{{Name: "ping", Parameters: map[string]any{
			"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer", "maximum": json.Number("9007199254740993")}},
		}}}
		body, err := p.Body(req)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Requests()) != 0 {
			t.Error("the body was sent")
		}
		if _, err := p.Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		if sent := strings.TrimSpace(string(s.Last().Body)); sent != string(body) || !strings.Contains(sent, "9007199254740993") {
			t.Errorf("the body is\n%s\nsent was\n%s", body, sent)
		}
	}
}

package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/httpcall"
	"github.com/weir-run/weir/node/builtin/safehttp"
)

func codeOf(err error) string {
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return e.Code
	}
	return ""
}

func TestRequestIsBuiltFromItsParts(t *testing.T) {
	o := outgoingRequest{
		method: "POST", url: "https://example.com/a?x=1#part",
		query:   map[string]any{"q": "a&b=c", "n": int64(2), "l": []any{"1", "2"}, "gone": nil},
		headers: map[string]any{"x-key": "k", "content-type": "application/merge-patch+json", "gone": nil},
		body:    map[string]any{"b": true, "a": 1.0}, hasBody: true,
	}
	req, err := o.request(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := req.URL.String(); got != "https://example.com/a?x=1&l=1&l=2&n=2&q=a%26b%3Dc" {
		t.Errorf("the URL is %s", got)
	}
	if h := req.Header; h.Get("X-Key") != "k" || h.Get("Content-Type") != "application/merge-patch+json" || len(h["Gone"]) != 0 {
		t.Errorf("the headers are %v", h)
	}
	if b, _ := io.ReadAll(req.Body); string(b) != `{"a":1.0,"b":true}` {
		t.Errorf("the body is %s", b)
	}
}

func TestRequestsThatMustNotBeSentAreRefused(t *testing.T) {
	for name, o := range map[string]outgoingRequest{
		"another scheme":      {url: "file:///etc/passwd"},
		"no scheme":           {url: "example.com"},
		"no host":             {url: "http:///x"},
		"a password":          {url: "http://u:p@example.com/"},
		"not a URL":           {url: "http://exa mple.com/"},
		"a line break":        {url: "http://example.com/", headers: map[string]any{"x": "a\r\nHost: b"}},
		"a nul":               {url: "http://example.com/", headers: map[string]any{"x": "a\x00"}},
		"a bad name":          {url: "http://example.com/", headers: map[string]any{"x y": "a"}},
		"a break in a name":   {url: "http://example.com/", headers: map[string]any{"x\r\ny": "a"}},
		"the host":            {url: "http://example.com/", headers: map[string]any{"host": "b"}},
		"the length":          {url: "http://example.com/", headers: map[string]any{"content-LENGTH": "1"}},
		"the encoding":        {url: "http://example.com/", headers: map[string]any{"transfer-encoding": "chunked"}},
		"a proxy's":           {url: "http://example.com/", headers: map[string]any{"proxy-authorization": "x"}},
		"headers that are no": {url: "http://example.com/", headers: []any{"x"}},
		"a query that is no":  {url: "http://example.com/", query: "a=b"},
	} {
		o.method = "GET"
		if _, err := o.request(t.Context()); codeOf(err) != CodeHTTPRequest {
			t.Errorf("%s: error %v, expected %s", name, err, CodeHTTPRequest)
		}
	}
}

func TestMissingResponseErrorDependsOnMethodAndProgress(t *testing.T) {
	reset := errors.New("connection reset")
	for _, c := range []struct {
		method, onUnknown string
		err               error
		sent              bool
		want              string
		permanent         bool
	}{
		{"GET", "", reset, true, CodeHTTPFailed, false},
		{"GET", "", context.DeadlineExceeded, true, CodeHTTPTimeout, false},
		{"POST", "", reset, false, CodeHTTPFailed, false},
		{"POST", "", reset, true, CodeHTTPUnknown, true},
		{"POST", "", context.DeadlineExceeded, true, CodeHTTPUnknown, true},
		{"POST", "retry", reset, true, CodeHTTPFailed, false},
		{"GET", "fail", reset, true, CodeHTTPUnknown, true},
		{"POST", "", fmt.Errorf("dial: %w", safehttp.ErrBlocked), false, CodeHTTPBlocked, true},
	} {
		n := &httpRequestNode{Method: c.method, OnUnknown: c.onUnknown}
		n.setDefaults()
		var e *engine.Error
		if err := n.noResponseError(t.Context(), &httpcall.NoResponseError{Sent: c.sent, Err: c.err}); !errors.As(err, &e) || e.Code != c.want || e.Permanent != c.permanent {
			t.Errorf("%+v: error %+v", c, err)
		}
	}
}

func TestUnexpectedStatusIsAFailure(t *testing.T) {
	for _, c := range []struct {
		expect string
		status int
		want   bool
	}{
		{`[]`, 204, true},
		{`[]`, 304, false},
		{`"any"`, 500, true},
		{`["2xx", 404]`, 404, true},
		{`["2xx", 404]`, 201, true},
		{`["2xx", 404]`, 403, false},
		{`[301]`, 200, false},
	} {
		var e expectedStatus
		if err := e.UnmarshalJSON([]byte(c.expect)); err != nil {
			t.Fatal(err)
		}
		if e.has(c.status) != c.want {
			t.Errorf("%s has %d: %v", c.expect, c.status, !c.want)
		}
	}
}

func TestOnlyTransientStatusesAreRetried(t *testing.T) {
	n := &httpRequestNode{MaxBytes: 10}
	for status, permanent := range map[int]bool{400: true, 404: true, 408: false, 429: false, 500: false, 503: false, 301: true} {
		var e *engine.Error
		if err := n.checkResponse(&httpcall.Response{StatusCode: status}); !errors.As(err, &e) || e.Code != CodeHTTPStatus || e.Permanent != permanent {
			t.Errorf("%d: %+v", status, err)
		}
	}
	if err := n.checkResponse(&httpcall.Response{StatusCode: 200, Body: make([]byte, 11)}); codeOf(err) != CodeHTTPTooLarge {
		t.Errorf("a body that is too long: %v", err)
	}
	if err := n.checkResponse(&httpcall.Response{StatusCode: 200, Body: make([]byte, 10)}); err != nil {
		t.Errorf("a body of the greatest length: %v", err)
	}
}

func TestSecretsAreScrubbedInEveryEncoding(t *testing.T) {
	s := newUsedSecrets(nil)
	s.addSecret("p@ss/\"word", secretPlaceholder("KEY"))
	s.addDerived(
		map[string]any{"authorization": "Basic dTpwQHNz", "accept": "text/html"},
		map[string]any{"authorization": "Basic dTpbc2VjcmV0XQ==", "accept": "text/html"})
	got := s.scrub(`raw p@ss/"word, query p%40ss%2F%22word, json p@ss/\"word, path p@ss%2F%22word, basic dTpwQHNz, text/html Basic`)
	if strings.Contains(got, "ss") && strings.Contains(got, "word,") || strings.Contains(got, "dTpw") {
		t.Errorf("a secret is left: %s", got)
	}
	if !strings.Contains(got, "text/html Basic") || !strings.Contains(got, "[secret KEY]") {
		t.Errorf("too much or too little was taken out: %s", got)
	}
}

package httptool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/node/builtin/safehttp"
	"github.com/weir-run/weir/tool"
	httptool "github.com/weir-run/weir/tool/http"
)

const token = "s3cr3t/with+odd=chars"

// echo answers with what it was asked, and with its secrets.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s\n", r.Method, r.RequestURI)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		switch name {
		case "Accept-Encoding", "User-Agent", "Content-Length":
		default:
			fmt.Fprintf(w, "%s: %s\n", name, strings.Join(r.Header[name], "|"))
		}
	}
	fmt.Fprintf(w, "%s", body)
}

// serve starts a server and returns its URL and the options of tools that may
// reach it.
func serve(t *testing.T, h http.HandlerFunc) (string, httptool.Options) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	client, err := safehttp.Client(safehttp.Options{AllowPrivate: []string{"127.0.0.0/8"}})
	if err != nil {
		t.Fatal(err)
	}
	return s.URL, httptool.Options{HTTP: client, Secrets: func(name string) (string, bool) { return token, name == "API" }}
}

func properties(names ...string) map[string]any {
	p := map[string]any{}
	for _, n := range names {
		p[n] = map[string]any{}
	}
	return map[string]any{"type": "object", "properties": p}
}

func TestArgumentsGoWhereTheDeclarationSays(t *testing.T) {
	t.Parallel()
	url, options := serve(t, echo)
	for _, c := range []struct {
		name, arguments, want string
		spec                  httptool.Spec
	}{
		{
			"what is named nowhere goes into the query of a GET", `{"q":"a&b=c","n":[1,2],"x":null}`,
			"GET /s?n=1&n=2&q=a%26b%3Dc\n",
			httptool.Spec{URL: url + "/s", Parameters: properties("q", "n", "x")},
		},
		{
			"values in the path and in the query are escaped", `{"id":"a/b?c#d","q":"x y&z"}`,
			"GET /users/a%2Fb%3Fc%23d/orders?q=x+y%26z&all=1\n",
			httptool.Spec{URL: url + "/users/{{ args.id }}/orders?q={{args.q}}&all=1", Parameters: properties("id", "q")},
		},
		{
			"query parameters may have other names and members of objects", `{"place":{"city":"Bern"}}`,
			"GET /w?in=Bern&units=metric\n",
			httptool.Spec{
				URL: url + "/w", Parameters: properties("place", "days"),
				Query: map[string]string{"in": "{{ args.place.city }}", "units": "metric", "d": "{{ args.days }}"},
			},
		},
		{
			"what is named nowhere is the JSON body of a POST", `{"id":7,"a":12345678901234567890,"b":[true]}`,
			"POST /i/7\nContent-Type: application/json\nIdempotency-Key: r/n/tool#0\n" + `{"a":12345678901234567890,"b":[true]}`,
			httptool.Spec{Method: "POST", URL: url + "/i/{{ args.id }}", Parameters: properties("id", "a", "b")},
		},
		{
			"a body keeps types and leaves out what is not given", `{"n":2,"who":"Ann"}`,
			"PUT /\nContent-Type: application/json\nIdempotency-Key: r/n/tool#0\n" + `{"count":2,"list":["Ann"],"note":"for Ann"}`,
			httptool.Spec{
				Method: "PUT", URL: url + "/", Parameters: properties("n", "who", "gone"),
				Body: map[string]any{
					"count": "{{ args.n }}", "note": "for {{ args.who }}", "gone": "{{ args.gone }}",
					"list": []any{"{{ args.who }}", "{{ args.gone }}"},
				},
			},
		},
		{
			"what an argument holds is not read for references", `{"who":"{{ secrets.API }}"}`,
			"PATCH /\nContent-Type: text/plain; charset=utf-8\nIdempotency-Key: r/n/tool#0\nhello {{ secrets.API }}",
			httptool.Spec{Method: "PATCH", URL: url + "/", Parameters: properties("who"), Body: "hello {{ args.who }}"},
		},
		{
			"secrets are sent, and are in no result", `{"lang":"de"}`,
			"GET /?k=[secret API]\nAccept-Language: de\nAuthorization: Bearer [secret API]\n",
			httptool.Spec{
				URL: url + "/", Parameters: properties("lang", "no"), Query: map[string]string{"k": "{{ secrets.API }}"},
				Headers: map[string]string{"Authorization": "Bearer {{secrets.API}}", "Accept-Language": "{{ args.lang }}", "X-No": "{{ args.no }}"},
			},
		},
		{
			"a DELETE carries its key", `{"id":"x"}`, "DELETE /x\nIdempotency-Key: r/n/tool#0\n",
			httptool.Spec{Method: "DELETE", URL: url + "/{{ args.id }}", Parameters: properties("id")},
		},
	} {
		c.spec.Name = "ask"
		tl, err := httptool.New(c.spec, options)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := tl.Run(t.Context(), tool.Call{Key: "r/n/tool#0", Arguments: c.arguments})
		if got != c.want || err != nil {
			t.Errorf("%s: got %v\n%s\nexpected\n%s", c.name, err, got, c.want)
		}
		if tl.ReadOnly != (c.spec.Method == "") {
			t.Errorf("%s: read-only is %v", c.name, tl.ReadOnly)
		}
	}
}

func TestArgumentsCannotChangeWhereTheRequestGoes(t *testing.T) {
	t.Parallel()
	url, options := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("a request went out: %s", r.RequestURI) })
	tl, err := httptool.New(httptool.Spec{
		Name: "ask", Method: "DELETE", URL: url + "/a/{{ args.x }}{{ args.y }}/b", Parameters: properties("x", "y"),
		Headers: map[string]string{"X-Y": "{{ args.y }}"},
	}, options)
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]string{
		`{"x":"..","y":"a"}`:              "x: it is part of the address and cannot hold",
		`{"x":"../../admin","y":"a"}`:     "cannot hold",
		`{"x":"a\\..\\b","y":"a"}`:        "cannot hold",
		`{"x":"","y":"a"}`:                "cannot be empty",
		`{"y":"a"}`:                       "cannot be empty",
		`{"x":"a","y":"b\r\nHost: evil"}`: "line break",
		`{"x":"a","y":"b","z":1}`:         "'z' not allowed",
	} {
		if _, err := tl.Run(t.Context(), tool.Call{Arguments: arguments}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: expected %q, got %v", arguments, want, err)
		}
	}
}

func TestDeclarationsThatCannotBeUsedAreRefusedWhenTheToolIsMade(t *testing.T) {
	t.Parallel()
	_, options := serve(t, echo)
	for want, s := range map[string]httptool.Spec{
		"the host cannot hold":    {URL: "https://api.example.com{{ args.x }}/", Parameters: properties("x")},
		"begin with http":         {URL: "{{ args.x }}/a", Parameters: properties("x")},
		"does not begin":          {URL: "file:///etc/passwd"},
		"user name":               {URL: "https://a:b@example.com/"},
		"fragment":                {URL: "https://example.com/#{{ args.x }}", Parameters: properties("x")},
		"a secret must be in":     {URL: "https://example.com/{{ secrets.API }}"},
		"have no property y":      {URL: "https://example.com/{{ args.y }}", Parameters: properties("x")},
		"expected args.NAME":      {URL: "https://example.com/{{ 1 + 1 }}"},
		"is not closed":           {URL: "https://example.com/{{ args.x"},
		"cannot have a body":      {URL: "https://example.com/", Body: "x"},
		`"Host" cannot be set`:    {URL: "https://example.com/", Headers: map[string]string{"Host": "x"}},
		"x are not used":          {URL: "https://example.com/", Method: "POST", Body: "b", Parameters: properties("x")},
		`method "TRACE"`:          {URL: "https://example.com/", Method: "TRACE"},
		`approve is "maybe"`:      {URL: "https://example.com/", Approve: "maybe"},
		"cannot hold a reference": {URL: "https://example.com:{{ args.x }}/", Parameters: properties("x")},
	} {
		s.Name = "ask"
		tl, err := httptool.New(s, options)
		if err == nil {
			_, err = tool.NewSet(tl)
		}
		if err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "invalid port") {
			t.Errorf("expected an error with %q, got %v", want, err)
		}
	}
	if _, err := httptool.New(httptool.Spec{Name: "ask", URL: "https://example.com/"}, httptool.Options{}); err == nil {
		t.Error("a tool without a client is one without a guard")
	}
}

func TestFailureContainsStatusAndStartOfResponse(t *testing.T) {
	t.Parallel()
	url, options := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprintf(w, "slow down, %s\x1b[1m %s", r.Header.Get("X-Key"), strings.Repeat("x", 5000))
	})
	tl, err := httptool.New(httptool.Spec{Name: "ask", URL: url, Headers: map[string]string{"X-Key": "{{ secrets.API }}"}}, options)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tl.Run(t.Context(), tool.Call{})
	const want = "the server answered 429 Too Many Requests (Retry-After: 7): slow down, [secret API]␛[1m xxx"
	if err == nil || !strings.HasPrefix(err.Error(), want) || len(err.Error()) > 2200 {
		t.Errorf("got %v", err)
	}
}

func TestAnswersAreBoundedAndOnlyTextIsShown(t *testing.T) {
	t.Parallel()
	url, options := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			fmt.Fprint(w, strings.Repeat("ä", 100)+token)
		case "/secret":
			fmt.Fprint(w, strings.Repeat("a", 95)+token)
		case "/png":
			w.Header().Set("Content-Type", "image/png")
			fmt.Fprint(w, "\x89PNG\xff\xff")
		case "/latin":
			w.Header().Set("Content-Type", "text/plain; charset=latin1")
			fmt.Fprint(w, "caf\xe9")
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		}
	})
	for path, want := range map[string]string{
		"/long":   strings.Repeat("ä", 50) + "\n[the answer is longer than 101 bytes; the rest was not read]",
		"/secret": strings.Repeat("a", 95) + "[secret API]\n[the answer is longer than 101 bytes; the rest was not read]",
		"/png":    "[image/png, 6 bytes, not text]",
		"/latin":  "caf\uFFFD",
		"/none":   "The server answered 204 No Content, without a body.",
	} {
		tl, err := httptool.New(httptool.Spec{
			Name: "ask", URL: url + path, MaxBody: 101, Headers: map[string]string{"X-Key": "{{ secrets.API }}"},
		}, options)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tl.Run(t.Context(), tool.Call{}); got != want || err != nil {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
	head, err := httptool.New(httptool.Spec{Name: "ask", Method: "HEAD", URL: url + "/png"}, options)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := head.Run(t.Context(), tool.Call{}); err != nil || !strings.Contains(got, "200 OK\nContent-Length: 6\nContent-Type: image/png") {
		t.Errorf("HEAD: %q, %v", got, err)
	}
}

func TestTheOwnNetworkIsOutOfReach(t *testing.T) {
	t.Parallel()
	url, options := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("a request came in: %s", r.RequestURI) })
	options.HTTP, _ = safehttp.Client(safehttp.Options{})
	tl, err := httptool.New(httptool.Spec{Name: "ask", Method: "POST", URL: url + "/", Query: map[string]string{"k": "{{ secrets.API }}"}}, options)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tl.Run(t.Context(), tool.Call{})
	if !errors.Is(err, safehttp.ErrBlocked) || errors.Is(err, tool.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
	if strings.Contains(err.Error(), "s3cr3t") || !strings.Contains(err.Error(), "[secret API]") {
		t.Errorf("the error shows a secret, or does not show its place: %v", err)
	}
}

func TestMissingSecretIsReportedByName(t *testing.T) {
	t.Parallel()
	url, options := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("a request came in: %s", r.RequestURI) })
	tl, err := httptool.New(httptool.Spec{Name: "ask", URL: url, Headers: map[string]string{"X": "{{ secrets.OTHER }}"}}, options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tl.Run(t.Context(), tool.Call{}); err == nil || err.Error() != "there is no secret OTHER" {
		t.Errorf("got %v", err)
	}
}

func TestSecretsThatAToolLacksAreKnownBeforeACall(t *testing.T) {
	t.Parallel()
	_, options := serve(t, func(http.ResponseWriter, *http.Request) {})
	const other, known = "{{ secrets.OTHER }}", "{{ secrets.API }}"
	for name, c := range map[string]struct {
		spec httptool.Spec
		want []string
	}{
		"a header":      {httptool.Spec{Headers: map[string]string{"A": known, "X": "Bearer " + other}}, []string{"OTHER"}},
		"the query":     {httptool.Spec{Query: map[string]string{"q": other, "r": "{{ secrets.MORE }}"}}, []string{"MORE", "OTHER"}},
		"a body":        {httptool.Spec{Method: "POST", Body: other}, []string{"OTHER"}},
		"deep in it":    {httptool.Spec{Method: "POST", Body: map[string]any{"a": []any{1, map[string]any{"b": other}, other}}}, []string{"OTHER"}},
		"nothing lacks": {httptool.Spec{Headers: map[string]string{"A": known}}, nil},
		"no secrets":    {httptool.Spec{}, nil},
	} {
		c.spec.Name, c.spec.URL = "ask", "https://example.com/"
		tl, err := httptool.New(c.spec, options)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if tl.MissingSecrets != nil {
			got = tl.MissingSecrets()
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: lacks %q, expected %q", name, got, c.want)
		}
	}
}

func TestMissingResponseLeavesOutcomeOfAWriteUnknown(t *testing.T) {
	t.Parallel()
	url, options := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server watch the connection
		<-r.Context().Done()
	})
	for _, c := range []struct {
		method, path string
		unknown      bool
	}{{"POST", "/cut", true}, {"GET", "/cut", false}, {"POST", "/slow", true}, {"GET", "/slow", false}} {
		tl, err := httptool.New(httptool.Spec{Name: "ask", Method: c.method, URL: url + c.path, Timeout: 50 * time.Millisecond}, options)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tl.Run(t.Context(), tool.Call{Key: "k"})
		if err == nil || errors.Is(err, tool.ErrOutcomeUnknown) != c.unknown {
			t.Errorf("%s %s: %v", c.method, c.path, err)
		}
	}
	tl, err := httptool.New(httptool.Spec{Name: "ask", Method: "POST", URL: url + "/slow"}, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := tl.Run(ctx, tool.Call{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that was cut off says so: %v", err)
	}
}

func TestHashDependsOnTheAddress(t *testing.T) {
	t.Parallel()
	_, options := serve(t, echo)
	seen := map[string]bool{}
	for _, s := range []httptool.Spec{
		{URL: "https://a.example/"},
		{URL: "https://b.example/"},
		{URL: "https://a.example/", Method: "POST"},
		{URL: "https://a.example/", Headers: map[string]string{"X": "1"}},
		{URL: "https://a.example/", Query: map[string]string{"X": "1"}},
		{URL: "https://a.example/", Method: "POST", Body: "x"},
	} {
		s.Name = "ask"
		tl, err := httptool.New(s, options)
		if err != nil {
			t.Fatal(err)
		}
		if seen[tl.Hash()] {
			t.Errorf("%s: the hash of another declaration", tl.Origin)
		}
		seen[tl.Hash()] = true
	}
}

func TestParametersWithoutPropertiesTakeAnyArgumentsAndSendThem(t *testing.T) {
	t.Parallel()
	url, options := serve(t, echo)
	for method, want := range map[string]string{"GET": "GET /?a=1&b=x", "POST": `{"a":1,"b":"x"}`} {
		spec := httptool.Spec{Name: "ask", URL: url + "/", Method: method, Parameters: map[string]any{"type": "object"}}
		got, err := answer(t, spec, options, `{"a": 1, "b": "x"}`)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %q, %v; expected %s in it", method, got, err, want)
		}
		spec.Parameters["additionalProperties"] = false
		if got, err := answer(t, spec, options, `{"a": 1}`); err == nil {
			t.Errorf("%s: closed parameters take an argument: %q", method, got)
		}
	}
	spec := httptool.Spec{Name: "ask", URL: url, Method: "POST", Body: map[string]any{"b": 1}, Parameters: map[string]any{"type": "object"}}
	if _, err := httptool.New(spec, options); err == nil || !strings.Contains(err.Error(), "no place") {
		t.Errorf("arguments that would go nowhere: %v", err)
	}
}

// answer declares a tool and calls it once.
func answer(t *testing.T, spec httptool.Spec, o httptool.Options, arguments string) (string, error) {
	t.Helper()
	tl, err := httptool.New(spec, o)
	if err != nil {
		t.Fatal(err)
	}
	return tl.Call(t.Context(), tool.Call{Key: "k", Arguments: arguments})
}

package builtin_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/node/builtin/safehttp"
)

// serve returns a server that flows may reach, and options that let them.
func serve(t *testing.T, h http.HandlerFunc) (url string, o weir.Options) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	client, err := safehttp.Client(safehttp.Options{AllowPrivate: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	secrets := map[string]string{"KEY": "s3cr3t/k&y", "USER": "ada", "PASSWORD": "lovelace"}
	return s.URL, weir.Options{HTTP: client, Secrets: func(name string) (string, bool) {
		v, ok := secrets[name]
		return v, ok
	}}
}

func TestResponseIsSplitIntoPorts(t *testing.T) {
	url, o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Add("X-Two", "1")
		w.Header().Add("X-Two", "2")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"method": %q, "q": %q, "big": 9007199254740993}`, r.Method, r.URL.Query().Get("q"))
	})
	r := play(t, o, `
weir: 1
name: parts
inputs: {url: {type: text}, q: {type: text}}
nodes:
  get:
    type: httpRequest
    in: {q: "{{ run.inputs.q }}"}
    with: {url: "{{ run.inputs.url }}", query: {q: "{{ inputs.q }}"}}
outputs: {status: "{{ get.status }}", json: "{{ get.json }}", two: "{{ get.headers['x-two'] }}", body: "{{ get.body }}"}
`, map[string]any{"url": url, "q": "a&b=c"}, nil)
	got := outputsOf(t, r)
	want := map[string]any{"method": "GET", "q": "a&b=c", "big": int64(9007199254740993)}
	if got["status"] != int64(201) || got["two"] != "1, 2" || !reflect.DeepEqual(got["json"], want) || got["body"] == "" {
		t.Errorf("outputs %v", got)
	}
}

func TestBinaryBodyIsBase64(t *testing.T) {
	url, o := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0xFF, 0x00}) })
	r := play(t, o, `
weir: 1
name: bytes
inputs: {url: {type: text}}
nodes:
  get: {type: httpRequest, with: {url: "{{ run.inputs.url }}"}}
  body: {type: template, in: {b: "{{ get.body }}"}, with: {text: "{{ has(inputs.b) }}"}}
outputs: {bytes: "{{ get.base64 }}"}
`, map[string]any{"url": url}, nil)
	if got := outputsOf(t, r); got["bytes"] != "/wA=" {
		t.Errorf("outputs %v", got)
	}
}

const post = `
weir: 1
name: post
inputs: {url: {type: text}}
nodes:
  post:
    type: httpRequest
    retry: {attempts: 3, backoff: 1ms}
    with:
      method: POST
      url: "{{ run.inputs.url }}"
      query: {key: "{{ secrets.KEY }}"}
      headers:
        X-Key: "Bearer {{ secrets.KEY }}"
        Authorization: "Basic {{ base64.encode(bytes(secrets.USER + ':' + secrets.PASSWORD)) }}"
      body: {password: "{{ secrets.PASSWORD }}", n: 1}
outputs: {body: "{{ post.body }}", headers: "{{ post.headers }}"}
`

func TestSecretsReachOnlyTheServer(t *testing.T) {
	url, o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		if user != "ada" || password != "lovelace" || r.URL.Query().Get("key") != "s3cr3t/k&y" ||
			r.Header.Get("X-Key") != "Bearer s3cr3t/k&y" || string(body) != `{"n":1,"password":"lovelace"}` {
			t.Errorf("the server was sent %v %s %s", r.Header, r.URL, body)
		}
		w.Header().Set("X-Echo", r.Header.Get("X-Key"))
		_, _ = fmt.Fprintln(w, r.URL.String(), r.Header, string(body))
	})
	w := open(t, o)
	f, err := w.Parse("flow.yaml", []byte(post))
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), f, weir.Start{Inputs: map[string]any{"url": url}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := fmt.Sprint(outputsOf(t, r))
	for item, err := range run.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		b, err := engine.AppendValue(nil, item.Event)
		if err != nil {
			t.Fatal(err)
		}
		seen += string(b)
	}
	for _, secret := range []string{"s3cr3t", "lovelace", "YWRhOmxvdmVsYWNl"} {
		if strings.Contains(seen, secret) {
			t.Errorf("%s is in what the run left: %s", secret, seen)
		}
	}
	if !strings.Contains(seen, "[secret KEY]") {
		t.Errorf("the answer is not there: %s", seen)
	}
}

func TestRetryKeepsTheIdempotencyKey(t *testing.T) {
	var mu sync.Mutex
	var keys []string
	url, o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if len(keys) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	outputsOf(t, play(t, o, post, map[string]any{"url": url}, nil))
	mu.Lock()
	defer mu.Unlock()
	if len(keys) != 3 || keys[0] == "" || !strings.HasPrefix(keys[0], "run/post/request#1") {
		t.Errorf("the keys were %q", keys)
	}
}

func TestFailedRequestHidesSecrets(t *testing.T) {
	url, o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "bad key "+r.URL.Query().Get("key"), http.StatusForbidden)
	})
	e := mustFail(t, play(t, o, post, map[string]any{"url": url}, nil))
	if e.Code != builtin.CodeHTTPStatus || !strings.Contains(e.Message, "403 Forbidden: bad key [secret KEY]") {
		t.Errorf("the error is %+v", e)
	}
	e = mustFail(t, play(t, o, post, map[string]any{"url": "http://127.0.0.2:1"}, nil))
	if e.Code != builtin.CodeHTTPBlocked || strings.Contains(fmt.Sprint(e), "s3cr3t") {
		t.Errorf("the error is %+v", e)
	}
}

func TestBrokenPostHasUnknownOutcome(t *testing.T) {
	var count atomic.Int32
	url, o := serve(t, func(http.ResponseWriter, *http.Request) {
		count.Add(1)
		panic(http.ErrAbortHandler)
	})
	e := mustFail(t, play(t, o, post, map[string]any{"url": url}, nil))
	if e.Code != builtin.CodeHTTPUnknown || count.Load() != 1 {
		t.Errorf("after %d requests the error is %+v", count.Load(), e)
	}
}

func TestOversizedBodyIsAnError(t *testing.T) {
	url, o := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 101)) })
	e := mustFail(t, play(t, o, `
weir: 1
name: long
inputs: {url: {type: text}}
nodes:
  get: {type: httpRequest, with: {url: "{{ run.inputs.url }}", maxBytes: 100}}
outputs: {body: "{{ get.body }}"}
`, map[string]any{"url": url}, nil))
	if e.Code != builtin.CodeHTTPTooLarge {
		t.Errorf("the error is %+v", e)
	}
}

func TestSlowRequestTimesOut(t *testing.T) {
	url, o := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	e := mustFail(t, play(t, o, `
weir: 1
name: slow
inputs: {url: {type: text}}
nodes:
  get: {type: httpRequest, with: {url: "{{ run.inputs.url }}", timeout: 20ms}}
outputs: {body: "{{ get.body }}"}
`, map[string]any{"url": url}, nil))
	if e.Code != builtin.CodeHTTPTimeout || e.Permanent {
		t.Errorf("the error is %+v", e)
	}
}

func TestMissingSecretErrorNamesIt(t *testing.T) {
	url, o := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the request was made") })
	e := mustFail(t, play(t, o, strings.ReplaceAll(post, "secrets.KEY", "secrets.ABSENT"), map[string]any{"url": url}, nil))
	if e.Code != builtin.CodeExpression || !strings.Contains(e.Message, "ABSENT") {
		t.Errorf("the error is %+v", e)
	}
}

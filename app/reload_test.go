package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/llm/llmtest"
)

// rotation is a process whose configuration is read again, with an HTTP server and a model that accept one key each.
type rotation struct {
	t        *testing.T
	dir      string
	app      *App
	accepted atomic.Pointer[string] // by the HTTP server
	url      string
	model    *llmtest.Server
	runs     int
}

func (r *rotation) options() config.Options {
	return config.Options{File: filepath.Join(r.dir, "config.yaml"), Env: func(string) (string, bool) { return "", false }}
}

// configure writes the configuration with a file of secrets for each, and more of it.
func (r *rotation) configure(secret, key, more string) {
	r.t.Helper()
	write(r.t, filepath.Join(r.dir, "config.yaml"), "secrets: {S: {file: "+secret+"}}\nproviders:\n  fake: {type: openai-compatible, baseURL: "+r.model.URL+", key: {file: "+key+
		"}}\nhttp: {allowPrivate: [127.0.0.1]}\ntools:\n  http:\n  - {name: ask, description: Ask, url: \""+r.url+"\", method: GET, headers: {K: \"{{ secrets.S }}\"}, parameters: {type: object}, approve: never}\n"+more)
}

func newRotation(t *testing.T) *rotation {
	t.Helper()
	r := &rotation{t: t, dir: t.TempDir(), model: llmtest.Start()}
	t.Cleanup(r.model.Close)
	r.model.Answer(func(*llmtest.Request) llmtest.Turn { return llmtest.Turn{Text: "yes"} })
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("K") != *r.accepted.Load() {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(s.Close)
	r.url = s.URL
	r.accept("one")
	write(t, filepath.Join(r.dir, "one"), "one-one-one")
	write(t, filepath.Join(r.dir, "two"), "two-two-two")
	r.configure("one", "one", "")
	cfg, err := config.Load(r.options())
	if err != nil {
		t.Fatal(err)
	}
	if r.app, err = Open(t.Context(), Options{Config: cfg, Database: filepath.Join(r.dir, "weir.db"), Flows: []*weir.Flow{}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.app.Shutdown(0) })
	return r
}

// accept has both servers accept one key alone.
func (r *rotation) accept(name string) {
	key := name + "-" + name + "-" + name
	r.accepted.Store(&key)
	r.model.APIKey = key
}

// works reports whether a run that uses the secret in a node and in a tool, and the key of the model, completes.
func (r *rotation) works() bool {
	r.t.Helper()
	f, err := r.app.Parse("f.yaml", []byte(`weir: 1
name: f
context: {model: fake/m}
nodes:
  get: {type: httpRequest, with: {url: "`+r.url+`", headers: {K: "{{ secrets.S }}"}}}
  call: {type: tool, after: get, with: {tool: ask}}
  say: {type: llmRequest, after: call, in: {message: Hello}}
`))
	if err != nil {
		r.t.Fatal(err)
	}
	r.runs++
	run, err := r.app.Start(r.t.Context(), f, weir.Start{ID: fmt.Sprint("r", r.runs)})
	if err != nil {
		r.t.Fatal(err)
	}
	result, err := run.Wait(r.t.Context())
	return err == nil && result.Status.String() == "completed"
}

func TestKeysAreRotatedWithoutARestart(t *testing.T) {
	t.Parallel()
	r := newRotation(t)
	if !r.works() {
		t.Fatal("the first keys do not work")
	}
	r.accept("two")
	if r.works() {
		t.Fatal("the first keys still work")
	}
	r.configure("two", "two", "")
	if changed, err := r.app.Reload(r.options()); err != nil || fmt.Sprint(changed) != "[providers.fake.key secrets.S]" || !r.works() {
		t.Fatalf("other files: %v, %v", changed, err)
	}
	r.accept("three")
	write(t, filepath.Join(r.dir, "two"), "three-three-three")
	if changed, err := r.app.Reload(r.options()); err != nil || len(changed) > 0 || !r.works() {
		t.Fatalf("the same files: %v, %v", changed, err)
	}
	for name, change := range map[string]func(){
		"not YAML":                func() { write(t, filepath.Join(r.dir, "config.yaml"), "secrets: {") },
		"an unknown key":          func() { r.configure("two", "two", "unknown: 1\n") },
		"a missing secret":        func() { r.configure("none", "two", "") },
		"a missing key":           func() { r.configure("two", "none", "") },
		"another setting":         func() { r.configure("two", "two", "parallel: 7\n") },
		"a fixed one as well":     func() { r.configure("one", "one", "parallel: 7\n") },
		"when commits are synced": func() { r.configure("two", "two", "sync: full\n") },
		"how long a drain takes":  func() { r.configure("two", "two", "drain: 9s\n") },
	} {
		change()
		changed, err := r.app.Reload(r.options())
		if err == nil || ErrorCode(err) != "config_refused" || strings.Contains(err.Error(), "three-three") {
			t.Errorf("%s: %v, %v", name, changed, err)
		}
		if !r.works() {
			t.Errorf("%s: the earlier keys do not work", name)
		}
	}
}

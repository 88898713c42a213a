package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir"
)

func TestConfigurationSendsTraces(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(body))
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	key := write(t, filepath.Join(dir, "key"), "Bearer k")
	cfg := configured(t, "otel: {endpoint: '"+s.URL+"', headers: {Authorization: {file: '"+key+"'}}, contents: true, service: mine}\n")
	a, err := Open(t.Context(), Options{Config: cfg, Database: filepath.Join(dir, "weir.db")})
	if err != nil {
		t.Fatal(err)
	}
	f, err := a.Parse("f.yaml", []byte("weir: 1\nname: f\nnodes: {a: {type: manualInput, with: {text: hello}}}\noutputs: {x: \"{{ a.text }}\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := a.Start(t.Context(), f, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.Shutdown(0); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 {
		t.Fatalf("%d requests", len(got))
	}
	for _, want := range []string{"/v1/traces Bearer k ", `"stringValue":"mine"`, "invoke_workflow f", "node a", "weir.run.outputs"} {
		if !strings.Contains(got[0], want) {
			t.Errorf("%s is missing in %s", want, got[0])
		}
	}
}

func TestUnreadableHeaderOfTracesIsAnError(t *testing.T) {
	t.Parallel()
	cfg := configured(t, "otel: {endpoint: 'http://localhost:4318', headers: {Authorization: {env: NONE}}}\n")
	if _, err := Open(t.Context(), Options{Config: cfg, Database: filepath.Join(t.TempDir(), "weir.db")}); err == nil || !strings.Contains(err.Error(), "otel: header Authorization") {
		t.Error(err)
	}
}

package app

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir/app/config"
)

// modelList answers requests for a list of models with a status, and counts other requests.
func modelList(t *testing.T, status int, others *atomic.Int32) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/models") {
			others.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"data":[],"error":{"message":"refused sk-secret"}}`))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func findingOf(t *testing.T, list []config.Finding, about string) config.Finding {
	t.Helper()
	for _, f := range list {
		if f.About == about {
			return f
		}
	}
	t.Fatalf("nothing is said about %s: %+v", about, list)
	return config.Finding{}
}

func TestProvidersAreAskedForTheirModelsAndCalledForNothingElse(t *testing.T) {
	t.Setenv("CHECK_KEY", "sk-secret")
	var others atomic.Int32
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	for _, kind := range []string{config.Compatible, config.OpenAI, config.Anthropic, config.Gemini} {
		for _, c := range []struct {
			url, state, detail, remedy string
		}{
			{modelList(t, http.StatusOK, &others), "ok", "answers", ""},
			{modelList(t, http.StatusNotFound, &others), "ok", "answers", ""},
			{modelList(t, http.StatusUnauthorized, &others), "bad", "refused", "set CHECK_KEY"},
			{modelList(t, http.StatusInternalServerError, &others), "bad", "500", "baseURL of provider p"},
			{down.URL, "bad", "connection refused", "start the server"},
		} {
			file := filepath.Join(t.TempDir(), "config.yaml")
			cfg, err := config.Load(config.Options{File: write(t, file, "providers: {p: {type: "+kind+", baseURL: \""+c.url+"\", apiKeyEnv: CHECK_KEY}}\n")})
			if err != nil {
				t.Fatal(err)
			}
			f := findingOf(t, CheckServers(t.Context(), cfg), "provider p, server")
			if f.State != c.state || !strings.Contains(f.Detail, c.detail) || !strings.Contains(f.Remedy, c.remedy) || strings.Contains(f.Detail, "sk-secret") {
				t.Errorf("%s, %+v: %+v", kind, c, f)
			}
		}
	}
	if n := others.Load(); n != 0 {
		t.Errorf("%d requests beside those for the list of models", n)
	}
}

func TestAProviderWithoutItsKeyIsNotAsked(t *testing.T) {
	t.Parallel()
	cfg := configured(t, "providers: {claude: {type: anthropic, apiKeyEnv: NOT_SET}}\n")
	if list := CheckServers(t.Context(), cfg); len(list) != 0 {
		t.Errorf("got %+v", list)
	}
}

func TestHostsOfHTTPToolsAreAskedWithHEADForTheRoot(t *testing.T) {
	t.Parallel()
	var asked atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.URL.Path)
		http.Redirect(w, r, "http://other.invalid/", http.StatusFound)
	}))
	t.Cleanup(s.Close)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	cfg := configured(t, `tools: {http: [
  {name: up, description: d, method: POST, url: "`+s.URL+`/orders/{{ args.id }}", parameters: {type: object, properties: {id: {type: string}}}},
  {name: down, description: d, url: "`+down.URL+`/x"}
]}
`)
	list := CheckServers(t.Context(), cfg)
	if f := findingOf(t, list, "tool up, server"); f.State != "ok" || asked.Load() != "HEAD /" {
		t.Errorf("%+v after %v", f, asked.Load())
	}
	if f := findingOf(t, list, "tool down, server"); f.State != "bad" || !strings.Contains(f.Remedy, "url of tool down") {
		t.Errorf("%+v", f)
	}
}

func TestAnMCPServerThatDoesNotStartIsReportedWithWhatToDo(t *testing.T) {
	t.Parallel()
	cfg := configured(t, "tools: {mcp: {gone: {command: /nowhere/server, tools: [x]}, far: {url: \"http://127.0.0.1:1/mcp\", tools: [x]}}}\n")
	list := CheckServers(t.Context(), cfg)
	for about, remedy := range map[string]string{"mcp gone, server": "correct command", "mcp far, server": "start the server"} {
		if f := findingOf(t, list, about); f.State != "bad" || f.Detail == "" || !strings.Contains(f.Remedy, remedy) {
			t.Errorf("%+v", f)
		}
	}
}

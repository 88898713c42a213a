package server_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// canaries are secrets that must be seen nowhere.
type canaries struct {
	t    *testing.T
	list map[string]string
	seen int // places that were looked at
}

func (c *canaries) add(name string) string {
	c.list[name] = "canary" + rand.Text() + "/+ " + rand.Text()
	return c.list[name]
}

// look fails the test if a place has a secret, or a good part of one, in a usual form.
func (c *canaries) look(place, text string) {
	c.t.Helper()
	c.seen++
	for name, secret := range c.list {
		for _, form := range []string{secret[:20], secret[len(secret)-20:], url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)), hex.EncodeToString([]byte(secret))} {
			if i := strings.Index(text, form); i >= 0 {
				c.t.Errorf("the %s is in %s: %q", name, place, text[max(0, i-120):min(len(text), i+60)])
				break
			}
		}
	}
}

// log keeps what is logged, for the test.
type log struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// canaryFlow sends a secret in a header, in the query and in a body, to a server that sends it back, asks a model with a key, and calls
// a tool with a secret. Then it asks a person.
const canaryFlow = `weir: 1
name: canary
context: {model: fake/m}
inputs: {url: {type: text, required: true}}
nodes:
  header: {type: httpRequest, with: {url: "{{ run.inputs.url }}", headers: {Authorization: "Bearer {{ secrets.CANARY }}"}, query: {k: "{{ secrets.CANARY }}"}, expect: any}}
  body: {type: httpRequest, after: header, with: {url: "{{ run.inputs.url }}", method: POST, body: {key: "{{ secrets.CANARY }}"}, expect: any}}
  call: {type: tool, after: body, with: {tool: echo, arguments: {q: x}}}
  say: {type: llmRequest, after: call, in: {message: "{{ header.body }}"}, onError: {value: none}}
  ask: {type: userInput, after: say, with: {prompt: "Go on?"}}
  refused: {type: httpRequest, after: ask, with: {url: "{{ run.inputs.url }}?fail=1", headers: {Authorization: "Bearer {{ secrets.CANARY }}"}}}
`

// openCanary serves the flow with secrets in files, an echo, a model whose refusals have its key, and a collector of traces.
func openCanary(t *testing.T, c *canaries, logged *log) (p *process, echo string, traces *log) {
	t.Helper()
	keys, dir := t.TempDir(), t.TempDir()
	traces = &log{}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(traces, r.Body) }))
	t.Cleanup(collector.Close)
	echoes := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		if r.URL.Query().Get("fail") != "" {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = fmt.Fprintln(w, "you sent", r.Header.Get("Authorization"), r.URL.RawQuery, r.URL.Query().Get("k"))
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(echoes.Close)
	model := llmtest.Start()
	t.Cleanup(model.Close)
	model.APIKey = c.add("key of the provider")
	model.Answer(func(*llmtest.Request) llmtest.Turn {
		return llmtest.Turn{Failure: &llmtest.Failure{Status: http.StatusForbidden, Message: "your key " + c.list["key of the provider"] + " may not"}}
	})
	files := map[string]string{
		filepath.Join(keys, "secret"): c.add("secret of the flow"), filepath.Join(keys, "key"): model.APIKey, filepath.Join(keys, "otel"): c.add("header of the collector"),
		filepath.Join(dir, "canary.yaml"): canaryFlow, filepath.Join(dir, "talks.yaml"): spokenCanary("talks", echoes.URL), filepath.Join(dir, "breaks.yaml"): spokenCanary("breaks", echoes.URL),
		filepath.Join(dir, "config.yaml"): "secrets: {CANARY: {file: " + keys + "/secret}}\nproviders:\n  fake: {type: openai-compatible, baseURL: " + model.URL + ", key: {file: " + keys + "/key}}\n" +
			"otel: {endpoint: '" + collector.URL + "', contents: true, headers: {Authorization: {file: " + keys + "/otel}}}\nhttp: {allowPrivate: [127.0.0.1]}\ntools:\n  http:\n" +
			"  - {name: echo, description: Echo, url: \"" + echoes.URL + "\", method: GET, query: {q: \"{{ args.q }}\"}, headers: {Authorization: \"{{ secrets.CANARY }}\"}, parameters: {type: object, properties: {q: {type: string}}}, approve: never}\n",
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p = openProcess(t, dir, server.Options{
		RequireToken: true, Logger: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})), Backups: server.Backups{Folder: filepath.Join(dir, "backups")},
	})
	return p, echoes.URL, traces
}

// TestASecretIsNowhere looks for secrets in the answer of each route that reads, and in the database, its backup, logs, traces and metrics.
func TestASecretIsNowhere(t *testing.T) {
	t.Parallel()
	c, logged := &canaries{t: t, list: map[string]string{}}, &log{}
	p, echo, traces := openCanary(t, c, logged)
	ada, root := p.client("ada", server.Read, server.Start, server.Answer), p.client("root", server.Scopes()...)
	run, err := ada.StartRun(t.Context(), client.Start{Flow: "canary", Inputs: map[string]any{"url": echo}, Wait: 60})
	if err != nil || run.Status != "paused" {
		t.Fatalf("%+v, %v", run, err)
	}
	link := decode[struct{ Path string }](p, ada, http.MethodPost, "/v1/runs/"+run.ID+"/links", `{"interrupt":"ask:ask#1"}`)
	hook := makeHook(t, ada, echo, "run.failed")
	if got, err := ada.Answer(t.Context(), run.ID, "ask:ask#1", "yes", 60); err != nil || got.Status != "failed" {
		t.Fatalf("%+v, %v", got, err)
	}
	decode[any](p, root, http.MethodPost, "/v1/backup", "")
	c.list["token"], c.list["link"], c.list["secret of the webhook"] = ada.Token, strings.TrimPrefix(link.Path, "/a/"), hook.Secret
	answers := c.lookAtRoutes(p, root, run.ID, hook.ID)
	for _, node := range []string{"header", "body", "refused"} { // what the server sent back is there, without the secret
		if a := p.send(http.MethodGet, "/v1/runs/"+run.ID+"/node?node="+node, "", withToken(root.Token)); !strings.Contains(a.body, "you sent") && node != "refused" || a.status != http.StatusOK {
			t.Errorf("%s: %s", node, a.body)
		}
	}
	p.close()
	c.look("logs", logged.String())
	c.look("traces", traces.String())
	if !strings.Contains(traces.String(), "weir.run.outputs") && !strings.Contains(traces.String(), "canary") || answers < 60 {
		t.Errorf("%d answers; traces: %.200s", answers, traces.String())
	}
	if err := c.lookAtFiles(p.dir); err != nil || c.seen < 200 {
		t.Errorf("%d places, %v", c.seen, err)
	}
}

// lookAtRoutes reads each route that ends, as one who may read everything, and returns how often there was an answer.
func (c *canaries) lookAtRoutes(p *process, root *client.Client, run, hook string) (answers int) {
	c.t.Helper()
	ids := strings.NewReplacer("{run}", run, "{other}", run, "{flow}", "canary", "{webhook}", hook, "{context}", "main", "{user}", "ada")
	for pattern := range p.server.Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		if method != http.MethodGet || path == "/v1/stream" || strings.HasPrefix(path, "/v1/sessions/{") {
			continue // without an end
		}
		path = wildcards.ReplaceAllString(ids.Replace(path), "unknown")
		for _, query := range []string{"", "?node=header", "?node=call", "?node=say", "?node=refused", "?node=header&part=outputs&name=body"} {
			a := p.send(method, path+query, "", withToken(root.Token))
			if a.status == http.StatusOK {
				answers++
			}
			c.look(pattern+query, a.body+fmt.Sprint(a.header))
		}
	}
	return answers
}

// lookAtFiles reads what the server has written.
func (c *canaries) lookAtFiles(dir string) error {
	c.t.Helper()
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		c.look(path, string(data))
		return err
	})
}

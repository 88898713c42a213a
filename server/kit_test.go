package server_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/agui"
	"github.com/weir-run/weir/server/client"
	"github.com/weir-run/weir/server/mcp"
	"github.com/weir-run/weir/server/openai"
)

// flows returns those that the tests serve, by file.
func flows() map[string]string {
	return map[string]string{
		"ask.yaml": `weir: 1
name: ask
inputs: {name: {type: text, required: true}}
nodes:
  greet: {type: manualInput, with: {text: "Hello {{ run.inputs.name }}"}}
  ask: {type: userInput, after: greet, with: {prompt: "Approve?", schema: {type: string, enum: [approve, reject]}}}
outputs: {decision: "{{ ask.text }}", greeting: "{{ greet.text }}"}
`,
		"fails.yaml": `weir: 1
name: fails
nodes:
  stuck: {type: fail, with: {message: no berth}}
  after: {type: manualInput, after: stuck, with: {text: done}}
outputs: {line: "{{ after.text }}"}
`,
		"twice.yaml": `weir: 1
name: twice
context: {model: script/script.yaml}
nodes:
  one: {type: llmRequest, in: {message: Is it red?}}
  two: {type: llmRequest, after: one, in: {message: And now?}}
  other: {type: newContext, after: two}
  three: {type: llmRequest, in: {context: "{{ other.context }}", message: Is it blue?}}
`,
		"talk.yaml": `weir: 1
name: talk
context: {model: script/script.yaml}
inputs: {message: {type: text, required: true}}
nodes:
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
outputs: {answer: "{{ answer.text }}"}
`,
		"script.yaml": "answer: [Berth 4 is free., Until noon.]\none: Yes.\ntwo: No.\nthree: Perhaps.\n",
	}
}

// process is a server with its database, as `weir serve` wires it.
type process struct {
	t      *testing.T
	dir    string
	app    *app.App
	server *server.Server
	url    string
	ended  chan error
}

// openProcess serves the flows from a folder, in which the database is.
func openProcess(t *testing.T, dir string, o server.Options) *process {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range flows() {
		must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	served, err := app.LoadFlows(nil, dir)
	must(err)
	configured := config.Options{Dir: dir, UserDir: dir, Env: func(string) (string, bool) { return "", false }}
	cfg, err := config.Load(configured)
	must(err)
	p := &process{t: t, dir: dir, ended: make(chan error, 1)}
	p.app, err = app.Open(t.Context(), app.Options{Config: cfg, Database: filepath.Join(dir, "weir.db"), Recover: true, Flows: []*weir.Flow{}, Logger: o.Logger})
	must(err)
	o.App, o.Flows = p.app, served
	o.Reload = func() ([]string, error) { return p.app.Reload(configured) }
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p.server, err = server.New(t.Context(), o)
	must(err)
	openai.Register(p.server)
	agui.Register(p.server)
	mcp.Register(p.server, mcp.Options{Fork: true})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(err)
	p.url = "http://" + l.Addr().String() + o.BasePath
	go func() { p.ended <- p.server.Serve(l) }()
	t.Cleanup(p.close)
	return p
}

// close drains the server and ends the process, once.
func (p *process) close() {
	p.t.Helper()
	if p.server == nil {
		return
	}
	p.server.Drain()
	if err := errors.Join(<-p.ended, p.app.Shutdown(0)); err != nil {
		p.t.Error(err)
	}
	p.server = nil
}

// client returns a client with a token of a user, or without one for no user.
func (p *process) client(user string, scopes ...server.Scope) *client.Client {
	p.t.Helper()
	c := &client.Client{URL: p.url}
	if user == "" {
		return c
	}
	var names []string
	for _, s := range scopes {
		names = append(names, string(s))
	}
	var err error
	if c.Token, _, err = server.NewToken(context.Background(), p.app.Store, user, "test", names, 0); err != nil {
		p.t.Fatal(err)
	}
	return c
}

// anyone returns a client with all scopes of a user but admin.
func (p *process) anyone(user string) *client.Client {
	p.t.Helper()
	return p.client(user, server.Read, server.Start, server.Answer)
}

// answer is what a raw request got.
type answer struct {
	status int
	header http.Header
	body   string
}

// problem returns the code of a problem, "" for another answer.
func (a answer) problem() string {
	var p struct {
		Code  string
		Error struct{ Code string } // of the protocols of others
	}
	_ = json.Unmarshal([]byte(a.body), &p) // another answer has no code
	return cmp.Or(p.Code, p.Error.Code)
}

// send sends a request as it is; change may change it first.
func (p *process) send(method, path, body string, change func(r *http.Request)) answer {
	p.t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, content)
	if err != nil {
		p.t.Fatal(err)
	}
	if line, _, _ := strings.Cut(body, "\r\n"); strings.HasPrefix(line, "--") { // a form with a file
		r.Header.Set("Content-Type", "multipart/form-data; boundary="+line[2:])
	} else if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(r)
	}
	a, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer{a.StatusCode, a.Header, string(text)}
}

// withToken sets the token of a client.
func withToken(token string) func(r *http.Request) {
	return func(r *http.Request) {
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
	}
}

// setUser changes the record of a user.
func (p *process) setUser(name string, change func(u *server.User)) {
	p.t.Helper()
	if _, err := server.ChangeUser(p.t.Context(), p.app.Store, name, change); err != nil {
		p.t.Fatal(err)
	}
}

// remember keeps a text in the memory of a user, and returns the id of the item.
func (p *process) remember(user, text string) string {
	p.t.Helper()
	r, err := p.app.Store.Remember(p.t.Context(), memory.Write{
		Scope: memory.Scope{Namespace: "default", User: user}, Kind: memory.Fact, Key: "berth", Text: text, Now: time.Now(),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return r.ID
}

// decode sends a request that must succeed, and decodes the answer.
func decode[T any](p *process, c *client.Client, method, path, body string) (out T) {
	p.t.Helper()
	got := p.send(method, path, body, withToken(c.Token))
	if got.status >= http.StatusMultipleChoices {
		p.t.Fatalf("%s %s: %d %s", method, path, got.status, got.body)
	}
	if got.body != "" {
		if err := json.Unmarshal([]byte(got.body), &out); err != nil {
			p.t.Fatalf("%s %s: %v in %s", method, path, err, got.body)
		}
	}
	return out
}

//go:build linux

package temporal_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/runner"
	weirserver "github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
	"github.com/weir-run/weir/server/openai"
	"github.com/weir-run/weir/server/servertest"
	"github.com/weir-run/weir/temporal"
)

// served are the flows of a server whose runs workers execute.
var served = map[string]string{
	"chat.yaml": `
weir: 1
name: chat
context: {model: fake/m}
inputs: {message: {type: text, required: true}}
nodes:
  reply: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
outputs: {text: "{{ reply.text }}"}
`,
	"ask.yaml": `
weir: 1
name: ask
nodes:
  ask: {type: userInput, with: {prompt: "How many?", schema: {type: integer}}}
outputs: {n: "{{ ask.value }}"}
`,
}

// serve opens a server whose runs workers execute, and starts one.
func (w *world) serve() (*servertest.Process, *client.Client) {
	w.t.Helper()
	p := servertest.Open(w.t, servertest.Options{
		Flows: served, Config: "runner: temporal\n",
		Faces:  []func(*weirserver.Server){openai.Register},
		Runner: func(ctx context.Context) (runner.Scheduler, error) { return temporal.Dial(ctx, w.options()) },
	})
	cfg, err := config.Load(config.Options{Dir: p.Dir, UserDir: p.Dir, Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := app.Open(w.t.Context(), app.Options{Config: cfg, Database: filepath.Join(p.Dir, "weir.db"), Executes: temporal.Name, AllTools: true})
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := temporal.Dial(w.t.Context(), w.options())
	if err != nil {
		w.t.Fatal(err)
	}
	k := temporal.NewWorker(a.Weir, c, temporal.WorkerOptions{})
	if err := k.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		k.Stop()
		_ = c.Close()
		_ = a.Shutdown(0)
	})
	return p, &client.Client{URL: p.URL}
}

func TestAServerHasWorkersExecuteItsRuns(t *testing.T) {
	w := newWorld(t)
	p, c := w.serve()
	t.Run("a run with a question", func(t *testing.T) { answerOnServer(t, c) })
	t.Run("a run that is cancelled", func(t *testing.T) {
		r, err := c.StartRun(t.Context(), client.Start{Flow: "ask", Wait: 60})
		if err != nil {
			t.Fatal(err)
		}
		if r, err = c.Cancel(t.Context(), r.ID, "enough", 60); err != nil || r.Status != "cancelled" {
			t.Fatalf("%+v, %v", r, err)
		}
	})
	t.Run("a session", func(t *testing.T) {
		id, err := c.OpenSession(t.Context(), "chat", "")
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"1: one", "3: two"} {
			sent, err := c.Send(t.Context(), id, client.Message{Text: []string{"one", "two"}[i], Wait: 60})
			if err != nil || sent.Text != want {
				t.Fatalf("%+v, %v; want %q", sent, err, want)
			}
		}
	})
	for _, stream := range []string{"false", "true"} {
		t.Run("a chat completion, streamed: "+stream, func(t *testing.T) {
			text := post(t, p.URL+"/v1/chat/completions", `{"model":"chat","stream":`+stream+`,"messages":[{"role":"user","content":"hello"}]}`)
			if !strings.Contains(text, "1: hello") {
				t.Errorf("the answer is %s", text)
			}
		})
	}
}

// answerOnServer starts a run that asks, answers it and reads its events.
func answerOnServer(t *testing.T, c *client.Client) {
	t.Helper()
	r, err := c.StartRun(t.Context(), client.Start{Flow: "ask", Wait: 60})
	if err != nil || r.Status != "paused" || len(r.Interrupts) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err = c.Answer(t.Context(), r.ID, r.Interrupts[0].ID, 42, 60); err != nil || r.Status != "completed" {
		t.Fatalf("%+v, %v", r, err)
	}
	events := 0
	for e, err := range c.Stream(t.Context(), r.ID, "") {
		if err != nil {
			t.Fatal(err, e)
		}
		events++
	}
	if events < 5 {
		t.Errorf("the stream has %d events", events)
	}
}

// post returns the body of an answer, without the frames of a stream.
func post(t *testing.T, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := new(http.Client).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(bufio.NewReader(resp.Body))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v\n%s", resp.Status, err, b)
	}
	return string(b)
}

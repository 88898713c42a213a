package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weir-run/weir/server"
)

const twoCallers = `
weir: 1
name: two
context: {model: held/m}
nodes:
  a: {type: newContext}
  left: {type: llmRequest, in: {context: "{{ a.context }}", message: left}}
  right: {type: llmRequest, in: {message: right}}
  aside: {type: llmRequest, in: {message: aside}, with: {skipHistory: true}}
`

const callersBelow = `
weir: 1
name: below
context: {model: held/m}
nodes:
  a: {type: newContext}
  own: {type: llmRequest, in: {context: "{{ a.context }}", message: own}}
  sub: {type: flow, with: {flow: two.yaml}}
  each: {type: forEach, in: {items: "{{ [1, 2] }}"}, with: {concurrency: 2, body: {nodes: {one: {type: llmRequest, in: {message: one}}}}}}
`

// heldAnswers is a model whose answers come when release is closed.
func heldAnswers(t *testing.T, dir string) (release chan struct{}) {
	t.Helper()
	release = make(chan struct{})
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"r","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"Aye."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(h.Close)
	text := fmt.Sprintf("providers:\n  held: {type: openai-compatible, baseURL: %q}\nmodels: [{name: held/m, window: 32000}]\n", h.URL+"/v1")
	for name, content := range map[string]string{"config.yaml": text, "two.yaml": twoCallers, "below.yaml": callersBelow} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return release
}

// Each node of the list takes a message, in child runs and iterations too, and nodes that take none are not in it.
func TestNodesThatTakeMessagesAreListed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	release := heldAnswers(t, dir)
	p := openProcess(t, dir, server.Options{RequireToken: true})
	ada, bob := p.anyone("ada"), p.anyone("bob")
	run := decode[struct{ Run string }](p, ada, http.MethodPost, "/v1/runs", `{"flow":"below","inputs":{}}`).Run
	type list struct{ Nodes []string }
	nodes := func() []string { return decode[list](p, ada, http.MethodGet, "/v1/runs/"+run+"/steer", "").Nodes }
	want := []string{"each#1/one", "each#2/one", "own", "sub>left", "sub>right"}
	waitFor(t, fmt.Sprintf("the nodes %q", want), func() bool {
		got := nodes()
		slices.Sort(got)
		return slices.Equal(got, want)
	})
	if got := p.send(http.MethodGet, "/v1/runs/"+run+"/steer", "", withToken(bob.Token)); got.status != http.StatusNotFound {
		t.Errorf("another user: %d %s", got.status, got.body)
	}
	if got := p.send(http.MethodPost, "/v1/runs/"+run+"/steer", `{"message":"Hold."}`, withToken(ada.Token)); got.status != http.StatusUnprocessableEntity {
		t.Errorf("without a node: %d %s", got.status, got.body)
	}
	for _, node := range append(want, "sub>aside", "nothing") {
		got := p.send(http.MethodPost, "/v1/runs/"+run+"/steer", fmt.Sprintf(`{"message":"Hold.","node":%q}`, node), withToken(ada.Token))
		if taken := got.status == http.StatusOK; taken != slices.Contains(want, node) {
			t.Errorf("%s: %d %s", node, got.status, got.body)
		}
	}
	close(release)
	waitFor(t, "the end of the run", func() bool {
		return decode[struct{ Status string }](p, ada, http.MethodGet, "/v1/runs/"+run, "").Status == "completed"
	})
	if got := nodes(); len(got) != 0 || got == nil {
		t.Errorf("a run that has ended takes messages at %q", got)
	}
}

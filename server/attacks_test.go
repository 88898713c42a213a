package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
	"github.com/weir-run/weir/server/servertest"
)

// fetchedFlows are the flows by which a client has the server send a request to an address.
func fetchedFlows() map[string]string {
	return map[string]string{
		"fetch.yaml":    "weir: 1\nname: fetch\ninputs: {url: {type: text, required: true}}\nnodes:\n  get: {type: httpRequest, with: {url: \"{{ run.inputs.url }}\"}}\n",
		"post.yaml":     "weir: 1\nname: post\ninputs: {url: {type: text, required: true}}\nnodes:\n  send: {type: httpRequest, with: {url: \"{{ run.inputs.url }}\", method: POST, body: x}}\n",
		"redirect.yaml": "weir: 1\nname: redirect\ninputs: {url: {type: text, required: true}, at: {type: text, required: true}}\nnodes:\n  get: {type: httpRequest, with: {url: \"{{ run.inputs.at }}\", query: {to: \"{{ run.inputs.url }}\"}}}\n",
		"tool.yaml":     "weir: 1\nname: tool\ninputs: {url: {type: text, required: true}}\nnodes:\n  call: {type: tool, with: {tool: follow, arguments: {to: \"{{ run.inputs.url }}\"}}}\n",
	}
}

// TestNoSpellingOfAForbiddenAddressIsReached tries each URL in each field from which the server fetches: what a client, a model or another
// server says. Addresses that the configuration names (providers, MCP servers, executors, collectors) are the operator's; that a redirect
// from there is not followed is tested where these clients are. TestClientsOfTheNetworkAreListed in internal/arch finds a field that is missing here.
func TestNoSpellingOfAForbiddenAddressIsReached(t *testing.T) {
	t.Parallel()
	inner := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("reached: %s %s of %s", r.Method, r.URL, r.Host)
	}))
	t.Cleanup(inner.Close)
	_, port, err := net.SplitHostPort(inner.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	redirects := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusFound)
	}))
	t.Cleanup(redirects.Close)
	p := openAttacked(t, redirects.URL)
	urls := servertest.ForbiddenURLs(port)
	if len(urls) < 100 {
		t.Fatalf("%d URLs", len(urls))
	}
	for flow, more := range map[string]map[string]any{"fetch": nil, "post": nil, "redirect": {"at": redirects.URL}, "tool": nil} {
		runForEach(t, p, flow, urls, more)
	}
	checkHooks(t, p, append(urls, redirects.URL+"/?to="+url.QueryEscape(inner.URL)))
	content := []map[string]any{{"role": "user", "content": []map[string]any{{"type": "text", "text": "x"}, {"type": "image_url", "image_url": map[string]any{"url": inner.URL}}}}}
	body, err := json.Marshal(map[string]any{"model": "talk", "messages": content})
	if err != nil {
		t.Fatal(err)
	}
	p.send(http.MethodPost, "/v1/chat/completions", string(body), nil) // it is for the model's vendor to fetch
}

// openAttacked serves the flows with a tool that calls a server which redirects.
func openAttacked(t *testing.T, redirects string) *process {
	t.Helper()
	dir := t.TempDir()
	files := fetchedFlows()
	files["config.yaml"] = "sync: normal\nhttp: {allowPrivate: [\"" + strings.TrimPrefix(redirects, "http://") + "\"]}\ntools:\n  http:\n  - name: follow\n    description: Follow a redirect\n    url: " + redirects +
		"/x\n    query: {to: \"{{ args.to }}\"}\n    method: GET\n    parameters: {type: object, properties: {to: {type: string}}, required: [to]}\n    approve: never\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return openProcess(t, dir, server.Options{})
}

// runForEach starts a run with each URL as its input, eight at a time. Each must fail.
func runForEach(t *testing.T, p *process, flow string, urls []string, more map[string]any) {
	t.Helper()
	c := &client.Client{URL: p.url}
	work := make(chan string)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for address := range work {
				inputs := maps.Clone(more)
				if inputs == nil {
					inputs = map[string]any{}
				}
				inputs["url"] = address
				run, err := c.StartRun(t.Context(), client.Start{Flow: flow, Inputs: inputs, Wait: 60})
				if err != nil {
					t.Errorf("%s %q: %v", flow, address, err)
					continue
				}
				checkRefused(t, flow, address, run)
			}
		})
	}
	for _, address := range urls {
		work <- address
	}
	close(work)
	all.Wait()
}

// checkRefused requires that a run has failed, and that a node that was given the address has refused it for what it is. A resolver may
// not know a name of this machine, and what a redirect names may be no URL.
func checkRefused(t *testing.T, flow, address string, run *client.Run) {
	t.Helper()
	if run.Status != "failed" || run.Error == nil {
		t.Errorf("%s %q: %s", flow, address, run.Status)
		return
	}
	refused := run.Error.Code == "http_blocked" || run.Error.Code == "http_request_invalid" || strings.Contains(run.Error.Message, "invalid port")
	if direct := flow == "fetch" || flow == "post"; direct && !refused && !strings.Contains(strings.ToLower(address), "localhost") {
		t.Errorf("%s %q: %+v", flow, address, run.Error)
	}
}

// hookOf is a webhook to an address, of a user.
type hookOf struct {
	id, address string
	user        *client.Client
}

// checkHooks makes a webhook for each URL, which is refused, or has runs fail and requires that no delivery arrives. Each user has four
// webhooks, to which the server sends at the same time.
func checkHooks(t *testing.T, p *process, urls []string) {
	t.Helper()
	var hooks []hookOf
	var c *client.Client
	users := 0
	for _, address := range urls {
		body, err := json.Marshal(map[string]any{"url": address, "events": []string{"run.failed"}})
		if err != nil {
			t.Fatal(err)
		}
		if len(hooks) == 4*users {
			users++
			c = p.anyone(fmt.Sprint("user ", users))
		}
		a := p.send(http.MethodPost, "/v1/webhooks", string(body), withToken(c.Token))
		var h madeHook
		if a.status == http.StatusCreated && json.Unmarshal([]byte(a.body), &h) == nil {
			hooks = append(hooks, hookOf{h.ID, address, c})
		} else if a.status != http.StatusUnprocessableEntity {
			t.Errorf("webhook to %q: %d %s", address, a.status, a.body)
		}
	}
	if len(hooks) < 60 {
		t.Fatalf("%d webhooks", len(hooks))
	}
	for i := 0; i < len(hooks); i += 4 {
		if _, err := hooks[i].user.StartRun(t.Context(), client.Start{Flow: "fails"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range hooks {
		got := firstTry(t, h.user, h.id)
		if !strings.Contains(got, "blocked") && !strings.Contains(strings.ToLower(h.address), "localhost") && !strings.Contains(got, "invalid port") && !strings.Contains(got, "302") {
			t.Errorf("webhook to %q: %s", h.address, got)
		}
	}
}

// firstTry waits for the first try of the only delivery of a webhook and returns its error.
func firstTry(t *testing.T, c *client.Client, hook string) string {
	t.Helper()
	for {
		var list struct {
			Deliveries []struct{ Tries []struct{ Error string } }
		}
		if err := c.Do(t.Context(), http.MethodGet, "/v1/webhooks/"+hook+"/deliveries", nil, &list); err != nil {
			return fmt.Sprint("deliveries: ", err)
		}
		if len(list.Deliveries) == 1 && len(list.Deliveries[0].Tries) > 0 {
			return list.Deliveries[0].Tries[0].Error
		}
		pause(t) // until the test times out
	}
}

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
	"github.com/weir-run/weir/server/servertest"
)

// TestEveryWayToAModelIsBoundByTheQuota enumerates the routes by which a user can have a model
// asked: under a quota of two calls the third is refused, whatever the route.
func TestEveryWayToAModelIsBoundByTheQuota(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	calls := 0
	p := servertest.Open(t, servertest.Options{
		Flows: map[string]string{
			"talk.yaml": "weir: 1\nname: talk\ncontext: {model: fake/m}\ninputs: {message: {type: text, required: true}}\nnodes:\n  answer: {type: llmRequest, in: {message: \"{{ run.inputs.message }}\"}, with: {maxOutput: 100}}\noutputs: {answer: \"{{ answer.text }}\"}\n",
			"up.yaml":   "weir: 1\nname: up\ninputs: {message: {type: text, required: true}}\nnodes:\n  talk: {type: flow, in: {message: \"{{ run.inputs.message }}\"}, with: {flow: talk.yaml}}\n",
		},
		Answer: func(*llmtest.Request) llmtest.Turn {
			mu.Lock()
			defer mu.Unlock()
			calls++
			return llmtest.Turn{Text: "yes", Usage: llm.Usage{Input: 10, Output: 2}}
		},
		Server: server.Options{RequireToken: true},
	})
	x := &process{t: t, url: p.URL}
	root := p.Token("root", server.Admin)
	routes := map[string]func(token string) answer{
		"run": func(token string) answer {
			return x.send(http.MethodPost, "/v1/runs?wait=60", `{"flow":"talk","inputs":{"message":"x"}}`, withToken(token))
		},
		"child run": func(token string) answer {
			return x.send(http.MethodPost, "/v1/runs?wait=60", `{"flow":"up","inputs":{"message":"x"}}`, withToken(token))
		},
		"session": func(token string) answer {
			var made struct{ Session string }
			_ = json.Unmarshal([]byte(x.send(http.MethodPost, "/v1/sessions", `{"flow":"talk"}`, withToken(token)).body), &made)
			return x.send(http.MethodPost, "/v1/sessions/"+made.Session+"/messages?wait=60", `{"message":"x"}`, withToken(token))
		},
	}
	n := 0
	for name, send := range routes {
		for _, by := range []string{"user", "token", "everyone"} {
			n++
			checkQuota(t, x, root, fmt.Sprintf("%s under a quota of a %s", name, by), by, p.Token(fmt.Sprint("user", n), server.Read, server.Start), fmt.Sprint("user", n), send)
		}
	}
	if calls != 3*n {
		t.Errorf("%d calls of the model, expected %d", calls, 3*n)
	}
	usage := x.send(http.MethodGet, "/v1/usage?by=key", "", withToken(root)).body
	if strings.Count(usage, `"runs":4`) != n || strings.Contains(usage, `"name":""`) {
		t.Errorf("usage by key: %s", usage)
	}
	for _, bad := range []string{`{}`, `{"user":"ada","token":"x"}`, `{"token":"gone","calls":1}`, `{"user":"ada","calls":-1}`, `{"user":"a\nb","calls":1}`} {
		if got := x.send(http.MethodPut, "/v1/quotas", bad, withToken(root)); got.status != http.StatusUnprocessableEntity && got.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", bad, got.status, got.body)
		}
	}
}

// checkQuota sets a quota of two calls, sends three, and removes it.
func checkQuota(t *testing.T, x *process, root, what, by, token, user string, send func(token string) answer) {
	t.Helper()
	list := decode[struct{ Tokens []server.TokenRow }](x, &client.Client{URL: x.url, Token: token}, http.MethodGet, "/v1/tokens", "")
	body := map[string]string{
		"user": `{"user":"` + user + `","calls":2}`, "token": `{"token":"` + list.Tokens[0].ID + `","calls":2}`, "everyone": `{"user":"*","calls":2}`,
	}[by]
	if got := x.send(http.MethodPut, "/v1/quotas", body, withToken(root)); got.status != http.StatusOK {
		t.Fatal(got)
	}
	for i := range 3 {
		got := send(token)
		if refused := strings.Contains(got.body, "quota_exceeded"); refused != (i == 2) || !refused && !strings.Contains(got.body, `"completed"`) {
			t.Errorf("%s: call %d: %d %s", what, i+1, got.status, got.body)
		}
	}
	got := x.send(http.MethodGet, "/v1/quotas", "", withToken(token)).body
	if strings.Count(got, `"limits"`) != 1 || !strings.Contains(got, `"used":{"calls":2,"tokens":24,"cost":0}`) || !strings.Contains(got, `"reserved":{"calls":0,`) {
		t.Errorf("%s: %s", what, got)
	}
	body = strings.Replace(body, `"calls":2`, `"calls":0`, 1)
	if got := x.send(http.MethodPut, "/v1/quotas", body, withToken(root)); got.status != http.StatusOK {
		t.Fatal(got)
	}
	if got := send(token); strings.Contains(got.body, "quota_exceeded") {
		t.Errorf("%s, removed: %s", what, got.body)
	}
}

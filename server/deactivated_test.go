package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/server"
)

// TestALinkOfADeactivatedUserAnswersNothing deactivates the user whose run it is, and the one who made the link, one after the other.
func TestALinkOfADeactivatedUserAnswersNothing(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, PublicURL: "https://weir.example.org"})
	ada, root := p.anyone("ada"), p.client("root", server.Admin)
	run, path := makeLink(t, p, ada)
	a := p.send(http.MethodPost, "/v1/runs/"+run+"/links", `{"interrupt":"ask:ask#1"}`, withToken(root.Token))
	var byRoot struct{ Path string }
	if err := json.Unmarshal([]byte(a.body), &byRoot); err != nil || a.status != http.StatusCreated {
		t.Fatal(a)
	}
	status := func(path string) [2]int {
		shown := p.send(http.MethodGet, path, "", nil).status
		return [2]int{shown, p.submit(path, url.Values{"value": {"perhaps"}}).status}
	}
	open, closed := [2]int{200, 422}, [2]int{410, 410}
	for _, x := range []struct {
		user       string
		disabled   bool
		ofAda, ofR [2]int
	}{
		{"", false, open, open},
		{"ada", true, closed, closed},
		{"ada", false, open, open},
		{"root", true, open, closed},
		{"root", false, open, open},
	} {
		if x.user != "" {
			p.setUser(x.user, func(u *server.User) { u.Role, u.Disabled = server.OwnerRole, x.disabled })
		}
		if a, b := status(path), status(byRoot.Path); a != x.ofAda || b != x.ofR {
			t.Errorf("%s deactivated: %t: %v and %v", x.user, x.disabled, a, b)
		}
	}
	if a := p.submit(path, url.Values{"value": {"approve"}}); a.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}

// TestProtocolRequestsThatWaitEndWithTheirToken has a request of each protocol wait, and takes the right to it away in each way.
func TestProtocolRequestsThatWaitEndWithTheirToken(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, Heartbeat: 20 * time.Millisecond})
	root := p.client("root", server.Admin)
	decode[any](p, root, http.MethodPut, "/v1/model-stops", `{"models":"*"}`)
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk","arguments":{"message":"x"}}}`
	for what, x := range map[string]struct{ path, body string }{
		"a chat":              {"/v1/chat/completions", `{"model":"talk","messages":[{"role":"user","content":"x"}]}`},
		"a chat in pieces":    {"/v1/chat/completions", `{"model":"talk","stream":true,"messages":[{"role":"user","content":"x"}]}`},
		"a response":          {"/v1/responses", `{"model":"talk","input":"x"}`},
		"a streamed response": {"/v1/responses", `{"model":"talk","input":"x","stream":true}`},
		"AG-UI":               {"/agui/talk", `{"threadId":"t","runId":"1","messages":[{"id":"1","role":"user","content":"x"}]}`},
		"MCP":                 {"/mcp", call},
	} {
		for _, way := range []string{"revoked", "deactivated", "person"} {
			if way == "person" && !strings.HasPrefix(x.path, "/v1/chat") { // who acts for somebody
				continue
			}
			user := what + " " + way
			checkProtocolEnds(t, p, user, way, x.path, x.body)
		}
	}
}

// checkProtocolEnds sends a request that waits, and fails unless it ends when the right to it does, and its run continues.
func checkProtocolEnds(t *testing.T, p *process, user, way, path, body string) {
	t.Helper()
	root, holder := p.client("root", server.Admin), user
	if way == "person" {
		holder = "program of " + user
		body = strings.Replace(body, "{", `{"user":"`+user+`",`, 1)
	}
	c := p.client(holder, server.Read, server.Start, server.Answer, server.ActAs)
	status := func() string {
		runs := decode[struct{ Runs []struct{ Status string } }](p, root, http.MethodGet, "/v1/runs?user="+url.QueryEscape(user), "")
		if len(runs.Runs) != 1 {
			return ""
		}
		return runs.Runs[0].Status
	}
	ended := make(chan answer, 1)
	go func() {
		ended <- p.send(http.MethodPost, path, body, func(r *http.Request) {
			withToken(c.Token)(r)
			r.Header.Set("Accept", "application/json, text/event-stream")
		})
	}()
	waitUntil(t, "the run of "+user+" executes", func() bool { return status() == "running" })
	select {
	case a := <-ended:
		t.Errorf("%s: it has not waited: %d %s", user, a.status, a.body)
		return
	default:
	}
	switch way {
	case "revoked":
		decode[any](p, root, http.MethodDelete, "/v1/tokens/"+firstToken(t, c), "")
	default:
		p.setUser(user, func(u *server.User) { u.Disabled = true })
	}
	if a := <-ended; !strings.Contains(a.body, "not valid any more") {
		t.Errorf("%s: %d %s", user, a.status, a.body)
	}
	if got := status(); got != "running" {
		t.Errorf("the run of %s is %s", user, got)
	}
}

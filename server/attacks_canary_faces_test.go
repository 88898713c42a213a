package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
)

// spokenCanary is a flow for the protocols of others, which sends a secret to a server that sends it back, and says that. The flow "breaks"
// asks a model besides, which refuses with its key.
func spokenCanary(name, echo string) string {
	text := "weir: 1\nname: " + name + "\ncontext: {model: fake/m}\ninputs: {message: {type: text, required: true}}\nnodes:\n" +
		"  header: {type: httpRequest, with: {url: \"" + echo + "\", headers: {Authorization: \"Bearer {{ secrets.CANARY }}\"}, query: {k: \"{{ secrets.CANARY }}\"}, expect: any}}\n"
	if name == "breaks" {
		text += "  ask: {type: llmRequest, after: header, in: {message: \"{{ run.inputs.message }}\"}}\n"
	}
	return text + "outputs: {answer: \"{{ header.body }}\"}\n"
}

// canaryReader sends requests as ada, and looks for secrets in the answers.
type canaryReader struct {
	*canaries
	p     *process
	token string
}

func (c *canaryReader) send(method, path, body string) answer {
	c.t.Helper()
	a := c.p.send(method, path, body, func(r *http.Request) {
		withToken(c.token)(r)
		r.Header.Set("Accept", "application/json, text/event-stream")
	})
	c.look(path+" "+body, a.body+fmt.Sprint(a.header))
	return a
}

func toolCall(name, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"p"},"name":"` + name + `","arguments":` + arguments + `}}`
}

// talk has a flow answer, or fail, by each protocol.
func (c *canaryReader) talk(flow, session string) {
	c.t.Helper()
	for what, x := range map[string]struct{ path, body string }{
		"chat":              {"/v1/chat/completions", `{"model":"` + flow + `","messages":[{"role":"user","content":"x"}]}`},
		"chat in pieces":    {"/v1/chat/completions", `{"model":"` + flow + `","stream":true,"messages":[{"role":"user","content":"x"}]}`},
		"response":          {"/v1/responses", `{"model":"` + flow + `","input":"x"}`},
		"streamed response": {"/v1/responses", `{"model":"` + flow + `","input":"x","stream":true}`},
		"AG-UI":             {"/agui/" + flow, `{"threadId":"` + flow + `","runId":"1","messages":[{"id":"1","role":"user","content":"x"}]}`},
		"MCP":               {"/mcp", toolCall(flow, `{"message":"x"}`)},
		"session":           {"/v1/sessions/" + session + "/messages?wait=60", `{"message":"x"}`},
	} {
		a := c.send(http.MethodPost, x.path, x.body)
		refused := a.status >= 300 || strings.Contains(a.body, "may not") || strings.Contains(a.body, "model_")
		if flow == "talks" && !strings.Contains(a.body, "you sent") || flow == "breaks" && !refused {
			c.t.Errorf("%s, %s: %d %s", flow, what, a.status, a.body)
		}
	}
}

// read reads a run in all forms that are no answer of a plain route.
func (c *canaryReader) read(run string) {
	c.t.Helper()
	for _, path := range []string{"/stream", "/export", "/events", "/trajectory", "/trajectory.svg"} {
		if a := c.send(http.MethodGet, "/v1/runs/"+run+path, ""); a.status != http.StatusOK {
			c.t.Errorf("%s: %d", path, a.status)
		}
	}
	for _, name := range []string{"weir_show_run", "weir_explain_run"} {
		if a := c.send(http.MethodPost, "/mcp", toolCall(name, `{"run":"`+run+`"}`)); a.status != http.StatusOK || strings.Contains(a.body, `"isError":true`) {
			c.t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// TestASecretIsInNoAnswerOfAnyProtocol has flows with secrets answer and fail by each protocol, whole and in pieces, and reads their streams and
// exports.
func TestASecretIsInNoAnswerOfAnyProtocol(t *testing.T) {
	t.Parallel()
	logged := &log{}
	c := &canaryReader{canaries: &canaries{t: t, list: map[string]string{}}}
	p, _, traces := openCanary(t, c.canaries, logged)
	ada, root := p.anyone("ada"), p.client("root", server.Scopes()...)
	c.p, c.token = p, ada.Token
	for _, flow := range []string{"talks", "breaks"} {
		session, err := ada.OpenSession(t.Context(), flow, "")
		if err != nil {
			t.Fatal(err)
		}
		c.talk(flow, session)
	}
	var list struct{ Runs []struct{ Run string } }
	if err := json.Unmarshal([]byte(c.send(http.MethodGet, "/v1/runs?limit=100", "").body), &list); err != nil || len(list.Runs) != 14 {
		t.Fatalf("%d runs: %v", len(list.Runs), err)
	}
	for _, r := range list.Runs {
		c.read(r.Run)
	}
	export := p.send(http.MethodGet, "/v1/users/ada/export", "", withToken(root.Token))
	c.look("the export of the user", export.body)
	c.list["token"] = ada.Token
	c.look("the metrics", p.send(http.MethodGet, "/metrics", "", withToken(root.Token)).body)
	p.close()
	c.look("logs", logged.String())
	c.look("traces", traces.String())
	if err := c.lookAtFiles(p.dir); err != nil || export.status != http.StatusOK || len(export.body) < 1000 {
		t.Errorf("%v; export: %d", err, export.status)
	}
}

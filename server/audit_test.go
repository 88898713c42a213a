package server_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/auditlog"
	"github.com/weir-run/weir/server/client"
)

// audited returns all entries that a query selects, the newest first.
func audited(p *process, c *client.Client, query string) (out []auditlog.Entry) {
	p.t.Helper()
	for cursor := ""; ; {
		page := decode[auditlog.Page](p, c, http.MethodGet, "/v1/audit?limit=500&cursor="+cursor+"&"+query, "")
		out = append(out, page.Entries...)
		if cursor = page.Next; cursor == "" {
			return out
		}
	}
}

// TestEveryRouteThatChangesSomethingIsInTheAuditLog sends a request to each route of the router, as a user who
// may: what is not a read has one entry, with the user, the token, the route and the outcome.
func TestEveryRouteThatChangesSomethingIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	root := p.client("root", server.Scopes()...)
	caller := p.client("caller", server.Scopes()...)
	o := makeObjects(t, p.anyone("ada"))
	reads := []string{"POST /v1/flows/validate", "POST /v1/runs/{run}/fork/plan"}
	list := attacks(o, o)
	for pattern, scope := range p.server.Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		changes := (method != http.MethodGet || path == "/v1/users/{user}/export") && !slices.Contains(reads, pattern)
		if changes != slices.Contains(p.server.AuditedRoutes(), pattern) {
			t.Errorf("%s: recorded: %v", pattern, !changes)
		}
		if scope == server.Public || strings.HasSuffix(path, "/stream") || path == "/v1/audit" {
			continue
		}
		before := len(audited(p, root, "user=caller"))
		got := p.send(method, wildcards.ReplaceAllString(path, "unknown"), list[pattern].body, withToken(caller.Token))
		entries := audited(p, root, "user=caller")
		if n := len(entries) - before; n != map[bool]int{true: 1}[changes] {
			t.Errorf("%s: %d entries", pattern, n)
		} else if changes && (entries[0].Action != pattern || entries[0].Status != got.status || entries[0].Token == "" || entries[0].Via != "api") {
			t.Errorf("%s: %d, and the entry is %+v", pattern, got.status, entries[0])
		}
	}
	if v := decode[auditlog.Verified](p, root, http.MethodGet, "/v1/audit/verify", ""); len(v.Problems) > 0 || v.Entries == 0 {
		t.Errorf("%+v", v)
	}
}

func TestTheAuditLogSaysWhatARequestWasAboutAndHowItEnded(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	root, ada, viewer := p.client("root", server.Admin), p.client("ada", server.Start, server.Answer), p.client("vera", server.Read)
	program := p.client("program", server.Read, server.Start, server.ActAs)
	run := decode[client.Run](p, ada, http.MethodPost, "/v1/runs?wait=60", `{"flow":"ask","inputs":{"name":"canary-of-contents"}}`)
	p.send(http.MethodPost, "/v1/runs/"+run.ID+"/answer", `{"interrupt":"ask:ask#1","value":"canary-of-contents"}`, withToken(ada.Token))
	p.send(http.MethodPost, "/v1/runs", `{"flow":"ask"}`, withToken(viewer.Token))
	p.send(http.MethodPut, "/v1/users/vera", `{"role":"viewer","note":"canary-of-contents"}`, withToken(root.Token))
	p.send(http.MethodPut, "/v1/quotas", `{"user":"vera","calls":9}`, withToken(root.Token))
	p.send(http.MethodPut, "/v1/filters/canary-of-contents", `{"of":"runs","query":{}}`, withToken(root.Token))
	p.send(http.MethodDelete, "/v1/tokens/"+ada.Token, "", withToken(root.Token)) // the secret in place of the id
	p.send(http.MethodPost, "/v1/tokens", `{"user":"vera","scopes":["read"],"name":"canary-of-contents"}`, withToken(root.Token))
	p.send(http.MethodPost, "/v1/chat/completions", `{"model":"talk","user":"carl","messages":[{"role":"user","content":"canary-of-contents"}]}`, withToken(program.Token))
	p.send(http.MethodPost, "/v1/runs", `{"flow":"ask"}`, withToken("weir_bad"))
	hook := makeTrigger(t, ada, `{"name":"canary-of-contents","flow":"ask","kind":"webhook","payload":"name"}`)
	p.signedRequest(hook, "1", `"canary-of-contents"`, hook.Secret, time.Now())
	p.signedRequest(hook, "2", `"x"`, "whsec_AAAA", time.Now())
	var got []string
	for _, e := range audited(p, root, "") {
		about := make([]string, 0, len(e.Objects))
		for kind, id := range e.Objects {
			if kind == "made" && id != run.ID {
				id = "it"
			}
			about = append(about, kind+"="+strings.NewReplacer(run.ID, "RUN", hook.ID, "TRIGGER").Replace(id))
		}
		slices.Sort(about)
		got = append(got, strings.Join([]string{e.Via, e.User, e.Action, strings.Join(about, ","), e.Outcome(), e.Code}, " "))
	}
	slices.Reverse(got)
	want := []string{
		"api ada POST /v1/runs flow=ask,made=it ok ",
		"api ada POST /v1/runs/{run}/answer run=RUN refused answer_invalid",
		"api vera POST /v1/runs  refused forbidden",
		"api root PUT /v1/users/{user} disabled=false,role=viewer,user=vera ok ",
		"api root PUT /v1/quotas user=vera ok ",
		"api root PUT /v1/filters/{filter}  ok ",
		"api root DELETE /v1/tokens/{token}  refused not_found",
		"api root POST /v1/tokens made=it,scopes=read,user=vera ok ",
		"api program POST /v1/chat/completions for=carl,made=it ok ",
		"api ada POST /v1/triggers made=it ok ",
		"public  POST /t/{trigger} trigger=TRIGGER ok ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	all := p.send(http.MethodGet, "/v1/audit?limit=500", "", withToken(root.Token))
	if strings.Contains(all.body, "canary") || strings.Contains(all.body, "weir_") || strings.Contains(all.body, ada.Token) {
		t.Errorf("the log has contents or a secret: %s", all.body)
	}
	for query, n := range map[string]int{
		"user=ada": 3, "object=vera": 3, "object=" + run.ID: 1, "outcome=refused": 3, "action=" + url.QueryEscape("/v1/runs"): 3, "outcome=open": 0,
		"since=2000-01-01T00:00:00Z&until=2001-01-01T00:00:00Z": 0, "since=2026-01-01T00:00:00Z": len(want),
	} {
		if got := audited(p, root, query); len(got) != n {
			t.Errorf("%s: %d entries, not %d", query, len(got), n)
		}
	}
}

// TestARequestIsInTheAuditLogBeforeItTakesEffect: a request that waits for its run has an entry without an outcome.
func TestARequestIsInTheAuditLogBeforeItTakesEffect(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	root, ada := p.client("root", server.Admin), p.anyone("ada")
	p.send(http.MethodPut, "/v1/model-stops", `{"models":"*"}`, withToken(root.Token))
	ended := make(chan error, 1)
	go func() {
		_, err := ada.StartRun(t.Context(), client.Start{Flow: "talk", Inputs: map[string]any{"message": "x"}, Wait: 60})
		ended <- err
	}()
	var open []auditlog.Entry
	for deadline := time.Now().Add(time.Minute); len(open) == 0; <-time.After(10 * time.Millisecond) {
		if open = audited(p, root, "user=ada&outcome=open"); time.Now().After(deadline) {
			t.Fatal("no entry")
		}
	}
	p.send(http.MethodDelete, "/v1/model-stops?models=*", "", withToken(root.Token))
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := audited(p, root, "user=ada"); len(got) != 1 || got[0].ID != open[0].ID || got[0].Status != http.StatusCreated || got[0].Ended.IsZero() {
		t.Errorf("%+v, and before %+v", got, open)
	}
}

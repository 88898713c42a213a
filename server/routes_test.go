package server_test

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
	"github.com/weir-run/weir/server/servertest"
)

// attack is how a route is tried: with a body, and with the ids of objects of another user
// in each place that names one.
type attack struct {
	// paths are the path with its parameters, each with one object of the other user. They
	// have no wildcards any more. Empty means that the route names no object.
	paths []string
	body  string
	// query makes a request of whom the route lets in invalid, where the answer would not end.
	query string
}

// attacks lists every route. victim are the objects of another user, own those of the
// caller.
func attacks(victim, own objects) map[string]attack {
	run := func(rest, body string) attack {
		return attack{paths: []string{"/v1/runs/" + victim.run + rest}, body: body}
	}
	flow := func(rest, body string) attack {
		return attack{paths: []string{"/v1/flows/" + victim.flow + rest}, body: body}
	}
	session := func(rest, body string) attack {
		return attack{paths: []string{"/v1/sessions/" + victim.session + rest}, body: body}
	}
	list := attacksOnDocuments(victim, own)
	maps.Copy(list, attacksOnRounds(victim))
	maps.Copy(list, map[string]attack{
		"GET /healthz": {}, "GET /readyz": {}, "GET /openapi.json": {}, "GET /docs": {}, "GET /docs.css": {}, "GET /metrics": {},
		"GET /v1/flows":           {},
		"GET /v1/flows/{flow}":    flow("", ""),
		"POST /v1/flows/validate": {body: `{"flow":"weir: 1"}`},
		"GET /v1/runs":            {paths: []string{"/v1/runs?cursor=" + victim.run}},
		"POST /v1/runs":           {body: `{"flow":"ask","inputs":{"name":"x"}}`},
		"GET /v1/runs/{run}":      run("", ""),
		"GET /v1/runs/{run}/diff/{other}": {paths: []string{
			"/v1/runs/" + victim.run + "/diff/" + own.run, "/v1/runs/" + own.run + "/diff/" + victim.run,
		}},
		"POST /v1/runs/{run}/cancel":                    run("/cancel", `{}`),
		"POST /v1/runs/{run}/resume":                    run("/resume", ""),
		"POST /v1/runs/{run}/answer":                    run("/answer", `{"interrupt":"ask:ask#1","value":"approve"}`),
		"POST /v1/runs/{run}/signal":                    run("/signal", `{"event":"e"}`),
		"POST /v1/runs/{run}/retry":                     run("/retry", `{"node":"ask"}`),
		"POST /v1/runs/{run}/skip":                      run("/skip", `{"node":"ask"}`),
		"POST /v1/runs/{run}/complete":                  run("/complete", `{"node":"ask","outputs":{}}`),
		"POST /v1/runs/{run}/fork":                      run("/fork", `{}`),
		"POST /v1/runs/{run}/rerun":                     run("/rerun", `{}`),
		"GET /v1/runs/{run}/events":                     run("/events", ""),
		"GET /v1/runs/{run}/stream":                     run("/stream", ""),
		"GET /v1/runs/{run}/verify":                     run("/verify", ""),
		"GET /v1/runs/{run}/export":                     run("/export", ""),
		"GET /v1/runs/{run}/chain":                      run("/chain", ""),
		"GET /v1/runs/{run}/contexts/{context}":         run("/contexts/main", ""),
		"GET /v1/runs/{run}/calls":                      run("/calls?node=greet", ""),
		"GET /v1/runs/{run}/trajectory":                 run("/trajectory", ""),
		"GET /v1/sessions":                              {paths: []string{"/v1/sessions?cursor=" + victim.session}},
		"POST /v1/sessions":                             {body: `{"flow":"talk"}`},
		"GET /v1/sessions/{session}":                    session("", ""),
		"DELETE /v1/sessions/{session}":                 session("", ""),
		"GET /v1/sessions/{session}/messages":           session("/messages", ""),
		"POST /v1/sessions/{session}/messages":          session("/messages", `{"message":"hello"}`),
		"GET /v1/sessions/{session}/queue":              session("/queue", ""),
		"DELETE /v1/sessions/{session}/queue/{message}": {paths: []string{"/v1/sessions/" + victim.session + "/queue/" + victim.message, "/v1/sessions/" + own.session + "/queue/" + victim.message}},
		"POST /v1/sessions/{session}/fork":              session("/fork", `{}`),
		"GET /v1/runs/{run}/graph":                      run("/graph", ""),
		"POST /v1/runs/{run}/fork/plan":                 run("/fork/plan", `{}`),
		"GET /v1/runs/{run}/trajectory.svg":             run("/trajectory.svg", ""),
		"GET /v1/runs/{run}/cache":                      run("/cache?node=greet", ""),
		"GET /v1/runs/{run}/timeline":                   run("/timeline", ""),
		"GET /v1/runs/{run}/node":                       run("/node?node=greet", ""),
		"GET /v1/runs/{run}/value":                      run("/value?node=greet&part=outputs&name=text", ""),
		"GET /v1/flows/{flow}/graph":                    flow("/graph", ""),
		"GET /v1/me":                                    {}, "GET /v1/sign-in": {}, "GET /login/start": {}, "GET /login/callback": {}, "POST /login/end": {},
		"GET /v1/memory":                  {},
		"GET /v1/errors":                  {},
		"GET /v1/schema":                  {},
		"GET /v1/usage":                   {},
		"GET /v1/models":                  {},
		"GET /v1/models/{model}":          {},
		"POST /v1/chat/completions":       {body: `{"model":"talk","messages":[{"role":"user","content":"x"}]}`},
		"POST /v1/responses":              {body: `{"model":"talk","input":"x"}`},
		"POST /mcp":                       {body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
		"POST /agui/{flow}":               {paths: []string{"/agui/" + victim.flow}, body: `{"threadId":"t","runId":"1","messages":[{"id":"1","role":"user","content":"x"}]}`},
		"GET /v1/responses/{response}":    {},
		"DELETE /v1/responses/{response}": {}, "GET /v1/responses/{response}/input_items": {},
		"POST /v1/responses/{response}/cancel":        {},
		"POST /v1/conversations":                      {body: `{}`},
		"GET /v1/conversations/{conversation}":        {},
		"POST /v1/conversations/{conversation}":       {body: `{"metadata":{}}`},
		"DELETE /v1/conversations/{conversation}":     {},
		"GET /v1/conversations/{conversation}/items":  {},
		"POST /v1/conversations/{conversation}/items": {body: `{"items":[]}`},
	})
	return list
}

// attacksOnRounds lists the routes by which people read, follow and steer what runs.
func attacksOnRounds(victim objects) map[string]attack {
	return map[string]attack{
		"GET /v1/conversations/{conversation}/items/{item}":    {},
		"DELETE /v1/conversations/{conversation}/items/{item}": {},
		"GET /v1/sessions/{session}/budget":                    {paths: []string{"/v1/sessions/" + victim.session + "/budget"}},
		"POST /v1/sessions/{session}/budget":                   {paths: []string{"/v1/sessions/" + victim.session + "/budget"}, body: `{"calls":1}`},
		"POST /v1/sessions/{session}/messages/{position}/edit": {
			paths: []string{"/v1/sessions/" + victim.session + "/messages/0/edit"}, body: `{"message":"hello"}`,
		},
		"POST /v1/sessions/{session}/messages/{position}/regenerate": {
			paths: []string{"/v1/sessions/" + victim.session + "/messages/0/regenerate"}, body: `{}`,
		},
		"POST /v1/sessions/{session}/steer":                         {paths: []string{"/v1/sessions/" + victim.session + "/steer"}, body: `{"message":"x"}`},
		"GET /v1/sessions/{session}/stream":                         {paths: []string{"/v1/sessions/" + victim.session + "/stream"}},
		"GET /v1/runs/{run}/contexts/{context}/messages/{position}": {paths: []string{"/v1/runs/" + victim.run + "/contexts/main/messages/0"}},
		"GET /v1/sessions/{session}/messages/{position}":            {paths: []string{"/v1/sessions/" + victim.session + "/messages/0"}},
		"POST /v1/files":               {body: "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nabc\r\n--x--\r\n"},
		"GET /v1/files":                {},
		"GET /v1/files/{file}":         {paths: []string{"/v1/files/" + victim.file}},
		"GET /v1/files/{file}/content": {paths: []string{"/v1/files/" + victim.file + "/content"}},
		"DELETE /v1/files/{file}":      {paths: []string{"/v1/files/" + victim.file}},
		"GET /v1/runs/{run}/steer":     {paths: []string{"/v1/runs/" + victim.run + "/steer"}},
		"POST /v1/runs/{run}/steer":    {paths: []string{"/v1/runs/" + victim.run + "/steer"}, body: `{"message":"x"}`},
	}
}

// attacksOnDocuments lists the routes of what the server keeps besides runs.
func attacksOnDocuments(victim, own objects) map[string]attack {
	flow := func(rest, body string) attack {
		return attack{paths: []string{"/v1/flows/" + victim.flow + rest}, body: body}
	}
	on := func(object, rest, body string) attack {
		return attack{paths: []string{"/v1/" + object + rest}, body: body}
	}
	hook := func(rest, body string) attack {
		return attack{paths: []string{"/v1/webhooks/" + victim.hook + rest}, body: body}
	}
	return map[string]attack{
		"GET /v1/model-stops": {}, "DELETE /v1/model-stops": {paths: []string{"/v1/model-stops?models=none"}},
		"PUT /v1/model-stops": {body: `{"models":"none"}`},
		"GET /a.css":          {}, "GET /a/{token}": {}, "POST /a/{token}": {},
		"PUT /v1/flows/{flow}":                    {paths: []string{"/v1/flows/" + victim.flow}, body: `{"flow":"weir: 1"}`},
		"DELETE /v1/flows/{flow}":                 flow("", ""),
		"GET /v1/flows/{flow}/versions/{version}": flow("/versions/"+victim.version, ""),
		"POST /v1/flows/{flow}/promote":           flow("/promote", `{"version":"x"}`),
		"POST /v1/flows/{flow}/pause":             flow("/pause", `{"paused":true}`),
		"PUT /v1/flows/{flow}/access":             flow("/access", `{"users":["*"]}`),
		"PUT /v1/flows/{flow}/grants":             {paths: []string{"/v1/flows/" + victim.flow + "/grants"}, body: `{"providers":[],"tools":[],"servers":[],"executors":[],"hosts":[],"secrets":[],"flows":[]}`},
		"POST /t/{trigger}":                       {},
		"GET /v1/triggers":                        {},
		"DELETE /v1/runs/{run}":                   on("runs/"+victim.run, "", ""),
		"DELETE /v1/users/{user}":                 {},
		"GET /v1/filters":                         {}, "PUT /v1/filters/{filter}": {body: `{"of":"runs","query":{}}`}, "DELETE /v1/filters/{filter}": {},
		"GET /v1/audit": {}, "GET /v1/audit/verify": {}, "GET /v1/users/{user}/export": {},
		"POST /v1/reload": {}, "POST /v1/backup": {}, "GET /v1/backups": {}, "GET /v1/retention": {}, "DELETE /v1/retention/{policy}": {},
		"PUT /v1/retention/{policy}": {body: `{"of":"runs","olderThan":1}`},
		"GET /v1/quotas":             {}, "PUT /v1/quotas": {body: `{"user":"ada","calls":1}`},
		"GET /v1/labels": {}, "GET /v1/ratings": {}, "GET /v1/search": {paths: []string{"/v1/search?text=ada&cursor=" + victim.run}},
		"DELETE /v1/memory/{item}":                                 {paths: []string{"/v1/memory/" + victim.memory}},
		"GET /v1/flows/{flow}/diff":                                {paths: []string{"/v1/flows/" + victim.flow + "/diff?from=" + victim.version, "/v1/flows/ask/diff?from=" + victim.version}},
		"GET /v1/flows/{flow}/tests":                               flow("/tests", ""),
		"POST /v1/flows/{flow}/tests/run":                          flow("/tests/run", "{}"),
		"GET /v1/flows/{flow}/tests/results":                       flow("/tests/results", ""),
		"PUT /v1/sessions/{session}/labels":                        on("sessions/"+victim.session, "/labels", `{"labels":["x"]}`),
		"PUT /v1/sessions/{session}/title":                         on("sessions/"+victim.session, "/title", `{"title":"x"}`),
		"GET /v1/runs/{run}/labels":                                on("runs/"+victim.run, "/labels", ""),
		"PUT /v1/runs/{run}/labels":                                on("runs/"+victim.run, "/labels", `{"labels":["x"]}`),
		"GET /v1/runs/{run}/ratings":                               on("runs/"+victim.run, "/ratings", ""),
		"PUT /v1/runs/{run}/ratings":                               on("runs/"+victim.run, "/ratings", `{"rating":"up"}`),
		"POST /v1/runs/{run}/budget":                               on("runs/"+victim.run, "/budget", `{"node":"ask","calls":1}`),
		"POST /v1/runs/{run}/playground":                           on("runs/"+victim.run, "/playground", `{"node":"greet"}`),
		"GET /v1/answers":                                          {paths: []string{"/v1/answers?cursor=" + victim.run}},
		"GET /v1/stream":                                           {query: "?limit=0"},
		"GET /v1/users":                                            {},
		"GET /v1/users/{user}":                                     {},
		"PUT /v1/users/{user}":                                     {body: `{"role":"viewer"}`},
		"GET /v1/tokens":                                           {},
		"POST /v1/tokens":                                          {body: `{"scopes":["read"]}`},
		"DELETE /v1/tokens/{token}":                                on("tokens/"+victim.token, "", ""),
		"POST /v1/runs/bulk":                                       {body: `{"action":"cancel"}`},
		"POST /v1/triggers":                                        {body: `{"name":"x","flow":"ask","kind":"webhook","inputs":{"name":"x"}}`},
		"GET /v1/triggers/{trigger}":                               on("triggers/"+victim.trigger, "", ""),
		"GET /v1/triggers/{trigger}/files":                         on("triggers/"+victim.trigger, "/files", ""),
		"DELETE /v1/triggers/{trigger}":                            on("triggers/"+victim.trigger, "", ""),
		"POST /v1/triggers/{trigger}/pause":                        on("triggers/"+victim.trigger, "/pause", `{"paused":true}`),
		"GET /v1/webhooks":                                         {},
		"POST /v1/webhooks":                                        {body: `{"url":"https://example.org","events":["run.failed"]}`},
		"GET /v1/webhooks/{webhook}":                               hook("", ""),
		"DELETE /v1/webhooks/{webhook}":                            hook("", ""),
		"POST /v1/webhooks/{webhook}/pause":                        hook("/pause", `{"paused":true}`),
		"POST /v1/webhooks/{webhook}/rotate":                       hook("/rotate", ""),
		"GET /v1/webhooks/{webhook}/deliveries":                    hook("/deliveries", ""),
		"POST /v1/webhooks/{webhook}/deliveries/{delivery}/resend": {paths: []string{"/v1/webhooks/" + victim.hook + "/deliveries/msg_x/resend", "/v1/webhooks/" + own.hook + "/deliveries/msg_x/resend"}},
		"POST /v1/runs/{run}/links":                                {paths: []string{"/v1/runs/" + victim.run + "/links"}, body: `{"interrupt":"ask:ask#1"}`},
	}
}

// objects are what a user has.
type objects struct{ run, session, message, flow, version, hook, trigger, token, memory, file string }

func makeObjects(t *testing.T, c *client.Client) objects {
	t.Helper()
	run, err := c.StartRun(t.Context(), client.Start{Flow: "ask", Inputs: map[string]any{"name": "Ada"}, Wait: 60})
	if err != nil || run.Status != "paused" {
		t.Fatalf("%+v, %v", run, err)
	}
	session, err := c.OpenSession(t.Context(), "talk", "")
	if err != nil {
		t.Fatal(err)
	}
	sent, err := c.Send(t.Context(), session, client.Message{Text: "Is there a berth?", Wait: 60})
	if err != nil || sent.Status != "completed" {
		t.Fatalf("%+v, %v", sent, err)
	}
	file, err := c.Upload(t.Context(), "a.txt", strings.NewReader("abc"))
	if err != nil {
		t.Fatal(err)
	}
	name := "private-" + run.ID[len(run.ID)-6:]
	version := putFlow(t, c, name, "text", "", true)
	return objects{run.ID, session, sent.Message, name, version, makeHook(t, c, "https://example.org/", "run.failed").ID, makeTrigger(t, c, `{"name":"nightly","flow":"ask","kind":"webhook","payload":"name"}`).ID, firstToken(t, c), "", file.ID}
}

// firstToken returns the id of the first token of the user of a client.
func firstToken(t *testing.T, c *client.Client) string {
	t.Helper()
	var out struct{ Tokens []server.TokenRow }
	if err := c.Do(t.Context(), http.MethodGet, "/v1/tokens", nil, &out); err != nil || len(out.Tokens) == 0 {
		t.Fatal(out, err)
	}
	return out.Tokens[0].ID
}

// namesAda reports whether an answer names the user ada. A digest may have these letters within it.
func namesAda(body string) bool { return regexp.MustCompile(`\bada\b`).MatchString(body) }

// TestEveryRouteRefusesWhoMayNot tries every route of the router without a token, with bad
// ones, with all scopes but the one it needs, and with ids of another user at every place. A
// route that attacks does not list fails the test.
func TestEveryRouteRefusesWhoMayNot(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), loginOptions(servertest.StartIssuer(t), nil))
	ada, bob := p.anyone("ada"), p.anyone("bob")
	victim, own := makeObjects(t, ada), makeObjects(t, bob)
	victim.memory = p.remember("ada", "the berth is free")
	list := attacks(victim, own)
	for pattern := range list {
		if p.server.Routes()[pattern] == "" {
			t.Errorf("%s is no route of the server any more", pattern)
		}
	}
	for pattern, scope := range p.server.Routes() {
		a, ok := list[pattern]
		if !ok {
			t.Errorf("route %s: say in attacks how it is tried with the ids of another user", pattern)
			continue
		}
		t.Run(pattern, func(t *testing.T) {
			if scope == server.Public {
				checkPublic(t, p, pattern)
				return
			}
			checkTokens(t, p, pattern, scope, a)
			checkRoles(t, p, pattern, scope, a)
			checkForeign(t, p, pattern, a, victim, bob)
		})
	}
}

func checkPublic(t *testing.T, p *process, pattern string) {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	want := http.StatusOK
	if strings.Contains(path, "{token}") { // the secret is in the path
		path, want = wildcards.ReplaceAllString(path, "unknown"), http.StatusGone
	}
	if strings.HasPrefix(path, "/t/") { // it is signed
		want = http.StatusUnauthorized
	}
	switch path {
	case "/login/start":
		want = http.StatusSeeOther
	case "/login/callback": // nobody has begun
		want = http.StatusForbidden
	}
	if got := p.send(method, path, "", nil); got.status != want {
		t.Errorf("without a token: %d %s", got.status, got.body)
	}
}

// checkTokens tries a route without a token, with bad ones, and with all scopes but its own.
func checkTokens(t *testing.T, p *process, pattern string, scope server.Scope, a attack) {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	path = wildcards.ReplaceAllString(path, "unknown") + a.query
	for _, token := range []string{"", "weir_unknown", "x", strings.Repeat("a", 5000)} {
		got := p.send(method, path, a.body, withToken(token))
		if got.status != http.StatusUnauthorized || got.problem() != "unauthenticated" || got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("token %.10q: %d %s", token, got.status, got.body)
		}
	}
	lesser := slices.DeleteFunc(server.Scopes(), func(s server.Scope) bool { return s == scope || s == server.Admin })
	got := p.send(method, path, a.body, withToken(p.client("bob", lesser...).Token))
	if got.status != http.StatusForbidden || got.problem() != "forbidden" {
		t.Errorf("without the scope %s: %d %s", scope, got.status, got.body)
	}
}

// checkRoles tries a route with tokens that have every scope, of a user whose role does not
// allow that of the route and of one who was deactivated.
func checkRoles(t *testing.T, p *process, pattern string, scope server.Scope, a attack) {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	path = wildcards.ReplaceAllString(path, "unknown") + a.query
	for role, refuses := range map[server.Role]bool{server.ViewerRole: scope != server.Read, server.OperatorRole: scope == server.Admin} {
		c := p.client("a "+string(role), server.Scopes()...)
		p.setUser(string("a "+role), func(u *server.User) { u.Role = role })
		got := p.send(method, path, a.body, withToken(c.Token))
		if refused := got.status == http.StatusForbidden && strings.Contains(got.body, "role"); refused != refuses {
			t.Errorf("role %s: %d %s", role, got.status, got.body)
		}
	}
	c := p.client("gone", server.Scopes()...)
	p.setUser("gone", func(u *server.User) { u.Role, u.Disabled = server.OwnerRole, true })
	if got := p.send(method, path, a.body, withToken(c.Token)); got.status != http.StatusUnauthorized || got.problem() != "unauthenticated" {
		t.Errorf("of a deactivated user: %d %s", got.status, got.body)
	}
}

// checkForeign tries a route with ids of another user: the answer is that for ids that do
// not exist.
func checkForeign(t *testing.T, p *process, pattern string, a attack, victim objects, caller *client.Client) {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	if named := strings.Contains(path, "{run}") || strings.Contains(path, "{session}") || strings.Contains(path, "{flow}"); named && len(a.paths) == 0 {
		t.Error("the route names an object, and attacks tries none of another user")
	}
	for _, path := range a.paths {
		foreign := p.send(method, path, a.body, withToken(caller.Token))
		unknown := p.send(method, replaceIDs(path, victim), a.body, withToken(caller.Token))
		same := replaceIDs(foreign.body, victim) == unknown.body && foreign.status == unknown.status
		if foreign.status < 400 || !same || namesAda(foreign.body) {
			t.Errorf("%s of another user: %d %s; of nobody: %d %s", path, foreign.status, foreign.body, unknown.status, unknown.body)
		}
	}
}

var wildcards = regexp.MustCompile(`\{[^}]*\}`)

// replaceIDs puts an id that does not exist in place of those of objects.
func replaceIDs(text string, o objects) string {
	var pairs []string
	for _, id := range []string{o.run, o.session, o.message, o.flow, o.version, o.hook, o.trigger, o.token, o.memory} {
		if id != "" {
			pairs = append(pairs, id, "nothing")
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func TestListsContainOnlyOwnObjects(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada, bob, root := p.anyone("ada"), p.anyone("bob"), p.client("root", server.Admin)
	victim := makeObjects(t, ada)
	for path, body := range map[string]string{
		"/v1/runs/" + victim.run + "/labels": `{"labels":["harbour"]}`, "/v1/runs/" + victim.run + "/ratings": `{"rating":"up","note":"of ada"}`,
		"/v1/sessions/" + victim.session + "/labels": `{"labels":["harbour"]}`,
		"/v1/filters/ada": `{"of":"runs","query":{"user":"ada"}}`,
	} {
		if got := p.send(http.MethodPut, path, body, withToken(ada.Token)); got.status != http.StatusOK {
			t.Fatal(path, got)
		}
	}
	for _, path := range []string{
		"/v1/runs", "/v1/runs?all=true", "/v1/runs?session=" + victim.session, "/v1/runs?parent=" + victim.run,
		"/v1/sessions", "/v1/sessions?label=harbour", "/v1/memory", "/v1/usage?by=user", "/v1/usage?by=model",
		"/v1/answers", "/v1/runs?text=ada", "/v1/runs?minCost=0&since=2020-01-01T00:00:00Z",
		"/v1/search?text=Ada", "/v1/search?text=berth", "/v1/labels", "/v1/runs?label=harbour", "/v1/ratings", "/v1/filters", "/v1/quotas",
	} {
		got := p.send(http.MethodGet, path, "", withToken(bob.Token))
		if got.status != http.StatusOK || namesAda(got.body) || strings.Contains(got.body, victim.run) || strings.Contains(got.body, victim.session) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	for _, c := range []*client.Client{ada, root} {
		for path, want := range map[string]string{"/v1/runs": victim.run, "/v1/sessions": victim.session, "/v1/usage?by=user": `"name":"ada"`, "/v1/runs/" + victim.run: `"user":"ada"`} {
			if got := p.send(http.MethodGet, path, "", withToken(c.Token)); !strings.Contains(got.body, want) {
				t.Errorf("%s: %s has no %s", path, got.body, want)
			}
		}
	}
}

func TestARevokedOrExpiredTokenIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	secret, token, err := server.NewToken(t.Context(), p.app.Store, "ada", "", []string{"read"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	short, _, err := server.NewToken(t.Context(), p.app.Store, "ada", "", []string{"read"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	status := func(token string) int { return p.send(http.MethodGet, "/v1/runs", "", withToken(token)).status }
	if got := []int{status(secret), status(short), status("")}; !slices.Equal(got, []int{200, 401, 200}) {
		t.Errorf("valid, expired, none on this machine: %v", got)
	}
	if err := p.app.Store.RevokeToken(t.Context(), token.ID, token.Created); err != nil {
		t.Fatal(err)
	}
	if got := status(secret); got != http.StatusUnauthorized {
		t.Errorf("revoked: %d", got)
	}
	for _, bad := range [][]string{nil, {"owner"}, {"read", ""}} {
		if _, _, err := server.NewToken(t.Context(), p.app.Store, "ada", "", bad, 0); err == nil {
			t.Errorf("scopes %q are accepted", bad)
		}
	}
}

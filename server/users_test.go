package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// TestADeactivatedUserIsStoppedAtOnce: every way in which a user can do something ends, and
// comes back.
func TestADeactivatedUserIsStoppedAtOnce(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, Heartbeat: 20 * time.Millisecond})
	ada, root, program := p.anyone("ada"), p.client("root", server.Admin), p.client("program", server.Read, server.Start, server.ActAs)
	o := makeObjects(t, ada)
	stream := openStream(t, p, "/v1/runs/"+o.run+"/stream", ada.Token)
	hook := makeTrigger(t, ada, `{"name":"second","flow":"talk","kind":"webhook","payload":"message"}`)
	chat := func() answer {
		return p.send(http.MethodPost, "/v1/chat/completions", `{"model":"talk","user":"ada","messages":[{"role":"user","content":"x"}]}`, withToken(program.Token))
	}
	state := func() [2]int {
		return [2]int{p.send(http.MethodGet, "/v1/runs", "", withToken(ada.Token)).status, chat().status}
	}
	if got := state(); got != [2]int{200, 200} {
		t.Fatalf("before: %v", got)
	}
	put := func(body string) answer { return p.send(http.MethodPut, "/v1/users/ada", body, withToken(root.Token)) }
	if got := put(`{"role":"operator","disabled":true}`); got.status != http.StatusOK {
		t.Fatal(got)
	}
	if got := state(); got != [2]int{401, 403} {
		t.Errorf("deactivated: %v", got)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for stream.Scan() {
			continue // until the server ends it
		}
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the stream of a deactivated user goes on")
	}
	if got := p.signedRequest(hook, "1", `"x"`, hook.Secret, time.Now()); got.status == http.StatusAccepted {
		t.Errorf("the trigger of a deactivated user: %d %s", got.status, got.body)
	}
	if got := put(`{"role":"viewer"}`); got.status != http.StatusOK {
		t.Fatal(got)
	}
	if got := state(); got != [2]int{200, 403} {
		t.Errorf("a viewer: %v", got)
	}
	if got := put(`{"role":"operator"}`); got.status != http.StatusOK {
		t.Fatal(got)
	}
	if got := state(); got != [2]int{200, 200} {
		t.Errorf("active again: %v", got)
	}
	if got := p.send(http.MethodPut, "/v1/users/root", `{"role":"viewer"}`, withToken(root.Token)); got.status != http.StatusConflict {
		t.Errorf("an owner takes the role from itself: %d %s", got.status, got.body)
	}
	if got := put(`{"role":"king"}`); got.status != http.StatusUnprocessableEntity {
		t.Errorf("an unknown role: %d %s", got.status, got.body)
	}
}

// openStream opens a stream and reads its first line.
func openStream(t *testing.T, p *process, path, token string) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	withToken(token)(r)
	a, err := (&http.Client{}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Body.Close() })
	s := bufio.NewScanner(a.Body)
	if a.StatusCode != http.StatusOK || !s.Scan() {
		t.Fatalf("stream: %d", a.StatusCode)
	}
	return s
}

// TestATokenMakesNoTokenThatMayMore enumerates the scopes of the token of the request and of
// the one that is asked for.
func TestATokenMakesNoTokenThatMayMore(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	for _, have := range server.Scopes() {
		c := p.client("ada", server.Start, have)
		for _, want := range server.Scopes() {
			got := p.send(http.MethodPost, "/v1/tokens", `{"scopes":["`+string(want)+`"]}`, withToken(c.Token))
			allowed := want == have || want == server.Start || have == server.Admin && want != server.ActAs
			if (got.status == http.StatusCreated) != allowed {
				t.Errorf("%s gives %s: %d %s", have, want, got.status, got.body)
			}
		}
		if got := p.send(http.MethodPost, "/v1/tokens", `{"user":"bob","scopes":["start"]}`, withToken(c.Token)); (got.status == http.StatusCreated) != (have == server.Admin) {
			t.Errorf("%s makes a token of another user: %d %s", have, got.status, got.body)
		}
	}
	short, _, err := server.NewToken(t.Context(), p.app.Store, "ada", "", []string{"start"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	got := p.send(http.MethodPost, "/v1/tokens", `{"scopes":["start"],"expires":100000}`, withToken(short))
	var made struct {
		Token, Secret string
		Expires       time.Time
	}
	if err := json.Unmarshal([]byte(got.body), &made); err != nil || time.Until(made.Expires) > time.Hour {
		t.Errorf("a token that outlives its maker: %v %s", err, got.body)
	}
	if got := p.send(http.MethodDelete, "/v1/tokens/"+made.Token, "", withToken(short)); got.status != http.StatusNoContent {
		t.Errorf("revoke: %d %s", got.status, got.body)
	}
	if got := p.send(http.MethodPost, "/v1/tokens", `{"scopes":["start"]}`, withToken(made.Secret)); got.status != http.StatusUnauthorized {
		t.Errorf("a revoked token: %d %s", got.status, got.body)
	}
	if list := p.send(http.MethodGet, "/v1/tokens", "", withToken(p.client("ada", server.Read).Token)); strings.Contains(list.body, `"bob"`) || strings.Contains(list.body, "weir_") {
		t.Errorf("the list has tokens of others or secrets: %s", list.body)
	}
}

func TestChangesOfAUserAtTheSameTimeAllCount(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { p.setUser("ada", func(u *server.User) { u.Note += "x" }) })
	}
	all.Wait()
	u, err := server.FindUser(t.Context(), p.app.Store, "ada")
	if err != nil || u.Note != "xxxxxxxxxx" || u.Role != server.OperatorRole {
		t.Errorf("%+v, %v", u, err)
	}
	for _, bad := range []string{"", " a", "a\nb", strings.Repeat("a", 2000)} {
		if _, err := server.ChangeUser(t.Context(), p.app.Store, bad, func(*server.User) {}); err == nil {
			t.Errorf("the name %.10q is accepted", bad)
		}
	}
}

// TestBoundsThatCannotApplyAreNotDropped: what is too small to count still bounds, and a record
// that would limit no user is refused.
func TestBoundsThatCannotApplyAreNotDropped(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	root := p.client("root", server.Admin).Token
	got := p.send(http.MethodPut, "/v1/quotas", `{"user":"ada","calls":5,"cost":1e-9}`, withToken(root))
	if got.status != http.StatusOK || !strings.Contains(got.body, `"cost":0.000001}`) && !strings.Contains(got.body, `"cost":1e-06}`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := p.send(http.MethodPut, "/v1/users/*", `{"role":"viewer"}`, withToken(root)); got.status != http.StatusUnprocessableEntity {
		t.Errorf("a record of *: %d %s", got.status, got.body)
	}
}

// TestARequestThatWaitsEndsWithItsToken: a request that waits for a run or a reply is refused when its user is deactivated, or
// its token revoked, and the run continues.
func TestARequestThatWaitsEndsWithItsToken(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, Heartbeat: 20 * time.Millisecond})
	root := p.client("root", server.Admin)
	decode[any](p, root, http.MethodPut, "/v1/model-stops", `{"models":"*"}`)
	stop := func(user string, revoke bool) {
		t.Helper()
		if !revoke {
			decode[any](p, root, http.MethodPut, "/v1/users/"+user, `{"role":"operator","disabled":true}`)
			return
		}
		list, err := p.app.Store.Tokens(t.Context(), user)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		decode[any](p, root, http.MethodDelete, "/v1/tokens/"+list[0].ID, "")
	}
	for i, revoke := range []bool{false, true} {
		for j, ofSession := range []bool{false, true} {
			user := fmt.Sprintf("u%d%d", i, j)
			checkWaitEnds(t, p, root, user, ofSession, func() { stop(user, revoke) })
		}
	}
}

// checkWaitEnds sends a request that waits, ends the right of its user, and fails unless the request is refused and its run
// continues.
func checkWaitEnds(t *testing.T, p *process, root *client.Client, user string, ofSession bool, stop func()) {
	t.Helper()
	c := p.anyone(user)
	path, body := "/v1/runs?wait=60", `{"flow":"talk","inputs":{"message":"x"}}`
	if ofSession {
		session, err := c.OpenSession(t.Context(), "talk", "")
		if err != nil {
			t.Fatal(err)
		}
		path, body = "/v1/sessions/"+session+"/messages?wait=60", `{"message":"x"}`
	}
	status := func() string {
		runs := decode[struct{ Runs []struct{ Status string } }](p, root, http.MethodGet, "/v1/runs?user="+user, "")
		if len(runs.Runs) != 1 {
			return ""
		}
		return runs.Runs[0].Status
	}
	waiting := make(chan error, 1)
	go func() { waiting <- c.Do(t.Context(), http.MethodPost, path, json.RawMessage(body), nil) }()
	waitUntil(t, "the run is waiting", func() bool { return status() == "running" })
	stop()
	if err := <-waiting; err == nil || !strings.Contains(err.Error(), "not valid") {
		t.Errorf("%s: %v", user, err)
	}
	if got := status(); got != "running" {
		t.Errorf("the run of %s is %s", user, got)
	}
}

// TestRevokingATokenRevokesThoseItHasMade makes tokens with tokens, some while the first one is revoked.
func TestRevokingATokenRevokesThoseItHasMade(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	root, other := p.client("root", server.Admin), p.client("root", server.Admin)
	made := func(c *client.Client, body string) *client.Client {
		x := decode[struct{ Secret string }](p, c, http.MethodPost, "/v1/tokens", body)
		return &client.Client{URL: p.url, Token: x.Secret}
	}
	child := made(root, `{"scopes":["admin"]}`)
	grandchild := made(child, `{"user":"bob","scopes":["read","start"]}`)
	last := made(grandchild, `{"scopes":["read"]}`)
	stays := made(other, `{"user":"bob","scopes":["read"]}`)
	works := func(c *client.Client) bool {
		return p.send(http.MethodGet, "/v1/runs", "", withToken(c.Token)).status == http.StatusOK
	}
	for _, c := range []*client.Client{root, child, grandchild, last, stays} {
		if !works(c) {
			t.Fatal("a token does not work")
		}
	}
	list := decode[struct{ Tokens []server.TokenRow }](p, other, http.MethodGet, "/v1/tokens?user=root", "")
	id := list.Tokens[0].ID
	var late []string
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if i == 4 {
				decode[any](p, other, http.MethodDelete, "/v1/tokens/"+id, "")
				return
			}
			a := p.send(http.MethodPost, "/v1/tokens", `{"scopes":["read"]}`, withToken(root.Token))
			var x struct{ Secret string }
			if err := json.Unmarshal([]byte(a.body), &x); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			late = append(late, x.Secret)
		})
	}
	all.Wait()
	for _, c := range []*client.Client{root, child, grandchild, last} {
		if works(c) {
			t.Error("a token works that was made with one that is revoked")
		}
	}
	for _, secret := range late {
		if secret != "" && works(&client.Client{Token: secret}) {
			t.Error("a token works that was made while its maker was revoked")
		}
	}
	if !works(stays) || !works(other) {
		t.Error("a token of another origin was revoked")
	}
}

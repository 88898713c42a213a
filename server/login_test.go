package server_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/servertest"
	"github.com/weir-run/weir/store"
)

// browser keeps cookies, and follows no redirection by itself.
type browser struct {
	p       *process
	cookies map[string]string
	set     map[string]*http.Cookie // as they were set last
}

// loginOptions are those of a server whose people the issuer signs in.
func loginOptions(i *servertest.Issuer, change func(o *server.OIDC)) server.Options {
	x := &server.OIDC{Issuer: i.URL, ClientID: servertest.IssuerClient, Secret: func() (string, error) { return servertest.IssuerSecret, nil }, Role: server.OperatorRole}
	if change != nil {
		change(x)
	}
	return server.Options{RequireToken: true, PublicURL: "http://localhost", OIDC: x}
}

func (p *process) browser() *browser {
	return &browser{p, map[string]string{}, map[string]*http.Cookie{}}
}

// send sends a request with the cookies, as a page of the server does.
func (b *browser) send(method, path, body string, headers map[string]string) answer {
	b.p.t.Helper()
	a := b.p.send(method, path, body, func(r *http.Request) {
		r.Host = "localhost"
		if method != http.MethodGet {
			r.Header.Set("Origin", "http://localhost")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}
		for name, value := range b.cookies { // order: cookies have none
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
		for name, value := range headers {
			r.Header.Del(name)
			if value != "" {
				r.Header.Set(name, value)
			}
		}
	})
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		b.set[c.Name], b.cookies[c.Name] = c, c.Value
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return a
}

// start begins to sign in and returns the path to which the issuer sends the browser.
func (b *browser) start() string {
	b.p.t.Helper()
	a := b.send(http.MethodGet, "/login/start", "", nil)
	if a.status != http.StatusSeeOther {
		b.p.t.Fatalf("%d %s", a.status, a.body)
	}
	r, err := http.NewRequestWithContext(b.p.t.Context(), http.MethodGet, a.header.Get("Location"), http.NoBody)
	if err != nil {
		b.p.t.Fatal(err)
	}
	jar, err := cookiejar.New(nil) // of the browser at the issuer
	if err != nil {
		b.p.t.Fatal(err)
	}
	c := http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Host == "localhost" {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	back, err := c.Do(r)
	if err != nil {
		b.p.t.Fatal(err)
	}
	_ = back.Body.Close() // it has none
	at, err := url.Parse(back.Header.Get("Location"))
	if err != nil || at.Host != "localhost" {
		b.p.t.Fatalf("the issuer sends the browser to %q: %v", back.Header.Get("Location"), err)
	}
	return at.RequestURI()
}

// signIn signs in, and returns the last answer.
func (b *browser) signIn() answer {
	b.p.t.Helper()
	return b.send(http.MethodGet, b.start(), "", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})
}

// mustSignIn signs in and returns the cookie.
func (b *browser) mustSignIn() string {
	b.p.t.Helper()
	if a := b.signIn(); a.status != http.StatusSeeOther || b.cookies["weir"] == "" || a.header.Get("Location") != "/" {
		b.p.t.Fatalf("%d %s %v", a.status, a.body, b.cookies)
	}
	return b.cookies["weir"]
}

// me returns the user, the scopes and whether all objects are reached; the status where it is not 200.
func (b *browser) me() string {
	b.p.t.Helper()
	a := b.send(http.MethodGet, "/v1/me", "", nil)
	var me struct {
		User, SignOut string
		Scopes        []string
		All           bool
	}
	if a.status != http.StatusOK || json.Unmarshal([]byte(a.body), &me) != nil {
		return http.StatusText(a.status)
	}
	all := map[bool]string{true: " all"}[me.All]
	return me.User + " " + strings.Join(me.Scopes, ",") + all + " " + me.SignOut
}

func TestPeopleSignInAtTheIssuerAndOutAgain(t *testing.T) {
	t.Parallel()
	i, dir := servertest.StartIssuer(t), t.TempDir()
	p := openProcess(t, dir, loginOptions(i, nil))
	b := p.browser()
	if a := b.send(http.MethodGet, "/v1/sign-in", "", nil); !strings.Contains(a.body, `"oidc":"/login/start"`) {
		t.Error(a.body)
	}
	if got := b.me(); got != "Unauthorized" {
		t.Errorf("before: %s", got)
	}
	b.mustSignIn()
	c := b.set["weir"]
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Domain != "" || c.Path != "/" || c.MaxAge != 12*3600 || c.Secure {
		t.Errorf("the cookie: %+v", c)
	}
	if len(b.cookies) != 1 {
		t.Errorf("the cookie of the attempt remains: %v", b.cookies)
	}
	if got := b.me(); got != "ada read,start,answer login" {
		t.Errorf("signed in: %s", got)
	}
	if a := b.send(http.MethodPost, "/v1/runs", `{"flow":"ask","inputs":{"name":"Ada"}}`, nil); a.status != http.StatusCreated {
		t.Errorf("start a run: %d %s", a.status, a.body)
	}
	p.close()
	p = openProcess(t, dir, loginOptions(i, nil)) // the same database
	b.p = p
	if got := b.me(); got != "ada read,start,answer login" {
		t.Errorf("after a restart: %s", got)
	}
	other := &browser{p, maps.Clone(b.cookies), map[string]*http.Cookie{}}
	if a := b.send(http.MethodPost, "/login/end", "", nil); a.status != http.StatusOK || !strings.Contains(a.body, i.URL+"/end?client_id=") || len(b.cookies) != 0 {
		t.Errorf("sign out: %d %s %v", a.status, a.body, b.cookies)
	}
	if got := other.me(); got != "Unauthorized" {
		t.Errorf("the cookie after signing out: %s", got)
	}
	if a := b.send(http.MethodPost, "/login/end", "", nil); a.status != http.StatusOK {
		t.Errorf("sign out again: %d", a.status)
	}
	root := p.client("root", server.Admin)
	audit := p.send(http.MethodGet, "/v1/audit?user=ada", "", withToken(root.Token)).body
	if !strings.Contains(audit, `"GET /login/callback"`) || !strings.Contains(audit, `"POST /login/end"`) {
		t.Errorf("the audit log: %s", audit)
	}
}

func TestKeysOfTheIssuerAreReadAgainWhenTheyChange(t *testing.T) {
	t.Parallel()
	i := servertest.StartIssuer(t)
	p := openProcess(t, t.TempDir(), loginOptions(i, nil))
	p.browser().mustSignIn()
	p.browser().mustSignIn()
	if n := i.Requests("/keys"); n != 1 {
		t.Errorf("the keys were read %d times for one key", n)
	}
	i.Set(func(i *servertest.Issuer) { i.Rotate() })
	p.browser().mustSignIn()
	if n := i.Requests("/keys"); n != 2 {
		t.Errorf("the keys were read %d times for two", n)
	}
}

func TestPeopleSignInOnceTheIssuerAnswers(t *testing.T) {
	t.Parallel()
	i := servertest.StartIssuer(t)
	i.Set(func(i *servertest.Issuer) { i.Down = true })
	p := openProcess(t, t.TempDir(), loginOptions(i, nil))
	if a := p.browser().send(http.MethodGet, "/login/start", "", nil); a.status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", a.status, a.body)
	}
	i.Set(func(i *servertest.Issuer) { i.Down = false })
	for p.browser().send(http.MethodGet, "/login/start", "", nil).status != http.StatusSeeOther {
		for range 20 { // a server lets an address try 60 times at once, and once a second afterwards
			pause(t) // until the test times out
		}
	}
	b := p.browser()
	path := b.start()
	i.Set(func(i *servertest.Issuer) { i.Down = true })
	if a := b.send(http.MethodGet, path, "", nil); a.status != http.StatusServiceUnavailable || b.cookies["weir"] != "" {
		t.Errorf("the issuer ends meanwhile: %d %s", a.status, a.body)
	}
}

// TestClaimsSayWhoAPersonIsAndMayDo enumerates claims, and how they are read.
func TestClaimsSayWhoAPersonIsAndMayDo(t *testing.T) {
	t.Parallel()
	i := servertest.StartIssuer(t)
	roles := map[string]server.Role{"staff": server.OperatorRole, "admins": server.OwnerRole, "guests": server.ViewerRole}
	for _, x := range []struct {
		what   string
		change func(o *server.OIDC)
		claims map[string]any
		want   string
	}{
		{"the subject", nil, map[string]any{"sub": "0-385"}, "0-385 read,start,answer login"},
		{"another claim", func(o *server.OIDC) { o.User = "preferred_username" }, map[string]any{"preferred_username": "ada"}, "ada read,start,answer login"},
		{"a claim that is missing", func(o *server.OIDC) { o.User = "preferred_username" }, nil, ""},
		{"a claim that is no text", func(o *server.OIDC) { o.User = "n" }, map[string]any{"n": 7}, ""},
		{"everybody", func(o *server.OIDC) { o.User = "n" }, map[string]any{"n": "*"}, ""},
		{"a name that cannot be shown", func(o *server.OIDC) { o.User = "n" }, map[string]any{"n": "a\nb"}, ""},
		{"an address", func(o *server.OIDC) { o.User = "email" }, map[string]any{"email": "Ada@Example.org", "email_verified": true}, "ada@example.org read,start,answer login"},
		{"an address that is not verified", func(o *server.OIDC) { o.User = "email" }, map[string]any{"email": "ada@example.org", "email_verified": false}, ""},
		{"an address of which nothing is said", func(o *server.OIDC) { o.User = "email" }, map[string]any{"email": "ada@example.org"}, ""},
		{"an address that need not be verified", func(o *server.OIDC) { o.User, o.UnverifiedEmail = "email", true }, map[string]any{"email": "ada@example.org"}, "ada@example.org read,start,answer login"},
		{"no group, which may nothing", func(o *server.OIDC) { o.Role, o.Roles = "", roles }, nil, ""},
		{"another group, which may nothing", func(o *server.OIDC) { o.Role, o.Roles = "", roles }, map[string]any{"groups": []string{"x"}}, ""},
		{"a group", func(o *server.OIDC) { o.Role, o.Roles = "", roles }, map[string]any{"groups": []string{"x", "guests"}}, "ada read login"},
		{"two groups", func(o *server.OIDC) { o.Role, o.Roles = "", roles }, map[string]any{"groups": []string{"guests", "staff"}}, "ada read,start,answer login"},
		{"an owner", func(o *server.OIDC) { o.Role, o.Roles = "", roles }, map[string]any{"groups": []string{"guests", "admins", "staff"}}, "ada read,start,answer,admin all login"},
		{"one group as a text", func(o *server.OIDC) { o.Role, o.Roles = "", roles }, map[string]any{"groups": "guests"}, "ada read login"},
		{"groups that are no texts", func(o *server.OIDC) { o.Role, o.Roles = "", roles }, map[string]any{"groups": []any{1, nil, map[string]any{"admins": 1}}}, ""},
		{"another claim of groups", func(o *server.OIDC) { o.Role, o.Roles, o.Groups = "", roles, "teams" }, map[string]any{"groups": []string{"admins"}, "teams": []string{"guests"}}, "ada read login"},
		{"the role of others", func(o *server.OIDC) { o.Role, o.Roles = server.ViewerRole, roles }, nil, "ada read login"},
		{"a group that may less than others", func(o *server.OIDC) { o.Role, o.Roles = server.OperatorRole, roles }, map[string]any{"groups": []string{"guests"}}, "ada read login"},
	} {
		i.Set(func(i *servertest.Issuer) {
			i.Claims = map[string]any{"sub": "ada"}
			maps.Copy(i.Claims, x.claims)
		})
		p := openProcess(t, t.TempDir(), loginOptions(i, x.change))
		b := p.browser()
		a := b.signIn()
		got := ""
		if a.status == http.StatusSeeOther {
			got = b.me()
		}
		if got != x.want || (x.want == "") != (a.status == http.StatusForbidden) {
			t.Errorf("%s: %d %q, not %q", x.what, a.status, got, x.want)
		}
		p.close()
	}
}

// TestRecordsBoundWhoHasSignedIn tries each role of a group with each of a record.
func TestRecordsBoundWhoHasSignedIn(t *testing.T) {
	t.Parallel()
	i := servertest.StartIssuer(t)
	roles := map[string]server.Role{"owner": server.OwnerRole, "operator": server.OperatorRole, "viewer": server.ViewerRole}
	p := openProcess(t, t.TempDir(), loginOptions(i, func(o *server.OIDC) { o.Role, o.Roles = "", roles }))
	scopes := map[server.Role]string{server.OwnerRole: " read,start,answer,admin all login", server.OperatorRole: " read,start,answer login", server.ViewerRole: " read login"}
	rank := []server.Role{server.ViewerRole, server.OperatorRole, server.OwnerRole}
	for group, role := range roles {
		for _, record := range rank {
			user := group + " " + string(record)
			i.Set(func(i *servertest.Issuer) { i.Claims = map[string]any{"sub": user, "groups": group} })
			b := p.browser()
			b.mustSignIn()
			if got := b.me(); got != user+scopes[role] {
				t.Errorf("without a record, group %s: %s", group, got)
			}
			p.setUser(user, func(u *server.User) { u.Role = record })
			want := rank[min(slices.Index(rank, role), slices.Index(rank, record))]
			if got := b.me(); got != user+scopes[want] {
				t.Errorf("group %s, record %s: %s", group, record, got)
			}
			p.setUser(user, func(u *server.User) { u.Disabled = true })
			if got := b.me(); got != "Unauthorized" {
				t.Errorf("deactivated: %s", got)
			}
			if a := p.browser().signIn(); a.status != http.StatusForbidden || !strings.Contains(a.body, "deactivated") {
				t.Errorf("a deactivated user signs in: %d %s", a.status, a.body)
			}
		}
	}
}

// TestALoginEnds expires it, and has its stream end.
func TestALoginEnds(t *testing.T) {
	t.Parallel()
	i := servertest.StartIssuer(t)
	o := loginOptions(i, nil)
	o.Heartbeat = 50 * time.Millisecond
	p := openProcess(t, t.TempDir(), o)
	for what, end := range map[string]func(b *browser, secret string){
		"signed out":      func(b *browser, _ string) { b.send(http.MethodPost, "/login/end", "", nil) },
		"expired":         func(*browser, string) { expireLogin(t, p) },
		"signed in again": func(b *browser, _ string) { b.mustSignIn() },
	} {
		b := p.browser()
		secret := b.mustSignIn()
		run := b.send(http.MethodPost, "/v1/runs?wait=60", `{"flow":"ask","inputs":{"name":"Ada"}}`, nil)
		var id struct{ Run string }
		if err := json.Unmarshal([]byte(run.body), &id); err != nil || id.Run == "" {
			t.Fatal(run)
		}
		ended := make(chan answer, 1)
		reader := &browser{p, maps.Clone(b.cookies), map[string]*http.Cookie{}}
		go func() { ended <- reader.send(http.MethodGet, "/v1/runs/"+id.Run+"/stream", "", nil) }()
		for p.openStreams() == 0 {
			pause(t)
		}
		end(b, secret)
		if a := <-ended; a.status != http.StatusOK {
			t.Errorf("%s: the stream: %d", what, a.status)
		}
		old := &browser{p, map[string]string{"weir": secret}, map[string]*http.Cookie{}}
		if got := old.me(); got != "Unauthorized" {
			t.Errorf("%s: %s", what, got)
		}
		for _, d := range mustList(t, p, "login") {
			if err := p.app.Store.DeleteDocument(t.Context(), "login", d.ID, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// expireLogin has the only login have expired.
func expireLogin(t *testing.T, p *process) {
	t.Helper()
	list := mustList(t, p, "login")
	if len(list) != 1 {
		t.Fatal(list)
	}
	var body map[string]any
	err := json.Unmarshal(list[0].Body, &body)
	body["expires"] = time.Now().Add(-time.Second)
	if err == nil {
		list[0].Body, err = json.Marshal(body)
	}
	if err == nil {
		_, err = p.app.Store.PutDocument(t.Context(), list[0])
	}
	if err != nil {
		t.Fatal(err)
	}
}

func mustList(t *testing.T, p *process, kind string) []store.Document {
	t.Helper()
	list, err := p.app.Store.Documents(t.Context(), store.DocumentFilter{Kind: kind, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// openStreams returns how many streams the metrics of the process count.
func (p *process) openStreams() int {
	a := p.send(http.MethodGet, "/metrics", "", withToken(p.client("metrics", server.Read).Token))
	for line := range strings.Lines(a.body) {
		if name, n, _ := strings.Cut(strings.TrimSpace(line), " "); name == "weir_streams" && n != "0" {
			return 1
		}
	}
	return 0
}

func TestOptionsOfSigningInAreChecked(t *testing.T) {
	t.Parallel()
	type options = server.Options
	for what, x := range map[string]struct {
		change func(o *options)
		valid  bool
	}{
		"as they are": {func(*options) {}, true},
		"https": {func(o *options) {
			o.PublicURL, o.OIDC.Issuer = "https://weir.example.org", "https://id.example.org/realms/x"
		}, true},
		"no public address":          {func(o *options) { o.PublicURL = "" }, false},
		"a public address in clear":  {func(o *options) { o.PublicURL = "http://weir.example.org" }, false},
		"no tokens":                  {func(o *options) { o.RequireToken = false }, false},
		"an issuer in clear":         {func(o *options) { o.OIDC.Issuer = "http://id.example.org" }, false},
		"an issuer with a query":     {func(o *options) { o.OIDC.Issuer = "https://id.example.org/?x=1" }, false},
		"no issuer":                  {func(o *options) { o.OIDC.Issuer = "" }, false},
		"no client":                  {func(o *options) { o.OIDC.ClientID = "" }, false},
		"an unknown role":            {func(o *options) { o.OIDC.Role = "admin" }, false},
		"an unknown role of a group": {func(o *options) { o.OIDC.Roles = map[string]server.Role{"x": "admin"} }, false},
		"nobody has a role":          {func(o *options) { o.OIDC.Role = "" }, false},
		"a short time":               {func(o *options) { o.OIDC.Lifetime = time.Second }, false},
		"a long time":                {func(o *options) { o.OIDC.Lifetime = 31 * 24 * time.Hour }, false},
	} {
		o := server.Options{RequireToken: true, PublicURL: "http://localhost:8420", OIDC: &server.OIDC{Issuer: "http://127.0.0.1:1", ClientID: "weir", Role: server.ViewerRole}}
		x.change(&o)
		if err := newServer(t, o); (err == nil) != x.valid {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestCookiesFitTheAddressOfTheServer tries addresses with encryption and below a path.
func TestCookiesFitTheAddressOfTheServer(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ public, base, name, path string }{
		{"http://localhost", "", "weir", "/"},
		{"https://localhost", "", "__Host-weir", "/"},
		{"https://localhost", "/weir", "__Secure-weir", "/weir"},
		{"http://localhost", "/weir", "weir", "/weir"},
	} {
		i := servertest.StartIssuer(t)
		o := loginOptions(i, nil)
		o.PublicURL, o.BasePath = x.public, x.base
		p := openProcess(t, t.TempDir(), o)
		b := p.browser()
		path := strings.TrimPrefix(b.start(), x.base)
		a := b.send(http.MethodGet, path, "", nil)
		c := b.set[x.name]
		if a.status != http.StatusSeeOther || a.header.Get("Location") != x.base+"/" || c == nil || c.Path != x.path || c.Secure != strings.HasPrefix(x.public, "https") || c.Domain != "" {
			t.Errorf("%s%s: %d %q %+v", x.public, x.base, a.status, a.header.Get("Location"), c)
		}
		for name, c := range b.set {
			if c.Path != x.path || !c.HttpOnly || c.Secure != strings.HasPrefix(x.public, "https") || !strings.HasPrefix(name, x.name) {
				t.Errorf("%s%s: %+v", x.public, x.base, c)
			}
		}
		p.close()
	}
}

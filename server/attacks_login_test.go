package server_test

import (
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/servertest"
)

// wrongTokens are changes of an issuer whose tokens must be refused.
func wrongTokens(now time.Time) map[string]func(i *servertest.Issuer) {
	claim := func(name string, value any) func(i *servertest.Issuer) {
		return func(i *servertest.Issuer) { i.Claims[name] = value }
	}
	header := func(name string, value any) func(i *servertest.Issuer) {
		return func(i *servertest.Issuer) { i.Header = map[string]any{name: value} }
	}
	text := func(s string) func(i *servertest.Issuer) { return func(i *servertest.Issuer) { i.Broken = s } }
	return map[string]func(i *servertest.Issuer){
		"another issuer": claim("iss", "https://other.example"), "no issuer": claim("iss", nil), "an issuer with a slash": claim("iss", "http://127.0.0.1/"),
		"another audience": claim("aud", "other"), "no audience": claim("aud", nil), "an empty audience": claim("aud", []string{}),
		"several audiences, none authorized": claim("aud", []string{servertest.IssuerClient, "other"}), "another party": claim("azp", "other"),
		"another nonce": claim("nonce", "x"), "no nonce": claim("nonce", nil), "nobody": claim("sub", ""), "no subject": claim("sub", nil),
		"expired": claim("exp", now.Add(-3*time.Minute).Unix()), "without an end": claim("exp", nil), "made in the future": claim("iat", now.Add(10*time.Minute).Unix()),
		"not valid yet": claim("nbf", now.Add(20*time.Minute).Unix()), "another access token": claim("at_hash", "x"),
		"alg none": header("alg", "none"), "alg HS256 with the public key": header("alg", "HS256"), "alg ES256 of nobody": header("alg", "ES256"), "alg None": header("alg", "None"),
		"an unknown key":           func(i *servertest.Issuer) { i.OtherKey = true },
		"an unknown key by its id": func(i *servertest.Issuer) { i.OtherKey = true; i.Header = map[string]any{"kid": "other"} },
		"a critical header":        header("crit", []string{"x"}),
		"a key of its own": func(i *servertest.Issuer) {
			i.OtherKey = true
			i.Header = map[string]any{"jwk": map[string]any{"kty": "RSA"}}
		},
		"no text of a token": text("x"), "two parts": text("e30.e30"), "an empty signature": text("eyJhbGciOiJSUzI1NiJ9.e30."), "JSON": text(`{"payload":"e30","signatures":[]}`),
	}
}

func TestTokensThatMustNotBeBelievedSignNobodyIn(t *testing.T) {
	t.Parallel()
	i := servertest.StartIssuer(t)
	var p *process
	n := 0
	for what, change := range wrongTokens(time.Now()) {
		if n++; n%20 == 1 { // a server lets an address try 60 times at once
			p = openProcess(t, t.TempDir(), loginOptions(i, nil))
		}
		i.Set(func(i *servertest.Issuer) {
			i.Claims, i.Header, i.OtherKey, i.Broken = map[string]any{"sub": "ada"}, nil, false, ""
			change(i)
		})
		b := p.browser()
		if a := b.signIn(); a.status != http.StatusForbidden || b.cookies["weir"] != "" || !strings.Contains(a.body, "not signed in") {
			t.Errorf("%s: %d %v %s", what, a.status, b.cookies, a.body)
		}
	}
	for what, claims := range map[string]map[string]any{
		"expired a moment ago":   {"exp": time.Now().Add(-30 * time.Second).Unix()},
		"made in a moment":       {"iat": time.Now().Add(30 * time.Second).Unix()},
		"valid in a moment":      {"nbf": time.Now().Add(30 * time.Second).Unix()},
		"several audiences":      {"aud": []string{"other", servertest.IssuerClient}, "azp": servertest.IssuerClient},
		"one audience in a list": {"aud": []string{servertest.IssuerClient}},
	} {
		i.Set(func(i *servertest.Issuer) {
			i.Claims, i.Header, i.OtherKey, i.Broken = map[string]any{"sub": "ada"}, nil, false, ""
			maps.Copy(i.Claims, claims)
		})
		if a := p.browser().signIn(); a.status != http.StatusSeeOther {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
}

// TestABrowserCompletesOnlyWhatItBegan changes what comes back through the browser.
func TestABrowserCompletesOnlyWhatItBegan(t *testing.T) {
	t.Parallel()
	i := servertest.StartIssuer(t)
	p := openProcess(t, t.TempDir(), loginOptions(i, nil))
	refused := func(what string, b *browser, path string) {
		t.Helper()
		if a := b.send(http.MethodGet, path, "", nil); a.status != http.StatusForbidden || b.cookies["weir"] != "" {
			t.Errorf("%s: %d %v", what, a.status, b.cookies)
		}
	}
	b := p.browser()
	path := b.start()
	refused("another browser", p.browser(), path)
	other := p.browser()
	otherPath := other.start()
	refused("the answer for another browser, which has an attempt of its own", b, otherPath)
	at, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	change := func(name, value string) string {
		q := at.Query()
		q.Set(name, value)
		return at.Path + "?" + q.Encode()
	}
	for what, path := range map[string]string{
		"no query": "/login/callback", "no state": change("state", ""), "another state": change("state", "x"), "another issuer": change("iss", "https://other.example"),
		"no code": change("code", ""), "another code": change("code", "x"), "an error": change("error", "access_denied"), "an error with HTML": change("error", "<script>x</script>"),
	} {
		fresh := &browser{p, maps.Clone(b.cookies), map[string]*http.Cookie{}}
		refused(what, fresh, path)
		if a := fresh.send(http.MethodGet, path, "", nil); strings.Contains(a.body, "<script") {
			t.Errorf("%s: %s", what, a.body)
		}
	}
	for name, value := range b.cookies {
		forged := &browser{p, map[string]string{name: "A" + value}, map[string]*http.Cookie{}}
		refused("a changed cookie", forged, path)
		text, _, _ := strings.Cut(value, ".")
		refused("an unsigned cookie", &browser{p, map[string]string{name: text}, map[string]*http.Cookie{}}, path)
	}
	again := &browser{p, maps.Clone(b.cookies), map[string]*http.Cookie{}}
	if a := b.send(http.MethodGet, path, "", nil); a.status != http.StatusSeeOther {
		t.Errorf("what the browser began: %d %s", a.status, a.body)
	}
	refused("the same answer again", again, path)
	if list := p.send(http.MethodGet, "/login/callback?state="+strings.Repeat("x", 5000)+"&code=x", "", nil); list.status != http.StatusForbidden {
		t.Errorf("a long state: %d", list.status)
	}
}

// TestTheCookieCountsForPagesOfThisServerAlone enumerates who may have sent a request.
func TestTheCookieCountsForPagesOfThisServerAlone(t *testing.T) {
	t.Parallel()
	i := servertest.StartIssuer(t)
	o := loginOptions(i, nil)
	o.Origins = []string{"https://console.example.org"}
	p := openProcess(t, t.TempDir(), o)
	b := p.browser()
	b.mustSignIn()
	type sender struct{ site, origin, mode, dest string }
	for _, x := range []struct {
		what         string
		from         sender
		read, change bool
	}{
		{"a page of this server", sender{"same-origin", "http://localhost", "cors", "empty"}, true, true},
		{"a page of this server that names no origin", sender{"same-origin", "", "cors", "empty"}, true, true},
		{"an old browser on a page of this server", sender{"", "http://localhost", "", ""}, true, true},
		{"what says nothing", sender{"", "", "", ""}, true, false},
		{"the address bar", sender{"none", "", "navigate", "document"}, true, false},
		{"a link of another site", sender{"cross-site", "", "navigate", "document"}, true, false},
		{"a frame of another site", sender{"cross-site", "", "navigate", "iframe"}, false, false},
		{"a script of another site", sender{"cross-site", "https://evil.example", "cors", "empty"}, false, false},
		{"an image of another site", sender{"cross-site", "", "no-cors", "image"}, false, false},
		{"a page of another site of the domain", sender{"same-site", "http://evil.localhost", "cors", "empty"}, false, false},
		{"a page on another port", sender{"same-site", "http://localhost:1234", "cors", "empty"}, false, false},
		{"a page without encryption, or with", sender{"cross-site", "https://localhost", "cors", "empty"}, false, false},
		{"a page without an origin", sender{"cross-site", "null", "navigate", "document"}, true, false},
		{"an old browser on another site", sender{"", "https://evil.example", "", ""}, true, false},
		{"a page that may use the API with tokens", sender{"cross-site", "https://console.example.org", "cors", "empty"}, false, false},
		{"such a page in an old browser", sender{"", "https://console.example.org", "", ""}, true, false},
	} {
		headers := map[string]string{"Sec-Fetch-Site": x.from.site, "Origin": x.from.origin, "Sec-Fetch-Mode": x.from.mode, "Sec-Fetch-Dest": x.from.dest}
		if a := b.send(http.MethodGet, "/v1/runs", "", headers); (a.status == http.StatusOK) != x.read || a.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s reads: %d", x.what, a.status)
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
			path := map[string]string{http.MethodPost: "/v1/runs", http.MethodPut: "/v1/filters/x", http.MethodDelete: "/v1/filters/x"}[method]
			body := map[string]string{http.MethodPost: `{"flow":"ask","inputs":{"name":"Ada"}}`, http.MethodPut: `{"of":"runs","query":{}}`}[method]
			if a := b.send(method, path, body, headers); (a.status < 300) != x.change || !x.change && a.status != http.StatusForbidden && a.status != http.StatusUnauthorized {
				t.Errorf("%s sends %s: %d %s", x.what, method, a.status, a.body)
			}
		}
		if !x.change {
			if a := b.send(http.MethodPost, "/login/end", "", headers); a.status != http.StatusForbidden {
				t.Errorf("%s signs out: %d", x.what, a.status)
			}
		}
	}
	if got := b.me(); got != "ada read,start,answer login" {
		t.Errorf("afterwards: %s", got)
	}
}

// TestACookieIsNoTokenAndATokenNoCookie exchanges them, and sends several.
func TestACookieIsNoTokenAndATokenNoCookie(t *testing.T) {
	t.Parallel()
	i := servertest.StartIssuer(t)
	p := openProcess(t, t.TempDir(), loginOptions(i, nil))
	b := p.browser()
	secret := b.mustSignIn()
	bob := p.client("bob", server.Read).Token
	status := func(cookie, token string) int {
		return p.send(http.MethodGet, "/v1/me", "", func(r *http.Request) {
			withToken(token)(r)
			if cookie != "" {
				r.Header.Set("Cookie", cookie)
			}
		}).status
	}
	for what, x := range map[string]struct {
		cookie, token string
		want          int
	}{
		"the cookie":                    {"weir=" + secret, "", 200},
		"the cookie as a token":         {"", secret, 401},
		"a token as the cookie":         {"weir=" + bob, "", 401},
		"the cookie twice":              {"weir=" + secret + "; weir=" + secret, "", 401},
		"a wrong cookie":                {"weir=weir_login_x", "", 401},
		"the cookie under another name": {"__Host-weir=" + secret, "", 401},
		"a token beside the cookie":     {"weir=" + secret, bob, 200},
		"a bad token beside the cookie": {"weir=" + secret, "weir_x", 401},
		"the digest that the store has": {"weir=" + strings.Repeat("a", 64), "", 401},
	} {
		if got := status(x.cookie, x.token); got != x.want {
			t.Errorf("%s: %d", what, got)
		}
	}
}

// TestSecretsOfSigningInAreNowhere looks for codes, tokens and cookies in what the server writes.
func TestSecretsOfSigningInAreNowhere(t *testing.T) {
	t.Parallel()
	i, logged, dir := servertest.StartIssuer(t), &log{}, t.TempDir()
	o := loginOptions(i, nil)
	o.Logger = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p := openProcess(t, dir, o)
	b := p.browser()
	secrets := []string{b.mustSignIn()}
	i.Set(func(i *servertest.Issuer) { i.Claims["aud"] = "other" })
	failed := p.browser().signIn()
	down := p.browser()
	path := down.start()
	i.Set(func(i *servertest.Issuer) { i.Down = true })
	failed.body += down.send(http.MethodGet, path, "", nil).body
	p.close()
	secrets = append(secrets, i.Secrets()...)
	look := func(place, text string) {
		for _, s := range secrets {
			if strings.Contains(text, s) || strings.Contains(text, url.QueryEscape(s)) {
				t.Errorf("a secret is in %s", place)
			}
		}
	}
	look("logs", logged.String())
	look("pages", failed.body)
	if len(secrets) < 6 || !strings.Contains(logged.String(), "sign-in was refused") {
		t.Errorf("%d secrets; %s", len(secrets), logged.String())
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		look(path, string(data))
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

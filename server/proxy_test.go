package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
)

// proxies are those of the tests.
func proxies() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::1/128")}
}

// from sends a request to the handler as if it came from an address.
func (p *process) from(remote, path string, headers http.Header) answer {
	p.t.Helper()
	r := httptest.NewRequestWithContext(p.t.Context(), http.MethodGet, path, http.NoBody)
	r.Host, r.RemoteAddr = "localhost", remote
	for k, v := range headers {
		r.Header[http.CanonicalHeaderKey(k)] = v
	}
	w := httptest.NewRecorder()
	p.server.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

const proxyUser = "X-Forwarded-User"

// TestTheUserHeaderIsBelievedOfTrustedProxiesAlone enumerates where requests come from, and what they have besides.
func TestTheUserHeaderIsBelievedOfTrustedProxiesAlone(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, TrustedProxies: proxies(), UserHeader: proxyUser})
	ada, bob := p.client("ada", server.Read), p.client("bob", server.Read)
	trusted := []string{"10.1.2.3:4000", "[::ffff:10.1.2.3]:4000", "[fd00::1]:4000"}
	others := []string{"10.2.0.1:4000", "127.0.0.1:4000", "[::1]:4000", "[fd00::2]:4000", "@", "", "10.1.2.3", "[::ffff:10.2.0.1]:4000"}
	for _, remote := range append(slices.Clone(trusted), others...) {
		isTrusted := slices.Contains(trusted, remote)
		for _, x := range []struct {
			what, token string
			names       []string
			proxied     int // the status from a proxy
			direct      int
		}{
			{"nothing", "", nil, 401, 401},
			{"a token", ada.Token, nil, 200, 200},
			{"the header", "", []string{"ada"}, 200, 401},
			{"both", ada.Token, []string{"ada"}, 200, 401},
			{"a token of another user", bob.Token, []string{"ada"}, 401, 401},
			{"a token that is not valid", "weir_x", []string{"ada"}, 401, 401},
			{"no name", "", []string{""}, 401, 401},
			{"two names", "", []string{"ada", "bob"}, 401, 401},
			{"a name that is not valid", "", []string{"a\x00b"}, 401, 401},
			{"a long name", "", []string{strings.Repeat("a", 5000)}, 401, 401},
		} {
			h := http.Header{}
			if x.token != "" {
				h.Set("Authorization", "Bearer "+x.token)
			}
			if x.names != nil {
				h[proxyUser] = x.names
			}
			h.Set("X-Forwarded-For", "10.1.2.3") // the client's own claim to be a proxy
			want := x.direct
			if isTrusted {
				want = x.proxied
			}
			a := p.from(remote, "/v1/me", h)
			if a.status != want || want == 200 && !strings.Contains(a.body, `"user":"ada"`) {
				t.Errorf("%s from %q: %d %s", x.what, remote, a.status, a.body)
			}
		}
	}
}

// TestRolesBoundTheUserOfAProxy tries each scope under each role.
func TestRolesBoundTheUserOfAProxy(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, TrustedProxies: proxies(), UserHeader: proxyUser})
	start := p.client("ada", server.Read)
	for _, x := range []struct {
		role     server.Role
		disabled bool
		want     string
	}{
		{"", false, "[read start answer] false"},
		{server.ViewerRole, false, "[read] false"},
		{server.OperatorRole, false, "[read start answer] false"},
		{server.OwnerRole, false, "[read start answer admin] true"},
		{server.OwnerRole, true, "401"},
	} {
		if x.role != "" {
			p.setUser("ada", func(u *server.User) { u.Role, u.Disabled = x.role, x.disabled })
		}
		a := p.from("10.1.0.1:1", "/v1/me", http.Header{proxyUser: {"ada"}})
		var me struct {
			Scopes []string
			All    bool
		}
		_ = json.Unmarshal([]byte(a.body), &me) // a refusal has neither
		got := "401"
		if a.status == http.StatusOK {
			got = "[" + strings.Join(me.Scopes, " ") + "] " + map[bool]string{true: "true", false: "false"}[me.All]
		}
		if got != x.want {
			t.Errorf("role %q: %s, not %s", x.role, got, x.want)
		}
		if a := p.from("10.1.0.1:1", "/v1/me", http.Header{proxyUser: {"ada"}, "Authorization": {"Bearer " + start.Token}}); !x.disabled && (a.status != 200 || strings.Contains(a.body, "admin")) {
			t.Errorf("role %q: a token of the scope read does not bound the user: %s", x.role, a.body)
		}
	}
	if a := p.from("10.1.0.1:1", "/v1/quotas", http.Header{proxyUser: {"bob"}}); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestLimitsCountTheClientBehindAProxy uses the allowance of one address up: the next request of it is refused and
// that of another is not.
func TestLimitsCountTheClientBehindAProxy(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		what, remote, other string
		one, two            []string
		same                bool // both count as one client
	}{
		{"two clients behind a proxy", "10.1.0.1:1", "10.1.0.1:2", []string{"192.0.2.1"}, []string{"192.0.2.2"}, false},
		{"one client behind two proxies", "10.1.0.1:1", "10.1.0.2:1", []string{"192.0.2.1"}, []string{"192.0.2.1, 10.1.0.9"}, true},
		{"a client that invents addresses", "10.1.0.1:1", "10.1.0.1:1", []string{"198.51.100.1, 192.0.2.1"}, []string{"198.51.100.2", "192.0.2.1"}, true},
		{"a client that sends no address", "10.1.0.1:1", "10.1.0.1:1", []string{"x"}, []string{"unknown"}, true},
		{"a direct client that invents addresses", "192.0.2.7:1", "192.0.2.7:2", []string{"192.0.2.1"}, []string{"192.0.2.2"}, true},
		{"two direct clients", "192.0.2.7:1", "192.0.2.8:1", nil, nil, false},
	} {
		t.Run(x.what, func(t *testing.T) {
			t.Parallel()
			p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, TrustedProxies: proxies()})
			refused := 0
			for range 100 {
				if p.from(x.remote, "/a/x", http.Header{"X-Forwarded-For": x.one}).status == http.StatusTooManyRequests {
					refused++
				}
			}
			got := p.from(x.other, "/a/x", http.Header{"X-Forwarded-For": x.two}).status
			if refused == 0 || (got == http.StatusTooManyRequests) != x.same {
				t.Errorf("%d of 100 refused, then %d", refused, got)
			}
		})
	}
}

func TestTheRateOfAUserBehindAProxyIsBounded(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, TrustedProxies: proxies(), UserHeader: proxyUser, TokenRate: 0.1})
	get := func(user string) int {
		return p.from("10.1.0.1:1", "/v1/me", http.Header{proxyUser: {user}}).status
	}
	if a, b, c := get("ada"), get("ada"), get("bob"); a != 200 || b != 429 || c != 200 {
		t.Errorf("%d %d %d", a, b, c)
	}
}

func TestOptionsOfTrustedProxiesAreChecked(t *testing.T) {
	t.Parallel()
	list := func(texts ...string) (out []netip.Prefix) {
		for _, s := range texts {
			out = append(out, netip.MustParsePrefix(s))
		}
		return out
	}
	for _, x := range []struct {
		header  string
		tokens  bool
		proxies []netip.Prefix
		valid   bool
	}{
		{"", false, nil, true},
		{"", false, proxies(), true},
		{proxyUser, true, proxies(), true},
		{proxyUser, true, nil, false},
		{proxyUser, false, proxies(), false},
		{"", true, list("0.0.0.0/0"), false},
		{proxyUser, true, list("10.0.0.0/8", "::/0"), false},
		{"", true, list("::ffff:10.0.0.0/104"), false},
		{"", true, []netip.Prefix{{}}, false},
		{"authorization", true, proxies(), false},
		{"x-forwarded-for", true, proxies(), false},
		{"a b", true, proxies(), false},
	} {
		if err := newServer(t, server.Options{RequireToken: x.tokens, TrustedProxies: x.proxies, UserHeader: x.header}); (err == nil) != x.valid {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

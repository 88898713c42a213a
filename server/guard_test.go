package server_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
)

func TestForeignHostsOriginsAndBodiesAreRefused(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{Hosts: []string{"weir.example.org"}, MaxBody: 2000})
	const start = `{"flow":"ask","inputs":{"name":"x"}}`
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	for _, c := range []struct {
		what, method, path, body string
		change                   func(*http.Request)
		want                     int
	}{
		{"this machine", "POST", "/v1/runs", start, nil, 201},
		{"localhost", "GET", "/v1/runs", "", host("localhost:99"), 200},
		{"IPv6", "GET", "/v1/runs", "", host("[::1]:8420"), 200},
		{"a name that was allowed", "GET", "/v1/runs", "", host("Weir.Example.org:443"), 200},
		{"a name that resolves to this machine", "GET", "/v1/runs", "", host("attacker.example"), 421},
		{"a name with an allowed one in it", "GET", "/v1/runs", "", host("weir.example.org.attacker.example"), 421},
		{"an address of the network", "GET", "/v1/runs", "", host("10.0.0.1"), 421},
		{"health of a foreign host", "GET", "/healthz", "", host("attacker.example"), 421},
		{"a page of another site", "POST", "/v1/runs", start, header("Origin", "https://attacker.example"), 403},
		{"a page of no origin", "POST", "/v1/runs", start, header("Origin", "null"), 403},
		{"a browser's word for another site", "POST", "/v1/runs", start, header("Sec-Fetch-Site", "cross-site"), 403},
		{"a page of this server", "POST", "/v1/runs", start, header("Origin", p.url), 201},
		{"a form", "POST", "/v1/runs", start, header("Content-Type", "text/plain"), 415},
		{"a form with fields", "POST", "/v1/runs", start, header("Content-Type", "application/x-www-form-urlencoded"), 415},
		{"no type", "POST", "/v1/runs", start, header("Content-Type", ""), 415},
		{"a large body", "POST", "/v1/runs", `{"flow":"` + strings.Repeat("a", 3000) + `"}`, nil, 413},
		{"a large body of unknown length", "POST", "/v1/runs", `{"flow":"` + strings.Repeat("a", 3000) + `"}`, func(r *http.Request) { r.ContentLength = -1 }, 413},
		{"no JSON", "POST", "/v1/runs", "{", nil, 400},
		{"a member twice", "POST", "/v1/runs", `{"flow":"ask","flow":"ask"}`, nil, 400},
		{"an input twice", "POST", "/v1/runs", `{"flow":"ask","inputs":{"a":1,"\u0061":2}}`, nil, 400},
		{"an unknown member", "POST", "/v1/runs", `{"flow":"ask","input":{}}`, nil, 422},
		{"an unknown parameter", "GET", "/v1/runs?stat=failed", "", nil, 422},
		{"a status that does not exist", "GET", "/v1/runs?status=done", "", nil, 422},
		{"an unknown path", "GET", "/v1/run", "", nil, 404},
		{"a path with dots", "GET", "/v1/x/../runs", "", nil, 404},
		{"a path with escaped dots", "GET", "/v1/x/%2e%2e/runs", "", nil, 404},
		{"a path with two slashes", "GET", "//v1/runs", "", nil, 404},
		{"a method that does not exist", "PUT", "/v1/runs", "", nil, 405},
		{"two tokens", "GET", "/v1/runs", "", func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer a", "Bearer b"} }, 401},
		{"another kind of token", "GET", "/v1/runs", "", header("Authorization", "Basic eDp5"), 401},
		{"inputs that the flow lacks", "POST", "/v1/runs", `{"flow":"ask","inputs":{"nam":"x"}}`, nil, 422},
		{"inputs that are no object", "POST", "/v1/runs", `{"flow":"ask","inputs":[1]}`, nil, 422},
		{"a script of the server", "POST", "/v1/runs", `{"flow":"talk","inputs":{"message":"x"},"model":"script//etc/passwd"}`, nil, 422},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			got := p.send(c.method, c.path, c.body, c.change)
			if got.status != c.want {
				t.Errorf("got %d %s, want %d", got.status, got.body, c.want)
			}
			if got.status >= 400 && (got.problem() == "" || got.header.Get("Content-Type") != "application/problem+json") {
				t.Errorf("not a problem: %s %s", got.header, got.body)
			}
			if got.header.Get("Access-Control-Allow-Origin") != "" || !strings.Contains(got.header.Get("Content-Security-Policy"), "default-src 'none'") {
				t.Errorf("headers: %v", got.header)
			}
		})
	}
}

func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the server may have closed it
	_, _ = conn.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n"))
	b := make([]byte, 12)
	if n, err := conn.Read(b); err == nil && string(b[:n]) != "HTTP/1.1 431" {
		t.Errorf("got %q", b[:n])
	}
}

// TestPagesOfAllowedSitesAloneReadAnswers enumerates origins and kinds of requests.
func TestPagesOfAllowedSitesAloneReadAnswers(t *testing.T) {
	t.Parallel()
	const site = "https://console.example.org"
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, Origins: []string{site}})
	token := p.anyone("ada").Token
	for origin, allowed := range map[string]bool{
		site: true, "": false, "null": false, "http://console.example.org": false, site + ":8443": false, site + ".attacker.example": false, "https://attacker.example": false,
	} {
		send := func(method, path, body string, change func(r *http.Request)) answer {
			return p.send(method, path, body, func(r *http.Request) {
				if origin != "" {
					r.Header.Set("Origin", origin)
					r.Header.Set("Sec-Fetch-Site", "cross-site")
				}
				change(r)
			})
		}
		asks := send(http.MethodOptions, "/v1/runs", "", func(r *http.Request) { r.Header.Set("Access-Control-Request-Method", "POST") })
		reads := send(http.MethodGet, "/v1/runs", "", withToken(token))
		starts := send(http.MethodPost, "/v1/runs", `{"flow":"ask","inputs":{"name":"x"}}`, withToken(token))
		without := send(http.MethodGet, "/v1/runs", "", withToken(""))
		for what, a := range map[string]answer{"asks": asks, "reads": reads, "starts": starts, "without a token": without} {
			want := map[bool]string{true: site}[allowed]
			if got := a.header.Get("Access-Control-Allow-Origin"); got != want || a.header.Get("Access-Control-Allow-Credentials") != "" || a.header.Get("Vary") != "Origin" {
				t.Errorf("%s %s: %q of %v", origin, what, got, a.header)
			}
		}
		if (asks.status == http.StatusNoContent) != allowed || (starts.status == http.StatusCreated) != (allowed || origin == "") || without.status != http.StatusUnauthorized {
			t.Errorf("%s: asks %d, starts %d, without a token %d", origin, asks.status, starts.status, without.status)
		}
	}
	if got := p.send(http.MethodOptions, "/v1/runs", "", func(r *http.Request) { r.Header.Set("Origin", site) }); got.status != http.StatusMethodNotAllowed {
		t.Errorf("OPTIONS without a question: %d", got.status)
	}
}

func TestOriginsThatNoBrowserSendsAreRefused(t *testing.T) {
	t.Parallel()
	const site = "https://console.example.org"
	p := openProcess(t, t.TempDir(), server.Options{})
	if _, err := server.New(t.Context(), server.Options{App: p.app, Origins: []string{site}}); err == nil {
		t.Error("accepted without tokens")
	}
	// What no browser sends would be accepted and allow no page.
	for _, origin := range []string{
		"", "*", "null", "console.example.org", site + "/", site + "/path", site + "?q", site + "#f", site + ":443", site + ":", "http://console.example.org:80",
		"https://*.example.org", "https://Console.example.org", "HTTPS://console.example.org", "https://ada@console.example.org", "ftp://console.example.org", "https://",
	} {
		if _, err := server.New(t.Context(), server.Options{App: p.app, RequireToken: true, Origins: []string{origin}}); err == nil {
			t.Errorf("accepted: %q", origin)
		}
	}
	for _, origin := range []string{site + ":8443", "http://localhost:3000", "http://[::1]:5173", "https://console.example.org:80"} {
		if _, err := server.New(t.Context(), server.Options{App: p.app, RequireToken: true, Origins: []string{origin}}); err != nil {
			t.Errorf("%q: %v", origin, err)
		}
	}
}

func TestAPanicOfAHandlerIsAnsweredAndLogged(t *testing.T) {
	t.Parallel()
	var lines log
	p := openProcess(t, t.TempDir(), server.Options{Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	panics := func(http.ResponseWriter, *http.Request, *server.Caller) { panic("spilled") }
	p.server.Handle("POST /v1/broken", server.Start, server.Face{}, panics)
	p.server.Handle("GET /v1/cut", server.Read, server.Face{}, func(w http.ResponseWriter, r *http.Request, c *server.Caller) {
		_, _ = io.WriteString(w, "the beginning")
		panics(w, r, c)
	})
	c := p.client("")
	a := sendTo(t, c, http.MethodPost, "/v1/broken", "{}", "")
	if a.status != http.StatusInternalServerError || a.problem() != "failed" || strings.Contains(a.body, "spilled") {
		t.Errorf("the answer is %d %s", a.status, a.body)
	}
	if text := lines.String(); !strings.Contains(text, "spilled") || !strings.Contains(text, "guard_test.go") {
		t.Errorf("the log is %s", text)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/v1/cut", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := new(http.Client).Do(req)
	if err == nil {
		_, err = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	if err == nil {
		t.Error("an answer that was cut ends as a whole one")
	}
}

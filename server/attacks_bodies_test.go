package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir/server"
)

// endless is a body of 1 GB that takes no memory. It counts what was read.
type endless struct {
	left int64
	read *atomic.Int64
}

// Read implements io.Reader.
func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), e.left)
	for i := range n {
		p[i] = 'a'
	}
	e.left -= n
	e.read.Add(n)
	return int(n), nil
}

// TestBodiesOf1GBAreCutAtEveryRoute announces a body of 1 GB to every route, and sends one, with its length and without, with a token and without. The
// server refuses what it is told, and reads at most what it may, and buffers of connections: its memory cannot grow with the body.
func TestBodiesOf1GBAreCutAtEveryRoute(t *testing.T) {
	t.Parallel()
	const gb, most = 1 << 30, 16 << 20
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, MaxBody: 64 << 10})
	token := p.client("ada", server.Scopes()...).Token
	for pattern, scope := range p.server.Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		path = wildcards.ReplaceAllString(path, "unknown")
		if status := p.sendRaw(method, path, token, "Content-Type: application/json\r\nContent-Length: 1073741824\r\n"); status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: a body of 1 GB that is announced has the answer %d", pattern, status)
		}
		for _, c := range []struct {
			length int64
			token  string
		}{{gb, token}, {-1, token}, {-1, ""}} {
			var read atomic.Int64
			status := p.sendEndless(method, path, c.token, &endless{gb, &read}, c.length)
			if read.Load() > most {
				t.Errorf("%s: %d bytes of a body of length %d were read", pattern, read.Load(), c.length)
			}
			refused := status == 0 || status == http.StatusUnauthorized || scope == server.Public
			if c.token == "" && !refused || status >= http.StatusInternalServerError {
				t.Errorf("%s: a body of length %d has the answer %d", pattern, c.length, status)
			}
		}
	}
}

// sendEndless sends a body and returns the status of the answer; 0 if the server closed the connection before the client read one.
func (p *process) sendEndless(method, path, token string, body io.Reader, length int64) int {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	r.ContentLength = length
	r.Header.Set("Content-Type", "application/json")
	withToken(token)(r)
	a, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		return 0
	}
	defer a.Body.Close()
	if strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
		return a.StatusCode
	}
	_, _ = io.Copy(io.Discard, a.Body) // it may be cut
	return a.StatusCode
}

// bombs are texts of YAML that are small and would be large, or deep, as values.
func bombs() map[string]string {
	head := "weir: 1\nname: x\nnodes: {a: {type: manualInput, with: {text: x}}}\n"
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	var merged, block strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&merged, "k%d: &k%d {<<: *k%d}\n", i+1, i+1, i)
	}
	for i := range 1500 {
		block.WriteString(strings.Repeat(" ", i+1) + "k:\n")
	}
	return map[string]string{
		"a billion laughs":    laughs + head,
		"laughs in a setting": head + "description: [" + strings.Repeat("*a0, ", 1000) + "]\nx: &a0 y\n",
		"an alias of itself":  head + "outputs: &a {x: *a}\n",
		"merged keys":         "k0: &k0 {a: 1}\n" + merged.String() + head,
		"deep lists":          head + "outputs: {x: " + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000) + "}",
		"deep and open":       head + "outputs: {x: " + strings.Repeat("[{", 50_000),
		"deep blocks":         head + "outputs:\n" + block.String(),
		"dashes":              head + "outputs:\n  x: " + strings.Repeat("- ", 50_000),
		"a large key":         head + "? " + strings.Repeat("k", 500_000) + "\n: 1\n",
		"a large text":        head + "description: " + strings.Repeat("x", 7<<20),
		"many documents":      strings.Repeat("---\na\n", 30_000),
		"many anchors":        head + "outputs: [" + strings.Repeat("&x y, ", 50_000) + "]",
		"many brackets":       head + "outputs: {x: '" + strings.Repeat("{{", 50_000) + "'}",
		"JSON in JSON":        `{"weir":1,"name":"x","nodes":` + strings.Repeat(`{"a":`, 30_000),
		"a tag":               head + "outputs: !!python/object/apply:os.system [id]\n",
		"no text":             "\x00\x01\xff\xfe" + head,
		"UTF-16":              "\xff\xfew\x00e\x00i\x00r\x00",
	}
}

// TestBombsAreRefusedByEveryRoute sends YAML that expands, and JSON that is deep, to every route that takes a body: as the flow, as other
// members, and as the body itself. No answer is an error of the server, and it answers afterwards.
func TestBombsAreRefusedByEveryRoute(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	bodies := map[string]string{
		"deep arrays":  strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000),
		"deep objects": strings.Repeat(`{"a":`, 50_000) + "1" + strings.Repeat("}", 50_000),
		"deep inputs":  `{"flow":"ask","inputs":{"name":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + `}}`,
		"deep value":   `{"flow":"ask","model":"talk","interrupt":"x","node":"x","value":` + strings.Repeat(`{"a":`, 9_000) + "1" + strings.Repeat("}", 9_000) + `}`,
		"a number":     `{"flow":"ask","inputs":{"name":1e999999999}}`,
		"a long digit": `{"flow":"ask","inputs":{"name":` + strings.Repeat("9", 200_000) + `}}`,
		"many members": `{"flow":"ask"` + strings.Repeat(`,"a":1`, 30_000) + `}`,
	}
	takesYAML := 0
	for pattern := range p.server.Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		if method != http.MethodPost && method != http.MethodPut {
			continue
		}
		path = wildcards.ReplaceAllString(path, "unknown")
		for name, body := range bodies {
			if a := p.send(method, path, body, nil); a.status < 400 && path != "/v1/reload" || a.status >= 500 { // that one takes no body
				t.Errorf("%s, %s: %d %.200s", pattern, name, a.status, a.body)
			}
		}
		if path != "/v1/flows/unknown" && path != "/v1/flows/validate" {
			continue
		}
		takesYAML++
		p.sendBombs(method, path)
	}
	if takesYAML != 2 {
		t.Errorf("%d routes take YAML", takesYAML)
	}
	if a := p.send(http.MethodGet, "/readyz", "", nil); a.status != http.StatusOK {
		t.Errorf("afterwards: %d", a.status)
	}
}

// sendBombs sends each bomb as a flow.
func (p *process) sendBombs(method, path string) {
	p.t.Helper()
	for name, text := range bombs() {
		body, err := json.Marshal(map[string]string{"flow": text})
		if err != nil {
			p.t.Fatal(err)
		}
		a := p.send(method, path, string(body), nil)
		if a.status >= 500 || a.status < 400 && !strings.Contains(a.body, `"valid":false`) {
			p.t.Errorf("%s %s, %s: %d %.200s", method, path, name, a.status, a.body)
		}
	}
}

// TestPathTricksReachNothing sends paths that other programs read as other ones. None may have the answer of the path that it resembles.
func TestPathTricksReachNothing(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	token := p.client("ada", server.Read).Token
	for _, path := range []string{
		"/v1/./runs", "/v1//runs", "/v1/x/../runs", "/v1/x/%2e%2e/runs", "/v1/x/.%2e/runs", "/v1/x/%2E./runs", "/v1/x/..%2fruns", "/v1/x/%2e%2e%2fruns", "/v1%2fruns", "/v1%5cruns", `/v1\runs`,
		"/v1/runs/", "/v1/runs//", "/v1/runs/.", "/v1/runs/..", "/v1/runs/%2e", "/v1/runs/%2e%2e", "/v1/runs;x=1", "/v1;/runs", "/V1/runs", "/v1/RUNS", "/v1/runs%00", "/v1/runs%20", "/v1/runs%0a", "/v1/runs.json",
		"/v1/%72uns/..", "//v1/runs", "///v1/runs", "/%76%31/runs/", "/v1/runs/..%5c..%5cusers", "/healthz/../v1/users", "/healthz/%2e%2e/v1/users", "/docs/../v1/users", "/assets/../v1/users", "/assets/%2e%2e/v1/users",
		"/assets/..%2f..%2fetc/passwd", "/assets/....//....//etc/passwd", "/..%c0%af..%c0%afetc/passwd", "/a/../v1/users", "/t/../v1/users", "/a/%2e%2e%2fv1%2fusers",
	} {
		if status := p.sendRaw(http.MethodGet, path, token, ""); status != 400 && status != 404 && status != 410 {
			t.Errorf("%q: %d", path, status)
		}
	}
}

// sendRaw sends a request whose path is not changed by a library, with more headers and without a body, and returns the status.
func (p *process) sendRaw(method, path, token, headers string) int {
	p.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(p.t.Context(), "tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it was only read
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nConnection: close\r\n%s\r\n", method, path, token, headers); err != nil {
		p.t.Fatal(err)
	}
	a, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	defer a.Body.Close()
	return a.StatusCode
}

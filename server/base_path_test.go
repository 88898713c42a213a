package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
	"github.com/weir-run/weir/server/ui"
)

// below requests an address that an answer has given, as a browser would resolve it.
func (p *process) below(page, reference string) answer {
	p.t.Helper()
	at, err := url.Parse(p.url + page)
	if err != nil {
		p.t.Fatal(err)
	}
	to, err := at.Parse(reference)
	if err != nil {
		p.t.Fatal(err)
	}
	whole := *p
	whole.url = ""
	return whole.send(http.MethodGet, to.String(), "", nil)
}

func TestAllAddressesAreBelowTheBasePath(t *testing.T) {
	t.Parallel()
	const base = "/tools/weir"
	p := openProcess(t, t.TempDir(), server.Options{BasePath: base, Page: ui.Handler(), PublicURL: "https://weir.example.org/"})
	host := strings.TrimSuffix(p.url, base)

	checkPages(t, p, base)
	checkDescription(t, p, base)

	c := &client.Client{URL: p.url}
	made := p.send(http.MethodPost, "/v1/runs?wait=60", `{"flow":"ask","inputs":{"name":"Ada"}}`, nil)
	var run client.Run
	if err := json.Unmarshal([]byte(made.body), &run); err != nil || made.header.Get("Location") != base+"/v1/runs/"+run.ID {
		t.Fatalf("%v, Location %q", err, made.header.Get("Location"))
	}
	if a := p.below("/v1/runs", made.header.Get("Location")); a.status != http.StatusOK {
		t.Errorf("the Location: %d", a.status)
	}
	link := decode[struct{ Path, URL string }](p, c, http.MethodPost, "/v1/runs/"+run.ID+"/links", `{"interrupt":"ask:ask#1"}`)
	if link.URL != "https://weir.example.org"+link.Path || !strings.HasPrefix(link.Path, base+"/a/") {
		t.Errorf("%+v", link)
	}
	shown := p.below("", link.Path)
	style := regexp.MustCompile(`stylesheet" href="([^"]+)"`).FindStringSubmatch(shown.body)
	if shown.status != http.StatusOK || style == nil || p.below(strings.TrimPrefix(link.Path, base), style[1]).status != http.StatusOK {
		t.Errorf("the page of the link: %d %s", shown.status, shown.body)
	}
	if a := p.submit(strings.TrimPrefix(link.Path, base), url.Values{"value": {"approve"}}); a.status != http.StatusOK {
		t.Errorf("the form of the link: %d %s", a.status, a.body)
	}
	hook := decode[struct{ Path string }](p, c, http.MethodPost, "/v1/triggers", `{"name":"in","flow":"ask","kind":"webhook","payload":"name"}`)
	p.url = host
	if a := p.send(http.MethodPost, hook.Path, `{}`, nil); a.status != http.StatusUnauthorized { // it exists, and the request is not signed
		t.Errorf("the path of the trigger %s: %d", hook.Path, a.status)
	}
}

// checkPages follows the references of the pages.
func checkPages(t *testing.T, p *process, base string) {
	t.Helper()
	for _, page := range []string{"/", "/docs"} {
		a := p.send(http.MethodGet, page, "", nil)
		references := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(a.body, -1)
		if a.status != http.StatusOK || len(references) < 2 {
			t.Fatalf("%s: %d, %d references", page, a.status, len(references))
		}
		for _, m := range references {
			if strings.HasPrefix(m[1], "data:") {
				continue
			}
			if got := p.below(page, m[1]); got.status != http.StatusOK {
				t.Errorf("%s refers to %s: %d", page, m[1], got.status)
			}
		}
	}
	if a := p.send(http.MethodGet, "", "", nil); a.status != http.StatusPermanentRedirect || a.header.Get("Location") != base+"/" {
		t.Errorf("without the slash at the end: %d %v", a.status, a.header)
	}
}

func checkDescription(t *testing.T, p *process, base string) {
	t.Helper()
	var description struct {
		Servers []struct{ URL string }
		Paths   map[string]any
	}
	if err := json.Unmarshal([]byte(p.send(http.MethodGet, "/openapi.json", "", nil).body), &description); err != nil {
		t.Fatal(err)
	}
	if len(description.Servers) != 1 || description.Servers[0].URL != base || description.Paths["/v1/runs"] == nil {
		t.Errorf("servers %v", description.Servers)
	}
}

// TestNoRouteExistsBesideTheBasePath tries every route without the base path, and each with paths that only look as if
// they were below it.
func TestNoRouteExistsBesideTheBasePath(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{BasePath: "/weir", Page: ui.Handler()})
	p.url = strings.TrimSuffix(p.url, "/weir")
	tried := 0
	for pattern := range p.server.Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		path = regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(strings.ReplaceAll(path, "{$}", ""), "x")
		for _, to := range []string{path, "/weirs" + path, "/WEIR" + path, "/%77eir" + path, "/weir/.." + path, "/weir/weir" + path, "//weir" + path, "/weir%2f" + path[1:], "/weir/%2e%2e/weir" + path} {
			tried++
			if a := p.send(method, to, "", nil); a.status != http.StatusNotFound {
				t.Errorf("%s %s: %d", method, to, a.status)
			}
		}
	}
	if tried < 900 {
		t.Errorf("only %d requests", tried)
	}
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"talk","messages":[{"role":"user","content":"x"}]}`,
		"/agui/talk":           `{"threadId":"t","runId":"1","messages":[{"id":"1","role":"user","content":"x"}]}`,
		"/mcp":                 `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk","arguments":{"message":"x"}}}`,
	} {
		if a := p.send(http.MethodPost, "/weir"+path, body, func(r *http.Request) { r.Header.Set("Accept", "application/json, text/event-stream") }); a.status != http.StatusOK || !strings.Contains(a.body, "Berth 4") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestABasePathIsChecked(t *testing.T) {
	t.Parallel()
	valid := []string{"/weir", "/a/b-c/d.e_f~"}
	for _, base := range append(slices.Clone(valid), "weir", "/", "/weir/", "//weir", "/../x", "/./x", "/a//b", "/we ir", "/we%20ir", "/a?b", "/a#b", "/{x}", "/é") {
		err := newServer(t, server.Options{BasePath: base})
		if want := slices.Contains(valid, base); (err == nil) != want {
			t.Errorf("%q: %v", base, err)
		}
	}
	for public, want := range map[string]bool{"https://x.example": true, "https://x.example/": true, "https://x.example/weir": true, "https://x.example/weir/": true, "https://x.example/other": false} {
		if err := newServer(t, server.Options{BasePath: "/weir", PublicURL: public}); (err == nil) != want {
			t.Errorf("%s: %v", public, err)
		}
	}
}

// newServer returns the error of a server with options.
func newServer(t *testing.T, o server.Options) error {
	t.Helper()
	p := openProcess(t, t.TempDir(), server.Options{})
	o.App = p.app
	_, err := server.New(t.Context(), o)
	return err
}

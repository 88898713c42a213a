package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
	"github.com/weir-run/weir/store"
)

// makeLink starts a run that asks and returns the run with the path of a link to its question.
func makeLink(t *testing.T, p *process, c *client.Client) (run, path string) {
	t.Helper()
	r, err := c.StartRun(t.Context(), client.Start{Flow: "ask", Inputs: map[string]any{"name": "Ada"}, Wait: 60})
	if err != nil {
		t.Fatal(err)
	}
	a := p.send(http.MethodPost, "/v1/runs/"+r.ID+"/links", `{"interrupt":"ask:ask#1"}`, withToken(c.Token))
	var link struct{ Path, URL string }
	if err := json.Unmarshal([]byte(a.body), &link); err != nil || a.status != http.StatusCreated || link.URL != "https://weir.example.org"+link.Path {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return r.ID, link.Path
}

// submit sends the form of a link.
func (p *process) submit(path string, form url.Values) answer {
	p.t.Helper()
	return p.send(http.MethodPost, path, form.Encode(), func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	})
}

// kept returns the documents of a kind, of which there must be one.
func kept(t *testing.T, p *process, kind string) store.Document {
	t.Helper()
	list, err := p.app.Store.Documents(t.Context(), store.DocumentFilter{Kind: kind})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d documents of kind %s, %v", len(list), kind, err)
	}
	return list[0]
}

func TestAnAnswerLinkAnswersOnceWithoutAToken(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, PublicURL: "https://weir.example.org"})
	c := p.anyone("ada")
	run, path := makeLink(t, p, c)
	for range 2 { // a page that is only shown uses nothing up
		a := p.send(http.MethodGet, path, "", nil)
		if a.status != http.StatusOK || !strings.Contains(a.body, "Approve?") || !strings.Contains(a.body, `value="reject"`) || strings.Contains(a.body, "Ada") {
			t.Errorf("%d %s", a.status, a.body)
		}
		if csp := a.header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || a.header.Get("Referrer-Policy") == "" {
			t.Errorf("%v", a.header)
		}
	}
	if d := kept(t, p, "link"); strings.Contains(string(d.Body)+d.ID, strings.TrimPrefix(path, "/a/")) {
		t.Error("the store has the secret of the link")
	}
	if a := p.submit(path, url.Values{"value": {"perhaps <b>"}}); a.status != http.StatusUnprocessableEntity || strings.Contains(a.body, "<b>") {
		t.Errorf("an answer that does not fit: %d %s", a.status, a.body)
	}
	if a := p.send(http.MethodPost, path, `{"value":"approve"}`, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }); a.status != http.StatusUnsupportedMediaType {
		t.Errorf("a body that is no form: %d", a.status)
	}
	if a := p.submit(path, url.Values{"value": {"approve"}}); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, a := range []answer{p.submit(path, url.Values{"value": {"reject"}}), p.send(http.MethodGet, path, "", nil)} {
		if a.status != http.StatusGone {
			t.Errorf("used again: %d %s", a.status, a.body)
		}
	}
	r, err := c.Run(t.Context(), run)
	if err != nil || r.Status != "completed" || r.Outputs["decision"] != "approve" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAnAnswerLinkEndsWithItsQuestion(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, PublicURL: "https://weir.example.org/"})
	c := p.anyone("ada")
	for name, end := range map[string]func(run string){
		"answered in another way": func(run string) {
			if _, err := c.Answer(t.Context(), run, "ask:ask#1", "approve", 0); err != nil {
				t.Error(err)
			}
		},
		"run cancelled": func(run string) {
			if a := p.send(http.MethodPost, "/v1/runs/"+run+"/cancel", `{}`, withToken(c.Token)); a.status != http.StatusOK {
				t.Error(a.body)
			}
		},
		"run deleted": func(run string) {
			if _, err := p.app.Store.DeleteRun(t.Context(), run, store.DeleteOptions{Force: true}); err != nil {
				t.Error(err)
			}
		},
		"expired": func(run string) {
			list, err := p.app.Store.Documents(t.Context(), store.DocumentFilter{Kind: "link", Run: run})
			if err != nil || len(list) != 1 {
				t.Fatal(len(list), err)
			}
			d := list[0]
			var l map[string]any
			if err := json.Unmarshal(d.Body, &l); err != nil {
				t.Fatal(err)
			}
			l["expires"] = time.Now().Add(-time.Second).UTC()
			d.Body, err = json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.app.Store.PutDocument(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		},
	} {
		run, path := makeLink(t, p, c)
		end(run)
		if a := p.submit(path, url.Values{"value": {"reject"}}); a.status != http.StatusGone {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := p.send(http.MethodPost, "/v1/runs/nothing/links", `{"interrupt":"ask:ask#1"}`, withToken(p.anyone("bob").Token)); a.status != http.StatusNotFound {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestGuessingLinksIsLimited(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	for range 200 {
		a := p.send(http.MethodGet, "/a/guess", "", nil)
		if a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") != "" {
			return
		}
	}
	t.Error("200 guesses were answered")
}

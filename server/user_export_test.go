package server_test

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/store"
)

// exportLines exports a user and counts the lines by their type, and of documents by their kind.
func exportLines(t *testing.T, p *process, token, user string) (text string, lines map[string]int) {
	t.Helper()
	got := p.send(http.MethodGet, "/v1/users/"+user+"/export", "", withToken(token))
	if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatal(got)
	}
	lines = map[string]int{}
	scan := bufio.NewScanner(strings.NewReader(got.body))
	scan.Buffer(nil, 1<<24)
	last := ""
	for scan.Scan() {
		var line struct {
			Type     string
			Document struct{ Kind string }
		}
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			t.Fatalf("%v in %s", err, scan.Text())
		}
		last = line.Type
		lines[line.Type+line.Document.Kind]++
	}
	if last != "end" {
		t.Errorf("the last line is %s", last)
	}
	return got.body, lines
}

// TestAnExportHasEverythingOfAUser makes an object of each kind, and compares the export with the documents that the
// database has of the user.
func TestAnExportHasEverythingOfAUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := openProcess(t, dir, server.Options{RequireToken: true})
	root, ada, bob := p.client("root", server.Admin), p.anyone("ada"), p.anyone("bob")
	o, other := makeObjects(t, ada), makeObjects(t, bob)
	p.remember("ada", "the berth is free")
	p.setUser("ada", func(u *server.User) { u.Note = "of the harbour" })
	if err := p.app.Store.EditUserState(t.Context(), store.UserStateEdit{
		Write: engine.UserStateWrite{User: "ada", Flow: "talk", Changes: []engine.UserChange{{Key: "visits", Value: int64(3), Replace: true}}}, By: "root", At: time.Now(),
	}); err != nil {
		t.Fatal(err)
	}
	for path, body := range map[string]string{
		"/v1/runs/" + o.run + "/labels": `{"labels":["harbour"]}`, "/v1/runs/" + o.run + "/ratings": `{"rating":"up"}`,
		"/v1/sessions/" + o.session + "/title": `{"title":"A berth"}`, "/v1/filters/mine": `{"of":"runs","query":{}}`,
	} {
		decode[any](p, ada, http.MethodPut, path, body)
	}
	decode[any](p, ada, http.MethodPost, "/v1/runs/"+o.run+"/links", `{"interrupt":"ask:ask#1"}`)
	decode[any](p, ada, http.MethodPost, "/v1/responses", `{"model":"talk","input":"x"}`)
	decode[any](p, ada, http.MethodPost, "/v1/conversations", `{}`)
	decode[any](p, root, http.MethodPut, "/v1/quotas", `{"user":"ada","calls":100}`)
	text, lines := exportLines(t, p, root.Token, "ada")
	for _, kind := range []string{"token", "session", "message", "run", "event", "memory", "state", "audit", "end"} {
		if lines[kind] == 0 {
			t.Errorf("the export has no %s: %v", kind, lines)
		}
	}
	for _, want := range []string{o.run, o.session, "Berth 4 is free.", "the berth is free", "of the harbour", `"visits"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the export does not have %s", want)
		}
	}
	for _, foreign := range []string{ada.Token, other.run, other.session, `"bob"`} {
		if strings.Contains(text, foreign) {
			t.Errorf("the export has %s", foreign)
		}
	}
	checkDocuments(t, filepath.Join(dir, "weir.db"), lines)
	if got := audited(p, root, "action=/export"); len(got) != 1 || got[0].Objects["user"] != "ada" || got[0].Status != http.StatusOK {
		t.Errorf("the export is not in the audit log: %+v", got)
	}
	if _, lines := exportLines(t, p, root.Token, "nobody"); len(lines) != 1 {
		t.Errorf("of nobody: %v", lines)
	}
}

// checkDocuments compares the documents of an export with those that the database has of ada.
func checkDocuments(t *testing.T, path string, lines map[string]int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it is only read
	rows, err := db.QueryContext(t.Context(), "SELECT kind, count(*) FROM document WHERE user = 'ada' GROUP BY kind")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var kinds []string
	for rows.Next() {
		var kind string
		var n int
		if err := rows.Scan(&kind, &n); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, kind)
		if kind != store.AuditNameKind && lines["document"+kind] != n {
			t.Errorf("the database has %d documents of the kind %s, and the export %d", n, kind, lines["document"+kind])
		}
	}
	for _, kind := range []string{store.UserKind, store.QuotaKind, store.FlowKind, store.LabelKind, store.RatingKind, store.FilterKind, store.NoticeKind, "trigger", "link", "session"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("the test makes no document of the kind %s", kind)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestWebhooksAndTriggersOfAUserAreBounded: the hundredth is the last one.
func TestWebhooksAndTriggersOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada, bob := p.anyone("ada"), p.anyone("bob")
	for path, body := range map[string]string{
		"/v1/webhooks": `{"url":"https://example.org","events":["run.failed"]}`,
		"/v1/triggers": `{"name":"x","flow":"ask","kind":"webhook","payload":"name"}`,
	} {
		first := ""
		for range 100 {
			made := decode[struct{ ID string }](p, ada, http.MethodPost, path, body)
			first = made.ID
		}
		if got := p.send(http.MethodPost, path, body, withToken(ada.Token)); got.status != http.StatusConflict || got.problem() != "too_many_requests" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
		decode[any](p, bob, http.MethodPost, path, body)
		decode[any](p, ada, http.MethodDelete, path+"/"+first, "")
		decode[any](p, ada, http.MethodPost, path, body)
	}
}

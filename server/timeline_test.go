package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// get reads the JSON of an answer.
func (p *process) get(path string, into any) answer {
	p.t.Helper()
	got := p.send(http.MethodGet, path, "", nil)
	if got.status != http.StatusOK {
		p.t.Fatalf("%s: %d %s", path, got.status, got.body)
	}
	if err := json.Unmarshal([]byte(got.body), into); err != nil {
		p.t.Fatalf("%s: %v", path, err)
	}
	return got
}

func startAsk(t *testing.T, p *process, name string) string {
	t.Helper()
	run, err := p.client("").StartRun(t.Context(), client.Start{Flow: "ask", Inputs: map[string]any{"name": name}, Wait: 60})
	if err != nil || run.Status != "paused" {
		t.Fatalf("%+v, %v", run, err)
	}
	return run.ID
}

type timeline struct {
	Status     string
	Event      int64
	Events     int64
	Cursor     string
	Interrupts []struct{ ID, Kind string }
	Nodes      []struct {
		Node, Type, Status, Result string
		Phases                     []struct {
			Kind     string
			From, To int64
		}
	}
}

func TestATimelineHasEveryNodeWithItsPhasesAtAnyEvent(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	id := startAsk(t, p, "Ada")
	var now, then timeline
	p.get("/v1/runs/"+id+"/timeline", &now)
	if now.Status != "paused" || len(now.Nodes) != 2 || now.Event != now.Events || len(now.Interrupts) != 1 || now.Interrupts[0].Kind != "input" {
		t.Fatalf("%+v", now)
	}
	greet, ask := now.Nodes[0], now.Nodes[1]
	if greet.Node != "greet" || greet.Status != "completed" || greet.Result != "Hello Ada" || len(greet.Phases) != 1 || greet.Phases[0].To == 0 {
		t.Errorf("greet: %+v", greet)
	}
	var kinds []string
	for _, x := range ask.Phases {
		kinds = append(kinds, x.Kind)
	}
	if ask.Status != "waiting" || !slices.Equal(kinds, []string{"run", "input"}) || ask.Phases[1].To != 0 {
		t.Errorf("ask: %+v", ask)
	}
	p.get("/v1/runs/"+id+"/timeline?at=2", &then)
	if then.Event != 2 || then.Events != now.Events || then.Nodes[0].Status != "running" || then.Nodes[1].Status != "pending" {
		t.Errorf("after event 2: %+v", then)
	}
	var page timeline
	p.get("/v1/runs/"+id+"/timeline?from=1&limit=1", &page)
	if len(page.Nodes) != 1 || page.Nodes[0].Node != "ask" {
		t.Errorf("the page from 1: %+v", page.Nodes)
	}
}

func TestTheCursorOfATimelineContinuesBehindIt(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	id := startAsk(t, p, "Ada")
	var before timeline
	p.get("/v1/runs/"+id+"/timeline", &before)
	if _, err := p.client("").Answer(t.Context(), id, "ask:ask#1", "approve", 60); err != nil {
		t.Fatal(err)
	}
	got := p.send(http.MethodGet, "/v1/runs/"+id+"/stream", "", func(r *http.Request) { r.Header.Set("Last-Event-ID", before.Cursor) })
	if strings.Contains(got.body, "event: run.started") || !strings.Contains(got.body, "event: interrupt.answered") || !strings.Contains(got.body, "event: run.completed") {
		t.Errorf("the stream behind the timeline: %s", got.body)
	}
}

func TestANodeHasInputsAndOutputsAndLargeValuesComeOnRequest(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	long := strings.Repeat("é", 20_000)
	id := startAsk(t, p, long)
	type value struct {
		Name, Excerpt string
		Size          int
		Value         any
	}
	var n struct {
		Status  string
		Outputs []value
		Waits   []struct{ Prompt string }
	}
	p.get("/v1/runs/"+id+"/node?node=greet", &n)
	if n.Status != "completed" || len(n.Outputs) == 0 {
		t.Fatalf("%+v", n)
	}
	i := slices.IndexFunc(n.Outputs, func(v value) bool { return v.Name == "text" })
	out := n.Outputs[i]
	if out.Value != nil || out.Size < 40_000 || !strings.HasPrefix(out.Excerpt, "Hello éé") || len(out.Excerpt) > 3<<10 {
		t.Errorf("value of %d bytes with the excerpt %q", out.Size, out.Excerpt)
	}
	var whole string
	p.get("/v1/runs/"+id+"/value?node=greet&part=outputs&name=text", &whole)
	if whole != "Hello "+long {
		t.Errorf("the whole value has %d bytes", len(whole))
	}
	p.get("/v1/runs/"+id+"/node?node=ask", &n)
	if n.Status != "waiting" || len(n.Waits) != 1 || n.Waits[0].Prompt != "Approve?" {
		t.Errorf("%+v", n)
	}
	for _, path := range []string{"/node?node=none", "/value?node=greet&part=outputs&name=none", "/value?node=greet&part=waits&name=7"} {
		if got := p.send(http.MethodGet, "/v1/runs/"+id+path, "", nil); got.status != http.StatusNotFound || got.problem() != "not_found" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

func TestTheDrawingOfARunIsThatOfItsFlow(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	id := startAsk(t, p, "Ada")
	type drawing struct {
		Fingerprint string
		Layout      struct {
			Nodes []struct {
				ID   string
				X, Y float64
			}
			Edges []struct {
				From, To int
				Points   [][2]float64
			}
		}
	}
	var ofRun, ofFlow drawing
	a, b := p.get("/v1/runs/"+id+"/graph", &ofRun), p.get("/v1/flows/ask/graph", &ofFlow)
	if a.body != b.body || ofRun.Fingerprint == "" || len(ofRun.Layout.Nodes) != 2 || len(ofRun.Layout.Edges) != 1 {
		t.Fatalf("%s\n%s", a.body, b.body)
	}
	if l := ofRun.Layout; l.Nodes[0].ID != "greet" || l.Nodes[1].Y <= l.Nodes[0].Y || len(l.Edges[0].Points) < 2 {
		t.Errorf("%+v", l)
	}
}

func TestTheCallerIsTheUserOfTheToken(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	token := p.client("ada", server.Read).Token
	got := p.send(http.MethodGet, "/v1/me", "", withToken(token))
	if want := `{"user":"ada","role":"","scopes":["read"],"all":false,"tokenRequired":true,"signOut":"token","signOutURL":""}`; strings.TrimSpace(got.body) != want {
		t.Errorf("%s, expected %s", got.body, want)
	}
}

func TestThePageIsServedWithItsOwnPolicyAndNoOtherPathIs(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "script-src 'self'")
		_, _ = w.Write([]byte("page"))
	})
	p := openProcess(t, t.TempDir(), server.Options{Page: page, RequireToken: true})
	for path, want := range map[string]string{"/": "script-src 'self'", "/assets/index.js": "script-src 'self'"} {
		if got := p.send(http.MethodGet, path, "", nil); got.body != "page" || got.header.Get("Content-Security-Policy") != want {
			t.Errorf("%s: %d %s, policy %q", path, got.status, got.body, got.header.Get("Content-Security-Policy"))
		}
	}
	for _, path := range []string{"/runs", "/assets/", "/assets/a/b", "/v2", "/assets/../v1/runs"} {
		if got := p.send(http.MethodGet, path, "", nil); got.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	other := openProcess(t, t.TempDir(), server.Options{})
	if got := other.send(http.MethodGet, "/", "", nil); got.status != http.StatusNotFound {
		t.Errorf("without a page: %d", got.status)
	}
}

func TestAContextHasItsLastModelCall(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	run, err := p.client("").StartRun(t.Context(), client.Start{Flow: "twice", Wait: 60})
	if err != nil || run.Status != "completed" {
		t.Fatalf("%+v, %v", run, err)
	}
	for context, want := range map[string]string{"main": "two", "other": "three"} {
		var page struct{ Last struct{ Node, Call string } }
		p.get("/v1/runs/"+run.ID+"/contexts/"+context, &page)
		if page.Last.Node != want || page.Last.Call != want+"/model#1" {
			t.Errorf("context %s: %+v", context, page.Last)
		}
	}
}

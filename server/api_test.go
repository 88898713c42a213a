package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

func TestARequestWithAKeyIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := openProcess(t, dir, server.Options{})
	ada, bob := p.anyone("ada"), p.anyone("bob")
	start := client.Start{Flow: "ask", Inputs: map[string]any{"name": "Ada"}, Key: "k"}
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			run, err := ada.StartRun(t.Context(), start)
			if err != nil {
				t.Error(err)
			}
			ids[i] = run.ID
		})
	}
	all.Wait()
	run := func(c *client.Client, s client.Start) string {
		t.Helper()
		got, err := c.StartRun(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return got.ID
	}
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("one key started %v", ids)
		}
	}
	if other := run(bob, start); other == ids[0] {
		t.Error("another user's key is the same request")
	}
	again := start
	again.Key = "l"
	if run(ada, again) == ids[0] {
		t.Error("another key is the same request")
	}
	again = start
	again.Inputs = map[string]any{"name": "Eve"}
	_, err := ada.StartRun(t.Context(), again)
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Code != "request_reused" || e.Status != http.StatusUnprocessableEntity {
		t.Errorf("another content under the key: %v", err)
	}
	failed := client.Start{Flow: "ask", Key: "bad"}
	if _, err := ada.StartRun(t.Context(), failed); err == nil {
		t.Error("a run without its input started")
	}
	p.close()
	p = openProcess(t, dir, server.Options{})
	ada.URL = p.url
	if run(ada, start) != ids[0] {
		t.Error("after a restart the key is another request")
	}
}

func TestMessagesAndAnswersWithAKeyAreGivenOnce(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	ada := p.anyone("ada")
	o := makeObjects(t, ada)
	first, err := ada.Send(t.Context(), o.session, client.Message{Text: "Until when?", Key: "k", Wait: 60})
	if err != nil {
		t.Fatal(err)
	}
	second, err := ada.Send(t.Context(), o.session, client.Message{Text: "Until when?", Key: "k", Wait: 60})
	if err != nil || second.Message != first.Message || second.Run != first.Run || second.Text != "Until noon." {
		t.Errorf("first %+v, second %+v, %v", first, second, err)
	}
	var list struct{ Length int }
	if err := ada.Do(t.Context(), http.MethodGet, "/v1/sessions/"+o.session+"/messages", nil, &list); err != nil || list.Length != 4 {
		t.Errorf("%d messages, %v", list.Length, err)
	}
	key := func(r *http.Request) { withToken(ada.Token)(r); r.Header.Set("Idempotency-Key", "k") }
	const yes, no = `{"interrupt":"ask:ask#1","value":"approve"}`, `{"interrupt":"ask:ask#1","value":"reject"}`
	path := "/v1/runs/" + o.run + "/answer?wait=60"
	for _, want := range []struct {
		body   string
		change func(*http.Request)
		status int
		text   string
	}{
		{`{"interrupt":"ask:ask#1","value":"maybe"}`, withToken(ada.Token), 422, "answer_invalid"},
		{yes, key, 200, `"decision":"approve"`},
		{yes, key, 200, `"decision":"approve"`},
		{no, key, 422, "request_reused"},
		{no, withToken(ada.Token), 409, "interrupt_unknown"},
	} {
		if got := p.send(http.MethodPost, path, want.body, want.change); got.status != want.status || !strings.Contains(got.body, want.text) {
			t.Errorf("%s: %d %s, want %d %s", want.body, got.status, got.body, want.status, want.text)
		}
	}
}

func TestCommandsCorrectForkAndCancelRuns(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	ada := p.anyone("ada")
	run, err := ada.StartRun(t.Context(), client.Start{Flow: "fails", Wait: 60})
	if err != nil || run.Status != "failed" || run.Error == nil {
		t.Fatalf("%+v, %v", run, err)
	}
	do := func(method, path, body string, want int) map[string]any {
		t.Helper()
		got := p.send(method, path, body, withToken(ada.Token))
		if got.status != want {
			t.Fatalf("%s %s: %d %s, want %d", method, path, got.status, got.body, want)
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(got.body), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	if r := do("POST", "/v1/runs/"+run.ID+"/retry?wait=60", `{"node":"stuck"}`, 200); r["status"] != "failed" {
		t.Errorf("retried: %v", r)
	}
	do("POST", "/v1/runs/"+run.ID+"/skip", `{"node":"stuck","outputs":{}}`, 422)
	if r := do("POST", "/v1/runs/"+run.ID+"/complete?wait=60", `{"node":"stuck"}`, 200); r["status"] != "completed" || fmt.Sprint(r["outputs"]) != "map[line:done]" {
		t.Errorf("completed: %v", r)
	}
	do("POST", "/v1/runs/"+run.ID+"/cancel", `{}`, 409)
	again := do("POST", "/v1/runs/"+run.ID+"/rerun?wait=60", `{}`, 201)
	if again["status"] != "failed" {
		t.Errorf("again: %v", again)
	}
	o := makeObjects(t, ada)
	fork := do("POST", "/v1/runs/"+o.run+"/fork?wait=60", `{"inputs":{"name":"Eve"}}`, 201)
	forked := fmt.Sprint(fork["run"])
	if r := do("GET", "/v1/runs/"+forked, "", 200); r["fork"] == nil || fmt.Sprint(r["inputs"]) != "map[name:Eve]" || r["user"] != "ada" {
		t.Errorf("fork: %v", r)
	}
	if d := do("GET", "/v1/runs/"+o.run+"/diff/"+forked, "", 200); d["same"] != false {
		t.Errorf("diff: %v", d)
	}
	if r := do("POST", "/v1/runs/"+forked+"/cancel?wait=60", `{"reason":"enough"}`, 200); r["status"] != "cancelled" {
		t.Errorf("cancelled: %v", r)
	}
	if r := do("GET", "/v1/runs/"+forked+"/verify", "", 200); r["ok"] != true {
		t.Errorf("verify: %v", r)
	}
	if v := do("POST", "/v1/flows/validate", `{"flow":"weir: 1\nname: x\nnodes: {a: {type: nothing}}\n"}`, 200); v["valid"] != false || !strings.Contains(fmt.Sprint(v["problems"]), "flow:3:") {
		t.Errorf("validate: %v", v)
	}
}

// TestTheRecordOfARoundIsReadable reads what a model was sent and what it answered.
func TestTheRecordOfARoundIsReadable(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	ada := p.anyone("ada")
	o := makeObjects(t, ada)
	get := func(path string) (v map[string]any) {
		t.Helper()
		if err := ada.Do(t.Context(), http.MethodGet, "/v1/runs/"+o.message+path, nil, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	calls := get("/calls?node=answer")
	if text := fmt.Sprint(calls); !strings.Contains(text, "Is there a berth?") || !strings.Contains(text, "proven:true") {
		t.Errorf("calls: %v", calls)
	}
	if x := get("/contexts/main?from=1"); x["messages"] != 2.0 || !strings.Contains(fmt.Sprint(x["list"]), "Berth 4 is free.") {
		t.Errorf("context: %v", x)
	}
	if got := p.send(http.MethodGet, "/v1/runs/"+o.message+"/export", "", withToken(ada.Token)); got.status != 200 || !strings.Contains(got.body, "Berth 4 is free.") ||
		got.header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("export: %d %s", got.status, got.body)
	}
	if w := get("/chain"); len(w["work"].([]any)) != 1 {
		t.Errorf("chain: %v", w)
	}
}

func TestPagesHaveEveryItemOnce(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	ada := p.anyone("ada")
	o := makeObjects(t, ada)
	for range 4 {
		if _, err := ada.StartRun(t.Context(), client.Start{Flow: "ask", Inputs: map[string]any{"name": "x"}}); err != nil {
			t.Fatal(err)
		}
	}
	for path, c := range map[string]struct {
		member, id string
		want       int
	}{"/v1/runs": {"runs", "run", 6}, "/v1/runs/" + o.run + "/events": {"events", "number", 5}, "/v1/sessions": {"sessions", "session", 1}} {
		if seen := allPages(t, ada, path, c.member, c.id); len(seen) != c.want {
			t.Errorf("%s: %d of %d", path, len(seen), c.want)
		}
	}
}

// allPages reads the pages of a list, two items each, and returns the ids of the items.
func allPages(t *testing.T, c *client.Client, path, member, id string) map[string]bool {
	t.Helper()
	seen, cursor := map[string]bool{}, ""
	for range 20 {
		var page map[string]any
		if err := c.Do(t.Context(), http.MethodGet, path+"?limit=2&cursor="+url.QueryEscape(cursor), nil, &page); err != nil {
			t.Fatal(err)
		}
		for _, x := range page[member].([]any) {
			name := fmt.Sprint(x.(map[string]any)[id])
			if seen[name] {
				t.Errorf("%s: %s twice", path, name)
			}
			seen[name] = true
		}
		if cursor = page["next"].(string); cursor == "" {
			break
		}
	}
	return seen
}

func TestASessionIsDeletedOnlyWithTheConfirmationOfWhatItDeletes(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	ada := p.anyone("ada")
	o := makeObjects(t, ada)
	path := "/v1/sessions/" + o.session
	ask := func(confirmation string) *client.Error {
		t.Helper()
		err := ada.Do(t.Context(), http.MethodDelete, path+"?confirm="+confirmation, nil, nil)
		e, ok := errors.AsType[*client.Error](err)
		if !ok || e.Code != "confirmation_needed" {
			t.Fatalf("deleted with %q: %v", confirmation, err)
		}
		return e
	}
	first := ask("").Confirmation
	_ = ask(strings.Repeat("0", len(first)))
	if _, err := ada.Send(t.Context(), o.session, client.Message{Text: "More", Wait: 60}); err != nil {
		t.Fatal(err)
	}
	second := ask(first).Confirmation // there is more to delete now
	var gone struct{ Sessions, Runs, Messages int }
	if err := ada.Do(t.Context(), http.MethodDelete, path+"?confirm="+second, nil, &gone); err != nil || gone.Sessions != 1 || gone.Runs != 2 || gone.Messages != 4 {
		t.Errorf("%+v, %v", gone, err)
	}
	if got := p.send(http.MethodGet, path, "", withToken(ada.Token)); got.status != http.StatusNotFound {
		t.Errorf("still there: %s", got.body)
	}
}

// TestEveryCodeHasAStatus holds the table of statuses against that of codes: codes that a
// request can cause are not failures of the server.
func TestEveryCodeHasAStatus(t *testing.T) {
	t.Parallel()
	ofRequests := false
	for _, c := range engine.Codes() {
		if c.Code == engine.CodeFlowInvalid {
			ofRequests = true
		}
		if !ofRequests {
			continue // codes of nodes are part of runs, and no answers
		}
		failure := c.Code == engine.CodeUnreadable || c.Code == engine.CodeStoreNewer || c.Code == engine.CodeStoreCorrupt || c.Code == engine.CodeStoreKey ||
			c.Code == engine.CodeStoreForeign
		if got := server.StatusOf(c.Code); (got == http.StatusInternalServerError) != failure {
			t.Errorf("%s: %d", c.Code, got)
		}
	}
}

package server_test

import (
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// repeatedCommands are requests that change a run, with the status of the run after them. A second effect of any would be
// accepted, as another event or another attempt, or be refused.
func repeatedCommands() map[string]struct{ flow, verb, body, status string } {
	return map[string]struct{ flow, verb, body, status string }{
		"answer":          {"ask", "answer", `{"interrupt":"ask:ask#1","value":"approve"}`, "completed"},
		"answer to child": {"parent", "answer", `{"interrupt":"CHILD","value":"approve"}`, "completed"},
		"event":           {"events", "signal", `{"event":"berth","value":"4"}`, "paused"},
		"retry":           {"fails", "retry", `{"node":"stuck"}`, "failed"},
		"complete":        {"fails", "complete", `{"node":"stuck"}`, "completed"},
	}
}

func requestFlows() map[string]string {
	return map[string]string{
		"parent.yaml": `weir: 1
name: parent
nodes:
  call: {type: flow, with: {flow: ask.yaml}, in: {name: Ada}}
outputs: {decision: "{{ call.decision }}"}
`,
		"events.yaml": `weir: 1
name: events
nodes:
  first: {type: waitEvent, with: {name: berth}}
  second: {type: waitEvent, after: first, with: {name: berth}}
`,
	}
}

// TestACommandWhoseOutcomeWasNotRecordedHasNoSecondEffect removes the outcome of each command from the database, as it is
// missing if the process dies after the effect, and sends the command again to the next process.
func TestACommandWhoseOutcomeWasNotRecordedHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range requestFlows() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := openProcess(t, dir, server.Options{})
	ada := p.anyone("ada")
	requests := p.sendCommands(ada)
	p.close()
	forgetOutcomes(t, filepath.Join(dir, "weir.db"), len(requests))
	p = openProcess(t, dir, server.Options{})
	key := withKey(ada.Token)
	for name, s := range requests {
		for range 2 { // its outcome is recorded by then
			if again := p.send(http.MethodPost, s.path, s.body, key); again.status != http.StatusOK || again.body != s.first.body {
				t.Errorf("%s: %d %s, first %s", name, again.status, again.body, s.first.body)
			}
		}
		if n := p.eventsOf(strings.Split(s.path, "/")[3]); n != s.events {
			t.Errorf("%s: %d events, %d before it was sent again", name, n, s.events)
		}
	}
	other := p.send(http.MethodPost, requests["answer"].path, requests["answer"].body, withToken(ada.Token))
	if other.status != http.StatusConflict {
		t.Errorf("another request: %d %s", other.status, other.body)
	}
}

// sentCommand is a command with its answer, and how many events its run had then.
type sentCommand struct {
	path, body string
	first      answer
	events     int64
}

// sendCommands starts a run for each command and sends it.
func (p *process) sendCommands(c *client.Client) map[string]*sentCommand {
	p.t.Helper()
	out := map[string]*sentCommand{}
	for name, x := range repeatedCommands() {
		run, err := c.StartRun(p.t.Context(), client.Start{Flow: x.flow, Inputs: inputsOf(x.flow), Wait: 60})
		if err != nil {
			p.t.Fatal(name, err)
		}
		s := &sentCommand{path: "/v1/runs/" + run.ID + "/" + x.verb + "?wait=60", body: x.body}
		if len(run.Interrupts) > 0 {
			s.body = strings.Replace(x.body, "CHILD", run.Interrupts[0].ID, 1)
		}
		s.first = p.send(http.MethodPost, s.path, s.body, withKey(c.Token))
		if s.first.status != http.StatusOK || !strings.Contains(s.first.body, `"status":"`+x.status+`"`) {
			p.t.Errorf("%s: %d %s", name, s.first.status, s.first.body)
		}
		s.events = p.eventsOf(run.ID)
		out[name] = s
	}
	return out
}

// withKey adds a token and an Idempotency-Key to a request.
func withKey(token string) func(*http.Request) {
	return func(r *http.Request) {
		withToken(token)(r)
		r.Header.Set("Idempotency-Key", "k")
	}
}

func inputsOf(flow string) map[string]any {
	if flow == "ask" {
		return map[string]any{"name": "Ada"}
	}
	return nil
}

// eventsOf returns how many events the journal of a run has.
func (p *process) eventsOf(run string) int64 {
	p.t.Helper()
	v, err := p.app.Inspect(p.t.Context(), run, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	return v.Run.Events()
}

// forgetOutcomes removes the outcomes of requests from a database that no process has open.
func forgetOutcomes(t *testing.T, database string, want int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // the update has been checked
	r, err := db.ExecContext(t.Context(), "UPDATE access_request SET result = NULL")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.RowsAffected(); err != nil || n != int64(want) {
		t.Fatalf("%d outcomes, %v, want %d", n, err, want)
	}
}

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// bulkAnswer is what a request about several runs says.
type bulkAnswer struct {
	Confirmation string
	Done, More   bool
	Runs         []string
	Kept         []struct{ Run, Why string }
}

func (p *process) bulk(c *client.Client, body string) (out bulkAnswer) {
	p.t.Helper()
	if err := c.Do(p.t.Context(), http.MethodPost, "/v1/runs/bulk", json.RawMessage(body), &out); err != nil {
		p.t.Fatal(err)
	}
	return out
}

func TestSeveralRunsAreCancelledAndDeletedOnlyWithAConfirmation(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada, bob := p.anyone("ada"), p.anyone("bob")
	start := func(c *client.Client, flow string) string {
		t.Helper()
		r, err := c.StartRun(t.Context(), client.Start{Flow: flow, Inputs: map[bool]map[string]any{true: {"name": "x"}}[flow == "ask"], Wait: 60})
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	asks := []string{start(ada, "ask"), start(ada, "ask")}
	others, failed := start(bob, "ask"), start(ada, "fails")
	var none bulkAnswer
	if err := ada.Do(t.Context(), http.MethodPost, "/v1/runs/bulk", json.RawMessage(`{"action":"cancel","user":"bob"}`), &none); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("runs of another user: %+v, %v", none, err)
	}
	plan := p.bulk(ada, `{"action":"cancel","flow":"ask","user":"ada"}`)
	if slices.Sort(plan.Runs); plan.Done || fmt.Sprint(plan.Runs) != fmt.Sprint(asks) {
		t.Fatalf("%+v, not %v", plan, asks)
	}
	asks = append(asks, start(ada, "ask"))
	if late := p.bulk(ada, `{"action":"cancel","flow":"ask","confirm":"`+plan.Confirmation+`"}`); late.Done || len(late.Runs) != 3 {
		t.Errorf("a confirmation of another list: %+v", late)
	} else {
		plan = late
	}
	if a := p.bulk(bob, `{"action":"cancel","flow":"ask","confirm":"`+plan.Confirmation+`"}`); a.Done {
		t.Errorf("the confirmation of another user: %+v", a)
	}
	if a := p.bulk(ada, `{"action":"cancel","flow":"ask","confirm":"`+plan.Confirmation+`"}`); !a.Done || len(a.Runs) != 3 || len(a.Kept) != 0 {
		t.Errorf("%+v", a)
	}
	if got := []string{p.statusOf(ada, asks[0]), p.statusOf(ada, asks[2]), p.statusOf(bob, others), p.statusOf(ada, failed)}; fmt.Sprint(got) != "[cancelled cancelled paused failed]" {
		t.Errorf("%v", got)
	}
	p.retryAndDelete(ada, asks[0], failed)
}

// statusOf returns the status of a run, or the error of asking for it.
func (p *process) statusOf(c *client.Client, id string) string {
	r, err := c.Run(p.t.Context(), id)
	if err != nil {
		return err.Error()
	}
	return r.Status
}

// retryAndDelete retries the one failed run of a user, runs another again, and deletes the
// four runs that have ended.
func (p *process) retryAndDelete(ada *client.Client, again, failed string) {
	t := p.t
	t.Helper()
	plan := p.bulk(ada, `{"action":"retry"}`)
	if fmt.Sprint(plan.Runs) != fmt.Sprint([]string{failed}) || len(plan.Kept) != 0 {
		t.Fatalf("%+v", plan)
	}
	if a := p.bulk(ada, `{"action":"retry","confirm":"`+plan.Confirmation+`"}`); !a.Done || len(a.Runs) != 1 || len(a.Kept) != 0 {
		t.Errorf("%+v", a)
	}
	for p.statusOf(ada, failed) != "failed" { // until it has failed again
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
	if err := ada.Do(t.Context(), http.MethodPost, "/v1/runs/"+again+"/rerun", map[string]any{}, nil); err != nil {
		t.Fatal(err)
	}
	plan = p.bulk(ada, `{"action":"delete"}`)
	if len(plan.Runs) != 4 || len(plan.Kept) != 1 || !strings.Contains(plan.Kept[0].Why, "not ended") {
		t.Fatalf("%+v", plan)
	}
	if a := p.bulk(ada, `{"action":"delete","confirm":"`+plan.Confirmation+`"}`); !a.Done || len(a.Runs) != 4 {
		t.Errorf("%+v", a)
	}
	if got := p.statusOf(ada, failed); !strings.Contains(got, "not_found") {
		t.Errorf("a deleted run: %s", got)
	}
}

func TestARunAndAUserAreDeletedOnlyWithAConfirmation(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada, root := p.anyone("ada"), p.client("root", server.Admin)
	victim := makeObjects(t, ada)
	remove := func(c *client.Client, path string) answer {
		t.Helper()
		listed := p.send(http.MethodDelete, path, "", withToken(c.Token))
		var problem struct{ Code, Confirmation string }
		if err := json.Unmarshal([]byte(listed.body), &problem); err != nil || problem.Code != "confirmation_needed" {
			t.Fatalf("%s: %d %s", path, listed.status, listed.body)
		}
		return p.send(http.MethodDelete, path+"?confirm="+problem.Confirmation, "", withToken(c.Token))
	}
	if a := p.send(http.MethodPost, "/v1/runs/"+victim.run+"/cancel", `{}`, withToken(ada.Token)); a.status != http.StatusOK {
		t.Fatal(a.body)
	}
	if a := remove(ada, "/v1/runs/"+victim.run); a.status != http.StatusOK || !strings.Contains(a.body, `"runs":1`) {
		t.Errorf("run: %d %s", a.status, a.body)
	}
	rounds := p.send(http.MethodGet, "/v1/runs?session="+victim.session, "", withToken(ada.Token))
	var list struct{ Runs []struct{ Run string } }
	if err := json.Unmarshal([]byte(rounds.body), &list); err != nil || len(list.Runs) == 0 {
		t.Fatal(rounds.body)
	}
	if a := p.send(http.MethodDelete, "/v1/runs/"+list.Runs[0].Run, "", withToken(ada.Token)); a.problem() != "status_conflict" {
		t.Errorf("a round: %d %s", a.status, a.body)
	}
	if a := remove(root, "/v1/users/ada"); a.status != http.StatusOK || !strings.Contains(a.body, `"sessions":1`) {
		t.Errorf("user: %d %s", a.status, a.body)
	}
	for _, path := range []string{"/v1/sessions/" + victim.session, "/v1/flows/" + victim.flow, "/v1/webhooks/" + victim.hook, "/v1/triggers/" + victim.trigger} {
		if a := p.send(http.MethodGet, path, "", withToken(root.Token)); a.status != http.StatusNotFound {
			t.Errorf("%s of an erased user: %d %s", path, a.status, a.body)
		}
	}
	if a := p.send(http.MethodGet, "/v1/runs", "", withToken(ada.Token)); a.status != http.StatusUnauthorized {
		t.Errorf("the token of an erased user: %d %s", a.status, a.body)
	}
}

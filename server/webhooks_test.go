package server_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// madeHook is a webhook as its creation shows it.
type madeHook struct{ ID, Secret string }

func makeHook(t *testing.T, c *client.Client, url string, events ...string) (h madeHook) {
	t.Helper()
	if err := c.Do(t.Context(), http.MethodPost, "/v1/webhooks", map[string]any{"url": url, "events": events}, &h); err != nil {
		t.Fatal(err)
	}
	return h
}

// receiver takes deliveries. It refuses the first tries of each with the statuses.
type receiver struct {
	t       *testing.T
	server  *httptest.Server
	refuse  []int
	arrived chan struct{}

	mu    sync.Mutex
	tries map[string]int // by webhook-id
	taken []received
}

// received is a delivery that was taken.
type received struct {
	ID, Signature, Stamp, Body string
	Type                       string
	Data                       struct{ Run, Flow, Status, Question, Budget string }
}

func newReceiver(t *testing.T, refuse ...int) *receiver {
	t.Helper()
	r := &receiver{t: t, refuse: refuse, tries: map[string]int{}, arrived: make(chan struct{}, 1000)}
	r.server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.server.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, q *http.Request) {
	text, err := io.ReadAll(q.Body)
	if err != nil {
		r.t.Error(err)
	}
	x := received{ID: q.Header.Get("Webhook-Id"), Signature: q.Header.Get("Webhook-Signature"), Stamp: q.Header.Get("Webhook-Timestamp"), Body: string(text)}
	if err := json.Unmarshal(text, &x); err != nil {
		r.t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries[x.ID]++
	if n := r.tries[x.ID]; n <= len(r.refuse) {
		w.WriteHeader(r.refuse[n-1])
	} else {
		r.taken = append(r.taken, x)
	}
	r.arrived <- struct{}{}
}

// await waits for n requests and returns what was taken, in order of its kind and question.
func (r *receiver) await(n int) []string {
	r.t.Helper()
	for range n {
		select {
		case <-r.arrived:
		case <-r.t.Context().Done():
			r.t.Fatal("a delivery did not come")
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, x := range r.taken {
		out = append(out, x.Type+" "+x.Data.Flow+" "+x.Data.Question)
	}
	slices.Sort(out)
	return out
}

// verify checks a signature as a receiver does.
func verify(t *testing.T, x *received, secret string) bool {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte(x.ID + "." + x.Stamp + "." + x.Body))
	return slices.Contains(strings.Fields(x.Signature), "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)))
}

// allowLocal has the server of a folder send to this machine.
func allowLocal(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("http: {allowPrivate: [127.0.0.1]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWebhooksTellOfRunsWithASignature(t *testing.T) {
	t.Parallel()
	p := openProcess(t, allowLocal(t), server.Options{RequireToken: true})
	ada, bob := p.anyone("ada"), p.anyone("bob")
	r := newReceiver(t)
	h := makeHook(t, ada, r.server.URL, "run.waiting", "run.completed", "run.failed")
	for _, c := range []*client.Client{ada, bob} {
		run, err := c.StartRun(t.Context(), client.Start{Flow: "ask", Inputs: map[string]any{"name": "canary-content"}, Wait: 60})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Answer(t.Context(), run.ID, "ask:ask#1", "approve", 60); err != nil {
			t.Fatal(err)
		}
		if _, err := c.StartRun(t.Context(), client.Start{Flow: "fails", Wait: 60}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := fmt.Sprint(r.await(3)), "[run.completed ask  run.failed fails  run.waiting ask ask:ask#1]"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	for i := range r.taken {
		if x := &r.taken[i]; !verify(t, x, h.Secret) || verify(t, x, "whsec_AAAA") || strings.Contains(x.Body, "canary") {
			t.Errorf("%+v", x)
		}
	}
	var rotated madeHook
	if err := ada.Do(t.Context(), http.MethodPost, "/v1/webhooks/"+h.ID+"/rotate", nil, &rotated); err != nil {
		t.Fatal(err)
	}
	var list struct {
		Deliveries []struct{ ID, State, Event string }
	}
	if err := ada.Do(t.Context(), http.MethodGet, "/v1/webhooks/"+h.ID+"/deliveries", nil, &list); err != nil || len(list.Deliveries) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := ada.Do(t.Context(), http.MethodPost, "/v1/webhooks/"+h.ID+"/deliveries/"+list.Deliveries[0].ID+"/resend", nil, nil); err != nil {
		t.Fatal(err)
	}
	r.await(1)
	again := r.taken[3]
	if again.ID != list.Deliveries[0].ID || rotated.Secret == h.Secret || !verify(t, &again, h.Secret) || !verify(t, &again, rotated.Secret) {
		t.Errorf("sent again after a rotation: %+v", again)
	}
}

func TestAWebhookToAPrivateAddressIsNotSent(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada := p.anyone("ada")
	r := newReceiver(t)
	h := makeHook(t, ada, r.server.URL, "run.failed")
	for _, url := range []string{"ftp://example.org", "https://user:x@example.org", "example.org", ""} {
		if a := p.send(http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url":%q,"events":["run.failed"]}`, url), withToken(ada.Token)); a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", url, a.status, a.body)
		}
	}
	if a := p.send(http.MethodPost, "/v1/webhooks", `{"url":"https://example.org","events":["run.failed"],"all":true}`, withToken(ada.Token)); a.status != http.StatusForbidden {
		t.Errorf("runs of all users: %d %s", a.status, a.body)
	}
	if _, err := ada.StartRun(t.Context(), client.Start{Flow: "fails", Wait: 60}); err != nil {
		t.Fatal(err)
	}
	for {
		var list struct {
			Deliveries []struct {
				State string
				Tries []struct{ Error string }
			}
		}
		if err := ada.Do(t.Context(), http.MethodGet, "/v1/webhooks/"+h.ID+"/deliveries", nil, &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Deliveries) == 1 && len(list.Deliveries[0].Tries) > 0 {
			if d := list.Deliveries[0]; d.State != "pending" || !strings.Contains(d.Tries[0].Error, "not a public address") {
				t.Errorf("%+v", d)
			}
			break
		}
	}
	if len(r.taken) > 0 || len(r.tries) > 0 {
		t.Error("the address was reached")
	}
}

// nearFlow spends a budget of five calls of the run, one of two of its node, and one of its sessions.
const nearFlow = `
weir: 1
name: near
context: {model: script/near-answers.yaml}
budget: {maxCalls: 5}
session: {budget: {maxCalls: 10}}
inputs: {message: {type: message, required: true}}
nodes:
  one: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
  two: {type: llmRequest, after: one, in: {message: b}}
  pause: {type: userInput, after: two, with: {prompt: Continue?}}
  three: {type: llmRequest, after: pause, in: {message: c}, budget: {maxCalls: 1}}
  four: {type: llmRequest, after: three, in: {message: d}}
outputs: {text: "{{ four.text }}"}
`

// TestBudgetsNearTheirLimitsAreReportedOnce spends budgets of runs, of a node and of a session in two rounds, and a quota, with a
// restart within each round.
func TestBudgetsNearTheirLimitsAreReportedOnce(t *testing.T) {
	t.Parallel()
	dir := allowLocal(t)
	for name, text := range map[string]string{"near.yaml": nearFlow, "near-answers.yaml": "one: A.\ntwo: B.\nthree: C.\nfour: D.\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := openProcess(t, dir, server.Options{RequireToken: true})
	root, ada := p.client("root", server.Read, server.Admin), p.anyone("ada")
	r := newReceiver(t)
	h := makeHook(t, ada, r.server.URL, "budget.near")
	makeHook(t, p.anyone("bob"), r.server.URL, "budget.near")
	if err := root.Do(t.Context(), http.MethodPut, "/v1/quotas", map[string]any{"user": "ada", "calls": 8}, nil); err != nil {
		t.Fatal(err)
	}
	id, err := ada.OpenSession(t.Context(), "near", "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		sent, err := ada.Send(t.Context(), id, client.Message{Text: "begin", Wait: 60})
		if err != nil || sent.Status != "paused" {
			t.Fatalf("%+v, %v", sent, err)
		}
		p.close()
		p = openProcess(t, dir, server.Options{RequireToken: true})
		ada.URL = p.url
		if _, err := ada.Answer(t.Context(), sent.Run, "pause:ask#1", "yes", 60); err != nil {
			t.Fatal(err)
		}
		if run, err := ada.Run(t.Context(), sent.Run); err != nil || run.Status != "completed" {
			t.Fatalf("%+v, %v", run, err)
		}
	}
	// In each round the budget of the run and of the node; with the 7th call the quota, with the 8th the session.
	r.await(6)
	p.close()
	p = openProcess(t, dir, server.Options{RequireToken: true})
	ada.URL = p.url
	if _, err := ada.StartRun(t.Context(), client.Start{Flow: "fails", Wait: 60}); err != nil {
		t.Fatal(err)
	}
	want := "[ quota user:ada near node three near node three near run near run near session]"
	if got := r.nearBudgets(h.Secret); fmt.Sprint(got) != want || len(r.tries) != 6 {
		t.Errorf("%v, not %s; %d deliveries", got, want, len(r.tries))
	}
}

// nearBudgets returns flow and budget of the deliveries that were taken, sorted. All are to be about budgets.
func (r *receiver) nearBudgets(secret string) (got []string) {
	r.t.Helper()
	for i := range r.taken {
		x := &r.taken[i]
		if !verify(r.t, x, secret) || x.Type != "budget.near" || x.Data.Question != "" {
			r.t.Errorf("%+v", x)
		}
		got = append(got, x.Data.Flow+" "+x.Data.Budget)
	}
	slices.Sort(got)
	return got
}

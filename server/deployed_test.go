package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// putFlow puts a version of a flow that answers with a line, and returns its fingerprint.
func putFlow(t *testing.T, c *client.Client, name, line, etag string, promote bool) string {
	t.Helper()
	text := fmt.Sprintf("weir: 1\nname: %s\ninputs: {message: {type: text}}\nnodes:\n  say: {type: manualInput, with: {text: %q}}\noutputs: {line: \"{{ say.text }}\"}\n", name, line)
	return putText(t, c, name, text, etag, promote).Deployed.Versions[0].Fingerprint
}

// deployedFlow is the part of an answer about a flow that the tests read.
type deployedFlow struct {
	Deployed struct {
		Owner, Promoted string
		Versions        []struct{ Fingerprint, Note string }
	}
}

func putText(t *testing.T, c *client.Client, name, text, etag string, promote bool) (out deployedFlow) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"flow": text, "promote": promote, "note": "a note"})
	if err != nil {
		t.Fatal(err)
	}
	a := sendTo(t, c, http.MethodPut, "/v1/flows/"+name, string(body), etag)
	if a.status != http.StatusOK {
		t.Fatalf("put %s: %d %s", name, a.status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// sendTo sends a request with the token of a client and, if there is one, an ETag.
func sendTo(t *testing.T, c *client.Client, method, path, body, etag string) answer {
	t.Helper()
	p := &process{t: t, url: c.URL}
	return p.send(method, path, body, func(r *http.Request) {
		withToken(c.Token)(r)
		if etag != "" {
			r.Header.Set("If-Match", etag)
		}
	})
}

// etag returns the present ETag of a flow.
func etag(t *testing.T, c *client.Client, name string) string {
	t.Helper()
	a := sendTo(t, c, http.MethodGet, "/v1/flows/"+name, "", "")
	if a.status != http.StatusOK {
		t.Fatalf("get flow %s: %d %s", name, a.status, a.body)
	}
	return a.header.Get("ETag")
}

func lineOf(t *testing.T, c *client.Client) string {
	t.Helper()
	r, err := c.StartRun(t.Context(), client.Start{Flow: "greet", Wait: 60})
	if err != nil || r.Status != "completed" {
		t.Fatalf("%+v, %v", r, err)
	}
	return fmt.Sprint(r.Outputs["line"])
}

func TestAFlowIsPutPromotedRolledBackAndPaused(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada, bob := p.anyone("ada"), p.anyone("bob")
	one := putFlow(t, ada, "greet", "one", "", false)
	start := func(c *client.Client) answer {
		return sendTo(t, c, http.MethodPost, "/v1/runs?wait=60", `{"flow":"greet"}`, "")
	}
	if a := start(ada); a.problem() != "flow_paused" || a.status != http.StatusConflict {
		t.Errorf("without a promoted version: %d %s", a.status, a.body)
	}
	promote := func(c *client.Client, version, tag string) answer {
		return sendTo(t, c, http.MethodPost, "/v1/flows/greet/promote", `{"version":"`+version+`"}`, tag)
	}
	stale := etag(t, ada, "greet")
	if a := promote(ada, one, stale); a.status != http.StatusOK {
		t.Fatal(a.body)
	}
	for tag, want := range map[string]int{"": http.StatusPreconditionRequired, stale: http.StatusPreconditionFailed, `"99"`: http.StatusPreconditionFailed} {
		if a := promote(ada, one, tag); a.status != want || a.problem() != "flow_changed" {
			t.Errorf("If-Match %q: %d %s", tag, a.status, a.body)
		}
	}
	two := putFlow(t, ada, "greet", "two", etag(t, ada, "greet"), false)
	if got := lineOf(t, ada); got != "one" {
		t.Errorf("a version that is only put: %s", got)
	}
	promote(ada, two, etag(t, ada, "greet"))
	if got := lineOf(t, ada); got != "two" {
		t.Errorf("promoted: %s", got)
	}
	promote(ada, one, etag(t, ada, "greet"))
	if got := lineOf(t, ada); got != "one" {
		t.Errorf("rolled back: %s", got)
	}
	if a := start(bob); a.status != http.StatusNotFound {
		t.Errorf("a flow of another user: %d %s", a.status, a.body)
	}
	if a := sendTo(t, ada, http.MethodPut, "/v1/flows/greet/access", `{"users":["bob"]}`, etag(t, ada, "greet")); a.status != http.StatusOK {
		t.Error(a.body)
	}
	if a := promote(bob, two, etag(t, bob, "greet")); a.status != http.StatusForbidden {
		t.Errorf("changed by somebody who may use it: %d %s", a.status, a.body)
	}
	if got := lineOf(t, bob); got != "one" {
		t.Errorf("used by somebody who may: %s", got)
	}
	sendTo(t, ada, http.MethodPost, "/v1/flows/greet/pause", `{"paused":true}`, etag(t, ada, "greet"))
	if a := start(bob); a.problem() != "flow_paused" {
		t.Errorf("paused: %d %s", a.status, a.body)
	}
	if a := sendTo(t, ada, http.MethodGet, "/v1/flows/greet/versions/"+two, "", ""); !strings.Contains(a.body, `two`) || a.status != http.StatusOK {
		t.Errorf("version: %d %s", a.status, a.body)
	}
	if a := sendTo(t, ada, http.MethodDelete, "/v1/flows/greet", "", etag(t, ada, "greet")); a.status != http.StatusNoContent {
		t.Errorf("delete: %d %s", a.status, a.body)
	}
	if a := start(ada); a.status != http.StatusNotFound {
		t.Errorf("deleted: %d %s", a.status, a.body)
	}
}

func TestARoundTakesTheVersionThatIsPromotedWhenItStarts(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	c := p.client("")
	asking := func(line string) string {
		return fmt.Sprintf("weir: 1\nname: chat\ninputs: {message: {type: text, required: true}}\nnodes:\n  ask: {type: userInput, with: {prompt: Which?}}\n"+
			"  say: {type: manualInput, after: ask, with: {text: %q}}\noutputs: {line: \"{{ say.text }}\"}\n", line)
	}
	putText(t, c, "chat", asking("one"), "", true)
	session, err := c.OpenSession(t.Context(), "chat", "")
	if err != nil {
		t.Fatal(err)
	}
	send := func(text string) *client.Sent {
		t.Helper()
		s, err := c.Send(t.Context(), session, client.Message{Text: text, Wait: 60})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := send("hello")
	putText(t, c, "chat", asking("two"), etag(t, c, "chat"), true)
	if answered := send("this"); answered.Run != first.Run || answered.Text != "one" {
		t.Errorf("the paused round: %+v", answered)
	}
	if second := send("again"); second.Status != "paused" {
		t.Errorf("%+v", second)
	}
	if answered := send("that"); answered.Text != "two" {
		t.Errorf("the round that started after the promotion: %+v", answered)
	}
}

func TestAFlowThatIsPutUsesOnlyWhatIsGranted(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada, root := p.anyone("ada"), p.client("root", server.Admin)
	node := func(name, node string) string {
		return "weir: 1\nname: " + name + "\ninputs: {host: {type: text}}\nnodes:\n  a: " + node + "\n" +
			"  note: {type: template, in: {problem: \"{{ a.error }}\"}, with: {text: \"{{ inputs.problem.code }}\"}}\noutputs: {code: \"{{ note.text }}\"}\n"
	}
	for what, n := range map[string]string{
		`the provider "openai"`: `{type: llmRequest, in: {message: hi}, with: {model: openai/gpt-5-mini}}`,
		`the provider "script"`: `{type: llmRequest, in: {message: hi}, with: {model: script/secret.yaml}}`,
		`the host "10.0.0.1"`:   `{type: httpRequest, with: {url: "http://10.0.0.1/"}}`,
		`the secret "KEY"`:      `{type: httpRequest, with: {url: "{{ run.inputs.host }}", headers: {a: "{{ secrets.KEY }}"}}}`,
		`the file "notes.txt"`:  `{type: readFile, with: {path: notes.txt}}`,
		`the executor "python"`: `{type: action, with: {code: "context['a'] = 1"}}`,
	} {
		body, err := json.Marshal(map[string]any{"flow": node("limited", n)})
		if err != nil {
			t.Fatal(err)
		}
		if a := sendTo(t, ada, http.MethodPut, "/v1/flows/limited", string(body), ""); a.status != http.StatusForbidden || a.problem() != "not_granted" || !strings.Contains(a.body, strings.ReplaceAll(what, `"`, `\"`)) {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	// The host is named by a value, so that only the run can check it.
	putText(t, ada, "late", node("late", `{type: httpRequest, with: {url: "http://{{ run.inputs.host }}/"}}`), "", true)
	code := func() string {
		t.Helper()
		a := sendTo(t, ada, http.MethodPost, "/v1/runs?wait=60", `{"flow":"late","inputs":{"host":"10.0.0.1:81"}}`, "")
		var r struct {
			Outputs struct{ Code string }
		}
		if err := json.Unmarshal([]byte(a.body), &r); err != nil || a.status != http.StatusCreated {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return r.Outputs.Code
	}
	grant := func(list string) {
		t.Helper()
		body := `{"providers":[],"tools":[],"servers":[],"executors":[],"secrets":[],"flows":[],"hosts":[` + list + `]}`
		if a := sendTo(t, root, http.MethodPut, "/v1/flows/late/grants", body, etag(t, root, "late")); a.status != http.StatusOK {
			t.Fatal(a.body)
		}
	}
	got := []string{code()}
	for _, list := range []string{`"10.0.0.1"`, `"10.0.0.1:81"`, `"*"`, `"10.0.0.2"`, ""} {
		grant(list)
		got = append(got, code())
	}
	if want := "[not_granted http_blocked http_blocked http_blocked not_granted not_granted]"; fmt.Sprint(got) != want {
		t.Errorf("%v, not %s", got, want)
	}
}

// TestARunOfADeletedFlowHasNoGrantsOfALaterOne continues a paused run after its flow was
// deleted, and another user's flow of that name was granted every host.
func TestARunOfADeletedFlowHasNoGrantsOfALaterOne(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada, bob, root := p.anyone("ada"), p.anyone("bob"), p.client("root", server.Admin)
	text := func(prompt string) string {
		return "weir: 1\nname: reused\ninputs: {host: {type: text}}\nnodes:\n  ask: {type: userInput, with: {prompt: " + prompt + "}}\n" +
			"  a: {type: httpRequest, after: ask, with: {url: \"http://{{ run.inputs.host }}/\"}}\n"
	}
	putText(t, ada, "reused", text("Go?"), "", true)
	old, err := ada.StartRun(t.Context(), client.Start{Flow: "reused", Inputs: map[string]any{"host": "10.0.0.1"}, Wait: 60})
	if err != nil || old.Status != "paused" {
		t.Fatalf("%+v, %v", old, err)
	}
	if a := sendTo(t, ada, http.MethodDelete, "/v1/flows/reused", "", etag(t, ada, "reused")); a.status != http.StatusNoContent {
		t.Fatal(a.body)
	}
	putText(t, bob, "reused", text("Well?"), "", true)
	body := `{"providers":[],"tools":[],"servers":[],"executors":[],"secrets":[],"flows":[],"hosts":["*"]}`
	if a := sendTo(t, root, http.MethodPut, "/v1/flows/reused/grants", body, etag(t, root, "reused")); a.status != http.StatusOK {
		t.Fatal(a.body)
	}
	a := sendTo(t, ada, http.MethodPost, "/v1/runs/"+old.ID+"/answer?wait=60", `{"interrupt":"ask:ask#1","value":"yes"}`, "")
	if !strings.Contains(a.body, "not_granted") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

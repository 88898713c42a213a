//go:build linux

package temporal_test

import (
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/temporal"
)

// TestAHistoryHoldsNoContents gives a run contents of every kind that a person or a node can give, and looks for them in the
// history. -histories N writes the histories to testdata, from which every later version must replay them.
func TestAHistoryHoldsNoContents(t *testing.T) {
	for name, c := range map[string]struct {
		flow string
		do   func(w *world, x *weir.Weir, r *weir.Run)
	}{
		"completed": {secretFlow, func(w *world, x *weir.Weir, r *weir.Run) {
			w.wait(r, weir.Paused)
			if err := errOnly(x.Answer(w.t.Context(), r.ID, "ask:ask#1", []any{"secret-refused"}, "secret-person")); err == nil {
				w.t.Error("a list was accepted as a text")
			}
			if err := errOnly(x.Answer(w.t.Context(), r.ID, "ask:ask#1", "secret-answer", "secret-person")); err != nil {
				w.t.Fatal(err)
			}
			w.until("it waits for the event", func() bool { return w.waits(r.ID, "event") })
			if err := errOnly(x.Signal(w.t.Context(), r.ID, "secret-name", map[string]any{"text": "secret-event"}, "secret-person")); err != nil {
				w.t.Fatal(err)
			}
			w.wait(r, weir.Completed)
		}},
		"failed": {failingFlow, func(w *world, _ *weir.Weir, r *weir.Run) { w.wait(r, weir.Failed) }},
		"cancelled": {secretFlow, func(w *world, x *weir.Weir, r *weir.Run) {
			w.wait(r, weir.Paused)
			if err := errOnly(x.Cancel(w.t.Context(), r.ID, "secret-person", "secret-reason")); err != nil {
				w.t.Fatal(err)
			}
			w.wait(r, weir.Cancelled)
		}},
		"timer": {timerFlow, func(w *world, _ *weir.Weir, r *weir.Run) { w.wait(r, weir.Completed) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.worker(temporal.WorkerOptions{})
			x := w.client(func(o *temporal.Options) { o.SearchAttributes, o.UserKey = true, "key" })
			r := w.start(x, w.flow(x, c.flow), weir.Start{
				Inputs: map[string]any{"text": "secret-input"}, State: map[string]any{"k": "secret-state"}, User: "secret-user",
			})
			c.do(w, x, r)
			w.until("the workflow is closed", func() bool { return w.workflowStatus(r.ID) != "Running" })
			writeHistory(t, name, w.historyWithoutContents(r.ID))
			w.listedWithoutContents(r.ID)
		})
	}
}

// historyWithoutContents returns the history of a run, in which it looks for contents.
func (w *world) historyWithoutContents(run string) string {
	w.t.Helper()
	h := w.history(run)
	b, err := protojson.MarshalOptions{Multiline: true}.Marshal(h)
	if err != nil {
		w.t.Fatal(err)
	}
	text := withPayloads(w.t, string(b))
	if i := strings.Index(text, "secret-"); i >= 0 {
		w.t.Errorf("the history contains %q", text[i:min(i+20, len(text))])
	}
	if !strings.Contains(text, `"run":"`+run) {
		w.t.Error("the id of the run was not found either: the payloads were not read")
	}
	if host, err := os.Hostname(); err != nil || strings.Contains(clientIdentities(h), host) {
		w.t.Errorf("the history names the machine of a client, %v", err)
	}
	return string(b)
}

// listedWithoutContents finds a run of secret-user by the search attributes, in which it looks for contents.
func (w *world) listedWithoutContents(run string) {
	w.t.Helper()
	query := "WeirUser = '" + temporal.HashUser("key", "secret-user") + "' AND WeirFlow = 'private' AND WorkflowId = '" + run + "'"
	w.until("the workflow is found by "+query, func() bool {
		list, err := w.sdk().ListWorkflow(w.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		if err != nil {
			w.t.Fatal(err)
		}
		if text := withPayloads(w.t, protojson.Format(list)); strings.Contains(text, "secret-") {
			w.t.Fatalf("what Temporal lists of the workflow: %s", text)
		}
		return len(list.GetExecutions()) == 1
	})
}

// clientIdentities are the identities of processes that started the workflow or sent it something.
func clientIdentities(h *historypb.History) string {
	var out strings.Builder
	for _, e := range h.GetEvents() {
		out.WriteString(e.GetWorkflowExecutionStartedEventAttributes().GetIdentity() + "\n")
		out.WriteString(e.GetWorkflowExecutionSignaledEventAttributes().GetIdentity() + "\n")
		out.WriteString(e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetMeta().GetIdentity() + "\n")
	}
	return out.String()
}

// TestTheUserOfARunIsFoundByItsHash compares the hash with what other programs compute.
func TestTheUserOfARunIsFoundByItsHash(t *testing.T) {
	// printf ada | openssl dgst -sha256 -hmac key
	if got := temporal.HashUser("key", "ada"); got != "708a727d2475357eaacc4f88c80d7eec" {
		t.Errorf("the hash is %s", got)
	}
}

// withPayloads returns a history with its decoded payloads after it.
func withPayloads(t *testing.T, history string) string {
	t.Helper()
	out := history
	for _, data := range regexp.MustCompile(`"data": *"([^"]*)"`).FindAllStringSubmatch(history, -1) {
		decoded, err := base64.StdEncoding.DecodeString(data[1])
		if err != nil {
			t.Fatal(err)
		}
		out += "\n" + string(decoded)
	}
	return out
}

// writeHistory writes a history to testdata, under the number that the flag -histories has.
func writeHistory(t *testing.T, name, history string) {
	t.Helper()
	if *histories == 0 {
		return
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	b := []byte(strings.ReplaceAll(history, host, "host"))
	if err := os.WriteFile(filepath.Join("testdata", fmt.Sprintf("history-%d-%s.json", *histories, name)), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

var histories = flag.Int("histories", 0, "write the histories of the tests to testdata, under this number of a version of the workflow")

const secretFlow = `
weir: 1
name: private
inputs: {text: {type: text}}
state: {k: {initial: secret-initial}}
nodes:
  say: {type: template, with: {text: "secret-template {{ run.inputs.text }}"}}
  ask: {type: userInput, after: say, with: {prompt: "secret-prompt", schema: {type: string}}}
  event: {type: waitEvent, after: ask, with: {name: secret-name}}
outputs: {text: "{{ say.text }} {{ ask.value }}"}
`

const failingFlow = `
weir: 1
name: private
inputs: {text: {type: text}}
nodes:
  fail: {type: fail, with: {message: "secret-failure {{ run.inputs.text }}"}}
`

const timerFlow = `
weir: 1
name: private
inputs: {text: {type: text}}
nodes:
  wait: {type: wait, in: {value: "{{ run.inputs.text }}"}, with: {for: 2s}}
outputs: {text: "{{ wait.value }}"}
`

// waits reports whether a run waits at a node.
func (w *world) waits(run, node string) bool {
	w.t.Helper()
	s, err := openStore(w.t.Context(), w.database)
	if err != nil {
		w.t.Fatal(err)
	}
	defer closeStore(w.t, s)
	row, err := s.Run(w.t.Context(), run)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, i := range row.Head.Waiting {
		if strings.HasPrefix(i.ID, node+":") {
			return true
		}
	}
	return false
}

// TestALongWorkflowContinuesAsANewOne lowers the bound of the server and answers questions until it is passed.
func TestALongWorkflowContinuesAsANewOne(t *testing.T) {
	w := newWorld(t)
	w.worker(temporal.WorkerOptions{})
	x := w.client()
	r := w.start(x, w.flow(x, `
weir: 1
name: long
nodes:
  many:
    type: loop
    with:
      max: 12
      body:
        nodes:
          ask: {type: userInput, with: {prompt: "?", schema: {type: integer}}}
        outputs: {n: "{{ ask.value }}"}
  late: {type: wait, after: many, with: {for: 2s}}
outputs: {n: "{{ many.n }}"}
`), weir.Start{})
	for range 12 {
		got := w.wait(r, weir.Paused)
		if err := r.Answer(t.Context(), got.Interrupts[0].ID, 1); err != nil {
			t.Fatal(err)
		}
	}
	w.wait(r, weir.Completed)
	w.until("the workflow is closed", func() bool { return w.workflowStatus(r.ID) == "Completed" })
	first := w.history(r.ID).GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	if first.GetContinuedExecutionRunId() == "" {
		t.Errorf("the workflow was not continued; its history has %d events", len(w.history(r.ID).GetEvents()))
	}
	if n := len(w.history(r.ID).GetEvents()); n > 150 {
		t.Errorf("the last history has %d events", n)
	}
}

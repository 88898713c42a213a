package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/servertest"
)

// TestARecordedCallIsMadeAgainWithChanges enumerates what can be changed, and compares what
// the model is sent.
func TestARecordedCallIsMadeAgainWithChanges(t *testing.T) {
	t.Parallel()
	var sent []*llmtest.Request
	p := servertest.Open(t, servertest.Options{
		Flows: map[string]string{"talk.yaml": `weir: 1
name: talk
context: {model: fake/m, system: Be brief.}
inputs: {message: {type: text, required: true}}
nodes:
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}, with: {temperature: 0.5}}
`},
		Answer: func(r *llmtest.Request) llmtest.Turn {
			sent = append(sent, r)
			return servertest.Repeat(r)
		},
		Server: server.Options{RequireToken: true},
	})
	token := p.Token("ada", server.Read, server.Start)
	x := &process{t: t, url: p.URL}
	var made struct{ Run string }
	got := x.send(http.MethodPost, "/v1/runs?wait=60", `{"flow":"talk","inputs":{"message":"red {{ 1 + 1 }}"}}`, withToken(token))
	if err := json.Unmarshal([]byte(got.body), &made); err != nil || len(sent) != 1 {
		t.Fatal(got, err)
	}
	play := func(body, key string) (out struct {
		Session, Run, Status, Text string
		Recorded                   struct{ Message struct{ Text string } }
	},
	) {
		t.Helper()
		got := x.send(http.MethodPost, "/v1/runs/"+made.Run+"/playground?wait=60", body, func(r *http.Request) {
			withToken(token)(r)
			if key != "" {
				r.Header.Set("Idempotency-Key", key)
			}
		})
		if err := json.Unmarshal([]byte(got.body), &out); err != nil || got.status != http.StatusOK {
			t.Fatalf("%s: %d %s", body, got.status, got.body)
		}
		return out
	}
	same := play(`{"node":"answer"}`, "k")
	if len(sent) != 2 || text(sent[1]) != text(sent[0]) || same.Text != "1: red {{ 1 + 1 }}" || same.Recorded.Message.Text != same.Text {
		t.Fatalf("without changes: %+v\n%s\n%s", same, text(sent[0]), text(sent[1]))
	}
	if again := play(`{"node":"answer"}`, "k"); again.Run != same.Run || len(sent) != 2 {
		t.Errorf("sent again: %+v", again)
	}
	for body, want := range map[string][2]string{
		`{"node":"answer","system":"Be {{ secrets.x }}."}`: {"Be brief.", "Be {{ secrets.x }}."},
		`{"node":"answer","temperature":1}`:                {"0.5", "1"},
		`{"node":"answer","model":"fake/other"}`:           {"m", "other"},
		`{"node":"answer","messages":[{"role":"user","text":"a"},{"role":"assistant","text":"b"},{"role":"user","text":"blue"}]}`: {"red {{ 1 + 1 }}", "blue"},
	} {
		n := len(sent)
		if out := play(body, ""); out.Status != "completed" || len(sent) != n+1 {
			t.Fatalf("%s: %+v", body, out)
		}
		if before, after := text(sent[0]), text(sent[n]); !strings.Contains(before, want[0]) || !strings.Contains(after, want[1]) || before == after {
			t.Errorf("%s: the model was sent %s", body, after)
		}
	}
	checkRefusedPlays(t, x, "/v1/runs/"+made.Run+"/playground", token)
}

func checkRefusedPlays(t *testing.T, x *process, path, token string) {
	t.Helper()
	for body, status := range map[string]int{
		`{"node":"gone"}`: http.StatusNotFound,
		`{"node":"answer","call":"answer/model#9"}`:                               http.StatusNotFound,
		`{"node":"answer","model":"nobody/m"}`:                                    http.StatusUnprocessableEntity,
		`{"node":"answer","messages":[]}`:                                         http.StatusUnprocessableEntity,
		`{"node":"answer","messages":[{"role":"assistant"}]}`:                     http.StatusUnprocessableEntity,
		`{"node":"answer","messages":["x"]}`:                                      http.StatusUnprocessableEntity,
		`{"node":"answer","messages":[{"role":"user","text":"x","content":"y"}]}`: http.StatusUnprocessableEntity,
		`{"node":"answer","model":"script/../../etc/passwd"}`:                     http.StatusUnprocessableEntity,
		`{"node":"answer","tools":[{"name":"a b"}]}`:                              http.StatusUnprocessableEntity,
		`{"node":"answer","tools":[{"name":"a"},{"name":"a"}]}`:                   http.StatusUnprocessableEntity,
		`{"node":"answer","tools":[{"description":"x"}]}`:                         http.StatusUnprocessableEntity,
		`{"node":"answer","tools":[{"name":"a","parameters":"x"}]}`:               http.StatusUnprocessableEntity,
	} {
		if got := x.send(http.MethodPost, path, body, withToken(token)); got.status != status {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
}

// TestAPlayedCallOffersToolsThatNothingExecutes: the model is offered the tools of the recorded call, or those that the client
// gives in their place. The person who plays gives the outputs.
func TestAPlayedCallOffersToolsThatNothingExecutes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []*llmtest.Request
	var looked atomic.Int64
	sea := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		looked.Add(1)
		_, _ = w.Write([]byte("a real ship"))
	}))
	t.Cleanup(sea.Close)
	p := servertest.Open(t, servertest.Options{
		Flows: map[string]string{"talk.yaml": `weir: 1
name: talk
context: {model: fake/m}
inputs: {message: {type: text, required: true}}
nodes:
  answer: {type: agent, in: {message: "{{ run.inputs.message }}", tools: [look]}}
`},
		Config: "tools:\n  http:\n  - {name: look, description: Looks., url: '" + sea.URL + "', parameters: {properties: {at: {type: string}}}}\n",
		Answer: func(r *llmtest.Request) llmtest.Turn {
			mu.Lock()
			sent = append(sent, r)
			mu.Unlock()
			if m := r.Messages[len(r.Messages)-1]; m.Role == "tool" {
				return llmtest.Turn{Text: "I see " + m.Text + "."}
			}
			if len(r.Tools) == 0 {
				return llmtest.Turn{Text: "I see nothing."}
			}
			return llmtest.Turn{Calls: []convo.Call{{ID: "call_1", Name: r.Tools[0].Name, Arguments: `{"at":"sea"}`}}}
		},
		Server: server.Options{RequireToken: true},
	})
	token := withToken(p.Token("ada", server.Read, server.Start, server.Answer))
	x := &process{t: t, url: p.URL}
	type played struct {
		Run, Session, Status, Text string
		Calls                      []struct{ ID, Name, Arguments, Interrupt string }
	}
	send := func(path, body string) (out played) {
		t.Helper()
		got := x.send(http.MethodPost, path+"?wait=60", body, token)
		if err := json.Unmarshal([]byte(got.body), &out); err != nil || got.status >= 300 {
			t.Fatalf("%s: %d %s", body, got.status, got.body)
		}
		return out
	}
	made := send("/v1/runs", `{"flow":"talk","inputs":{"message":"What is there?"}}`)
	if made.Status != "completed" || looked.Load() != 1 {
		t.Fatalf("%+v, %d", made, looked.Load())
	}
	for body, want := range map[string]string{
		`{"node":"answer"}`: "look",
		`{"node":"answer","tools":[{"name":"listen","description":"Listens.","parameters":{"type":"object","properties":{"at":{"type":"string"}}}}]}`: "listen",
	} {
		out := send("/v1/runs/"+made.Run+"/playground", body)
		if out.Status != "paused" || len(out.Calls) != 1 || out.Calls[0].Name != want || out.Calls[0].Arguments != `{"at":"sea"}` || out.Calls[0].ID == "" {
			t.Fatalf("%s: %+v", body, out)
		}
		send("/v1/runs/"+out.Run+"/answer", `{"interrupt":"`+out.Calls[0].Interrupt+`","value":"a drawn ship"}`)
		if got := x.send(http.MethodGet, "/v1/runs/"+out.Run, "", token); !strings.Contains(got.body, "I see a drawn ship.") {
			t.Errorf("%s: %s", body, got.body)
		}
	}
	if out := send("/v1/runs/"+made.Run+"/playground", `{"node":"answer","tools":[]}`); out.Text != "I see nothing." || len(out.Calls) != 0 {
		t.Errorf("without tools: %+v", out)
	}
	if first, again := sent[0], sent[2]; !bytes.Equal(toolsOf(t, first), toolsOf(t, again)) {
		t.Errorf("the tools that were offered:\n%s\n%s", toolsOf(t, first), toolsOf(t, again))
	}
	if looked.Load() != 1 {
		t.Error("the playground called a tool")
	}
}

func toolsOf(t *testing.T, r *llmtest.Request) []byte {
	t.Helper()
	var body struct{ Tools json.RawMessage }
	if err := json.Unmarshal(r.Body, &body); err != nil || len(body.Tools) == 0 {
		t.Fatal(string(r.Body), err)
	}
	return body.Tools
}

// text is what the model was sent.
func text(r *llmtest.Request) string {
	x, _ := json.Marshal(map[string]any{"messages": r.Messages, "model": r.Model, "raw": string(r.Body)})
	return string(x)
}

// TestAPlayedCallHasTheGrantsOfItsFlow: no model is reached through the playground that the
// flow of the run may not use.
func TestAPlayedCallHasTheGrantsOfItsFlow(t *testing.T) {
	t.Parallel()
	calls := 0
	p := servertest.Open(t, servertest.Options{
		Config: "  other: {type: openai-compatible, baseURL: \"http://127.0.0.1:1\"}\n",
		Answer: func(r *llmtest.Request) llmtest.Turn { calls++; return servertest.Repeat(r) },
		Server: server.Options{RequireToken: true},
	})
	ada, root := p.Token("ada", server.Read, server.Start), p.Token("root", server.Admin)
	x := &process{t: t, url: p.URL}
	put := func(path, token, body, tag string) answer {
		return x.send(http.MethodPut, path, body, func(r *http.Request) {
			withToken(token)(r)
			if tag != "" {
				r.Header.Set("If-Match", tag)
			}
		})
	}
	plain := `{"flow":"{weir: 1, name: mine, nodes: {say: {type: manualInput, with: {text: x}}}}"}`
	first := put("/v1/flows/mine", ada, plain, "")
	granted := put("/v1/flows/mine/grants", root, `{"providers":["fake"],"hosts":[],"tools":[],"servers":[],"executors":[],"secrets":[],"flows":[]}`, first.header.Get("ETag"))
	asks := `{"flow":"{weir: 1, name: mine, context: {model: fake/m}, nodes: {ask: {type: llmRequest, in: {message: hello}}}}","promote":true}`
	if got := put("/v1/flows/mine", ada, asks, granted.header.Get("ETag")); got.status != http.StatusOK {
		t.Fatal(got)
	}
	var made struct{ Run, Session string }
	got := x.send(http.MethodPost, "/v1/runs?wait=60", `{"flow":"mine"}`, withToken(ada))
	if err := json.Unmarshal([]byte(got.body), &made); err != nil || calls != 1 {
		t.Fatal(got, err)
	}
	run := made.Run
	if got := x.send(http.MethodPost, "/v1/runs/"+run+"/playground", `{"node":"ask","model":"other/m"}`, withToken(ada)); got.status != http.StatusForbidden || got.problem() != "not_granted" {
		t.Errorf("another provider: %d %s", got.status, got.body)
	}
	got = x.send(http.MethodPost, "/v1/runs/"+run+"/playground?wait=60", `{"node":"ask"}`, withToken(ada))
	if err := json.Unmarshal([]byte(got.body), &made); err != nil || got.status != http.StatusOK || calls != 2 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	// Neither does the session that it leaves behind.
	got = x.send(http.MethodPost, "/v1/sessions/"+made.Session+"/messages?wait=60", `{"message":"x","model":"other/m"}`, withToken(ada))
	if !strings.Contains(got.body, "not_granted") {
		t.Errorf("another provider in the session: %d %s", got.status, got.body)
	}
	tag := x.send(http.MethodGet, "/v1/flows/mine", "", withToken(root)).header.Get("ETag")
	put("/v1/flows/mine/grants", root, `{"providers":[],"hosts":[],"tools":[],"servers":[],"executors":[],"secrets":[],"flows":[]}`, tag)
	got = x.send(http.MethodPost, "/v1/sessions/"+made.Session+"/messages?wait=60", `{"message":"x","model":"fake/m"}`, withToken(ada))
	if !strings.Contains(got.body, "not_granted") || calls != 2 {
		t.Errorf("after the grant was withdrawn: %d %s", got.status, got.body)
	}
}

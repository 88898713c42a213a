package openai_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/openai"
	"github.com/weir-run/weir/server/servertest"
)

func flows() map[string]string {
	return map[string]string{
		"talk.yaml": `weir: 1
name: talk
context: {model: fake/m}
inputs: {message: {type: text, required: true}}
nodes:
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
outputs: {answer: "{{ answer.text }}"}
`,
		"ask.yaml": `weir: 1
name: ask
inputs: {message: {type: text, required: true}}
nodes:
  ask: {type: userInput, with: {prompt: "Approve?", schema: {type: string, enum: [approve, reject]}}}
outputs: {decision: "You said {{ ask.text }}."}
`,
		"broken.yaml": `weir: 1
name: broken
inputs: {message: {type: text, required: true}}
nodes:
  stuck: {type: fail, with: {message: There is no berth., code: no_berth}}
`,
		"waits.yaml": `weir: 1
name: waits
inputs: {message: {type: text, required: true}}
nodes:
  pause: {type: wait, with: {for: 24h}}
`,
		"form.yaml": `weir: 1
name: form
inputs: {amount: {type: number, required: true}}
nodes:
  say: {type: manualInput, with: {text: "{{ run.inputs.amount }}"}}
outputs: {amount: "{{ say.text }}"}
`,
	}
}

const client = "openai@7.57.0"

func open(t *testing.T, o servertest.Options) *servertest.Process {
	t.Helper()
	if o.Flows == nil {
		o.Flows = flows()
	}
	o.Faces = faces()
	o.Server.RequireToken = true
	return servertest.Open(t, o)
}

// user returns the environment of a client with a token of a user.
func user(p *servertest.Process, name string) []string {
	return []string{"WEIR_URL=" + p.URL, "WEIR_TOKEN=" + p.Token(name, server.Read, server.Start, server.Answer)}
}

func TestTheOfficialClientUsesResponsesAndConversations(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{})
	out := servertest.Node(t, "testdata/responses.mjs", user(p, "ada"), client)
	if !strings.HasSuffix(out, "ok\n") {
		t.Error(out)
	}
}

func TestTheOfficialClientChats(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{})
	out := servertest.Node(t, "testdata/chat.mjs", user(p, "ada"), client)
	if !strings.HasSuffix(out, "ok\n") {
		t.Error(out)
	}
}

func faces() []func(*server.Server) { return []func(*server.Server){openai.Register} }

func sessionID(id string) weir.SessionOptions { return weir.SessionOptions{ID: id} }

func sendAndWait(t *testing.T, s *weir.Session, text string) {
	t.Helper()
	r, err := s.Send(t.Context(), text, weir.SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

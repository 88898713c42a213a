package agui_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/agui"
	"github.com/weir-run/weir/server/client"
	"github.com/weir-run/weir/server/servertest"
)

// heldCall is a call of the model, which ends with the answer.
type heldCall struct {
	shown  string
	answer chan string
}

// holdAnswers asks the test for each answer. A call that was interrupted stays until the test ends.
func holdAnswers(t *testing.T, asked chan heldCall) func(*llmtest.Request) llmtest.Turn {
	t.Helper()
	return func(r *llmtest.Request) llmtest.Turn {
		var texts []string
		for i := range r.Messages {
			texts = append(texts, r.Messages[i].Text)
		}
		c := heldCall{strings.Join(texts, "|"), make(chan string)}
		select {
		case asked <- c:
		case <-t.Context().Done():
			return llmtest.Turn{Text: "over"}
		}
		select {
		case text := <-c.answer:
			return llmtest.Turn{Text: text}
		case <-t.Context().Done():
			return llmtest.Turn{Text: "over"}
		}
	}
}

// TestARunningRoundIsSteered sends messages to a round by the API and by AG-UI while its model
// answers, interrupts it, and sends one too late.
func TestARunningRoundIsSteered(t *testing.T) {
	t.Parallel()
	asked := make(chan heldCall)
	p := servertest.Open(t, servertest.Options{
		Flows: flows(), Faces: []func(*server.Server){agui.Register}, Server: server.Options{RequireToken: true},
		Answer: holdAnswers(t, asked),
	})
	token := p.Token("ada", server.Read, server.Start)
	api := &client.Client{URL: p.URL, Token: token}
	const body = `{"threadId":"t","runId":"RUN","messages":[{"id":"1","role":"user","content":"TEXT"}],"forwardedProps":{"weir":PROPS}}`
	run := func(id, text, props string) (int, string) {
		return post(t, p, token, "talk", strings.NewReplacer("RUN", id, "TEXT", text, "PROPS", props).Replace(body))
	}
	first := make(chan string)
	go func() {
		_, text := run("1", "Go", "{}")
		first <- text
	}()
	var answer chan string // of the newest call
	shown := func(want string) {
		t.Helper()
		c := <-asked
		if answer = c.answer; c.shown != want {
			t.Fatalf("the model was shown %q, expected %q", c.shown, want)
		}
	}
	shown("Go")
	var opened struct {
		Session string `json:"session"`
	}
	if err := api.Do(t.Context(), http.MethodPost, "/v1/sessions", map[string]any{"flow": "talk", "thread": "t"}, &opened); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the same request again changes nothing
		got, err := api.SteerSession(t.Context(), opened.Session, client.Steering{Text: "Faster", Key: "k"})
		if err != nil || got.Outcome != "steered" || got.Node != "answer" {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	for range 2 {
		if status, text := run("2", "Shorter", `{"steer":true}`); status != http.StatusOK || !strings.Contains(text, `"weir.steered"`) || !strings.Contains(text, `"node":"answer"`) {
			t.Fatalf("%d %s", status, text)
		}
	}
	answer <- "One."
	shown("Go|One.|Faster|Shorter")
	steered, err := api.SteerSession(t.Context(), opened.Session, client.Steering{Text: "Stop", Interrupt: true})
	if err != nil || steered.Outcome != "steered" {
		t.Fatalf("%+v, %v", steered, err)
	}
	shown("Go|One.|Faster|Shorter|Stop")
	if _, err := api.SteerRun(t.Context(), steered.Run, client.Steering{Text: "x", Node: "other"}); !isCode(err, "steer_late") {
		t.Errorf("an unknown node: %v", err)
	}
	if _, err := api.SteerRun(t.Context(), steered.Run, client.Steering{}); !isCode(err, "request_invalid") {
		t.Errorf("nothing: %v", err)
	}
	if _, err := api.SteerRun(t.Context(), steered.Run, client.Steering{Text: "And sweet", Node: "answer"}); err != nil {
		t.Error(err)
	}
	answer <- "Two."
	shown("Go|One.|Faster|Shorter|Stop|Two.|And sweet")
	answer <- "Three."
	if text := <-first; !strings.Contains(text, `"answer":"Three."`) {
		t.Errorf("the round: %s", text)
	}
	if _, err := api.SteerRun(t.Context(), steered.Run, client.Steering{Text: "x"}); !isCode(err, "steer_late") {
		t.Errorf("an ended run: %v", err)
	}
	late, err := api.SteerSession(t.Context(), opened.Session, client.Steering{Text: "Late"})
	if err != nil || late.Outcome != "queued" {
		t.Fatalf("%+v, %v", late, err)
	}
	shown("Go|One.|Faster|Shorter|Stop|Two.|And sweet|Three.|Late")
	answer <- "Four."
}

func isCode(err error, code string) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Code == code
}

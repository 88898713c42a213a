package openai_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/servertest"
)

// answered is what a test reads of a response.
type answered struct {
	ID, Status string
	Output     []struct {
		Type    string
		CallID  string `json:"call_id"`
		Content []struct{ Text string }
	}
	Error any
}

func (a *answered) text() string {
	if len(a.Output) == 0 || len(a.Output[0].Content) == 0 {
		return ""
	}
	return a.Output[0].Content[0].Text
}

// respond makes a response.
func respond(t *testing.T, p *servertest.Process, token string, body map[string]any) answered {
	t.Helper()
	status, _, text := post(t, p.URL+"/v1/responses", token, body, nil)
	var out answered
	if err := json.Unmarshal([]byte(text), &out); err != nil || status != http.StatusOK {
		t.Fatal(status, text, err)
	}
	return out
}

func lookTools() []any {
	return []any{map[string]any{"type": "function", "name": "look_up"}}
}

func outputOf(call, previous, model string) map[string]any {
	return map[string]any{
		"model": model, "previous_response_id": previous,
		"input": []any{map[string]any{"type": "function_call_output", "call_id": call, "output": "free"}},
	}
}

// TestAPendingCallSurvivesARestart gives the outputs of calls to another process than the one that asked for them, and to that
// process after it has restarted once more.
func TestAPendingCallSurvivesARestart(t *testing.T) {
	t.Parallel()
	p := open(t, servertest.Options{Answer: comply, Flows: demandFlows()})
	token := p.Token("ada", server.Read, server.Start)
	format := map[string]any{"format": map[string]any{"type": "json_object"}}
	type pending struct {
		model string
		asked answered
		want  string
	}
	var all []pending
	for _, model := range []string{"talk", "work", "plan"} {
		free := map[string]any{"model": model, "input": "Look 4", "tools": lookTools()}
		want := "Found free"
		if model == "plan" { // it works off its queue after the call
			want = "7: Look"
		}
		all = append(all, pending{model, respond(t, p, token, free), want})
		free["text"] = format
		all = append(all, pending{model, respond(t, p, token, free), `{"berth": 4}`})
		delete(free, "text")
		if model != "plan" {
			free["input"], free["tool_choice"] = "Plain", "required"
			all = append(all, pending{model, respond(t, p, token, free), "Found free"})
		}
	}
	p.Restart()
	for i, x := range all {
		if i == len(all)/2 {
			p.Restart()
		}
		if len(x.asked.Output) != 1 || x.asked.Output[0].Type != "function_call" {
			t.Fatalf("%s: %+v", x.model, x.asked)
		}
		got := respond(t, p, token, outputOf(x.asked.Output[0].CallID, x.asked.ID, x.model))
		if got.Status != "completed" || got.text() != x.want {
			t.Errorf("%s: %+v, want %s", x.model, got, x.want)
		}
	}
}

// TestAResponseThatRanWhenTheServerEndedIsCompletedAfterwards ends the server while the model answers: the first message of a
// round, and the outputs of its functions.
func TestAResponseThatRanWhenTheServerEndedIsCompletedAfterwards(t *testing.T) {
	t.Parallel()
	started, finish := make(chan struct{}, 16), make(chan struct{})
	var blocks atomic.Bool
	p := open(t, servertest.Options{Flows: demandFlows(), Answer: func(r *llmtest.Request) llmtest.Turn {
		if blocks.Load() {
			select {
			case started <- struct{}{}:
			default: // calls that are made again after the restart
			}
			<-finish
		}
		if strings.HasPrefix(r.Messages[len(r.Messages)-1].Text, "fails") {
			return llmtest.Turn{Failure: &llmtest.Failure{Status: http.StatusBadRequest, Message: "no"}}
		}
		return comply(r)
	}})
	release := sync.OnceFunc(func() { close(finish) })
	t.Cleanup(release)
	token := p.Token("ada", server.Read, server.Start)
	bodies := map[string]map[string]any{"1: Text\n\n3: Text\n\n5: Text": {"model": "plan", "input": "Text"}, "1: Text": {"model": "talk", "input": "Text"}}
	for _, model := range []string{"talk", "work"} {
		asked := respond(t, p, token, map[string]any{"model": model, "input": "Look 4", "tools": lookTools()})
		bodies["Found free "+model] = outputOf(asked.Output[0].CallID, asked.ID, model)
		asked = respond(t, p, token, map[string]any{"model": model, "input": "Look 4", "tools": lookTools(), "text": map[string]any{"format": map[string]any{"type": "json_object"}}})
		bodies[`{"berth": 4} `+model] = outputOf(asked.Output[0].CallID, asked.ID, model)
	}
	asked := respond(t, p, token, map[string]any{"model": "talk", "input": "Look 4", "tools": lookTools()})
	fails := outputOf(asked.Output[0].CallID, asked.ID, "talk")
	fails["input"] = []any{map[string]any{"type": "function_call_output", "call_id": asked.Output[0].CallID, "output": "fails"}}
	bodies["failed"] = fails
	blocks.Store(true)
	ids := map[string]string{}
	for want, body := range bodies {
		body["stream"] = true
		a := request(t, p.URL+"/v1/responses", token, body, nil)
		defer a.Body.Close()
		ids[want] = firstID(t, a.Body)
		<-started
	}
	p.Restart()
	blocks.Store(false)
	release()
	for want, id := range ids {
		model, _ := bodies[want]["model"].(string)
		text, _, _ := strings.Cut(want, " "+model)
		checkCompleted(t, p, token, id, model, text)
	}
}

// checkCompleted checks that a response has a text, that it can be streamed, and that the conversation continues after it. The
// text "failed" means that its round failed.
func checkCompleted(t *testing.T, p *servertest.Process, token, id, model, text string) {
	t.Helper()
	got := settled(t, p, token, id)
	if text == "failed" {
		if got.Status != text || got.Error == nil {
			t.Errorf("%+v, want a failure", got)
		}
		return
	}
	if got.Status != "completed" || got.text() != text {
		t.Errorf("%+v, want %s", got, text)
	}
	if streamed := read(t, p, token, id+"?stream=true"); !strings.Contains(streamed, "response.completed") {
		t.Errorf("streamed: %s", streamed)
	}
	next := respond(t, p, token, map[string]any{"model": model, "previous_response_id": id, "input": "Text"})
	if !strings.HasSuffix(next.text(), ": Text") {
		t.Errorf("the conversation continues with %+v", next)
	}
}

// firstID returns the id of the response in the first event of a stream.
func firstID(t *testing.T, r io.Reader) string {
	t.Helper()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct{ Response answered }
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Response.ID == "" {
			t.Fatal(data, err)
		}
		return e.Response.ID
	}
	t.Fatal("the stream has no event")
	return ""
}

func read(t *testing.T, p *servertest.Process, token, path string) string {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+"/v1/responses/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+token)
	a, err := new(http.Client).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// settled reads a response until its round rests.
func settled(t *testing.T, p *servertest.Process, token, id string) (out answered) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := json.Unmarshal([]byte(read(t, p, token, id)), &out); err != nil {
			t.Fatal(err)
		}
		if out.Status != "queued" && out.Status != "in_progress" {
			return out
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the response stays %+v", out)
		}
	}
}

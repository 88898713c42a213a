package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// numbersOf returns the numbers of the events of a journal, as the API lists them.
func numbersOf(t *testing.T, c *client.Client, run string) (out []int64) {
	t.Helper()
	var page struct{ Events []struct{ Number int64 } }
	if err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+run+"/events?limit=1000", nil, &page); err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Events {
		out = append(out, e.Number)
	}
	return out
}

// TestAReaderThatReturnsMissesNothingAndGetsNothingTwice cuts the connection after each
// event, and restarts the server while the run waits.
func TestAReaderThatReturnsMissesNothingAndGetsNothingTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := openProcess(t, dir, server.Options{Heartbeat: 20 * time.Millisecond})
	ada := p.anyone("ada")
	run, err := ada.StartRun(t.Context(), client.Start{Flow: "ask", Inputs: map[string]any{"name": "Ada"}, Wait: 60})
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	cursor := ""
	readOne := func() (more bool) {
		t.Helper()
		for e, err := range ada.Stream(t.Context(), run.ID, cursor) {
			if err != nil {
				t.Fatal(err)
			}
			cursor = e.ID
			var data struct{ Number int64 }
			if err := json.Unmarshal(e.Data, &data); err != nil {
				t.Fatal(err)
			}
			if data.Number > 0 {
				got = append(got, data.Number)
				return true
			}
		}
		return false
	}
	paused := len(numbersOf(t, ada, run.ID))
	for range paused - 1 {
		readOne()
	}
	p.close()
	p = openProcess(t, dir, server.Options{})
	ada.URL = p.url
	readOne()
	if _, err := ada.Answer(t.Context(), run.ID, "ask:ask#1", "approve", 60); err != nil {
		t.Fatal(err)
	}
	for readOne() {
	}
	if want := numbersOf(t, ada, run.ID); !slices.Equal(got, want) || len(want) <= paused {
		t.Errorf("read %v, the journal has %v", got, want)
	}
}

func TestAStreamEndsWhenTheServerDrainsAndTheReaderReturns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := openProcess(t, dir, server.Options{})
	run, err := p.client("").StartRun(t.Context(), client.Start{Flow: "ask", Inputs: map[string]any{"name": "Ada"}, Wait: 60})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string)
	go func() {
		got := p.send(http.MethodGet, "/v1/runs/"+run.ID+"/stream", "", nil)
		done <- got.body
	}()
	for open := false; !open; { // until the stream is open
		open = strings.Contains(p.send(http.MethodGet, "/metrics", "", nil).body, "weir_streams 1")
	}
	p.close()
	if body := <-done; !strings.Contains(body, "event: server.draining\nretry: ") || !strings.Contains(body, "event: run.started") {
		t.Errorf("got %s", body)
	}
}

func TestAStreamRefusesForeignCursorsAndEndsWithNoContent(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	ada := p.anyone("ada")
	o := makeObjects(t, ada)
	var last string
	for e, err := range ada.Stream(t.Context(), o.message, "") { // the round, which has ended
		if err != nil {
			t.Fatal(err)
		}
		last = e.ID
	}
	for cursor, want := range map[string]int{"": 200, last: 204, "c1.nonsense": 422} {
		got := p.send(http.MethodGet, "/v1/runs/"+o.message+"/stream?cursor="+cursor, "", withToken(ada.Token))
		if got.status != want {
			t.Errorf("cursor %q: %d %s, want %d", cursor, got.status, got.body, want)
		}
	}
	if got := p.send(http.MethodGet, "/v1/runs/"+o.run+"/stream?cursor="+last, "", withToken(ada.Token)); got.status != http.StatusUnprocessableEntity {
		t.Errorf("the cursor of another run: %d %s", got.status, got.body)
	}
}

func TestLiveTextCarriesTheKeyOfItsEffect(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	ada := p.anyone("ada")
	run, err := ada.StartRun(t.Context(), client.Start{Flow: "talk", Inputs: map[string]any{"message": "hello"}})
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for e, err := range ada.Stream(t.Context(), run.ID, "") {
		if err != nil {
			t.Fatal(err)
		}
		var data struct {
			Effect, Text, Key string
			Result            struct{ Message struct{ Text string } }
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case "model.text":
			text[data.Effect] += data.Text
		case "live.snapshot":
			text[data.Effect] = data.Text
		case "live.retracted":
			delete(text, data.Effect)
		case "effect.completed":
			text[data.Key] = data.Result.Message.Text
		}
	}
	if len(text) != 1 {
		t.Errorf("text by effect: %v", text)
	}
	for key, got := range text {
		if !strings.Contains(key, "answer/model#1") {
			t.Errorf("key %q has %q", key, got)
		}
	}
}

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// journalsOf returns the events of the journals of runs, as "ROUND NUMBER".
func journalsOf(t *testing.T, c *client.Client, runs []string) (out []string) {
	t.Helper()
	for i, run := range runs {
		for _, n := range numbersOf(t, c, run) {
			out = append(out, fmt.Sprint(i+1, " ", n))
		}
	}
	return out
}

// sessionReader reads the stream of a session, one event of a journal a connection.
type sessionReader struct {
	*testing.T
	c       *client.Client
	session string
	cursor  string
	runs    []string
	got     []string
}

func (r *sessionReader) readOne() {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	for e, err := range r.c.StreamSession(ctx, r.session, r.cursor) {
		if err != nil {
			r.Fatal(err)
		}
		r.cursor = e.ID
		var data struct {
			Run    string
			Number int64
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			r.Fatal(err)
		}
		if data.Number > 0 {
			if !slices.Contains(r.runs, data.Run) {
				r.runs = append(r.runs, data.Run)
			}
			r.got = append(r.got, fmt.Sprint(slices.Index(r.runs, data.Run)+1, " ", data.Number))
			return
		}
	}
}

// TestTheStreamOfASessionHasAllRounds cuts the connection after each event, restarts the server
// between two rounds, and starts a round while a reader waits.
func TestTheStreamOfASessionHasAllRounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := openProcess(t, dir, server.Options{})
	ada := p.anyone("ada")
	session, err := ada.OpenSession(t.Context(), "talk", "")
	if err != nil {
		t.Fatal(err)
	}
	var runs []string
	say := func() {
		t.Helper()
		sent, err := ada.Send(t.Context(), session, client.Message{Text: "Is there a berth?", Wait: 60})
		if err != nil || sent.Status != "completed" {
			t.Fatalf("%+v, %v", sent, err)
		}
		runs = append(runs, sent.Run)
	}
	say()
	say()
	r := &sessionReader{T: t, c: ada, session: session}
	for range 3 {
		r.readOne()
	}
	p.close()
	p = openProcess(t, dir, server.Options{})
	ada.URL = p.url
	for len(r.got) < len(journalsOf(t, ada, runs)) {
		r.readOne()
	}
	read := make(chan struct{})
	go func() { // waits for the next round
		defer close(read)
		r.readOne()
	}()
	say()
	<-read
	want := journalsOf(t, ada, runs)
	for len(r.got) < len(want) {
		r.readOne()
	}
	if !slices.Equal(r.got, want) || !slices.Equal(r.runs, runs) {
		t.Errorf("read %v of %v, the journals have %v of %v", r.got, r.runs, want, runs)
	}
	o := makeObjects(t, ada)
	for cursor, what := range map[string]string{"x": "no position", runs[0]: "a run alone", o.message + "/c1": "another session's", runs[0] + "/c1.nonsense": "a run's cursor"} {
		got := p.send(http.MethodGet, "/v1/sessions/"+session+"/stream?cursor="+cursor, "", withToken(ada.Token))
		if got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
	}
	if body := p.send(http.MethodGet, "/metrics", "", withToken(ada.Token)).body; strings.Contains(body, "weir_streams -") {
		t.Error(body)
	}
}

package server_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// madeTrigger is a trigger as its creation shows it.
type madeTrigger struct{ ID, Path, Secret string }

func makeTrigger(t *testing.T, c *client.Client, body string) (x madeTrigger) {
	t.Helper()
	if err := c.Do(t.Context(), http.MethodPost, "/v1/triggers", json.RawMessage(body), &x); err != nil {
		t.Fatal(err)
	}
	return x
}

// signedRequest sends a body to a trigger as another program does.
func (p *process) signedRequest(x madeTrigger, id, body, secret string, at time.Time) answer {
	p.t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		p.t.Fatal(err)
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	m := hmac.New(sha256.New, key)
	m.Write([]byte(id + "." + stamp + "." + body))
	return p.send(http.MethodPost, x.Path, body, func(r *http.Request) {
		r.Header.Set("Webhook-Id", id)
		r.Header.Set("Webhook-Timestamp", stamp)
		r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)))
	})
}

func TestASignedRequestStartsOneRun(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	c := p.anyone("ada")
	x := makeTrigger(t, c, `{"name":"orders","flow":"ask","kind":"webhook","payload":"name"}`)
	other := makeTrigger(t, c, `{"name":"other","flow":"ask","kind":"webhook","payload":"name"}`)
	now := time.Now()
	first := p.signedRequest(x, "order-1", `"Ada"`, x.Secret, now)
	again := p.signedRequest(x, "order-1", `"Ada"`, x.Secret, now)
	if first.status != http.StatusAccepted || first.body != again.body {
		t.Fatalf("%d %s; again: %d %s", first.status, first.body, again.status, again.body)
	}
	for name, a := range map[string]answer{
		"secret of another trigger": p.signedRequest(x, "order-2", `"Ada"`, other.Secret, now),
		"too old":                   p.signedRequest(x, "order-2", `"Ada"`, x.Secret, now.Add(-6*time.Minute)),
		"from the future":           p.signedRequest(x, "order-2", `"Ada"`, x.Secret, now.Add(6*time.Minute)),
		"no id":                     p.signedRequest(x, "", `"Ada"`, x.Secret, now),
		"no such trigger":           p.signedRequest(madeTrigger{Path: "/t/nothing"}, "order-2", `"Ada"`, x.Secret, now),
	} {
		if a.status != http.StatusUnauthorized || a.problem() != "unauthenticated" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := p.signedRequest(x, "order-3", `7`, x.Secret, now); a.status != http.StatusUnprocessableEntity || a.problem() != "input_invalid" {
		t.Errorf("an input that does not fit: %d %s", a.status, a.body)
	}
	if err := c.Do(t.Context(), http.MethodPost, "/v1/triggers/"+x.ID+"/pause", map[string]bool{"paused": true}, nil); err != nil {
		t.Fatal(err)
	}
	if a := p.signedRequest(x, "order-4", `"Ada"`, x.Secret, now); a.problem() != "flow_paused" {
		t.Errorf("paused: %d %s", a.status, a.body)
	}
	list := p.send(http.MethodGet, "/v1/runs", "", withToken(c.Token))
	if n := strings.Count(list.body, `"origin":"webhook:orders"`); n != 1 || strings.Count(list.body, `"run":`) != 1 {
		t.Errorf("%d runs: %s", n, list.body)
	}
}

// TestARequestCancelsTheRunBefore sends two requests to a trigger with the overlap cancel.
func TestARequestCancelsTheRunBefore(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	c := p.anyone("ada")
	x := makeTrigger(t, c, `{"name":"orders","flow":"ask","kind":"webhook","payload":"name","overlap":"cancel"}`)
	var runs []string
	for _, id := range []string{"1", "2", "2"} { // the last one is sent again
		a := p.signedRequest(x, id, `"Ada"`, x.Secret, time.Now())
		var got struct{ Run string }
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusAccepted {
			t.Fatalf("%d %s", a.status, a.body)
		}
		runs = append(runs, got.Run)
	}
	for _, want := range []string{"cancelled", "paused"} {
		var run *client.Run
		for run == nil || run.Status != want { // until the test times out
			var err error
			if run, err = c.Run(t.Context(), runs[0]); err != nil {
				t.Fatal(err)
			}
		}
		runs = runs[1:]
	}
}

func TestATriggerThatCannotFireIsRefused(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	for _, body := range []string{
		`{"name":"x","flow":"nothing","kind":"webhook"}`, `{"name":"x","flow":"ask","kind":"schedule"}`,
		`{"name":"x","flow":"ask","kind":"schedule","schedule":"* * * *"}`, `{"name":"x","flow":"ask","kind":"schedule","schedule":"@daily","zone":"Nowhere"}`,
		`{"name":"x","flow":"ask","kind":"webhook","schedule":"@daily"}`, `{"name":"x","flow":"ask","kind":"schedule","schedule":"@daily","payload":"name"}`,
		`{"name":"a\nb","flow":"ask","kind":"webhook"}`, `{"name":"x","flow":"ask","kind":"file"}`,
	} {
		if a := p.send(http.MethodPost, "/v1/triggers", body, nil); a.status != http.StatusUnprocessableEntity && a.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
}

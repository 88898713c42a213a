package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/server"
)

func TestEveryErrorCodeAndTheSchemaOfFlowsAreServed(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	var list struct {
		Codes []struct{ Code, Meaning, Remedy string }
	}
	if err := json.Unmarshal([]byte(p.send(http.MethodGet, "/v1/errors", "", nil).body), &list); err != nil {
		t.Fatal(err)
	}
	if want := len(engine.Codes()) + len(flow.Codes()); len(list.Codes) != want {
		t.Errorf("%d codes, want %d", len(list.Codes), want)
	}
	for _, c := range list.Codes {
		if c.Code == "" || c.Meaning == "" || c.Remedy == "" {
			t.Errorf("incomplete: %+v", c)
		}
	}
	var schema struct {
		Defs struct{ Settings map[string]any } `json:"$defs"`
	}
	got := p.send(http.MethodGet, "/v1/schema", "", nil)
	if err := json.Unmarshal([]byte(got.body), &schema); err != nil || schema.Defs.Settings["llmRequest"] == nil {
		t.Errorf("%d %.200s, %v", got.status, got.body, err)
	}
}

func TestMemoryIsForgottenByItsOwnerAlone(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	made, err := p.app.Store.Remember(t.Context(), memory.Write{
		Scope: memory.Scope{Namespace: "berths", User: "ada"}, Kind: memory.Fact, Key: "ship", Text: "Ada has a ketch.", Now: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ada, bob := p.anyone("ada").Token, p.anyone("bob").Token
	for _, x := range []struct {
		token, item string
		want        int
	}{{bob, made.ID, 404}, {ada, "nothing", 404}, {ada, made.ID, 204}, {ada, made.ID, 404}} {
		if got := p.send(http.MethodDelete, "/v1/memory/"+x.item, "", withToken(x.token)); got.status != x.want {
			t.Errorf("%s: %d %s, want %d", x.item, got.status, got.body, x.want)
		}
	}
	if got := p.send(http.MethodGet, "/v1/memory", "", withToken(ada)); strings.Contains(got.body, "ketch") {
		t.Errorf("it is still there: %s", got.body)
	}
}

func TestGraphsAreServedFolded(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	const text = `{weir: 1, name: each, nodes: {all: {type: forEach, in: {items: "{{ [1] }}"}, with: {body: {nodes: {one: {type: transform, in: {n: "{{ inputs.item }}"}, with: {expr: inputs.n}}}, outputs: {result: "{{ one.value }}"}}}}}}`
	body, err := json.Marshal(map[string]any{"flow": text, "promote": true})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.send(http.MethodPut, "/v1/flows/each", string(body), nil); got.status >= 300 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	for query, want := range map[string]bool{"": true, "?fold=true": false, "?fold=true&open=all": true, "?fold=true&open=other": false} {
		got := p.send(http.MethodGet, "/v1/flows/each/graph"+query, "", nil)
		if has := strings.Contains(got.body, `"id":"one"`); has != want || strings.Contains(got.body, `"folded":1`) == want {
			t.Errorf("%q: %s", query, got.body)
		}
	}
}

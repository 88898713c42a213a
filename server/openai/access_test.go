package openai_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/agui"
	"github.com/weir-run/weir/server/openai"
	"github.com/weir-run/weir/server/servertest"
)

// change sends a PUT request that must succeed, and returns the ETag of the answer.
func change(t *testing.T, url, token, etag, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	if etag != "" {
		r.Header.Set("If-Match", etag)
	}
	a, err := new(http.Client).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d", url, a.StatusCode)
	}
	return a.Header.Get("ETag")
}

// TestAPersonOfATokenThatActsForOthersNeedsAccessToTheFlow has a program ask a flow that was put, for persons with and without access, in each
// protocol that believes a name.
func TestAPersonOfATokenThatActsForOthersNeedsAccessToTheFlow(t *testing.T) {
	t.Parallel()
	p := servertest.Open(t, servertest.Options{Flows: flows(), Faces: []func(*server.Server){openai.Register, agui.Register}, Server: server.Options{RequireToken: true}})
	ada, program := p.Token("ada", server.Read, server.Start), p.Token("program", server.Read, server.Start, server.Answer, server.ActAs)
	const text = "{weir: 1, name: private, inputs: {message: {type: text, required: true}}, nodes: {say: {type: manualInput, with: {text: 'Hello {{ run.inputs.message }}'}}}, outputs: {line: '{{ say.text }}'}}"
	at := p.URL + "/v1/flows/private"
	etag := change(t, at, ada, "", `{"promote": true, "flow": "`+text+`"}`)
	statuses := func(person string) [3]int {
		chat, _, _ := post(t, p.URL+"/v1/chat/completions", program, map[string]any{"model": "private", "user": person, "messages": []message{{"user", "x"}}}, nil)
		response, _, _ := post(t, p.URL+"/v1/responses", program, map[string]any{"model": "private", "user": person, "input": "x"}, nil)
		run, _, _ := post(t, p.URL+"/agui/private", program, map[string]any{"threadId": person, "runId": "1", "messages": []map[string]any{{"id": "1", "role": "user", "content": "x"}}}, map[string]string{"X-Weir-User": person})
		return [3]int{chat, response, run}
	}
	refused, allowed := [3]int{404, 404, 404}, [3]int{200, 200, 200}
	for _, c := range []struct {
		access      string
		carl, diana [3]int
	}{
		{`[]`, refused, refused},
		{`["carl"]`, refused, refused}, // the program has no access itself
		{`["program"]`, refused, refused},
		{`["program", "carl"]`, allowed, refused},
		{`["*"]`, allowed, allowed},
	} {
		etag = change(t, at+"/access", ada, etag, `{"users": `+c.access+`}`)
		if carl, diana := statuses("carl"), statuses("diana"); carl != c.carl || diana != c.diana {
			t.Errorf("access of %s: carl %v, diana %v", c.access, carl, diana)
		}
	}
}

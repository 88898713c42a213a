package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// TestAFilterOfAnotherUserIsRefused finds each route with a parameter or a body member `user` in
// the description of the API. Objects of the caller would look like those of the user that it
// asked for.
func TestAFilterOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada, root := p.anyone("ada"), p.client("root", server.Admin)
	makeObjects(t, p.anyone("bob"))
	filtered, named := routesWithUser(t, p)
	if !slices.Contains(filtered, "/v1/runs") || len(filtered) < 6 {
		t.Fatalf("routes with a filter: %v", filtered)
	}
	cases := []userFilter{
		{ada.Token, "ada", 200}, {ada.Token, "", 200}, {ada.Token, "bob", 403}, {ada.Token, "nobody", 403}, {root.Token, "bob", 200}, {root.Token, "nobody", 200},
	}
	for _, path := range filtered {
		if p.server.Routes()[http.MethodGet+" "+path] == server.Admin {
			continue // it lists objects of all users, to administrators alone
		}
		for _, c := range cases {
			c.check(t, p, path)
		}
	}
	bodies := map[string]string{
		"POST /v1/runs/bulk": `{"action":"cancel","user":"bob"}`,
		"POST /v1/tokens":    `{"user":"bob","scopes":["read"]}`,
		"PUT /v1/quotas":     `{"user":"bob","runs":1}`,
	}
	for _, route := range named {
		method, path, _ := strings.Cut(route, " ")
		body, ok := bodies[route]
		if !ok {
			t.Errorf("%s names a user and has no case here", route)
			continue
		}
		if got := p.send(method, path, body, withToken(ada.Token)); got.status != http.StatusForbidden {
			t.Errorf("%s %s: %d %s", route, body, got.status, got.body)
		}
	}
}

// userFilter is a request for a list with a filter.
type userFilter struct {
	token, user string
	want        int // the status
}

func (c userFilter) check(t *testing.T, p *process, path string) {
	t.Helper()
	query := "?user=" + c.user
	if path == "/v1/search" {
		query += "&text=Ada"
	}
	if path == "/v1/stream" && c.want == http.StatusOK { // which does not end
		p.streamList(&client.Client{Token: c.token}, query[1:])
		return
	}
	if path == "/v1/audit" && (c.user == "ada" || c.user == "") { // whose token lacks the scope admin
		c.want = http.StatusForbidden
	}
	got := p.send(http.MethodGet, path+query, "", withToken(c.token))
	if got.status != c.want || c.want == http.StatusForbidden && !strings.Contains(got.body, `"forbidden"`) {
		t.Errorf("%s for %q: %d %s, want %d", path, c.user, got.status, got.body, c.want)
	}
	if c.user == "bob" && c.want == http.StatusOK && path == "/v1/runs" && !strings.Contains(got.body, `"user":"bob"`) {
		t.Errorf("%s for %q: %s", path, c.user, got.body)
	}
}

// routesWithUser returns the lists that have a filter `user`, and the routes whose bodies have a
// member of that name.
func routesWithUser(t *testing.T, p *process) (filtered, named []string) {
	t.Helper()
	text, err := p.server.Description()
	if err != nil {
		t.Fatal(err)
	}
	var api apiDescription
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	for path, methods := range api.Paths {
		for method, op := range methods {
			if slices.ContainsFunc(op.Parameters, func(q apiParameter) bool { return q.In == "query" && q.Name == "user" }) {
				filtered = append(filtered, path)
			}
			if api.hasMember(op, "user") {
				named = append(named, strings.ToUpper(method)+" "+path)
			}
		}
	}
	return filtered, named
}

// apiDescription is a part of the OpenAPI description.
type apiDescription struct {
	Paths      map[string]map[string]apiOperation
	Components struct{ Schemas map[string]apiSchema }
}

type apiOperation struct {
	Parameters []apiParameter
	Body       struct {
		Content map[string]struct{ Schema apiSchema }
	} `json:"requestBody"`
}

type apiParameter struct{ Name, In string }

type apiSchema struct {
	Ref        string                     `json:"$ref"`
	Properties map[string]json.RawMessage `json:"properties"`
}

// hasMember reports whether the body of an operation has a member of that name.
func (a *apiDescription) hasMember(op apiOperation, name string) bool {
	for _, c := range op.Body.Content {
		s := c.Schema
		if s.Ref != "" {
			s = a.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		}
		if s.Properties[name] != nil {
			return true
		}
	}
	return false
}

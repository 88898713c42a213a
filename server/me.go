package server

import "net/http"

// caller is who sends a request.
type caller struct {
	User          string   `json:"user" doc:"Empty for a request without a token"`
	Role          Role     `json:"role" doc:"Empty for a user without a record"`
	Scopes        []string `json:"scopes" doc:"Those of the token that the role allows"`
	All           bool     `json:"all" doc:"The caller reaches the objects of all users"`
	TokenRequired bool     `json:"tokenRequired" doc:"The server answers no request without a token"`
}

func (s *Server) registerMe() {
	register(s, operation{
		id: "getCaller", method: http.MethodGet, path: "/v1/me", scope: Read, tags: []string{"access"}, summary: "Get the user and the scopes of the token of the request",
	}, getCaller)
}

func getCaller(c *call, _ *struct{}) (*body[caller], error) {
	out := caller{User: c.who.user, Role: c.who.role, Scopes: []string{}, All: c.who.all, TokenRequired: c.options.RequireToken}
	for _, x := range c.who.scopes {
		out.Scopes = append(out.Scopes, string(x))
	}
	return bodyOf(out), nil
}

package server

import "net/http"

// caller is who sends a request.
type caller struct {
	User          string   `json:"user" doc:"Empty for a request without a token"`
	Role          Role     `json:"role" doc:"Empty for a user without a record"`
	Scopes        []string `json:"scopes" doc:"Those of the token that the role allows"`
	All           bool     `json:"all" doc:"The caller reaches the objects of all users"`
	TokenRequired bool     `json:"tokenRequired" doc:"The server answers no request without a token"`
	// SignOut tells a page how to sign out, which depends on who has signed the user in.
	SignOut    string `json:"signOut" enum:"token,login,proxy," doc:"token: forget the token; login: POST /login/end; proxy: open signOutURL; empty: there is nothing to sign out of"`
	SignOutURL string `json:"signOutURL" doc:"Where a browser signs out of the proxy that has named the user; empty if the server does not know"`
}

func (s *Server) registerMe() {
	register(s, operation{
		id: "getCaller", method: http.MethodGet, path: "/v1/me", scope: Read, tags: []string{"access"}, summary: "Get the user and the scopes of the request",
	}, getCaller)
}

func getCaller(c *call, _ *struct{}) (*body[caller], error) {
	out := caller{User: c.who.user, Role: c.who.role, Scopes: []string{}, All: c.who.all, TokenRequired: c.options.RequireToken}
	switch {
	case c.who.login != "":
		out.SignOut = "login"
	case c.who.token != "":
		out.SignOut = "token"
	case c.who.user != "":
		out.SignOut, out.SignOutURL = "proxy", c.options.SignOutURL
	}
	for _, x := range c.who.scopes {
		out.Scopes = append(out.Scopes, string(x))
	}
	return bodyOf(out), nil
}

package config_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/app/config"
)

func TestTheIssuerIsReadAsAWhole(t *testing.T) {
	p := newFixture(t)
	p.user("server:\n  oidc: {issuer: https://other.example, clientID: other, clientSecret: {env: OTHER}, roles: {all: owner}}\n")
	p.project(`
server:
  audit: {entries: 5000}
  oidc:
    issuer: https://id.example.org/realms/main
    clientID: weir
    clientSecret: {file: keys/oidc}
    scopes: [email]
    user: email
    unverifiedEmail: true
    groups: teams
    roles: {"a.b/c d": viewer, Staff: operator}
    role: viewer
    session: 90m
`)
	p.write(filepath.Join(p.o.Dir, "keys", "oidc"), "s1\n")
	o := p.load().Server.OIDC
	if value(t, o.ClientSecret) != "s1" || o.Issuer != "https://id.example.org/realms/main" || o.ClientID != "weir" || !slices.Equal(o.Scopes, []string{"email"}) || o.User != "email" ||
		!o.UnverifiedEmail || o.Groups != "teams" || o.Role != "viewer" || o.Session != 90*time.Minute || !maps.Equal(o.Roles, map[string]string{"a.b/c d": "viewer", "Staff": "operator"}) {
		t.Errorf("%+v", o)
	}
	p.vars["SECRET"] = "s2"
	p.project("server: {oidc: {issuer: https://id.example.org, clientID: weir, clientSecret: {env: SECRET}, role: viewer}}\n")
	if o := p.load().Server.OIDC; value(t, o.ClientSecret) != "s2" || len(o.Roles) != 0 { // not those of the other file
		t.Errorf("%+v", o)
	}
}

func TestInvalidSettingsOfTheIssuerAreReported(t *testing.T) {
	const issuer = "issuer: 'https://id.example.org'"
	for text, want := range map[string]string{
		issuer:                   "server.oidc: needs clientID",
		"issuer: x, clientID: w": "server.oidc.issuer: is to begin with https:// or http://",
		issuer + ", clientID: w, clientSecret: abc": "server.oidc.clientSecret: a key is never written into the file",
		issuer + ", clientID: w, role: admin":       "server.oidc.role",
		issuer + ", clientID: w, roles: {x: root}":  "server.oidc.roles.x",
		issuer + ", clientID: w, session: 1s":       "server.oidc.session: is to be a duration of at least a minute",
		issuer + ", clientID: w, group: x":          "server.oidc.group: there is no such key",
	} {
		p := newFixture(t)
		p.project("server: {oidc: {" + text + "}}\n")
		if _, err := config.Load(p.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %s", text, err, want)
		}
	}
}

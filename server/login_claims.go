package server

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/server/oidc"
)

// OIDC says which OpenID Connect issuer signs people in, and what they may do.
type OIDC struct {
	// Issuer and ClientID identify the issuer, and this server as its client. Both are required.
	Issuer, ClientID string
	// Secret returns the secret of the client when it is used; nil for a client without one.
	Secret func() (string, error)
	// Scopes are requested besides openid; none are "profile", "email" and "groups".
	Scopes []string
	// User is the claim that names the user; "" is "sub". The claim must not be one that people change themselves.
	User string
	// UnverifiedEmail takes an address as the name of the user although the issuer has not verified that it is the person's.
	UnverifiedEmail bool
	// Groups is the claim with the groups of a person, a list of texts or one; "" is "groups".
	Groups string
	// Roles are those of the members of groups. Who is in several has the one that allows most.
	Roles map[string]Role
	// Role is that of people who are in none of these groups; "" refuses them.
	Role Role
	// Lifetime is how long a person stays signed in, at most 30 days; 0 is 12 hours. Groups are read when a person signs in.
	Lifetime time.Duration
}

const (
	maxLoginTime = 30 * 24 * time.Hour
	// maxGroups bounds the groups that are kept of a person.
	maxGroups = 500
)

// checkOIDC checks the options of signing in, and replaces those that are not set. It returns nil where people do not sign in.
func (o *Options) checkOIDC() (*oidc.Issuer, error) {
	if o.OIDC == nil {
		return nil, nil //nolint:nilnil // nobody signs in
	}
	x := *o.OIDC
	o.OIDC = &x
	if x.Scopes == nil {
		x.Scopes = []string{"profile", "email", "groups"}
	}
	if x.User == "" {
		x.User = "sub"
	}
	if x.Groups == "" {
		x.Groups = "groups"
	}
	if x.Lifetime == 0 {
		x.Lifetime = defaultLoginTime
	}
	if err := x.check(o); err != nil {
		return nil, err
	}
	return oidc.New(oidc.Config{Issuer: x.Issuer, ClientID: x.ClientID, Secret: x.Secret, RedirectURL: o.PublicURL + "/login/callback", Scopes: x.Scopes})
}

func (x *OIDC) check(o *Options) error {
	for group, role := range x.Roles {
		if !slices.Contains(Roles(), role) {
			return fmt.Errorf("the group %q has the role %q; there are owner, operator and viewer", group, role)
		}
	}
	u, err := url.Parse(o.PublicURL)
	switch {
	case err != nil || u.Host == "":
		return errors.New("signing in needs the public address of the server, to which the issuer sends browsers back")
	case u.Scheme != "https" && !isThisMachine(u.Hostname()):
		return errors.New("signing in needs a public address that begins with https://: otherwise others on the network could read the cookie")
	case !o.RequireToken:
		return errors.New("signing in needs a server that requires tokens: otherwise a request of nobody would act for the owner of the process")
	case x.Role != "" && !slices.Contains(Roles(), x.Role):
		return fmt.Errorf("there is no role %q; there are owner, operator and viewer", x.Role)
	case x.Role == "" && len(x.Roles) == 0:
		return errors.New("no group has a role, and who is in no group has none: nobody could sign in")
	case x.Lifetime < time.Minute || x.Lifetime > maxLoginTime:
		return fmt.Errorf("people stay signed in for a minute to 30 days, and not for %s", x.Lifetime)
	case o.App.Store.Capabilities().Documents == nil:
		return errors.New("signing in needs a store with documents")
	}
	return nil
}

// userOf returns the name of the user who a person is, and the groups. The error says why it is nobody.
func (x *OIDC) userOf(id *oidc.Identity) (user string, groups []string, err error) {
	if user = id.Subject; x.User != "sub" {
		user, _ = id.Claims[x.User].(string)
	}
	if x.User == "email" {
		if verified := id.Claims["email_verified"]; verified != true && verified != "true" && !x.UnverifiedEmail {
			return "", nil, &oidc.Refusal{Reason: "the issuer has not verified that the email address is yours"}
		}
		user = strings.ToLower(user) // addresses that differ in case belong to one person
	}
	return user, groupsOf(id.Claims[x.Groups]), checkUser(user)
}

// groupsOf returns the names of groups in a claim: a list, or one name.
func groupsOf(claim any) []string {
	list, ok := claim.([]any)
	if !ok {
		list = []any{claim}
	}
	out := []string{}
	for _, g := range list {
		name, _ := g.(string)
		if name != "" && runner.CheckName("group", name) == nil && len(out) < maxGroups && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// roleOf returns the role that allows most of those of groups, "" for who may not sign in.
func (x *OIDC) roleOf(groups []string) Role {
	best := Role("")
	for _, g := range groups {
		if r := x.Roles[g]; r.rank() > best.rank() {
			best = r
		}
	}
	if best == "" {
		return x.Role
	}
	return best
}

// isThisMachine reports whether a host is a loopback address or localhost.
func isThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

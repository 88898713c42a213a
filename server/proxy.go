package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// checkProxies returns an error unless the options of trusted proxies agree.
func (o *Options) checkProxies() error {
	for _, p := range o.TrustedProxies {
		if !p.IsValid() || p.Bits() == 0 || p.Addr().Is4In6() {
			return fmt.Errorf("the addresses %s of trusted proxies contain every client or none: name those of the proxies alone", p)
		}
	}
	if err := o.checkSignOut(); err != nil {
		return err
	}
	if o.UserHeader == "" {
		return nil
	}
	if len(o.TrustedProxies) == 0 {
		return errors.New("a header that names the user needs the addresses of the proxies that may send it: otherwise every client could name any user")
	}
	if !o.RequireToken {
		return errors.New("a header that names the user needs a server that requires tokens: otherwise a request without the header would act for the owner of the process")
	}
	used := []string{"Authorization", "Host", "Cookie", "Origin", "Connection", "Content-Type", "Content-Length", "X-Forwarded-For", "Idempotency-Key"}
	if !regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`).MatchString(o.UserHeader) || slices.Contains(used, http.CanonicalHeaderKey(o.UserHeader)) {
		return fmt.Errorf("%q is no header that can name the user; X-Forwarded-User is one", o.UserHeader)
	}
	return nil
}

// checkSignOut returns an error unless a browser can open the address for signing out.
func (o *Options) checkSignOut() error {
	u, err := url.Parse(o.SignOutURL)
	switch {
	case o.SignOutURL == "":
		return nil
	case o.UserHeader == "":
		return errors.New("an address for signing out of a proxy needs the header in which the proxy names the user")
	case err != nil || u.User != nil || u.Host == "" && (u.Scheme != "" || !strings.HasPrefix(u.Path, "/")) || u.Host != "" && u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("the address %q for signing out is neither a path such as /oauth2/sign_out nor a URL", o.SignOutURL)
	}
	return nil
}

// peer returns the address of the connection, without the zone; it is not valid where there is none.
func peer(r *http.Request) netip.Addr {
	a, _ := netip.ParseAddrPort(r.RemoteAddr)
	return a.Addr().Unmap().WithZone("")
}

// isProxy reports whether an address is that of a trusted proxy.
func (s *Server) isProxy(a netip.Addr) bool {
	return slices.ContainsFunc(s.options.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// authenticateProxied finds who sends a request with the header that names the user. A token that the request
// also has must be of the same user, and bounds it further.
func (s *Server) authenticateProxied(r *http.Request) (principal, *Problem) {
	refuse := func(detail string) (principal, *Problem) {
		return principal{}, newProblem(http.StatusUnauthorized, engine.CodeUnauthenticated, detail)
	}
	if !s.isProxy(peer(r)) {
		return refuse("the request names its user, and does not come from a trusted proxy")
	}
	names := r.Header.Values(s.options.UserHeader)
	if len(names) != 1 || names[0] == "" || runner.CheckName("user", names[0]) != nil {
		return refuse("the proxy names no user, several, or one whose name is not valid")
	}
	if given := r.Header.Values("Authorization"); len(given) > 0 && strings.HasPrefix(strings.ToLower(given[0]), "bearer ") {
		p, problem := s.authenticateToken(r, given)
		if problem == nil && p.user != names[0] {
			return refuse("the token is of another user than the proxy names")
		}
		return p, problem
	}
	p := principal{user: names[0], scopes: []Scope{Read, Start, Answer}}
	role, disabled, err := s.roleOf(r.Context(), p.user)
	switch {
	case err != nil:
		return principal{}, problemOf(err)
	case disabled:
		return refuse("the user is deactivated")
	case role == OwnerRole:
		p.scopes, p.all = append(p.scopes, Admin), true
	}
	if role != "" {
		p.bound(role)
	}
	return p, nil
}

// clientAddress returns the address that a request comes from. Where that is a trusted proxy, it is the last
// address in X-Forwarded-For that is not one: those before it come from the client itself.
func (s *Server) clientAddress(r *http.Request) string {
	at := peer(r)
	if !at.IsValid() {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.isProxy(at); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		at = next.Unmap().WithZone("")
	}
	return at.String()
}

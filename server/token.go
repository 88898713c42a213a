package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/server/auditlog"
	"github.com/weir-run/weir/store"
)

// tokenPrefix begins every token, so that scanners of leaked secrets can find them.
const tokenPrefix = "weir_"

// NewToken makes a token of a user and keeps its digest. The secret is returned once and
// can not be found again. A lifetime of 0 lasts until the token is revoked.
func NewToken(ctx context.Context, s store.AccessStore, user, name string, scopes []string, lifetime time.Duration) (secret string, t store.Token, err error) {
	if user == "" {
		return "", t, &engine.Error{Code: engine.CodeInput, Message: "a token needs the user that it acts for"}
	}
	if err := errors.Join(runner.CheckName("user", user), runner.CheckName("name", name)); err != nil {
		return "", t, err
	}
	if len(scopes) == 0 {
		return "", t, &engine.Error{Code: engine.CodeInput, Message: "a token needs at least one scope: " + scopeNames()}
	}
	for _, x := range scopes {
		if !slices.Contains(Scopes(), Scope(x)) {
			return "", t, &engine.Error{Code: engine.CodeInput, Message: fmt.Sprintf("there is no scope %q; there are %s", x, scopeNames())}
		}
	}
	secret = tokenPrefix + strings.ToLower(rand.Text()+rand.Text())
	now := time.Now()
	t = store.Token{ID: runner.NewID(), Hash: tokenHash(secret), User: user, Name: name, Scopes: scopes, Created: now}
	if lifetime > 0 {
		t.Expires = now.Add(lifetime)
	}
	return secret, t, s.PutToken(ctx, t)
}

func tokenHash(secret string) []byte {
	h := sha256.Sum256([]byte(secret))
	return h[:]
}

func scopeNames() string {
	var names []string
	for _, s := range Scopes() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// principal is who sends a request.
type principal struct {
	user   string
	token  string // its id, "" without one
	scopes []Scope
	// holder is the user of the token; another one than user for a program that acts for somebody.
	holder string
	// acts says that user was named by a program with the scope act-as.
	acts bool
	// login is the digest of the cookie of a person who has signed in, "" without one.
	login string
	// expires is when the token, or the login, does; zero is never.
	expires time.Time
	// role is that of the user, "" for none.
	role Role
	// all reaches the objects of all users.
	all bool
	// action is the entry of the request in the audit log; nil for one that is not recorded.
	action *auditlog.Action
}

type principalKey struct{}

// owner returns the user of requests without a token, if none is required: anyone who can reach a server that
// listens on this machine alone.
func owner() principal { return principal{scopes: Scopes(), all: true} }

// authenticate finds who sends a request. A token that is given must be valid, whether or
// not one is required.
func (s *Server) authenticate(r *http.Request) (principal, *Problem) {
	given := r.Header.Values("Authorization")
	if s.options.UserHeader != "" && len(r.Header.Values(s.options.UserHeader)) > 0 {
		return s.authenticateProxied(r)
	}
	if secret := s.loginCookie(r); s.issuer != nil && len(given) == 0 && secret != "" && s.believesCookie(r) {
		return s.authenticateLogin(r.Context(), linkID(secret))
	}
	if len(given) == 0 {
		if s.options.RequireToken {
			return principal{}, newProblem(http.StatusUnauthorized, engine.CodeUnauthenticated, "the request has no token")
		}
		return owner(), nil
	}
	return s.authenticateToken(r, given)
}

// authenticateToken finds who sends a request with a token, which must be valid.
func (s *Server) authenticateToken(r *http.Request, given []string) (principal, *Problem) {
	kind, secret, _ := strings.Cut(given[0], " ")
	if len(given) == 1 && strings.EqualFold(kind, "Bearer") && !strings.HasPrefix(secret, loginPrefix) {
		t, err := s.app.Store.TokenByHash(r.Context(), tokenHash(secret))
		if err == nil && t.Valid(time.Now()) {
			p := principal{user: t.User, holder: t.User, token: t.ID, expires: t.Expires}
			for _, x := range t.Scopes {
				p.scopes = append(p.scopes, Scope(x))
			}
			p.all = slices.Contains(p.scopes, Admin)
			role, disabled, err := s.roleOf(r.Context(), t.User)
			if err != nil {
				return principal{}, problemOf(err)
			}
			p.bound(role)
			if !disabled {
				return p, nil
			}
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return principal{}, problemOf(err)
		}
	}
	return principal{}, newProblem(http.StatusUnauthorized, engine.CodeUnauthenticated, "the token is not valid")
}

// check returns a problem unless the principal has a scope.
func (p *principal) check(scope Scope) *Problem {
	if slices.Contains(p.scopes, scope) || slices.Contains(p.scopes, Admin) {
		return nil
	}
	if p.role != "" && !p.role.allows(scope) {
		return newProblem(http.StatusForbidden, engine.CodeForbidden, fmt.Sprintf("the role %s does not allow the scope %q", p.role, scope))
	}
	return newProblem(http.StatusForbidden, engine.CodeForbidden, fmt.Sprintf("the token lacks the scope %q", scope))
}

// owns reports whether the principal reaches an object of a user.
func (p *principal) owns(user string) bool { return p.all || p.user == user }

// may reports whether the principal can pass a scope on. Admin does not include ActAs.
func (p *principal) may(scope Scope) bool {
	return slices.Contains(p.scopes, scope) || scope != ActAs && slices.Contains(p.scopes, Admin)
}

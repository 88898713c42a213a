package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/server/auditlog"
	"github.com/weir-run/weir/server/oidc"
	"github.com/weir-run/weir/store"
)

// loginKind is the kind of documents of people who have signed in, by the SHA-256 digest of the secret in their cookie. The secret itself is
// not kept.
const loginKind = "login"

const (
	defaultLoginTime = 12 * time.Hour
	// attemptTime is how long a person may take to sign in at the issuer.
	attemptTime = 10 * time.Minute
	// loginPrefix begins the secret of a cookie. It is no token: a request that sends it as one is refused.
	loginPrefix = tokenPrefix + "login_"
)

// login is what is kept of a person who has signed in.
type login struct {
	Issuer  string    `json:"issuer"`
	Client  string    `json:"client"`
	Subject string    `json:"subject"`
	Groups  []string  `json:"groups"`
	Expires time.Time `json:"expires"`
}

func (s *Server) registerLogin() {
	register(s, operation{
		id: "getSignIn", method: http.MethodGet, path: "/v1/sign-in", scope: Public, tags: []string{"access"}, summary: "Get how people sign in",
	}, getSignIn)
	if s.options.OIDC == nil {
		return
	}
	s.routes.handle("GET /login/start", Public, s.startLogin)
	s.routes.handle("GET /login/callback", Public, s.completeLogin)
	s.routes.handle("POST /login/end", Public, s.endLogin)
	s.routes.reads["POST /login/end"] = true // it records itself, with the user
}

type signIn struct {
	OIDC string `json:"oidc" doc:"The path at which a browser begins to sign in; empty if people do not sign in here"`
}

func getSignIn(c *call, _ *struct{}) (*body[signIn], error) {
	if c.options.OIDC == nil {
		return bodyOf(signIn{}), nil
	}
	return bodyOf(signIn{c.options.BasePath + "/login/start"}), nil
}

// startLogin sends a browser to the issuer.
func (s *Server) startLogin(w http.ResponseWriter, r *http.Request) {
	if !s.mayLogIn(w, r) {
		return
	}
	a, at, err := s.issuer.Begin()
	if err != nil {
		s.loginFailed(w, r, err)
		return
	}
	text, err := json.Marshal(attemptCookie{a, time.Now().Add(attemptTime)})
	if err != nil {
		s.loginFailed(w, r, err)
		return
	}
	value := base64.RawURLEncoding.EncodeToString(text)
	s.setCookie(w, s.attemptName(a.State), value+"."+s.signAttempt(value), attemptTime)
	w.Header().Set("Location", at)
	w.WriteHeader(http.StatusSeeOther)
}

// attemptCookie is the cookie of a browser that is on its way to the issuer.
type attemptCookie struct {
	oidc.Attempt
	Expires time.Time `json:"expires"`
}

func (s *Server) signAttempt(value string) string {
	return base64.RawURLEncoding.EncodeToString(s.digest("login attempt", value))
}

// attemptOf returns the attempt of a request that the browser has begun; a zero one without it.
func (s *Server) attemptOf(r *http.Request, state string) (a oidc.Attempt) {
	c, err := r.Cookie(s.attemptName(state))
	if err != nil {
		return a
	}
	value, mac, _ := strings.Cut(c.Value, ".")
	text, err := base64.RawURLEncoding.DecodeString(value)
	var kept attemptCookie
	if err != nil || !hmac.Equal([]byte(mac), []byte(s.signAttempt(value))) || json.Unmarshal(text, &kept) != nil || time.Now().After(kept.Expires) {
		return a
	}
	return kept.Attempt
}

// completeLogin takes what the issuer says of a person.
func (s *Server) completeLogin(w http.ResponseWriter, r *http.Request) {
	if !s.mayLogIn(w, r) {
		return
	}
	q := r.URL.Query()
	state := q.Get("state")
	attempt := s.attemptOf(r, state)
	if attempt.State != "" {
		s.setCookie(w, s.attemptName(state), "", -1) // a code works once
	}
	if code := q.Get("error"); code != "" && attempt.State != "" {
		s.loginFailed(w, r, &oidc.Refusal{Reason: "the issuer reports " + quoted(code)})
		return
	}
	id, err := s.issuer.Complete(r.Context(), attempt, state, q.Get("code"), q.Get("iss"))
	if err != nil {
		s.loginFailed(w, r, err)
		return
	}
	user, groups, err := s.options.OIDC.userOf(id)
	if err == nil {
		err = s.checkLogin(r.Context(), user, groups)
	}
	if err != nil {
		s.recordLogin(r, "GET /login/callback", user, http.StatusForbidden)
		s.loginFailed(w, r, err)
		return
	}
	if err := s.openLogin(w, r, id.Subject, user, groups); err != nil {
		s.loginFailed(w, r, err)
		return
	}
	s.recordLogin(r, "GET /login/callback", user, http.StatusSeeOther)
	w.Header().Set("Location", "/")
	w.WriteHeader(http.StatusSeeOther)
}

// checkLogin refuses users who may do nothing.
func (s *Server) checkLogin(ctx context.Context, user string, groups []string) error {
	_, disabled, err := s.roleOf(ctx, user)
	switch {
	case err != nil:
		return err
	case disabled:
		return &oidc.Refusal{Reason: "the user is deactivated"}
	case s.options.OIDC.roleOf(groups) == "":
		return &oidc.Refusal{Reason: "none of your groups may use this server"}
	}
	return nil
}

// openLogin keeps that a person has signed in, and gives the browser its cookie. What the browser had before ends.
func (s *Server) openLogin(w http.ResponseWriter, r *http.Request, subject, user string, groups []string) error {
	ctx := context.WithoutCancel(r.Context())
	if old := s.loginCookie(r); old != "" {
		if err := s.closeLogin(ctx, old); err != nil {
			return err
		}
	}
	o := s.options.OIDC
	secret := loginPrefix + strings.ToLower(rand.Text()+rand.Text())
	l := login{Issuer: o.Issuer, Client: o.ClientID, Subject: subject, Groups: groups, Expires: time.Now().Add(o.Lifetime).UTC()}
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	// Due has it deleted when it has expired.
	if _, err := s.app.Store.PutDocument(ctx, store.Document{Kind: loginKind, ID: linkID(secret), User: user, Body: data, Due: l.Expires}); err != nil {
		return err
	}
	s.setCookie(w, s.cookieName(), secret, o.Lifetime)
	return nil
}

func (s *Server) closeLogin(ctx context.Context, secret string) error {
	err := s.app.Store.DeleteDocument(ctx, loginKind, linkID(secret), 0) // whatever its version
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// endLogin signs the browser out. The answer has the address at which the person signs out of the issuer too.
func (s *Server) endLogin(w http.ResponseWriter, r *http.Request) {
	if secret := s.loginCookie(r); secret != "" {
		if !s.fromOwnPage(r) {
			newProblem(http.StatusForbidden, engine.CodeForbidden, "the request does not come from a page of this server").write(w)
			return
		}
		who, problem := s.authenticateLogin(r.Context(), linkID(secret))
		if err := s.closeLogin(context.WithoutCancel(r.Context()), secret); err != nil {
			problemOf(err).write(w)
			return
		}
		if problem == nil {
			s.recordLogin(r, "POST /login/end", who.user, http.StatusOK)
		}
	}
	s.setCookie(w, s.cookieName(), "", -1)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"url": s.issuer.EndURL(s.options.PublicURL + "/")}) // the client has gone if it fails
}

// authenticateLogin finds who has signed in, by the digest of the cookie.
func (s *Server) authenticateLogin(ctx context.Context, id string) (principal, *Problem) {
	o := s.options.OIDC
	refused := newProblem(http.StatusUnauthorized, engine.CodeUnauthenticated, "you are not signed in, or have been signed out")
	d, err := s.app.Store.Document(ctx, loginKind, id)
	if errors.Is(err, store.ErrNotFound) {
		return principal{}, refused
	}
	if err != nil {
		return principal{}, problemOf(err)
	}
	var l login
	if err := json.Unmarshal(d.Body, &l); err != nil {
		return principal{}, problemOf(err)
	}
	role, disabled, err := s.roleOf(ctx, d.User)
	if err != nil {
		return principal{}, problemOf(err)
	}
	granted := o.roleOf(l.Groups)
	if disabled || granted == "" || !time.Now().Before(l.Expires) || l.Issuer != o.Issuer || l.Client != o.ClientID {
		return principal{}, refused
	}
	p := principal{user: d.User, login: id, expires: l.Expires, scopes: []Scope{Read, Start, Answer, Admin}, all: true}
	p.bound(lesser(granted, role))
	return p, nil
}

// mayLogIn bounds the requests of one address for signing in, and answers those beyond.
func (s *Server) mayLogIn(w http.ResponseWriter, r *http.Request) bool {
	wait := s.loginRate.take(s.clientAddress(r), time.Now())
	if wait > 0 {
		tooMany(w, wait)
	}
	return wait == 0
}

// loginFailed tells a person why signing in has failed.
func (s *Server) loginFailed(w http.ResponseWriter, r *http.Request, err error) {
	if refused, ok := errors.AsType[*oidc.Refusal](err); ok {
		s.logger.WarnContext(r.Context(), "a sign-in was refused", "reason", refused.Reason)
		writePage(w, http.StatusForbidden, messagePage("You are not signed in", "Reason: "+refused.Reason+". Open the page of the server to try again."))
		return
	}
	s.logger.ErrorContext(r.Context(), "sign in", "error", withoutQuery(err))
	writePage(w, http.StatusServiceUnavailable, messagePage("Not available", "The service that signs people in does not answer. Please try again in a moment."))
}

// withoutQuery takes the query from the address in an error of a request: it may have a code.
func withoutQuery(err error) error {
	var e *url.Error
	if !errors.As(err, &e) {
		return err
	}
	at, _, _ := strings.Cut(e.URL, "?")
	return &url.Error{Op: e.Op, URL: at, Err: e.Err}
}

func (s *Server) recordLogin(r *http.Request, pattern, user string, status int) {
	if s.audit == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), auditTime)
	defer cancel()
	if err := s.audit.Record(ctx, auditlog.Entry{Via: "login", User: user, Action: pattern, Status: status}); err != nil {
		s.logger.ErrorContext(ctx, "a sign-in is not in the audit log", "error", err)
	}
}

// checkUser refuses what cannot be the name of a user.
func checkUser(name string) error {
	if name == "" || name == "*" || runner.CheckName("user", name) != nil {
		return &oidc.Refusal{Reason: "the issuer does not name you in a way that can be the name of a user here"}
	}
	return nil
}

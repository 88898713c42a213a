// Package oidc signs people in at an OpenID Connect issuer, by the authorization code flow with PKCE, state and nonce. It returns
// what the issuer says of a person.
//
// It must not know users, roles, cookies or routes: the server decides what a person may do.
package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	// Skew is how far the clocks of the issuer and of this machine may differ: a token is taken as long after it has expired, and as long
	// before it was made.
	Skew = time.Minute
	// requestTime bounds one request to the issuer.
	requestTime = 10 * time.Second
	// failedTime is how long after a failed request for the description of the issuer the next one is made.
	failedTime = 5 * time.Second
)

// Config says which issuer signs people in, and what it knows this program as.
type Config struct {
	// Issuer is the address of the issuer, https:// unless its host is a loopback address or localhost. Its tokens must name it exactly so.
	Issuer string
	// ClientID is the name of this program at the issuer.
	ClientID string
	// Secret returns the secret of the client, each time that it is used; nil for a client without one.
	Secret func() (string, error)
	// RedirectURL is where the issuer sends the browser after a person has signed in.
	RedirectURL string
	// Scopes are requested besides openid.
	Scopes []string
}

// Issuer signs people in. Its methods may be called concurrently.
type Issuer struct {
	config Config
	client *http.Client

	mu       sync.Mutex // guards what follows
	provider *description
	failed   error // of the last request for the description
	tried    time.Time
}

// description is what the issuer says of itself.
type description struct {
	*oidc.Provider
	end string // where a person signs out; "" for nowhere
}

// Attempt is the begin of signing in. Its members are for the browser that began it alone.
type Attempt struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
}

// Identity is what the issuer says of a person.
type Identity struct {
	// Subject never changes, and belongs to one person of the issuer.
	Subject string
	// Claims are all claims of the token. Numbers are float64.
	Claims map[string]any
}

// Refusal is the error of an attempt that cannot succeed when it is repeated as it is: the issuer has refused, or what it says must not be
// believed.
type Refusal struct{ Reason string }

// Error implements error.
func (r *Refusal) Error() string { return "the sign-in is refused: " + r.Reason }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// New returns an Issuer. It sends no request: the issuer is asked when the first person signs in.
func New(c Config) (*Issuer, error) {
	u, err := url.Parse(c.Issuer)
	if err != nil || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || u.Scheme != "https" && !isLocal(u) {
		return nil, fmt.Errorf("the issuer %q is no https:// address without a query", c.Issuer)
	}
	if c.ClientID == "" {
		return nil, errors.New("signing in needs the id that the issuer has given to this server as a client")
	}
	return &Issuer{config: c, client: ownClient()}, nil
}

// isLocal reports whether requests to an address do not leave this machine.
func isLocal(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && ip.IsLoopback())
}

// ownClient returns a client that follows no redirections, so that the secret and codes reach the issuer alone, and that reads answers of
// a bounded size.
func ownClient() *http.Client {
	t := http.DefaultTransport
	if d, ok := t.(*http.Transport); ok {
		t = d.Clone()
	}
	return &http.Client{
		Transport: boundedAnswers{t}, Timeout: requestTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Begin starts an attempt, and returns the address of the issuer at which it continues in the browser.
func (i *Issuer) Begin() (a Attempt, at string, err error) {
	p, err := i.describe()
	if err != nil {
		return a, "", err
	}
	a = Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	c := i.oauth(p, "")
	return a, c.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

// Complete ends an attempt with what the issuer has sent through the browser: the state, a code, and its own name, which may be "". A
// *Refusal says why the person is not signed in; other errors are those of the connection to the issuer.
func (i *Issuer) Complete(ctx context.Context, a Attempt, state, code, issuer string) (*Identity, error) {
	if a.State == "" || subtle.ConstantTimeCompare([]byte(a.State), []byte(state)) != 1 {
		return nil, refuse("this browser did not begin it")
	}
	if issuer != "" && issuer != i.config.Issuer {
		return nil, refuse("another issuer has answered")
	}
	if code == "" {
		return nil, refuse("the issuer has sent no code")
	}
	p, err := i.describe()
	if err != nil {
		return nil, err
	}
	secret := ""
	if i.config.Secret != nil {
		if secret, err = i.config.Secret(); err != nil {
			return nil, fmt.Errorf("read the secret of the client: %w", err)
		}
	}
	ctx = oidc.ClientContext(ctx, i.client)
	c := i.oauth(p, secret)
	t, err := c.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError:
		return nil, refuse("the issuer does not take the code (%s)", shortCode(refused.ErrorCode))
	case errors.As(err, &refused):
		return nil, fmt.Errorf("the issuer answered with the status %d", refused.Response.StatusCode)
	case err != nil:
		return nil, fmt.Errorf("ask the issuer for the token: %w", err)
	}
	raw, _ := t.Extra("id_token").(string)
	if raw == "" {
		return nil, refuse("the issuer has sent no ID token")
	}
	return i.verify(ctx, p, raw, a.Nonce, t.AccessToken)
}

// verify checks a token of the issuer.
func (i *Issuer) verify(ctx context.Context, p *description, raw, nonce, access string) (*Identity, error) {
	v := p.Verifier(&oidc.Config{ClientID: i.config.ClientID, Now: func() time.Time { return time.Now().Add(-Skew) }})
	id, err := v.Verify(ctx, raw)
	if err != nil && strings.Contains(err.Error(), "fetching keys") { // the library has no type for it
		return nil, fmt.Errorf("read the keys of the issuer: %w", err)
	}
	if err != nil {
		return nil, refuse("%s", err)
	}
	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return nil, refuse("the claims of the token cannot be read")
	}
	party, named := claims["azp"].(string)
	switch {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1:
		return nil, refuse("the token was made for another attempt")
	case id.Subject == "":
		return nil, refuse("the token names nobody")
	case named && party != i.config.ClientID, !named && len(id.Audience) > 1:
		return nil, refuse("the token was made for another client")
	case id.IssuedAt.After(time.Now().Add(Skew)):
		return nil, refuse("the token was made in the future: compare the clocks of the issuer and of this machine")
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(access); err != nil {
			return nil, refuse("the tokens of the issuer do not belong together")
		}
	}
	return &Identity{Subject: id.Subject, Claims: claims}, nil
}

// EndURL returns the address of the issuer at which a person signs out there, with the address to which the browser comes back; "" if the
// issuer has none or cannot be reached.
func (i *Issuer) EndURL(back string) string {
	p, err := i.describe()
	if err != nil || p.end == "" {
		return ""
	}
	u, err := url.Parse(p.end)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Set("client_id", i.config.ClientID)
	q.Set("post_logout_redirect_uri", back)
	u.RawQuery = q.Encode()
	return u.String()
}

func (i *Issuer) oauth(p *description, secret string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: i.config.ClientID, ClientSecret: secret, Endpoint: p.Endpoint(), RedirectURL: i.config.RedirectURL,
		Scopes: append([]string{oidc.ScopeOpenID}, i.config.Scopes...),
	}
}

// describe returns what the issuer says of itself. It asks until the issuer has answered once. The keys are read again whenever a token is
// signed with an unknown one.
func (i *Issuer) describe() (*description, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.provider != nil {
		return i.provider, nil
	}
	if i.failed != nil && time.Since(i.tried) < failedTime {
		return nil, i.failed
	}
	p, err := i.discover()
	i.failed, i.tried = err, time.Now()
	if err != nil {
		return nil, err
	}
	i.provider = p
	return p, nil
}

func (i *Issuer) discover() (*description, error) {
	// The keys are read with this context as long as the process runs; the client bounds each request.
	p, err := oidc.NewProvider(oidc.ClientContext(context.Background(), i.client), i.config.Issuer)
	if err != nil {
		return nil, fmt.Errorf("read the description of the issuer %s: %w", i.config.Issuer, err)
	}
	var more struct {
		Keys string `json:"jwks_uri"`
		End  string `json:"end_session_endpoint"`
	}
	if err := p.Claims(&more); err != nil {
		return nil, fmt.Errorf("read the description of the issuer: %w", err)
	}
	for _, at := range []string{p.Endpoint().AuthURL, p.Endpoint().TokenURL, more.Keys, more.End} {
		u, err := url.Parse(at)
		if err != nil || at != "" && u.Scheme != "https" && (!isLocal(u) || !strings.HasPrefix(i.config.Issuer, "http://")) {
			return nil, fmt.Errorf("the issuer %s names the address %q, which is not https://", i.config.Issuer, at)
		}
	}
	if p.Endpoint().AuthURL == "" || p.Endpoint().TokenURL == "" || more.Keys == "" {
		return nil, fmt.Errorf("the issuer %s does not say where people sign in, where tokens are made or which keys sign them", i.config.Issuer)
	}
	return &description{p, more.End}, nil
}

// shortCode returns a code of RFC 6749, and no other text of the issuer.
func shortCode(code string) string {
	known := []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope", "access_denied", "login_required"}
	if slices.Contains(known, code) {
		return code
	}
	return "no reason that is known"
}

// Package safehttp creates the HTTP client of flows. It refuses connections to private
// addresses.
//
// It checks the address of each connection after name resolution, so a name that
// resolves differently the second time, or a redirect, cannot bypass the check. It
// must not know nodes or flows.
package safehttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/weir-run/weir/node"
)

// ErrBlocked means that the destination of a request is not allowed. Errors of a client
// wrap it.
var ErrBlocked = errors.New("blocked")

// MaxRedirects is the maximum number of redirects that a client follows.
const MaxRedirects = 5

// Options say what a client may reach besides public addresses. The zero value allows only
// those. Options are set by the operator of the process, never by a flow.
type Options struct {
	// AllowPrivate lists allowed private destinations: CIDR prefixes (10.1.0.0/16),
	// addresses, and host names, each with a port (localhost:8080) or for every port. A
	// host name is compared with the one in the URL, regardless of its addresses.
	AllowPrivate []string
	// Resolver resolves names; nil means the system's.
	Resolver *net.Resolver
}

// Client returns an HTTP client. It ignores proxies of the environment, follows at most
// MaxRedirects redirects, only to http and https and never from https to http, and on a
// redirect to another origin sends only the headers Accept, Accept-Language and User-Agent.
// It refuses a redirect that would repeat a body at another origin. An error names the
// invalid option.
func Client(o Options) (*http.Client, error) {
	allowed, err := parseAllowed(o.AllowPrivate)
	if err != nil {
		return nil, err
	}
	g := &guardedDialer{allowed: allowed, resolver: o.Resolver}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil,
			DialContext:            g.dial,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           32,
			IdleConnTimeout:        60 * time.Second,
			TLSHandshakeTimeout:    10 * time.Second,
			ExpectContinueTimeout:  time.Second,
			MaxResponseHeaderBytes: 256 << 10,
		},
		CheckRedirect: checkRedirect,
	}, nil
}

// guardedDialer opens connections.
type guardedDialer struct {
	allowed  allowList
	resolver *net.Resolver
}

// dial opens a connection to host:port. The dialer resolves names, and each address is
// checked directly before connecting to it.
func (g *guardedDialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Resolver: g.resolver}
	if !g.allowed.allowsName(address) {
		if host, _, err := net.SplitHostPort(address); err == nil && endsInNumber(host) {
			return nil, fmt.Errorf("%w: %s is a number, and not an address in its usual form", ErrBlocked, host)
		}
		d.ControlContext = func(_ context.Context, network, address string, _ syscall.RawConn) error {
			return g.check(network, address)
		}
	}
	return d.DialContext(ctx, network, address)
}

// check refuses an address that is not public and not allowed.
func (g *guardedDialer) check(network, address string) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: network %s", ErrBlocked, network)
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s is not an address", ErrBlocked, address)
	}
	if Public(ap.Addr()) || g.allowed.allowsAddress(ap) {
		return nil
	}
	return fmt.Errorf("%w: %s is not a public address", ErrBlocked, ap.Addr())
}

// checkRedirect limits and sanitises the next request of a redirect chain.
func checkRedirect(next *http.Request, done []*http.Request) error {
	last := done[len(done)-1]
	switch {
	case len(done) > MaxRedirects:
		return fmt.Errorf("%w: more than %d redirects", ErrBlocked, MaxRedirects)
	case next.URL.Scheme != "http" && next.URL.Scheme != "https":
		return fmt.Errorf("%w: redirect to scheme %q", ErrBlocked, next.URL.Scheme)
	case last.URL.Scheme == "https" && next.URL.Scheme == "http":
		return fmt.Errorf("%w: redirect from https to http", ErrBlocked)
	case !node.AllowsHost(next.Context(), next.URL.Host):
		return fmt.Errorf("%w: redirect to %s, which is not granted to the flow", ErrBlocked, next.URL.Host)
	case next.URL.User != nil:
		return fmt.Errorf("%w: redirect to a URL with a user name", ErrBlocked)
	}
	first := done[0]
	if strings.EqualFold(next.URL.Host, first.URL.Host) && next.URL.Scheme == first.URL.Scheme {
		return nil
	}
	if next.Body != nil && next.Body != http.NoBody {
		return fmt.Errorf("%w: redirect of a body from %s to %s", ErrBlocked, first.URL.Host, next.URL.Host)
	}
	for name := range next.Header {
		switch name {
		case "Accept", "Accept-Language", "User-Agent":
		default:
			next.Header.Del(name)
		}
	}
	return nil
}

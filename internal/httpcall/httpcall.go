// Package httpcall makes one HTTP request of a flow: for a node or for a tool of a model. It must not know flows,
// tools, secrets or the settings that a request is built from.
package httpcall

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
)

// Client performs requests; *http.Client implements it.
type Client interface {
	Do(req *http.Request) (*http.Response, error)
}

// Call describes how to send a request.
type Call struct {
	Client Client
	// IdempotencyKey is sent unless the request has such a header; "" sends none. Requests that are safe to repeat
	// need none.
	IdempotencyKey string
	// MaxBody is the number of bytes after which the response's body counts as too long.
	MaxBody int64
}

// NoResponseError means that no whole response arrived.
type NoResponseError struct {
	// Sent reports whether the server may have received the request.
	Sent bool
	Err  error
}

// Error returns the cause.
func (e *NoResponseError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *NoResponseError) Unwrap() error { return e.Err }

// Response is a response that was read.
type Response struct {
	StatusCode int
	Header     http.Header
	Length     int64  // as the server declared it; -1 for unknown
	Body       []byte // at most Call.MaxBody+1 bytes
}

// Do builds a request with a context that observes it, sends it once, and reads the response. An error of build is
// returned unchanged; any other error is a *NoResponseError.
func (c Call) Do(ctx context.Context, build func(context.Context) (*http.Request, error)) (*Response, error) {
	sent := new(atomic.Bool)
	req, err := build(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { sent.Store(true) },
	}))
	if err != nil {
		return nil, err
	}
	if c.IdempotencyKey != "" && req.Header.Get("Idempotency-Key") == "" {
		req.Header.Set("Idempotency-Key", c.IdempotencyKey)
	}
	resp, err := c.Client.Do(req)
	if err != nil {
		return nil, &NoResponseError{Sent: sent.Load(), Err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.MaxBody+1))
	if err != nil {
		return nil, &NoResponseError{Sent: true, Err: err}
	}
	return &Response{resp.StatusCode, resp.Header, resp.ContentLength, body}, nil
}

// IsHeaderName reports whether s is a valid name of a header (RFC 9110, 5.6.2).
func IsHeaderName(s string) bool {
	for _, r := range s {
		alphanumeric := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !alphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", r) {
			return false
		}
	}
	return s != ""
}

// IsHeaderValue reports whether s can be the value of a header: it has no line break or control character but tab.
func IsHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7F })
}

// IsConnectionHeader reports whether a header, in its canonical form, controls the connection: setting it would change
// the destination or the framing of the request.
func IsConnectionHeader(name string) bool {
	switch name {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade", "Expect":
		return true
	}
	return strings.HasPrefix(name, "Proxy-")
}

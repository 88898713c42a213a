// Package wire is what the providers share whose vendors speak JSON over HTTP:
// it sends a request, reads the answer's server-sent events, reads refusals and
// how long they ask to wait, and reports failures without the key.
//
// It must not know any vendor, or the shape of any request or answer: what
// differs between two vendors is theirs. It does not retry.
package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/weir-run/weir/llm"
)

const (
	// maxAnswer bounds what is read of one answer, in bytes.
	maxAnswer = 128 << 20
	// maxRefusal bounds what is read of an answer that is no success, in bytes.
	maxRefusal = 1 << 20
)

var errAnswerTooLong = errors.New("the answer is longer than any model's")

// ErrNotAPI is the answer of a server that is not the API's.
var ErrNotAPI = errors.New("the server answered with a web page: is the base URL right?")

// Client is given, or, where that is nil, a client with its own connections
// and no time limit. Where given does not say what to do about redirects
// (CheckRedirect) a copy of it follows none: the key, in a header that only its
// vendor knows, would go along to whoever the server names.
func Client(given *http.Client) *http.Client {
	client := http.Client{}
	if given != nil {
		client = *given
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok {
		client.Transport = t.Clone()
	}
	if client.CheckRedirect == nil {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return &client
}

// Address reads a base URL. The error does not repeat it: it may hold a secret.
func Address(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("base URL is not an http or https address")
	}
	return u, nil
}

// Refusal reads the body of an answer that is no success, as far as that may
// be long, and closes it. Half a body still says something.
func Refusal(res *http.Response) ([]byte, error) {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	if err := res.Body.Close(); err != nil {
		return nil, fmt.Errorf("close refusal: %w", err)
	}
	return body, nil
}

// LimitBody is the body of an answer, of which no more can be read than an answer may be
// long (128 MiB); reading then fails. Bytes that arrive keep the call of ctx alive
// (llm.Alive).
func LimitBody(ctx context.Context, body io.ReadCloser) io.ReadCloser {
	return &limitedBody{body: body, left: maxAnswer, alive: func() { llm.KeepAlive(ctx) }}
}

type limitedBody struct {
	body  io.ReadCloser
	left  int
	alive func()
}

// Read reads, and fails with errAnswerTooLong past the bound.
func (b *limitedBody) Read(to []byte) (int, error) {
	if b.left <= 0 {
		return 0, errAnswerTooLong
	}
	n, err := b.body.Read(to[:min(len(to), b.left)])
	b.left -= n
	if n > 0 {
		b.alive()
	}
	return n, err
}

// Close closes the body.
func (b *limitedBody) Close() error { return b.body.Close() }

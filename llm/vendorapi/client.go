// Package vendorapi is shared by the providers of vendors with JSON APIs over HTTP. It sends a request, reads the
// server-sent events of the answer, reads error responses and the wait that they request, and reports failures
// without the API key. It must not know any vendor or the format of any request or answer. It does not retry.
package vendorapi

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
	// maxAnswer limits the size of one answer, in bytes.
	maxAnswer = 128 << 20
	// maxRefusal limits the size of an unsuccessful answer, in bytes.
	maxRefusal = 1 << 20
)

var errAnswerTooLong = errors.New("the answer exceeds 128 MiB")

// ErrNotAPI means that the server that answered does not implement the API.
var ErrNotAPI = errors.New("the server answered with a web page: check the base URL")

// Client returns given or, if it is nil, a client with its own connections and no time limit. If given does not
// handle redirects (CheckRedirect), the result is a copy that follows none, because the key, which is in a
// vendor-specific header, would be sent to the redirect's target.
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

// Address parses a base URL. The error does not repeat it, because it may contain a secret.
func Address(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("base URL is not an http or https address")
	}
	return u, nil
}

// Refusal reads the body of an unsuccessful answer, up to its limit, and closes it. If reading fails, the part read
// so far is returned.
func Refusal(res *http.Response) ([]byte, error) {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	if err := res.Body.Close(); err != nil {
		return nil, fmt.Errorf("close refusal: %w", err)
	}
	return body, nil
}

// LimitBody returns the body of an answer with a limit of 128 MiB, beyond which reading fails. Bytes that arrive keep
// the call of ctx alive (llm.KeepAlive).
func LimitBody(ctx context.Context, body io.ReadCloser) io.ReadCloser {
	return &limitedBody{body: body, left: maxAnswer, alive: func() { llm.KeepAlive(ctx) }}
}

type limitedBody struct {
	body  io.ReadCloser
	left  int
	alive func()
}

// Read reads, and fails with errAnswerTooLong beyond the limit.
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

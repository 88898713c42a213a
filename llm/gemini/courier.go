package gemini

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// exchange is one request and its answer as they go over the wire. It belongs
// to one call.
type exchange struct {
	// keep says that the body is to be kept and not sent.
	keep bool
	body []byte
	// sent says that the request has left the SDK.
	sent bool
	// res is the answer, its body unread; err is why there is none.
	res *http.Response
	err error
}

// exchangeKey is the exchange of a context.
type exchangeKey struct{}

func (x *exchange) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// courier carries the SDK's requests and keeps their answers from it: the SDK
// decodes into types that lose what the model wrote (the arguments' numbers and
// order, parts it has no field for), takes a stream that was cut for a finished
// one, and puts the request, key and all, into its errors. It is given an
// answer that says nothing.
type courier struct {
	provider *Provider
	client   *http.Client
}

// RoundTrip sends req if it is of an exchange.
func (c *courier) RoundTrip(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok || x.sent {
		return nil, fmt.Errorf("a request that nobody asked for")
	}
	x.sent = true
	if c.provider.keyless {
		req = req.Clone(req.Context())
		req.Header.Del("X-Goog-Api-Key")
	}
	if x.keep {
		x.body, x.err = io.ReadAll(req.Body)
		x.body = bytes.TrimSpace(x.body)
		return silence(req), nil
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := c.client.Do(req) //nolint:gosec // the address is the option's, which who sets the program up has chosen
	switch {
	case err != nil:
		x.err = err
	case res.StatusCode >= 300:
		x.err = c.provider.refuse(res)
	default:
		x.res = res
	}
	return silence(req), nil
}

// silence is an answer without content.
func silence(req *http.Request) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: http.NoBody, Request: req,
	}
}

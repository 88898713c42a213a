package oidc

import (
	"io"
	"net/http"
)

// maxAnswer bounds an answer of the issuer in bytes.
const maxAnswer = 1 << 20

// boundedAnswers reads no more of an answer than maxAnswer.
type boundedAnswers struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := b.next.RoundTrip(r)
	if err == nil {
		a.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(a.Body, maxAnswer), a.Body}
	}
	return a, err
}

package vendorapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

func speaker() vendorapi.ErrorFormatter {
	return vendorapi.ErrorFormatter{Name: "acme", Scrub: vendorapi.Scrubber(key)}
}

func TestErrorNamesProviderRequestAndCause(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status     int
		said, want string
	}{
		{400, "Wrong.", "acme: 400 Bad Request: Wrong."},
		{529, "Busy.", "acme: 529: Busy."},
		{0, "Broken.", "acme: Broken."},
		{500, "", "acme: 500 Internal Server Error: the server gave no reason"},
		{308, "", "acme: 308 Permanent Redirect: the server answered with a redirect, which is not followed: check the base URL"},
		{0, strings.Repeat("é", 400), "acme: " + strings.Repeat("é", 300) + "…"},
		{0, strings.Repeat("x", 590) + key, "acme: " + strings.Repeat("x", 590) + "[key]"},
	} {
		if got := speaker().Describe(c.status, c.said); got != c.want {
			t.Errorf("%d %q is %q, want %q", c.status, c.said, got, c.want)
		}
	}
}

func TestFailureHasACodeOrIsTheErrorOfTheContext(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	var e *llm.Error
	if err := speaker().Failure(ended, io.EOF); !errors.Is(err, context.Canceled) || errors.As(err, &e) {
		t.Errorf("a cancelled call gave %v", err)
	}
	if err := speaker().Failure(late, io.EOF); !errors.As(err, &e) || e.Code != "model_timeout" || !e.Retry {
		t.Errorf("a late call gave %v", err)
	}
	own := &llm.Error{Code: "model_filtered", Status: 400, RetryAfter: time.Second, Message: "of " + key}
	err := speaker().Failure(t.Context(), fmt.Errorf("send: %w", own))
	if !errors.As(err, &e) || *e != (llm.Error{Code: "model_filtered", Status: 400, RetryAfter: time.Second, Message: "of [key]"}) {
		t.Errorf("an error of the provider's became %#v", err)
	}
	if own.Message != "of "+key {
		t.Errorf("the error that was given is changed: %q", own.Message)
	}
}

func TestAnAnswerHasABound(t *testing.T) {
	t.Parallel()
	n, err := io.Copy(io.Discard, vendorapi.LimitBody(t.Context(), io.NopCloser(endless{})))
	if n != 128<<20 || err == nil {
		t.Errorf("%d bytes were read, then %v", n, err)
	}
}

// endless is a body without end.
type endless struct{}

// Read reads as much as it can.
func (endless) Read(to []byte) (int, error) { return len(to), nil }

func TestAClientIsNotChangedAndFollowsWhatItSays(t *testing.T) {
	t.Parallel()
	given := &http.Client{}
	if c := vendorapi.Client(given); given.CheckRedirect != nil || c.CheckRedirect == nil {
		t.Errorf("the client that was given is changed, or its copy follows redirects")
	}
	stop := errors.New("stop")
	given.CheckRedirect = func(*http.Request, []*http.Request) error { return stop }
	if err := vendorapi.Client(given).CheckRedirect(nil, nil); !errors.Is(err, stop) {
		t.Errorf("a client's own rule became %v", err)
	}
}

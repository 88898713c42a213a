package server_test

import (
	"net/http"
	"testing"

	"github.com/weir-run/weir/server"
)

func TestEachTokenHasItsOwnLimitOfRequests(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, TokenRate: 0.001})
	ada, bob := p.anyone("ada"), p.anyone("bob")
	first := p.send(http.MethodGet, "/v1/runs", "", withToken(ada.Token))
	second := p.send(http.MethodGet, "/v1/runs", "", withToken(ada.Token))
	other := p.send(http.MethodGet, "/v1/runs", "", withToken(bob.Token))
	if first.status != http.StatusOK || other.status != http.StatusOK {
		t.Errorf("%d, of another token %d", first.status, other.status)
	}
	if second.status != http.StatusTooManyRequests || second.problem() != "too_many_requests" || second.header.Get("Retry-After") == "" {
		t.Errorf("%d %s %v", second.status, second.body, second.header)
	}
	if a := p.send(http.MethodGet, "/healthz", "", withToken(ada.Token)); a.status != http.StatusOK {
		t.Errorf("a public route: %d", a.status)
	}
}

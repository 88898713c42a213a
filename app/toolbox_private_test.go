package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-run/weir/node/builtin/safehttp"
)

func TestHTTPToolReachesOnlyItsPrivateAddress(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	t.Cleanup(other.Close)
	named := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL, http.StatusFound)
		}
	}))
	t.Cleanup(named.Close)
	safe, err := safehttp.Client(safehttp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	get := func(tool, address string) error {
		c, err := toolClient(tool, safe, nil)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	}
	for _, c := range []struct{ tool, address, problem string }{
		{named.URL, named.URL, ""},
		{named.URL + "/a/{{ inputs.id }}", named.URL + "/a/1", ""},
		{strings.Replace(named.URL, "127.0.0.1", "localhost", 1), strings.Replace(named.URL, "127.0.0.1", "localhost", 1), ""},
		{named.URL, named.URL + "/away", "not a public address"},
		{named.URL, other.URL, "not a public address"},
		{"https://example.com", named.URL, "not a public address"},
		{"https://internal.example", named.URL, "not a public address"},
	} {
		err := get(c.tool, c.address)
		if (c.problem == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("a tool of %s calls %s: %v, want %q", c.tool, c.address, err, c.problem)
		}
	}
}

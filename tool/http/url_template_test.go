package httptool

import (
	"strings"
	"testing"
)

// FuzzValuesInTheURL: whatever the values are, the request goes to the host,
// the path of as many segments and the parameters that were declared.
func FuzzValuesInTheURL(f *testing.F) {
	for _, s := range []string{"a", "..", "a/../b", "?x=1", "#", "@evil.example", "%2e%2e", "\\", "\x00", "//evil.example/", "é"} {
		f.Add(s, s)
	}
	to, err := parseURLTemplate("https://api.example.com:8443/v1/{{ args.a }}/items/x{{ args.b }}?q={{ args.b }}&all=1")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		u, err := to.expand(map[string]any{"a": a, "b": b})
		if err != nil {
			return
		}
		path := u.EscapedPath()
		if u.Scheme != "https" || u.Host != "api.example.com:8443" || u.User != nil || u.Fragment != "" ||
			strings.Count(path, "/") != 4 || !strings.HasPrefix(path, "/v1/") || !strings.Contains(path, "/items/x") {
			t.Fatalf("%q, %q lead to %s", a, b, u)
		}
		if q := u.Query(); len(q) != 2 || q.Get("all") != "1" || q.Get("q") != b {
			t.Fatalf("%q, %q lead to %s", a, b, u)
		}
		for s := range strings.SplitSeq(u.Path, "/") {
			if s == ".." || s == "." {
				t.Fatalf("%q, %q lead to %s", a, b, u)
			}
		}
	})
}

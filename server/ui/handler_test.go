//go:build !no_ui

package ui_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/server/ui"
)

type response struct {
	StatusCode int
	Header     http.Header
	Body       io.Reader
}

func get(t *testing.T, path string, headers map[string]string) response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	ui.Handler().ServeHTTP(w, r)
	return response{w.Code, w.Header(), w.Body}
}

func textOf(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestThePageAllowsNoInlineScriptsAndStylesOnlyByANonceOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for range 2 {
		a := get(t, "/", nil)
		policy, page := a.Header.Get("Content-Security-Policy"), textOf(t, a.Body)
		nonce := regexp.MustCompile(`style-src 'self' 'nonce-([A-Z0-9]{20,})'`).FindStringSubmatch(policy)
		if len(nonce) != 2 || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "script-src 'self';") || !strings.Contains(page, `content="`+nonce[1]+`"`) {
			t.Fatalf("policy %s of the page %s", policy, page)
		}
		if seen[nonce[1]] || a.Header.Get("Cache-Control") != "no-store" {
			t.Error("a nonce is used twice, or may be stored")
		}
		seen[nonce[1]] = true
	}
}

func TestEveryAddressOfThePageIsRelative(t *testing.T) {
	t.Parallel()
	page := textOf(t, get(t, "/", nil).Body)
	found := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page, -1)
	if len(found) < 2 {
		t.Fatalf("the page loads %v", found)
	}
	for _, x := range found {
		if !strings.HasPrefix(x[1], "./assets/") && x[1] != "data:," {
			t.Errorf("the page loads %s", x[1])
		}
		if x[1] == "data:," {
			continue
		}
		if a := get(t, strings.TrimPrefix(x[1], "."), nil); a.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", x[1], a.StatusCode)
		}
	}
}

func TestFilesComeInTheEncodingThatTheClientAccepts(t *testing.T) {
	t.Parallel()
	const path = "/assets/index.js"
	plain := textOf(t, get(t, path, nil).Body)
	zipped := get(t, path, map[string]string{"Accept-Encoding": "gzip, br;q=0"})
	z, err := gzip.NewReader(zipped.Body)
	if err != nil || zipped.Header.Get("Content-Encoding") != "gzip" {
		t.Fatal(zipped.Header, err)
	}
	if text := textOf(t, z); text != plain || len(plain) < 1000 {
		t.Errorf("unzipped %d bytes, plain %d", len(text), len(plain))
	}
	brotli := get(t, path, map[string]string{"Accept-Encoding": "gzip, deflate, br"})
	if n := len(textOf(t, brotli.Body)); brotli.Header.Get("Content-Encoding") != "br" || n == 0 || n >= len(plain)/2 {
		t.Errorf("%v, %d bytes", brotli.Header, n)
	}
	tag := brotli.Header.Get("ETag")
	if again := get(t, path, map[string]string{"Accept-Encoding": "br", "If-None-Match": tag}); again.StatusCode != http.StatusNotModified {
		t.Errorf("the same again: %d", again.StatusCode)
	}
	if other := get(t, path, map[string]string{"Accept-Encoding": "gzip", "If-None-Match": tag}); other.StatusCode != http.StatusOK {
		t.Errorf("the tag of another encoding: %d", other.StatusCode)
	}
	if kind := brotli.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/javascript") {
		t.Error(kind)
	}
	if none := get(t, "/assets/none.js", nil); none.StatusCode != http.StatusNotFound {
		t.Error(none.StatusCode)
	}
}

// The bounds are those of docs/page.md, in bytes after compression.
func TestThePageIsSmall(t *testing.T) {
	t.Parallel()
	size := func(path string) int {
		a := get(t, path, map[string]string{"Accept-Encoding": "br"})
		if a.StatusCode != http.StatusOK {
			t.Fatal(path, a.StatusCode)
		}
		return len(textOf(t, a.Body))
	}
	first := size("/assets/index.js") + size("/assets/index.css")
	files, err := os.ReadDir("dist/assets")
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".br"); ok {
			all += size("/assets/" + name)
		}
	}
	if first > 300<<10 || all > 900<<10 || first < 10<<10 || all <= first {
		t.Errorf("the first load has %d bytes, all files have %d", first, all)
	}
}

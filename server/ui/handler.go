//go:build !no_ui

package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed dist/index.html dist/assets
var dist embed.FS

// Handler returns the handler of the page: GET / and the files below /assets/. All
// addresses in the page are relative, so that a proxy may serve it below any path.
func Handler() http.Handler {
	h := &handler{files: make(map[string]*file)}
	h.index, _ = dist.ReadFile("dist/index.html") // it is embedded, or the build fails
	list, _ := dist.ReadDir("dist/assets")
	for _, e := range list {
		name, encoding := strings.TrimSuffix(e.Name(), path.Ext(e.Name())), path.Ext(e.Name())
		f := h.files[name]
		if f == nil {
			f = &file{kind: mime.TypeByExtension(path.Ext(name))}
			h.files[name] = f
		}
		data, _ := dist.ReadFile("dist/assets/" + e.Name())
		switch encoding {
		case ".br":
			f.brotli = data
		case ".gz":
			sum := sha256.Sum256(data)
			f.gzip, f.tag = data, base64.RawURLEncoding.EncodeToString(sum[:12])
		}
	}
	return h
}

type handler struct {
	index []byte
	files map[string]*file
}

// file is a file of the page, compressed when it was built.
type file struct {
	kind, tag    string
	brotli, gzip []byte
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" {
		h.serveIndex(w)
		return
	}
	f := h.files[path.Base(r.URL.Path)]
	if f == nil {
		http.NotFound(w, r)
		return
	}
	f.serve(w, r)
}

// nonceMark is in the index where the nonce of the styles belongs.
const nonceMark = "{{nonce}}"

// serveIndex serves the page. Its libraries add style elements, which the policy allows by
// a nonce that is different in every answer.
func (h *handler) serveIndex(w http.ResponseWriter) {
	nonce := rand.Text()
	head := w.Header()
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Cache-Control", "no-store")
	head.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-"+nonce+
		"'; img-src 'self' data: blob:; media-src blob:; frame-src blob:; object-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	_, _ = w.Write(bytes.ReplaceAll(h.index, []byte(nonceMark), []byte(nonce))) // the client has gone if it fails
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Type", f.kind)
	head.Set("Cache-Control", "no-cache") // the name stays when the content changes; the tag says which it is
	head.Set("Vary", "Accept-Encoding")
	accepts := r.Header.Get("Accept-Encoding")
	data, encoding := f.brotli, "br"
	if !accepted(accepts, "br") || data == nil {
		data, encoding = f.gzip, "gzip"
	}
	tag := `"` + f.tag + "-" + encoding + `"`
	head.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if encoding == "gzip" && !accepted(accepts, "gzip") {
		if z, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
			_, _ = io.Copy(w, io.LimitReader(z, maxFile)) // the client has gone if it fails
		}
		return
	}
	head.Set("Content-Encoding", encoding)
	_, _ = w.Write(data) // the client has gone if it fails
}

// maxFile bounds a file of the page.
const maxFile = 16 << 20

// accepted reports whether a client accepts an encoding.
func accepted(header, encoding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), encoding) {
			return strings.ReplaceAll(weight, " ", "") != "q=0"
		}
	}
	return false
}

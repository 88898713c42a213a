package server

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// placeBelow checks where clients reach the server, and makes the public address one that ends with the base path.
func (o *Options) placeBelow() error {
	// The characters are the same when they are escaped, and no segment has a meaning in paths.
	valid := regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)
	if !valid.MatchString(o.BasePath) {
		return fmt.Errorf("the base path %q must be one or more names of letters, digits and . _ ~ -, each after a slash, such as /weir", o.BasePath)
	}
	if o.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(o.PublicURL)
	if err != nil || u.Hostname() == "" {
		return fmt.Errorf("the public address %q of the server is no URL with a host", o.PublicURL)
	}
	o.Hosts = append(slices.Clone(o.Hosts), strings.ToLower(u.Hostname()))
	o.PublicURL = strings.TrimSuffix(o.PublicURL, "/")
	switch path := strings.TrimSuffix(u.Path, "/"); {
	case o.BasePath == "" || path == o.BasePath:
	case path == "":
		o.PublicURL += o.BasePath
	default:
		return fmt.Errorf("the public address %q has another path than the base path %s: give the same, or none", o.PublicURL, o.BasePath)
	}
	return nil
}

// belowBase returns a request without the base path. Both results are nil for the address of the base path
// itself, without the slash at its end.
func (s *Server) belowBase(r *http.Request) (*http.Request, *Problem) {
	base := s.options.BasePath
	if base == "" {
		return r, nil
	}
	if r.URL.Path == base && r.URL.RawPath == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		return nil, nil
	}
	path, ok := strings.CutPrefix(r.URL.Path, base)
	raw, same := strings.CutPrefix(r.URL.RawPath, base)
	if !ok || !strings.HasPrefix(path, "/") || r.URL.RawPath != "" && (!same || !strings.HasPrefix(raw, "/")) {
		return nil, s.noPath(r.URL.Path)
	}
	below, place := *r, *r.URL
	place.Path, place.RawPath = path, raw
	below.URL = &place
	return &below, nil
}

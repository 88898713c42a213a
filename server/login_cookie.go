package server

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// secureCookies reports whether browsers reach the server by https alone.
func (s *Server) secureCookies() bool { return strings.HasPrefix(s.options.PublicURL, "https://") }

// cookieName is that of the cookie of people who have signed in. Browsers take a cookie with the first prefix from its own host alone, over
// https and for every path, and one with the second over https alone.
func (s *Server) cookieName() string {
	switch {
	case !s.secureCookies():
		return "weir"
	case s.options.BasePath != "":
		return "__Secure-weir"
	}
	return "__Host-weir"
}

// attemptName is the name of the cookie of one attempt to sign in: a browser may have several.
func (s *Server) attemptName(state string) string {
	return s.cookieName() + "-" + linkID(state)[:12]
}

// setCookie sets a cookie for a time, and deletes it where that is negative. It has no domain: the browser sends it to this host alone, and no
// script reads it.
func (s *Server) setCookie(w http.ResponseWriter, name, value string, life time.Duration) {
	path := s.options.BasePath
	if path == "" {
		path = "/"
	}
	age := int(life / time.Second)
	if life < 0 {
		age = -1
	}
	//nolint:gosec // Secure wherever the public address begins with https://; otherwise it is one of this machine
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: path, MaxAge: age, Secure: s.secureCookies(), HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// loginCookie returns the secret in the cookie of a request, "" for none. A request with several has none: another site of the same domain
// has set one of them.
func (s *Server) loginCookie(r *http.Request) string {
	list := r.CookiesNamed(s.cookieName())
	if len(list) != 1 || !strings.HasPrefix(list[0].Value, loginPrefix) {
		return ""
	}
	return list[0].Value
}

// believesCookie reports whether a request is one for which its browser should send the cookie: one of a page of this server. The browser also
// sends it where a person follows a link from another site, which may read.
func (s *Server) believesCookie(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return s.fromOwnPage(r)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// fromOwnPage reports whether a browser says that a page of this server has sent a request. What says nothing is no browser, or one that is
// too old to be believed.
func (s *Server) fromOwnPage(r *http.Request) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	if origin != "" && origin != s.ownOrigin() {
		return false
	}
	return site == "same-origin" || site == "" && origin != ""
}

// ownOrigin is the origin of the pages of this server.
func (s *Server) ownOrigin() string {
	u, err := url.Parse(s.options.PublicURL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

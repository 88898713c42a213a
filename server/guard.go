package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/guard"
)

// contentPolicy lets a page of the server load nothing and be framed nowhere; its only page
// is plain HTML with a style of its own.
const contentPolicy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP checks a request in the order that reveals least: its host and origin, its
// route, who sends it, whether that token allows the route, and its body. Only then the
// handler of the route runs.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	pattern, counted := s.serve(w, r)
	s.metrics.request(pattern, counted.status, time.Since(started))
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) (pattern string, out *statusWriter) {
	out = &statusWriter{ResponseWriter: w, base: s.options.BasePath}
	h := out.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if len(s.options.Origins) > 0 {
		h.Set("Vary", "Origin")
	}
	if p := s.checkSender(r); p != nil {
		p.write(out)
		return "", out
	}
	if s.shareWith(h, r) {
		out.WriteHeader(http.StatusNoContent)
		return "", out
	}
	r, p := s.belowBase(r)
	if r == nil && p == nil { // the base path itself: addresses in the page are relative to a folder
		h.Set("Location", "/")
		out.WriteHeader(http.StatusPermanentRedirect)
		return "", out
	}
	if p == nil {
		pattern, p = s.route(r)
	}
	if p != nil {
		p.write(out)
		return "", out
	}
	who, p := s.authenticate(r)
	if scope := s.routes.scopes[pattern]; scope != Public {
		if p == nil {
			p = who.check(scope)
		}
		if p != nil {
			if p.Status == http.StatusUnauthorized {
				h.Set("WWW-Authenticate", "Bearer")
			} else {
				s.recordAudit(r, pattern, &who, "api", p.Status, p.Code)
			}
			s.fail(out, pattern, p)
			return pattern, out
		}
		if wait := s.tokenWait(&who); wait > 0 {
			h.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
			s.fail(out, pattern, newProblem(http.StatusTooManyRequests, engine.CodeTooMany, "this token or user sends too many requests"))
			return pattern, out
		}
	}
	if p := s.checkBody(out, r, pattern); p != nil {
		s.fail(out, pattern, p)
		return pattern, out
	}
	s.handle(out, r, pattern, who)
	return pattern, out
}

// handle calls the handler of a route, and records the request in the audit log. What needs no token is recorded
// once it was accepted: otherwise anybody could fill the log.
func (s *Server) handle(out *statusWriter, r *http.Request, pattern string, who principal) {
	if s.routes.scopes[pattern] != Public {
		var err error
		if who.action, err = s.auditOf(r, pattern, &who); err != nil {
			p := problemOf(err)
			s.logger.ErrorContext(r.Context(), "request refused", "error", err)
			s.fail(out, pattern, p)
			return
		}
		defer s.endAudit(who.action, r, out)
	}
	s.callHandler(out, r.WithContext(context.WithValue(r.Context(), principalKey{}, who)), pattern)
	if s.routes.scopes[pattern] == Public && out.status < http.StatusBadRequest {
		s.recordAudit(r, pattern, &principal{}, "public", out.status, "")
	}
}

// callHandler calls the handler of a route. A panic is logged, and answered as a failure of the server unless the answer has
// begun.
func (s *Server) callHandler(out *statusWriter, r *http.Request, pattern string) {
	defer func() {
		p := recover()
		switch p {
		case nil:
			return
		case http.ErrAbortHandler:
			panic(p)
		}
		panicked := guard.Recovered(p)
		s.logger.ErrorContext(r.Context(), "a request panicked", "route", pattern, "error", panicked, "stack", string(panicked.Stack))
		if out.status != 0 {
			panic(http.ErrAbortHandler) // the client must see that the answer is cut
		}
		s.fail(out, pattern, newProblem(http.StatusInternalServerError, engine.CodeFailed, "the request failed by a mistake of the server, which its log describes"))
	}()
	s.routes.mux.ServeHTTP(out, r)
}

// tokenWait counts a request of a token, or of a user whom a proxy names, and returns how long to wait before the next one is
// accepted; 0 if this one is, and for requests of the owner of the process.
func (s *Server) tokenWait(who *principal) time.Duration {
	switch {
	case s.tokenRate == nil:
		return 0
	case who.token != "":
		return s.tokenRate.take(who.token, time.Now())
	case who.user != "": // a proxy has named the user
		return s.tokenRate.take("user "+who.user, time.Now())
	}
	return 0
}

// checkSender refuses requests for other hosts and, where they change something, from pages
// of other sites.
func (s *Server) checkSender(r *http.Request) *Problem {
	if !s.acceptsHost(r.Host) {
		p := newProblem(http.StatusMisdirectedRequest, engine.CodeForbidden, "this server does not answer for the host "+quoted(r.Host))
		p.Hint = "use the address that the server prints, or start it with --host NAME"
		return p
	}
	if err := s.sameSite.Check(r); err != nil {
		p := newProblem(http.StatusForbidden, engine.CodeForbidden, "the request comes from a page of another site: "+err.Error())
		p.Hint = "send it from a program, or from a page of this server"
		return p
	}
	return nil
}

// trustOrigins returns what refuses changes by pages of sites that are not named.
func (o *Options) trustOrigins() (*http.CrossOriginProtection, error) {
	sameSite := http.NewCrossOriginProtection()
	if len(o.Origins) > 0 && !o.RequireToken {
		return nil, errors.New("pages of other sites may use the API of a server that requires tokens alone: otherwise they would act for the owner of the process")
	}
	for _, origin := range o.Origins {
		if err := trustOrigin(sameSite, origin); err != nil {
			return nil, err
		}
	}
	return sameSite, nil
}

// trustOrigin lets pages of an origin send requests.
func trustOrigin(p *http.CrossOriginProtection, origin string) error {
	err := checkOrigin(origin)
	if err == nil {
		err = p.AddTrustedOrigin(origin)
	}
	if err != nil {
		return fmt.Errorf("the origin %q is not one of a site, such as https://console.example.org: %w", origin, err)
	}
	return nil
}

// checkOrigin refuses what no browser sends as the origin of a page: it would allow no page.
func checkOrigin(origin string) error {
	u, err := url.Parse(origin)
	switch {
	case err != nil:
		return err
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return errors.New("expected http:// or https://, and a host")
	case u.User != nil || origin != u.Scheme+"://"+u.Host:
		return errors.New("only a host and a port may follow the scheme")
	case strings.Contains(u.Host, "*"):
		return errors.New("no pattern stands for several sites")
	case u.Host != strings.ToLower(u.Host):
		return errors.New("browsers send hosts in lower case")
	case u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" || strings.HasSuffix(u.Host, ":"):
		return errors.New("browsers leave out the port that the scheme implies")
	}
	return nil
}

// shareWith lets a page of an allowed site read the answer, and reports whether the request only
// asks whether another one is allowed.
func (s *Server) shareWith(h http.Header, r *http.Request) (asks bool) {
	origin := r.Header.Get("Origin")
	if !slices.Contains(s.options.Origins, origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Content-Disposition, Content-Range, ETag, Location, Retry-After")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, If-Match, If-Range, Last-Event-ID, Range")
	h.Set("Access-Control-Max-Age", "600")
	return true
}

// acceptsHost reports whether a Host header names this server.
func (s *Server) acceptsHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if slices.Contains(s.options.Hosts, name) || name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// route finds the pattern of a request. A path that is not in its shortest form has none:
// nothing is redirected.
func (s *Server) route(r *http.Request) (string, *Problem) {
	clean := path.Clean(r.URL.Path)
	h, pattern := s.routes.mux.Handler(r)
	if pattern != "" && clean == r.URL.Path && s.routes.scopes[pattern] != "" {
		return pattern, nil
	}
	if pattern == "" && clean == r.URL.Path {
		answer := &statusWriter{ResponseWriter: noBody{}}
		h.ServeHTTP(answer, r)
		if answer.status == http.StatusMethodNotAllowed {
			p := newProblem(answer.status, engine.CodeRequest, r.Method+" is not a method of "+quoted(r.URL.Path))
			p.Hint = "methods of this path: " + answer.Header().Get("Allow")
			return "", p
		}
	}
	return "", s.noPath(r.URL.Path)
}

func (s *Server) noPath(path string) *Problem {
	p := newProblem(http.StatusNotFound, engine.CodeNotFound, "there is no path "+quoted(path))
	p.Hint = s.options.BasePath + "/docs lists the operations of this server"
	return p
}

// noBody keeps the headers of an answer and drops its body.
type noBody http.Header

// Header implements http.ResponseWriter.
func (b noBody) Header() http.Header { return http.Header(b) }

// Write implements io.Writer.
func (noBody) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (noBody) WriteHeader(int) {}

// checkBody bounds the body of a request and refuses one that is not JSON: a form of
// another site's page cannot send JSON. Routes whose secret is in the path take forms, and uploads forms with files:
// browsers name the origin of such a form, which was checked.
func (s *Server) checkBody(w http.ResponseWriter, r *http.Request, pattern string) *Problem {
	most, upload := s.options.MaxBody, s.routes.uploads[pattern]
	if upload {
		most = s.options.MaxFile + maxForm
	}
	if r.ContentLength > most {
		return newProblem(http.StatusRequestEntityTooLarge, engine.CodeRequestTooLarge, "the body of the request is too large")
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if r.ContentLength == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if s.routes.forms[pattern] && kind == "application/x-www-form-urlencoded" || upload && kind == "multipart/form-data" {
		return nil
	}
	if upload {
		p := newProblem(http.StatusUnsupportedMediaType, engine.CodeRequest, "the body of the request is not declared as a form with a file")
		p.Hint = "send Content-Type: multipart/form-data"
		return p
	}
	if err != nil || kind != "application/json" {
		p := newProblem(http.StatusUnsupportedMediaType, engine.CodeRequest, "the body of the request is not declared as JSON")
		p.Hint = "send Content-Type: application/json"
		return p
	}
	return nil
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
	base   string // is put before the path of a Location
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		if to := w.Header().Get("Location"); w.base != "" && strings.HasPrefix(to, "/") {
			w.Header().Set("Location", w.base+to)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

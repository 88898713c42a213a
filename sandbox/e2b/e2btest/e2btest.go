// Package e2btest is a local server that speaks the protocol of E2B: it creates
// sandboxes, which are folders with interpreters of the system's Python, runs code in
// them and keeps their files. It isolates nothing and is for tests only. A separate
// test checks that E2B's public clients accept it.
//
// It must not know the client that it tests.
package e2btest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Key is the API key that the server takes.
const Key = "e2b_0123456789abcdef0123456789abcdef01234567"

// Server is the cloud.
type Server struct {
	// URL is the address of all of it, as E2B_API_URL and E2B_SANDBOX_URL say it.
	URL string

	python string
	root   string

	mu      sync.Mutex
	next    int
	boxes   map[string]*cloudSandbox
	made    []CreatedSandbox
	refuse  []Refusal
	deleted int
	seen    []Request
	stream  string
	hooks   hooks
}

// CreatedSandbox is a sandbox as it was asked for.
type CreatedSandbox struct {
	ID             string            `json:"-"`
	Template       string            `json:"templateID"`
	Timeout        int               `json:"timeout"` // seconds
	InternetAccess *bool             `json:"allow_internet_access"`
	Metadata       map[string]string `json:"metadata"`
	EnvVars        map[string]string `json:"envVars"`
}

// Refusal is an answer to a request for a sandbox that makes none.
type Refusal struct {
	Status     int
	RetryAfter string // header, "" for none
}

// cloudSandbox is one sandbox.
type cloudSandbox struct {
	CreatedSandbox
	dir     string
	token   string
	started time.Time
	end     *time.Timer
	run     sync.Mutex // executions are one at a time

	mu     sync.Mutex
	kernel *kernel
}

// Serve starts a server that ends with the test. The test is skipped where there
// is no python3.
func Serve(tb testing.TB) *Server {
	tb.Helper()
	// What is found may be a script that looks for the interpreter each time.
	python, err := exec.CommandContext(tb.Context(), "python3", "-c", "import sys; print(sys.executable, end='')").Output()
	if err != nil {
		tb.Skip("needs python3, which stands for the cloud's: ", err)
	}
	s := &Server{python: string(python), root: tb.TempDir(), boxes: make(map[string]*cloudSandbox)}
	server := httptest.NewServer(s.recordRequest(s.routes()))
	s.URL = server.URL
	tb.Cleanup(func() {
		for _, id := range s.Running() {
			s.remove(id)
		}
		server.Close()
	})
	return s
}

// hooks are called by name of what is about to happen.
type hooks struct {
	create                  func()
	upload, execute, remove func(id string)
}

// OnCreate is called when a sandbox is asked for, before it is there.
func (s *Server) OnCreate(f func()) { s.setHook(func(h *hooks) { h.create = f }) }

// OnUpload is called with the sandbox's id when files come for it.
func (s *Server) OnUpload(f func(id string)) { s.setHook(func(h *hooks) { h.upload = f }) }

// OnExecute is called with the sandbox's id when code begins to run in it.
func (s *Server) OnExecute(f func(id string)) { s.setHook(func(h *hooks) { h.execute = f }) }

// OnDelete is called with the id of a sandbox that was deleted.
func (s *Server) OnDelete(f func(id string)) { s.setHook(func(h *hooks) { h.remove = f }) }

func (s *Server) setHook(set func(*hooks)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(&s.hooks)
}

// currentHooks returns what is to be called.
func (s *Server) currentHooks() hooks {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hooks
}

// Stream has executions answered with this and nothing run.
func (s *Server) Stream(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream = text
}

// Request is one that came.
type Request struct {
	Path string
	Key  bool // with the API key
}

// Requests lists those that came, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.seen...)
}

func (s *Server) recordRequest(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, Request{Path: r.URL.Path, Key: r.Header.Get("X-Api-Key") != ""})
		s.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// Refuse has the next requests for a sandbox refused, one by each.
func (s *Server) Refuse(list ...Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = append(s.refuse, list...)
}

// Created lists the sandboxes that were made, in order.
func (s *Server) Created() []CreatedSandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]CreatedSandbox(nil), s.made...)
}

// Deleted returns how many sandboxes were deleted.
func (s *Server) Deleted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deleted
}

// Running lists the ids of the sandboxes that are there.
func (s *Server) Running() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]string, 0, len(s.boxes))
	for id := range s.boxes {
		ids = append(ids, id)
	}
	return ids
}

// Expire takes a sandbox away, as the cloud does whose time is up.
func (s *Server) Expire(id string) { s.remove(id) }

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v2/sandboxes", s.requireKey(s.create))
	mux.HandleFunc("GET /v2/sandboxes", s.requireKey(s.list))
	mux.HandleFunc("GET /sandboxes/{id}", s.requireKey(s.info))
	mux.HandleFunc("DELETE /sandboxes/{id}", s.requireKey(s.kill))
	mux.HandleFunc("POST /sandboxes/{id}/timeout", s.requireKey(s.timeout))
	mux.HandleFunc("POST /v2/sandboxes/{id}/connect", s.requireKey(s.connect))
	mux.HandleFunc("GET /health", s.requireToken(func(w http.ResponseWriter, _ *http.Request, _ *cloudSandbox) { w.WriteHeader(http.StatusNoContent) }))
	mux.HandleFunc("GET /files", s.requireToken(s.download))
	mux.HandleFunc("POST /files", s.requireToken(s.upload))
	mux.HandleFunc("POST /execute", s.requireToken(s.execute))
	return mux
}

// requireKey lets through who has the API key.
func (s *Server) requireKey(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != Key {
			fail(w, http.StatusUnauthorized, "Invalid API key format")
			return
		}
		next(w, r)
	}
}

// fail answers with an error of the API.
func fail(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"code": status, "message": message})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var m CreatedSandbox
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		fail(w, http.StatusBadRequest, "Error when parsing request: "+err.Error())
		return
	}
	if f := s.currentHooks().create; f != nil {
		f()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refuse) > 0 {
		no := s.refuse[0]
		s.refuse = s.refuse[1:]
		if no.RetryAfter != "" {
			w.Header().Set("Retry-After", no.RetryAfter)
		}
		fail(w, no.Status, "you have reached the maximum number of concurrent sandboxes")
		return
	}
	if m.Template != "code-interpreter-v1" && m.Template != "base" {
		fail(w, http.StatusNotFound, fmt.Sprintf("template '%s' not found", m.Template))
		return
	}
	s.next++
	m.ID = "i" + strconv.Itoa(s.next) + "loopback"
	dir, err := os.MkdirTemp(s.root, m.ID)
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	if m.Timeout == 0 {
		m.Timeout = defaultTimeout
	}
	b := &cloudSandbox{CreatedSandbox: m, dir: dir, token: "token-of-" + m.ID, started: time.Now()}
	b.end = time.AfterFunc(time.Duration(m.Timeout)*time.Second, func() { s.remove(m.ID) })
	s.boxes[m.ID] = b
	s.made = append(s.made, m)
	answer(w, http.StatusCreated, b.createdJSON())
}

// createdJSON returns the API's answer to creating a sandbox or connecting to it.
func (b *cloudSandbox) createdJSON() map[string]any {
	return map[string]any{
		"templateID": b.Template, "sandboxID": b.ID, "clientID": "loopback", "envdVersion": "0.6.4",
		"envdAccessToken": b.token, "trafficAccessToken": nil, "domain": nil,
	}
}

// listedJSON returns a sandbox as the API lists it.
func (b *cloudSandbox) listedJSON() map[string]any {
	return map[string]any{
		"templateID": b.Template, "sandboxID": b.ID, "clientID": "loopback", "envdVersion": "0.6.4", "state": "running",
		"startedAt": b.started.UTC(), "endAt": b.started.Add(time.Duration(b.Timeout) * time.Second).UTC(),
		"cpuCount": 2, "memoryMB": 1024, "diskSizeMB": 1024, "metadata": b.Metadata, "allowInternetAccess": b.InternetAccess,
	}
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]map[string]any, 0, len(s.boxes))
	for _, b := range s.boxes {
		list = append(list, b.listedJSON())
	}
	answer(w, http.StatusOK, list)
}

// find returns a sandbox, or answers that there is none.
func (s *Server) find(w http.ResponseWriter, r *http.Request) *cloudSandbox {
	id := r.PathValue("id")
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.boxes[id]
	if b == nil {
		fail(w, http.StatusNotFound, fmt.Sprintf("sandbox %q not found", id))
	}
	return b
}

func (s *Server) info(w http.ResponseWriter, r *http.Request) {
	if b := s.find(w, r); b != nil {
		answer(w, http.StatusOK, b.listedJSON())
	}
}

func (s *Server) kill(w http.ResponseWriter, r *http.Request) {
	b := s.find(w, r)
	if b == nil {
		return
	}
	s.remove(b.ID)
	s.mu.Lock()
	s.deleted++
	s.mu.Unlock()
	if f := s.currentHooks().remove; f != nil {
		f(b.ID)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) timeout(w http.ResponseWriter, r *http.Request) {
	if s.setTimeout(w, r, 0) != nil {
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	if b := s.setTimeout(w, r, defaultTimeout); b != nil {
		answer(w, http.StatusOK, b.createdJSON())
	}
}

// defaultTimeout is what sandboxes get that are asked for without one, in
// seconds.
const defaultTimeout = 15

// setTimeout sets when a sandbox ends, in otherwise seconds where the request does
// not say.
func (s *Server) setTimeout(w http.ResponseWriter, r *http.Request, otherwise int) *cloudSandbox {
	b := s.find(w, r)
	if b == nil {
		return nil
	}
	body := struct {
		Timeout int `json:"timeout"`
	}{otherwise}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Timeout <= 0 {
		fail(w, http.StatusBadRequest, "timeout has to be a positive number of seconds")
		return nil
	}
	b.end.Reset(time.Duration(body.Timeout) * time.Second)
	return b
}

func (s *Server) remove(id string) {
	s.mu.Lock()
	b := s.boxes[id]
	delete(s.boxes, id)
	s.mu.Unlock()
	if b == nil {
		return
	}
	b.end.Stop()
	b.stop()
	_ = os.RemoveAll(b.dir)
}

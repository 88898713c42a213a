package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxBody bounds a request, in bytes.
const maxBody = 64 << 20

// Server implements the vendors' APIs at their paths, streamed and whole. It refuses what the vendor would refuse. It
// is safe for concurrent use.
type Server struct {
	// URL is the base URL for providers of OpenAI's APIs, and Root for all others: Root has no path, URL ends in /v1.
	URL, Root string
	// APIKey, if not empty, is the key that requests must have in the vendor's header; it must be set before the
	// first request.
	APIKey string
	// Client, if not nil, is the HTTP client that a provider under test must use.
	Client *http.Client

	http *httptest.Server
	// mu guards all fields below.
	mu       sync.Mutex
	turns    []Turn
	answer   func(*Request) Turn
	requests []*Request
	issued   issuedIDs
	count    int
}

// Start starts a server that answers with turns, in order; after the last one it answers with status 500. The caller
// must Close it.
func Start(turns ...Turn) *Server {
	s := &Server{turns: turns, issued: issuedIDs{}}
	mux := http.NewServeMux()
	for _, by := range vendorAPIs() {
		for _, route := range by.routes() {
			mux.HandleFunc("POST "+route, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, by) })
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, chatAPI{}, &Failure{
			Status: http.StatusNotFound, Type: "invalid_request_error", Code: "unknown_url",
			Message: fmt.Sprintf("Unknown request URL: %s %s.", r.Method, r.URL.Path),
		})
	})
	s.http = httptest.NewServer(mux)
	s.Root, s.URL = s.http.URL, s.http.URL+"/v1"
	return s
}

// New is Start for a test: the server is closed with it, and the test fails if a request broke a rule of its API,
// unless its Problems were taken by TakeProblems.
func New(tb testing.TB, turns ...Turn) *Server {
	tb.Helper()
	s := Start(turns...)
	tb.Cleanup(func() {
		s.Close()
		for _, problem := range s.TakeProblems() {
			tb.Errorf("a request breaks a rule of the wire: %s", problem)
		}
	})
	return s
}

// Close ends the server and its connections.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Script appends turns.
func (s *Server) Script(turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns = append(s.turns, turns...)
}

// Answer makes f answer every request for which no turn is left. f may be called concurrently.
func (s *Server) Answer(f func(*Request) Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// Requests returns the requests so far, in order of arrival. They must not be changed.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Request(nil), s.requests...)
}

// Last returns the newest request, nil if there is none.
func (s *Server) Last() *Request {
	if all := s.Requests(); len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// TakeProblems returns and clears the problems of all requests so far.
func (s *Server) TakeProblems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, r := range s.requests {
		all = append(all, r.Problems...)
		r.Problems = nil
	}
	return all
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, by vendorAPI) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, by, &Failure{Status: http.StatusRequestEntityTooLarge, Message: err.Error()})
		return
	}
	a, turn, number := s.take(r, body, by)
	if turn.Before != nil && turn.Failure != nil {
		turn.Before(r.Context(), 0)
	}
	switch {
	case turn.Failure != nil:
		refuse(w, by, turn.Failure)
	case turn.Raw != nil:
		w.Header().Set("Content-Type", first(turn.Type, "text/event-stream"))
		write(w, r, turn, turn.Raw, "")
	case a.streamed:
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		var fault string
		if turn.Break != nil && turn.Break.Fault != nil {
			fault = by.fault(turn.Break.Fault)
		}
		write(w, r, turn, by.stream(turn, a, number), fault)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(by.whole(turn, a, number)) // the client may have disconnected
	}
}

// take records a request and selects its turn.
func (s *Server) take(r *http.Request, body []byte, by vendorAPI) (*parsedRequest, *Turn, int) {
	s.mu.Lock()
	a := by.read(r, body, s.issued)
	a.API, a.Header, a.Body, a.Key = by.name(), r.Header.Clone(), body, r.Header.Get("Idempotency-Key")
	a.authorized = s.APIKey == "" || by.key(r) == s.APIKey
	if kind := r.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		a.Problems = append(a.Problems, fmt.Sprintf("the content type is %q", kind))
	}
	s.requests = append(s.requests, &a.Request)
	s.count++
	number := s.count
	turn, answer := s.next(a)
	s.mu.Unlock()
	if turn == nil {
		t := answer(&a.Request)
		turn = &t
	}
	if turn.Failure == nil && turn.Raw == nil {
		s.mu.Lock()
		by.issue(turn, a, number, s.issued)
		s.mu.Unlock()
	}
	return a, turn, number
}

// next returns the next turn, or the function that returns it.
func (s *Server) next(a *parsedRequest) (*Turn, func(*Request) Turn) {
	if !a.authorized {
		return &Turn{Failure: &Failure{
			Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key",
			Message: "Incorrect API key provided.",
		}}, nil
	}
	if len(a.Problems) > 0 {
		return &Turn{Failure: &Failure{
			Status: http.StatusBadRequest, Type: "invalid_request_error", Message: strings.Join(a.Problems, "; "),
		}}, nil
	}
	if a.lost != nil {
		return &Turn{Failure: a.lost}, nil
	}
	if len(s.turns) > 0 {
		turn := s.turns[0]
		s.turns = s.turns[1:]
		return &turn, nil
	}
	if s.answer != nil {
		return nil, s.answer
	}
	return &Turn{Failure: &Failure{
		Status: http.StatusInternalServerError, Type: "server_error", Message: "The script has no turn left.",
	}}, nil
}

// write sends each event in a write of its own.
func write(w http.ResponseWriter, r *http.Request, turn *Turn, events []string, fault string) {
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	send := func(event string) bool {
		if _, err := io.WriteString(w, event); err != nil {
			return false
		}
		return flush.Flush() == nil
	}
	if flush.Flush() != nil {
		return
	}
	if turn.Open {
		events = events[:max(0, len(events)-turn.Unsent)]
		defer func() { <-r.Context().Done() }()
	}
	for n, event := range events {
		if turn.Break != nil && n == turn.Break.After {
			breakOff(turn.Break, send, fault)
			return
		}
		if turn.Before != nil {
			turn.Before(r.Context(), n)
		}
		if r.Context().Err() != nil || !send(event) {
			return
		}
	}
}

func breakOff(b *Break, send func(string) bool, fault string) {
	if fault != "" {
		send(fault)
	}
	if !b.Clean && fault == "" {
		panic(http.ErrAbortHandler) // how net/http cuts a connection
	}
}

// refuse writes a failure in the vendor's format.
func refuse(w http.ResponseWriter, by vendorAPI, f *Failure) {
	switch {
	case f.After >= time.Second:
		w.Header().Set("Retry-After", strconv.Itoa(int(f.After/time.Second)))
	case f.After > 0:
		w.Header().Set("Retry-After-Ms", strconv.Itoa(int(f.After/time.Millisecond)))
	}
	maps.Copy(w.Header(), f.Header)
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(f.Status)
	body := f.Body
	if body == "" {
		body = by.refusal(f)
	}
	_, _ = io.WriteString(w, body) // the client may have disconnected
}

func faultBody(f *Failure) map[string]any {
	return map[string]any{
		"message": f.Message, "type": orNull(f.Type), "param": orNull(f.Param), "code": orNull(f.Code),
	}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func first(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// encode returns v as JSON; v can always be encoded.
func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic("llmtest: " + err.Error())
	}
	return string(data)
}

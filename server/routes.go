package server

import (
	"io"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/weir-run/weir/internal/jsonkey"
)

// Scope is what a token must allow for a route.
type Scope string

// The scopes. Admin includes all others but ActAs, and reaches the objects of all users.
const (
	Public Scope = "public" // needs no token
	Read   Scope = "read"
	Start  Scope = "start"
	Answer Scope = "answer"
	Admin  Scope = "admin"
	// ActAs lets a program that serves several people name the user it acts for.
	ActAs Scope = "act-as"
)

// Scopes lists the scopes that a token can have.
func Scopes() []Scope { return []Scope{Read, Start, Answer, Admin, ActAs} }

// routes is the only way to a handler: each pattern has a scope, which is checked before
// the handler is called. It is the mux of the API's router too.
type routes struct {
	mux    *http.ServeMux
	scopes map[string]Scope // by pattern
	// fail writes problems of routes that have a form of their own, by pattern.
	fail map[string]func(w http.ResponseWriter, p *Problem)
	// forms are the patterns that take HTML forms instead of JSON.
	forms map[string]bool
	// uploads are the patterns that take a form with a file instead of JSON.
	uploads map[string]bool
	// reads are patterns of requests that change nothing although their method is not GET; audited are those of GET
	// requests that are recorded in the audit log all the same.
	reads, audited map[string]bool
}

func newRoutes() *routes {
	return &routes{
		mux: http.NewServeMux(), scopes: make(map[string]Scope), fail: make(map[string]func(w http.ResponseWriter, p *Problem)),
		forms: make(map[string]bool), uploads: make(map[string]bool), reads: make(map[string]bool), audited: make(map[string]bool),
	}
}

// handle adds a route that is not part of the API's description.
func (r *routes) handle(pattern string, scope Scope, h http.HandlerFunc) {
	r.scopes[pattern] = scope
	r.HandleFunc(pattern, h)
}

// HandleFunc implements humago.Mux. The pattern must have a scope.
func (r *routes) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	if r.scopes[pattern] == "" {
		panic("route " + pattern + " has no scope")
	}
	r.mux.HandleFunc(pattern, h)
}

// ServeHTTP implements humago.Mux.
func (r *routes) ServeHTTP(w http.ResponseWriter, q *http.Request) { r.mux.ServeHTTP(w, q) }

// Routes lists the patterns of all routes with their scopes, for tests.
func (s *Server) Routes() map[string]Scope { return s.routes.scopes }

// newAPI returns the router of the API, whose description names the base path. It adds nothing to routes by itself.
func newAPI(r *routes, base string) huma.API {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	aliasSchemas(registry)
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: func(data []byte, v any) error {
		if err := jsonkey.Check(data); err != nil {
			return err
		}
		return huma.DefaultJSONFormat.Unmarshal(data, v)
	}}
	c := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info:    &huma.Info{Title: "Weir", Version: "v1", Description: "Runs of flows, sessions, and what happened in them."},
			Components: &huma.Components{
				Schemas:         registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer", Description: "A token that `weir tokens create` made."}},
			},
		},
		Formats:       map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat: "application/json",
	}
	if base != "" {
		c.Servers = []*huma.Server{{URL: base}}
	}
	return humago.New(r, c)
}

// operation is one operation of the API.
type operation struct {
	id, method, path string
	scope            Scope
	summary          string
	description      string
	// status is that of success; 0 is 200.
	status int
	tags   []string
	// reads says that it changes nothing although its method is not GET, audited that it is recorded in the audit log
	// although it is.
	reads, audited bool
}

// register adds an operation to the API. Errors of the handler become problems. It is compiled for each handler: all
// else is in add.
func register[I, O any](s *Server, o operation, handler func(call *call, in *I) (*O, error)) {
	s.add(o, reflect.TypeFor[I](), reflect.TypeFor[O](), func(c *call, in any) (any, error) {
		return handler(c, in.(*I)) //nolint:forcetypeassert // add makes it
	})
}

// add is register for a handler that gets a pointer to an in and returns one to an out.
func (s *Server) add(o operation, in, out reflect.Type, handler func(c *call, in any) (any, error)) {
	op := &huma.Operation{
		OperationID: o.id, Method: o.method, Path: o.path, Summary: o.summary, Description: o.description, Tags: o.tags,
		DefaultStatus: o.status, MaxBodyBytes: s.options.MaxBody, BodyReadTimeout: bodyTime,
	}
	if o.scope != Public {
		op.Security = []map[string][]string{{"token": {string(o.scope)}}}
	}
	pattern := o.method + " " + o.path
	s.routes.scopes[pattern], s.routes.reads[pattern], s.routes.audited[pattern] = o.scope, o.reads, o.audited
	s.api.Adapter().Handle(op, newEndpoint(s.api, op, in, out, s.handlerOf(handler)).serve)
}

// ReadJSON reads the body of a request of another protocol. A key that occurs twice in one object is an error, as in the
// bodies of the API.
func ReadJSON(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	return data, jsonkey.Check(data)
}

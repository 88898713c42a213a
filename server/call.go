package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// call is one request for an operation.
type call struct {
	context.Context
	*Server
	who principal
}

// handlerOf adapts a handler, which gets and returns pointers to structs, to the router.
func (s *Server) handlerOf(handler func(c *call, in any) (any, error)) func(context.Context, any) (any, error) {
	return func(ctx context.Context, in any) (any, error) {
		who, ok := ctx.Value(principalKey{}).(principal)
		if !ok {
			return nil, newProblem(http.StatusInternalServerError, engine.CodeFailed, "the request was not authenticated")
		}
		out, err := handler(&call{ctx, s, who}, in)
		if err == nil {
			return out, nil
		}
		p := problemOf(err)
		who.action.Failed(p.Code)
		if p.Status == http.StatusInternalServerError {
			s.logger.ErrorContext(ctx, "request failed", "code", p.Code, "error", err)
		}
		return nil, p
	}
}

// run reads the row of a run that the caller may see. Another user's run is not found.
func (c *call) run(id string) (store.Run, error) {
	r, err := c.app.Store.Run(c, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !c.who.owns(r.User) {
		return r, notFound("run", id)
	}
	return r, err
}

// session reads the row of a session that the caller may see.
func (c *call) session(id string) (store.Session, error) {
	r, err := c.app.Store.Session(c, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !c.who.owns(r.User) {
		return r, notFound("session", id)
	}
	return r, err
}

// reachableUser returns the user whose objects the caller reaches: that of the token, or ""
// for callers who reach the objects of all users.
func (c *call) reachableUser() string {
	if c.who.all {
		return ""
	}
	return c.who.user
}

// filterUser returns the user whose objects a listing contains: the requested one, by default
// all that the caller reaches. A caller that does not reach the objects of another user is refused:
// an answer with its own objects would look like those of the other.
func (c *call) filterUser(requested string) (string, error) {
	if requested != "" && !c.who.owns(requested) {
		return "", newProblem(http.StatusForbidden, engine.CodeForbidden, "only a token with the scope admin reaches what belongs to the user "+quoted(requested))
	}
	if requested == "" {
		return c.reachableUser(), nil
	}
	return requested, nil
}

// origin is recorded as what started a run: the protocol, and the token that is charged.
func (c *call) origin(kind string) string {
	if c.who.token == "" {
		return kind
	}
	return kind + ":" + c.who.token
}

// maxOwned bounds how many webhooks, and how many triggers, a user has.
const maxOwned = 100

// make calls create unless the caller has as many documents of a kind as a user may have. Requests of one user for one kind
// pass one after the other in this process. The owner of the process is not bounded.
func (c *call) make(kind string, create func() error) error {
	if c.who.user == "" {
		return create()
	}
	defer c.calls.enter("make " + kind + " " + c.who.user)()
	list, err := c.app.Store.Documents(c, store.DocumentFilter{Kind: kind, User: c.who.user, Limit: maxOwned})
	if err != nil {
		return err
	}
	if len(list) == maxOwned {
		p := newProblem(http.StatusConflict, engine.CodeTooMany, "you have "+itoa(maxOwned)+" of them, which is the most that a user may have")
		p.Hint = "delete one first"
		return p
	}
	return create()
}

// by is recorded as who did something.
func (c *call) by() string {
	if c.who.user == "" {
		return "server"
	}
	return c.who.user
}

// requestTime is how long a client may send a request again.
const requestTime = 24 * time.Hour

// once carries out a request that creates something, or answers a question: do receives the
// id for what it makes and returns the id of what was made. A request with the same
// Idempotency-Key, route and user returns that again instead.
func (c *call) once(route, key string, body any, do func(id string) (string, error)) (string, error) {
	return c.onceRequest(route, key, body, func(r weir.Request) (string, error) { return do(r.ID) })
}

// onceRequest is once for what records the id of the request itself.
func (c *call) onceRequest(route, key string, body any, do func(r weir.Request) (string, error)) (string, error) {
	made, err := c.onceKeyed(route, key, body, do)
	if err == nil {
		err = c.about("made", made)
	}
	return made, err
}

func (c *call) onceKeyed(route, key string, body any, do func(r weir.Request) (string, error)) (string, error) {
	if key == "" {
		return do(weir.Request{ID: runner.NewID()})
	}
	content, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	stored := c.digest("request", c.who.user, route, key)
	defer c.calls.enter(string(stored))()
	r, err := c.app.Store.BeginRequest(c, store.ClientRequest{Key: stored, User: c.who.user, Digest: c.digest("content", string(content))}, requestTime)
	if err != nil {
		return "", err
	}
	if !hmac.Equal(r.Digest, c.digest("content", string(content))) {
		return "", newProblem(http.StatusUnprocessableEntity, engine.CodeRequestReused, "this Idempotency-Key was sent before with another content")
	}
	if r.Result != "" {
		return r.Result, nil
	}
	id := "k" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(stored[:15]))
	made, err := do(weir.Request{ID: id, Repeated: r.Repeated})
	if err != nil {
		return "", err
	}
	return made, c.app.Store.FinishRequest(context.WithoutCancel(c), stored, made)
}

// digest returns a Keyed digest of texts, which cannot be computed without the server's secret.
func (s *Server) digest(texts ...string) []byte {
	h := hmac.New(sha256.New, s.key)
	list, _ := json.Marshal(texts) // texts can always be marshalled
	h.Write(list)
	return h.Sum(nil)
}

// inFlight lets requests of one key pass one after the other.
type inFlight struct {
	mu    sync.Mutex
	calls map[string]*flight
}

type flight struct {
	mu    sync.Mutex
	count int // of callers; guarded by inFlight.mu
}

// enter waits for the earlier callers of a key and returns the function that lets the next
// one pass.
func (f *inFlight) enter(key string) (leave func()) {
	f.mu.Lock()
	if f.calls == nil {
		f.calls = make(map[string]*flight)
	}
	x := f.calls[key]
	if x == nil {
		x = &flight{}
		f.calls[key] = x
	}
	x.count++
	f.mu.Unlock()
	x.mu.Lock()
	return func() {
		x.mu.Unlock()
		f.mu.Lock()
		if x.count--; x.count == 0 {
			delete(f.calls, key)
		}
		f.mu.Unlock()
	}
}

// aliasSchemas describes types whose JSON is not that of their Go type.
func aliasSchemas(r huma.Registry) {
	object, anything := reflect.TypeFor[map[string]any](), reflect.TypeFor[any]()
	r.RegisterTypeAlias(reflect.TypeFor[engine.Values](), object)
	r.RegisterTypeAlias(reflect.TypeFor[convo.Message](), object)
	r.RegisterTypeAlias(reflect.TypeFor[engine.Error](), reflect.TypeFor[runError]())
	r.RegisterTypeAlias(reflect.TypeFor[json.RawMessage](), anything)
	r.RegisterTypeAlias(reflect.TypeFor[weir.Item](), object)
	r.RegisterTypeAlias(reflect.TypeFor[store.Hash](), reflect.TypeFor[string]())
}

// runError describes the JSON of engine.Error.
type runError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// valueOf parses a value of a request; numbers keep their precision.
func valueOf(place string, raw json.RawMessage) (engine.Value, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	v, err := engine.ParseValue(raw)
	if err != nil {
		return nil, invalidRequest(place, err.Error())
	}
	return v, nil
}

// objectOf parses an object of a request.
func objectOf(place string, raw json.RawMessage) (map[string]any, error) {
	v, err := valueOf(place, raw)
	if v == nil || err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, invalidRequest(place, "expected an object")
	}
	return m, nil
}

// body is an answer with a body.
type body[T any] struct{ Body T }

func bodyOf[T any](v T) *body[T] { return &body[T]{v} }

// created is an answer that names what was made.
type created[T any] struct {
	Location string `header:"Location"`
	Body     T
}

// Keyed are the parameters of an operation that can be repeated.
type Keyed struct {
	Key string `header:"Idempotency-Key" maxLength:"200" doc:"Any text. The same key with the same content within 24 hours does nothing again and returns what was made then."`
}

// RunPath names a run.
type RunPath struct {
	Run string `path:"run" maxLength:"400" doc:"The id of the run"`
}

// SessionPath names a session.
type SessionPath struct {
	Session string `path:"session" maxLength:"400" doc:"The id of the session"`
}

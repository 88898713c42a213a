package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// Face is a protocol of others that the server speaks besides its own API. Its package adds
// routes with Handle and works through a Caller, so that every rule of the API holds there too.
type Face struct {
	// Fail writes a problem in the form of the protocol; nil writes it as the API does.
	Fail func(w http.ResponseWriter, p *Problem)
}

// Handle adds a route of a face. The handler runs after the checks of every route: host,
// origin, token, scope, type and size of the body. Handle must be called before Serve.
func (s *Server) Handle(pattern string, scope Scope, f Face, h func(w http.ResponseWriter, r *http.Request, c *Caller)) {
	if f.Fail != nil {
		s.routes.fail[pattern] = f.Fail
	}
	s.routes.handle(pattern, scope, func(w http.ResponseWriter, r *http.Request) {
		who, _ := r.Context().Value(principalKey{}).(principal)
		h(w, r, &Caller{call{r.Context(), s, who}})
	})
}

// fail writes a problem in the form of a route.
func (s *Server) fail(w http.ResponseWriter, pattern string, p *Problem) {
	if write := s.routes.fail[pattern]; write != nil {
		write(w, p)
		return
	}
	p.write(w)
}

// ProblemOf returns the problem that the API reports for an error. Errors that no request
// causes are logged.
func (c *Caller) ProblemOf(err error) *Problem {
	if errors.Is(err, context.Canceled) {
		if refused := c.call.checkAllowed(); refused != nil {
			err = refused
		}
	}
	p := problemOf(err)
	c.call.who.action.Failed(p.Code)
	if p.Status == http.StatusInternalServerError {
		c.call.logger.ErrorContext(c.call, "request failed", "code", p.Code, "error", err)
	}
	return p
}

// Fail writes an error as the API does.
func (c *Caller) Fail(w http.ResponseWriter, err error) { c.ProblemOf(err).write(w) }

// NewProblem returns a problem with a code of the engine's table, whose remedy is its hint.
func NewProblem(status int, code, detail string) *Problem { return newProblem(status, code, detail) }

// NotFound returns the problem for an object that does not exist or is another user's.
func NotFound(kind, id string) *Problem { return notFound(kind, id) }

// InvalidRequest returns the problem for a mistake at a place of a request.
func InvalidRequest(place, message string) *Problem { return invalidRequest(place, message) }

// Caller is who sends a request to a face, with what that caller may reach.
type Caller struct{ call call }

// Owner returns the caller who owns the process, for a client that is connected to it directly.
func (s *Server) Owner(ctx context.Context) *Caller { return &Caller{call{ctx, s, owner()}} }

// ListedUser returns the user whose objects a listing contains, "" for all.
func (c *Caller) ListedUser() string { return c.call.reachableUser() }

// Chain returns the chain of work of a run that the caller may see.
func (c *Caller) Chain(run string) ([]app.WorkRow, error) {
	out, err := getChain(&c.call, &chainInput{RunPath: RunPath{Run: run}})
	if err != nil {
		return nil, err
	}
	return out.Body.Work, nil
}

// Context is that of the request.
func (c *Caller) Context() context.Context { return c.call }

// App returns the open process. What is read of it is checked with Run and Session first.
func (c *Caller) App() *app.App { return c.call.app }

// User returns the user for whom the caller acts; "" is no particular user.
func (c *Caller) User() string { return c.call.who.user }

// Token returns the id of the caller's token, "" without one.
func (c *Caller) Token() string { return c.call.who.token }

// Origin is recorded as what started a run: the protocol, and the token that is charged.
func (c *Caller) Origin(kind string) string { return c.call.origin(kind) }

// By is recorded as who did something.
func (c *Caller) By() string { return c.call.by() }

// Can reports whether the caller has a scope.
func (c *Caller) Can(scope Scope) bool { return c.call.who.check(scope) == nil }

// Require returns the refusal of a caller without a scope, nil for others.
func (c *Caller) Require(scope Scope) error {
	if p := c.call.who.check(scope); p != nil {
		return p
	}
	return nil
}

// MayActAs reports whether the caller is believed when it names the user it acts for. The
// scope admin does not include that, and a caller without a token on a server that requires
// none is the owner of the process, who may.
func (c *Caller) MayActAs() bool { return slices.Contains(c.call.who.scopes, ActAs) }

// As returns the caller acting for another user, whose objects alone it then reaches, within
// the role of that user. Ask MayActAs before. An error refuses a user who is deactivated or may
// not start runs.
func (c *Caller) As(user string) (*Caller, error) {
	role, disabled, err := c.call.roleOf(c.call, user)
	if err != nil {
		return nil, err
	}
	if disabled || !role.allows(Start) {
		return nil, newProblem(http.StatusForbidden, engine.CodeForbidden, "the user "+quoted(user)+" is deactivated, or may not start runs")
	}
	if err := c.call.about("for", user); err != nil {
		return nil, err
	}
	x := c.call
	x.who.user, x.who.all, x.who.acts = user, false, true
	return &Caller{x}, nil
}

// Run reads the row of a run that the caller may see. Another user's run is not found.
func (c *Caller) Run(id string) (store.Run, error) { return c.call.run(id) }

// Session reads the row of a session that the caller may see.
func (c *Caller) Session(id string) (store.Session, error) { return c.call.session(id) }

// Owns reports whether the caller reaches objects of a user.
func (c *Caller) Owns(user string) bool { return c.call.who.owns(user) }

// Flow returns a flow that the server offers.
func (c *Caller) Flow(name string) (*app.ServedFlow, error) { return c.call.flow(name) }

// RequireFlow returns the refusal of a caller who may not start the flow of a run or session;
// nil for others, and for flows that the server no longer offers.
func (c *Caller) RequireFlow(name string) error {
	_, err := c.call.flowOf(name)
	return err
}

// Logger receives what no answer tells a client.
func (c *Caller) Logger() *slog.Logger { return c.call.logger }

// Flows returns all flows that the server offers to the caller, sorted by name.
func (c *Caller) Flows() ([]*app.ServedFlow, error) {
	names := slices.Clone(c.call.names)
	deployed, err := c.call.deployedFlows()
	if err != nil {
		return nil, err
	}
	for _, d := range deployed {
		if d.Promoted != "" && !d.Paused {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	out := make([]*app.ServedFlow, 0, len(names))
	for _, name := range names {
		f, err := c.call.flow(name)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// Model returns the model that runs of a flow need to be given, "" for that of the flow: the path
// of a script is relative to the flow's folder.
func (c *Caller) Model(f *app.ServedFlow) (string, error) { return c.call.modelOr("", f.Model) }

// OpenSession opens a session of the caller under the flow that the server offers by its
// name, else under that of its last round.
func (c *Caller) OpenSession(id string) (*weir.Session, error) { return c.call.openOwn(id) }

// Once carries out a request that makes something; see the header Idempotency-Key.
func (c *Caller) Once(route, key string, body any, do func(id string) (string, error)) (string, error) {
	return c.call.once(route, key, body, do)
}

// Digest returns a keyed digest of texts, which cannot be computed without the server's secret.
func (c *Caller) Digest(texts ...string) []byte { return c.call.digest(texts...) }

// NewID returns the id of a new object.
func (c *Caller) NewID() string { return runner.NewID() }

// Enter waits for the earlier requests with a key that are in progress in this process, and
// returns the function that lets the next one pass.
func (c *Caller) Enter(key string) (leave func()) { return c.call.calls.enter(key) }

// UntilDrain is WhileAllowed for the context of the request.
func (c *Caller) UntilDrain() context.Context { return c.call.whileAllowed(c.call) }

// WhileAllowed returns a context that ends with another one, when the server drains, and within a heartbeat after the token of the caller was
// revoked or expired, or the user was deactivated. ProblemOf then says why.
func (c *Caller) WhileAllowed(ctx context.Context) context.Context { return c.call.whileAllowed(ctx) }

// IsDraining reports whether the server is stopping.
func (c *Caller) IsDraining() bool { return c.call.isDraining() }

// Unavailable returns the problem of a server that is stopping.
func Unavailable() *Problem { return unavailable() }

// Stream is an answer that may last for any time, as long as the client receives each piece
// within 30 seconds.
type Stream struct {
	long *longAnswer
	done func()
}

// Events begins an answer of server-sent events. Close must be called.
func (c *Caller) Events(w http.ResponseWriter) *Stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	return &Stream{newLongAnswer(w), c.call.metrics.stream(1)}
}

// Send writes text and flushes it.
func (s *Stream) Send(text string) error {
	if _, err := io.WriteString(s.long, text); err != nil {
		return err
	}
	return s.long.control.Flush()
}

// Close ends the counting of the stream.
func (s *Stream) Close() { s.done() }

// Wait prepares an answer that the handler gives after any time: the deadlines of the server
// apply when it is written.
func (c *Caller) Wait(w http.ResponseWriter) {
	control := http.NewResponseController(w)
	// A connection without deadlines has none to extend.
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
}

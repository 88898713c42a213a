package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

type streamInput struct {
	RunPath
	LastEventID string `header:"Last-Event-ID" maxLength:"100000" doc:"The id of the last event that was received; browsers send it when they connect again"`
	Cursor      string `query:"cursor" maxLength:"100000" doc:"The same for clients that cannot set the header"`
}

type streamOutput struct {
	Body func(huma.Context)
}

func (s *Server) registerStream() {
	register(s, operation{
		id: "streamRun", method: http.MethodGet, path: "/v1/runs/{run}/stream", scope: Read, tags: []string{"runs"},
		summary: "Stream the events of a run and its child runs, with live output, as server-sent events",
		description: "The id of each event is its cursor: a reader that sends the last one it received misses no event of the journal and " +
			"gets none twice, also after a restart of the server. The stream ends when the run has ended. The answer is 204 if nothing comes after the cursor.",
	}, streamRun)
	s.registerSessionStream()
}

func streamRun(c *call, in *streamInput) (*streamOutput, error) {
	if _, err := c.run(in.Run); err != nil {
		return nil, err
	}
	cursor := in.LastEventID
	if cursor == "" {
		cursor = in.Cursor
	}
	if c.isDraining() {
		return nil, unavailable()
	}
	return c.stream(func(ctx context.Context, items chan<- streamItem) { followRun(ctx, c.app.Weir, in.Run, cursor, items) })
}

// stream returns an answer with the items that follow sends until it closes the channel. The
// first item says whether the cursor is valid and whether there is anything to send.
func (c *call) stream(follow func(ctx context.Context, items chan<- streamItem)) (*streamOutput, error) {
	ctx, cancel := context.WithCancel(c)
	items := make(chan streamItem)
	go follow(ctx, items)
	first := streamItem{silent: true}
	select {
	case x, ok := <-items:
		if !ok {
			cancel()
			return &streamOutput{func(h huma.Context) { h.SetStatus(http.StatusNoContent) }}, nil
		}
		first = x
	case <-time.After(firstItemTime):
	}
	if first.err != nil {
		cancel()
		if errors.Is(first.err, runner.ErrCursor) {
			return nil, invalidRequest("header.Last-Event-ID", first.err.Error())
		}
		return nil, first.err
	}
	return &streamOutput{func(h huma.Context) {
		defer cancel()
		_, w := humago.Unwrap(h)
		c.sendEvents(ctx, w, first, items)
	}}, nil
}

// firstItemTime is how long a stream waits for its first item before it begins.
const firstItemTime = 500 * time.Millisecond

func unavailable() *Problem {
	return newProblem(http.StatusServiceUnavailable, "unavailable", "the server is stopping")
}

// streamItem is an item of a stream, or the error that ends it.
type streamItem struct {
	weir.Item
	err    error
	silent bool // there was none yet
	// round is the run of the item in a stream of a session, "" in one of a run.
	round string
}

// id is the position behind the item.
func (x *streamItem) id() string {
	if x.round != "" {
		return x.round + roundSeparator + x.Cursor()
	}
	return x.Cursor()
}

// followRun sends the items of a run until it has ended or ctx has. It never waits for the
// reader alone: Follow keeps what a slow reader has not read within its bound.
func followRun(ctx context.Context, w *weir.Weir, run, cursor string, to chan<- streamItem) {
	defer close(to)
	for item, err := range w.Follow(ctx, run, cursor) {
		select {
		case to <- streamItem{Item: item, err: err}:
		case <-ctx.Done():
			return
		}
	}
}

// sendEvents writes items as server-sent events until they end, the reader has gone or is
// too slow, or the server drains. Then the reader is asked to come back.
func (c *call) sendEvents(ctx context.Context, w http.ResponseWriter, first streamItem, items <-chan streamItem) {
	defer c.metrics.stream(1)()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	long := newLongAnswer(w)
	send := func(text string) bool {
		_, err := long.Write([]byte(text))
		return err == nil && long.control.Flush() == nil
	}
	if !send(": weir\n\n") || !first.silent && !send(eventText(first)) {
		return
	}
	beat := time.NewTicker(c.options.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case x, ok := <-items:
			if !ok || !send(eventText(x)) || x.err != nil {
				return
			}
		case <-beat.C:
			if !c.mayStillRead() || !send(": waiting\n\n") {
				return
			}
		case <-c.draining:
			// Readers come back at different times.
			send(fmt.Sprintf("event: server.draining\nretry: %d\ndata: {}\n\n", 1000+rand.IntN(4000)))
			return
		case <-ctx.Done():
			return
		}
	}
}

// mayStillRead reports whether what has authenticated a request is still valid, and its user active, with a role that allows what the request
// was allowed. For who acts for somebody, that person must be active too.
func (c *call) mayStillRead() bool {
	if c.who.login != "" {
		now, problem := c.authenticateLogin(c, c.who.login)
		return problem == nil && !slices.ContainsFunc(c.who.scopes, func(s Scope) bool { return !slices.Contains(now.scopes, s) })
	}
	if c.who.acts {
		role, disabled, err := c.roleOf(c, c.who.user)
		if err != nil || disabled || !role.allows(Start) {
			return false
		}
	}
	if c.who.token == "" {
		role, disabled, err := c.roleOf(c, c.who.user)
		return err == nil && !disabled && (c.who.acts || c.who.keeps(role))
	}
	list, err := c.app.Store.Tokens(c, c.who.holder)
	if err != nil {
		return false
	}
	i := slices.IndexFunc(list, func(t store.Token) bool { return t.ID == c.who.token })
	role, disabled, err := c.roleOf(c, c.who.holder)
	return err == nil && !disabled && c.who.keeps(role) && i >= 0 && list[i].Valid(time.Now())
}

// eventText returns a server-sent event. The data is one line of JSON.
func eventText(x streamItem) string {
	if x.err != nil {
		data, _ := json.Marshal(problemOf(x.err)) // a problem can always be marshalled
		return fmt.Sprintf("event: server.failed\ndata: %s\n\n", data)
	}
	data, err := json.Marshal(x.Item)
	if err != nil {
		return eventText(streamItem{err: err})
	}
	var kind struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(data, &kind) // an item has a type
	return fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", x.id(), kind.Type, data)
}

// longAnswer writes an answer that may last for any time, as long as the client receives
// each piece in writeTime.
type longAnswer struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newLongAnswer(w http.ResponseWriter) *longAnswer {
	l := &longAnswer{w, http.NewResponseController(w)}
	_ = l.control.SetReadDeadline(time.Time{}) // the request was read; its deadline would end the answer
	return l
}

// Write implements io.Writer.
func (l *longAnswer) Write(b []byte) (int, error) {
	if err := l.control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return l.w.Write(b)
}

package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/livetext"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

// Kinds of documents.
const (
	kindHistory = "openai.history" // where a client's copy of a history ends; by its digest
	kindTurn    = "openai.turn"    // how many exchanges a session had; by session
	kindRequest = "openai.request" // a message whose round may still run; by the digest of the request
)

// position is where in a session a client's copy of its history ends.
type position struct {
	// Turn counts the exchanges with the session, and the others are as they were then: the
	// session has not continued since exactly if all are still the same.
	Turn, Length, Rounds int
}

// exchange is one message with its answer.
type exchange struct {
	*request
	c     *server.Caller // acts for the end user
	at    time.Time
	reply *weir.Reply
	key   string // of kindRequest; "" for none
	// question is what an earlier question of the session says to a message that does not
	// answer it; there is no reply then.
	question string
	session  string // that the message was sent to
	// own is the id of an answer that continues a round with outputs of functions; "" for others.
	own string
	// heard is what the round said, nil if that was not read.
	heard *livetext.Ordered
}

// send finds the session of a request and sends its message.
func (q *request) send(c *server.Caller, r *http.Request) (*exchange, error) {
	x := &exchange{request: q, c: q.who.caller, at: time.Now()}
	explicit, err := q.explicit(r)
	if err != nil {
		return nil, err
	}
	if len(q.outputs) > 0 {
		return x, x.continueRound(explicit)
	}
	if explicit == nil && q.who.known {
		x.key = x.historyKey(append(slices.Clip(x.history), x.message))
		defer c.Enter(x.key)()
		if attached, err := x.attach(); attached || err != nil {
			return x, err
		}
	}
	o := weir.SendOptions{By: x.c.By(), Origin: x.c.Origin("openai"), Settings: q.settings(), Seed: q.seed}
	if o.Model, err = c.Model(q.flow); err != nil {
		return nil, err
	}
	in, err := x.sessionFor(explicit, &o)
	if err != nil {
		return nil, err
	}
	o.ID, err = x.c.Once("openai "+in.ID, r.Header.Get("Idempotency-Key"), []any{q.flow.Name, q.message, o.Settings}, func(id string) (string, error) {
		o.ID = id
		return id, x.sendTo(in, o)
	})
	if err == nil && x.reply == nil && x.question == "" { // sent before
		err = x.sendTo(in, o)
	}
	if err == nil {
		err = q.usedBy(x.session)
	}
	return x, err
}

// sessionFor returns the session of a message: the one that the request names, that of its history, or a new one that begins with
// the history.
func (x *exchange) sessionFor(named *weir.Session, o *weir.SendOptions) (in *weir.Session, err error) {
	if in = named; in == nil {
		if in, err = x.find(); err != nil {
			return nil, err
		}
	}
	if in != nil {
		return in, x.checkNoCalls(in)
	}
	o.Seed = x.history
	return x.open(weir.SessionOptions{User: x.c.User(), New: true})
}

func (q *request) settings() session.RoundSettings {
	return session.RoundSettings{System: q.system, Temperature: q.temper, MaxOutput: q.max, Reasoning: q.effort, ClientTools: q.tools, Demands: q.demands}
}

// sendTo sends the message. One that does not fit the question that the session waits for is
// answered with a text that says so.
func (x *exchange) sendTo(in *weir.Session, o weir.SendOptions) (err error) {
	x.reply, err = in.Send(context.WithoutCancel(x.c.Context()), x.content(), o)
	x.session = in.ID
	if err == nil {
		x.session = x.reply.Session.ID
	}
	if errors.Is(err, runner.ErrAnswer) {
		x.question = err.Error()
		return nil
	}
	if waiting, ok := errors.AsType[*session.WaitingError](err); ok {
		x.question = questionText(waiting.Interrupts)
		return nil
	}
	if err == nil && x.key != "" {
		return x.put(kindRequest, x.key, x.reply.Message)
	}
	return err
}

// explicit returns the session that a request names by a header, nil for none.
func (q *request) explicit(r *http.Request) (*weir.Session, error) {
	if q.named != nil {
		return q.named, nil
	}
	id, thread := r.Header.Get("X-Weir-Session"), r.Header.Get("X-Weir-Thread")
	switch {
	case id != "":
		s, err := q.who.caller.OpenSession(id)
		if err == nil && s.Flow != q.flow.Name {
			err = server.InvalidRequest("header.X-Weir-Session", "the session is one with the flow "+s.Flow)
		}
		return s, err
	case thread == "":
		return nil, nil
	case !q.who.known:
		return nil, server.InvalidRequest("header.X-Weir-Thread", "a thread belongs to a user, and the request names none")
	}
	x := &exchange{request: q, c: q.who.caller}
	return x.open(weir.SessionOptions{User: x.c.User(), Thread: thread})
}

func (x *exchange) open(o weir.SessionOptions) (*weir.Session, error) {
	return x.c.App().Session(context.WithoutCancel(x.c.Context()), x.flow.Flow, o)
}

// find returns the session whose whole visible history the client sent, or a fork of one
// that begins with it; nil for none. A request without a known end user finds none: two
// people could have the same history.
func (x *exchange) find() (*weir.Session, error) {
	if !x.who.known || len(x.history) == 0 {
		return nil, nil
	}
	var at position
	session, err := x.get(kindHistory, x.historyKey(x.history), &at)
	if session == "" || err != nil {
		return nil, err
	}
	row, err := x.c.App().Store.Session(x.c.Context(), session)
	if errors.Is(err, store.ErrNotFound) || err == nil && row.User != x.c.User() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return x.continueAt(session, at)
}

// continueAt returns a session that has not continued since a position, else a fork of it
// there.
func (x *exchange) continueAt(session string, at position) (*weir.Session, error) {
	row, err := x.c.App().Store.Session(x.c.Context(), session)
	if err != nil {
		return nil, err
	}
	if row.User != x.c.User() { // that of another person with the same token
		return nil, server.NotFound("session", session)
	}
	var turn int
	if _, err := x.get(kindTurn, session, &turn); err != nil {
		return nil, err
	}
	if now := (position{turn, row.Length, row.Rounds}); now != at || row.Queued > 0 {
		session, err = x.c.App().ForkSession(context.WithoutCancel(x.c.Context()), session, at.Length)
		if err != nil {
			return nil, err
		}
	}
	return x.open(weir.SessionOptions{ID: session})
}

// attach finds the round that a request which was sent before has started and that still
// runs.
func (x *exchange) attach() (bool, error) {
	var message string
	session, err := x.get(kindRequest, x.key, &message)
	if session == "" || err != nil {
		return false, err
	}
	q, err := x.c.App().Store.FindQueued(x.c.Context(), message)
	if err != nil {
		return false, ignoreMissing(err)
	}
	if q.TakenBy != "" {
		row, err := x.c.App().Store.Run(x.c.Context(), q.TakenBy)
		if err != nil || row.Head.Status.Ended() || len(row.Head.Waiting) > 0 {
			return false, ignoreMissing(err)
		}
	}
	in, err := x.open(weir.SessionOptions{ID: q.Session})
	if err != nil {
		return false, ignoreMissing(err)
	}
	x.session = in.ID
	x.reply, err = in.ReplyTo(context.WithoutCancel(x.c.Context()), weir.ReplyStart{Message: message}, "")
	return err == nil, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// historyKey returns a keyed digest of a history as the client has it, of who has it and of the
// flow.
func (x *exchange) historyKey(history []convo.Message) string {
	texts := append([]string{"history", x.who.caller.Token(), x.c.User(), x.flow.Name}, x.who.names...)
	for i := range history {
		m := &history[i]
		// Members that a client does not send back in the form in which it got them are left out.
		seen, _ := json.Marshal([]any{m.Role, strings.TrimSpace(m.Text), m.Parts, m.Calls, m.CallID}) // can always be marshalled
		texts = append(texts, string(seen))
	}
	return hexOf(x.c.Digest(texts...))
}

// remember keeps where the client's copy of the history ends when it has this answer, and
// returns where in the session that is.
func (x *exchange) remember(answer string, calls []*session.ClientCall) (*position, error) {
	session := x.session
	row, err := x.c.App().Store.Session(x.c.Context(), session)
	if err != nil {
		return nil, err
	}
	var turn int
	if _, err := x.get(kindTurn, session, &turn); err != nil {
		return nil, err
	}
	if err := x.put(kindTurn, session, turn+1); err != nil {
		return nil, err
	}
	at := &position{turn + 1, row.Length, row.Rounds}
	if !x.who.known {
		return at, nil
	}
	seen := append(x.said(), messageWith(answer, calls))
	return at, x.put(kindHistory, x.historyKey(seen), at)
}

// said is the history with what the request adds to it.
func (x *exchange) said() []convo.Message {
	if len(x.outputs) > 0 {
		return slices.Concat(x.history, x.outputs)
	}
	return append(slices.Clone(x.history), x.message)
}

// forget removes what finds the round while it runs.
func (x *exchange) forget() {
	if x.key != "" && x.reply != nil && x.isDone() {
		// A row that stays is recognised as that of an ended round.
		_ = x.c.App().Store.DeleteDocument(context.WithoutCancel(x.c.Context()), kindRequest, x.key, 0)
	}
}

func (x *exchange) isDone() bool {
	select {
	case <-x.reply.Done():
		return true
	default:
		return false
	}
}

// link is a document that leads from an id of the protocol to a session.
type link struct {
	Session string          `json:"session"`
	Data    json.RawMessage `json:"data"`
}

// put keeps a document of the end user that is deleted with the round.
func (x *exchange) put(kind, id string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	body, err := json.Marshal(link{x.session, data})
	if err != nil {
		return err
	}
	d := store.Document{Kind: kind, ID: id, User: x.c.User(), Body: body}
	if x.reply != nil {
		d.Run = x.reply.Run()
	}
	ctx := context.WithoutCancel(x.c.Context())
	for {
		have, err := x.c.App().Store.Document(ctx, kind, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		d.Version = have.Version
		_, err = x.c.App().Store.PutDocument(ctx, d)
		if !errors.Is(err, store.ErrChanged) && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
}

// get reads a document and returns its session, "" for a document that is not there.
func (x *exchange) get(kind, id string, v any) (session string, err error) {
	d, err := x.c.App().Store.Document(x.c.Context(), kind, id)
	if err != nil {
		return "", ignoreMissing(err)
	}
	var l link
	if err := json.Unmarshal(d.Body, &l); err != nil {
		return "", err
	}
	return l.Session, json.Unmarshal(l.Data, v)
}

package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/livetext"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/store"
)

func now() int64 { return time.Now().Unix() }

// stateOf is the result of a round as a client gets it.
type stateOf struct {
	*session.ReplyState
	text string
}

func (s *stateOf) cancelled() bool {
	return s.ReplyState != nil && s.Status == engine.Cancelled
}

func responseUsage(s *stateOf) map[string]any {
	if s.ReplyState == nil {
		return nil
	}
	u := s.Spent
	return map[string]any{
		"input_tokens": u.Input, "input_tokens_details": map[string]any{"cached_tokens": u.Cached},
		"output_tokens": u.Output, "output_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning}, "total_tokens": u.Input + u.Output,
	}
}

// request checks and converts the body.
func (b *responseBody) request(c *server.Caller, r *http.Request) (*request, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	f, err := flowOf(c, b.Model)
	if err != nil {
		return nil, err
	}
	q := &request{flow: f, temper: b.Temperature, max: b.MaxOutputTokens, effort: b.Reasoning.Effort}
	if q.who, err = endUserOf(c, r, b.caller, b.Model); err != nil {
		return nil, err
	}
	if err := q.takeTools(b.Tools, b.ToolChoice); err != nil {
		return nil, err
	}
	if err := q.takeFormat("body.text", b.Text.Format); err != nil {
		return nil, err
	}
	q.addSystem(b.Instructions)
	list, err := messagesOf("body.input", b.Input)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if m.Role == "system" {
			q.addSystem(m.Text)
			continue
		}
		q.history = append(q.history, m)
	}
	if q.usedBy, err = loadFiles(c, "body.input", q.history); err != nil {
		return nil, err
	}
	if err := q.takeMessage("body.input"); err != nil {
		return nil, err
	}
	if err := q.checkDemands(); err != nil {
		return nil, err
	}
	if b.Background && len(q.outputs) > 0 {
		return nil, errBackground()
	}
	named := b.PreviousResponseID != ""
	if named && len(q.history) > 0 {
		return nil, server.InvalidRequest("body.input", "with previous_response_id the input is one message: the server has the others")
	}
	switch {
	case named:
		q.named, err = b.previous(c, q)
	case b.conversation() != "":
		q.named, err = conversationSession(c, q, b.conversation())
	}
	return q, err
}

// previous returns the session of an earlier response, or a fork of it if it has continued
// since.
func (b *responseBody) previous(c *server.Caller, q *request) (*weir.Session, error) {
	session, rec, err := responseOf(c, b.PreviousResponseID)
	if err != nil {
		return nil, err
	}
	if rec.Flow != q.flow.Name {
		return nil, server.InvalidRequest("body.previous_response_id", "the response is one of the model "+rec.Flow)
	}
	if rec.At == nil {
		return nil, server.NewProblem(http.StatusConflict, engine.CodeStatusConflict, "response "+b.PreviousResponseID+" is not complete")
	}
	x := &exchange{request: q, c: q.who.caller}
	return x.continueAt(session, *rec.At)
}

// createResponse answers a response.
func createResponse(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	var b responseBody
	err := decode(r, &b)
	var q *request
	if err == nil {
		q, err = b.request(c, r)
	}
	var x *exchange
	if err == nil {
		x, err = q.send(c, r)
	}
	if err != nil {
		handle(w, c, err)
		return
	}
	rec := &responseRecord{Token: c.Token(), Flow: q.flow.Name, Background: b.Background && x.reply != nil, Object: b.object(x, "in_progress")}
	rec.Spoken = b.Stream || rec.Background
	rec.Input, rec.Demands = x.said(), q.demands
	if err := x.keep(&b, rec); err != nil {
		handle(w, c, err)
		return
	}
	switch {
	case b.Stream:
		x.headers(w)
		streamRecord(w, c, &b, rec, -1, func() (*exchange, error) { return x, nil })
	case rec.Background:
		x.headers(w)
		writeJSON(w, http.StatusOK, rec.Object)
	default:
		c.Wait(w)
		if err := x.finish(&b, rec); err != nil {
			handle(w, x.c, err) // of the person for whom it waits
			return
		}
		x.headers(w)
		writeJSON(w, http.StatusOK, rec.Object)
	}
}

// finish waits for the round and keeps the complete response.
func (x *exchange) finish(b *responseBody, rec *responseRecord) error {
	defer x.forget()
	state, err := x.wait()
	if state == nil && err != nil {
		return err // the round was not seen to end
	}
	out := &stateOf{state, ""}
	if err == nil {
		var said livetext.Spoken
		if said, err = x.spoken(rec, state); err != nil {
			return err
		}
		out.text, rec.Ends = said.Text, said.Ends
		if rec.At, err = x.remember(out.text, x.calls(state)); err != nil {
			return err
		}
	}
	x.complete(rec.Object, out, err)
	return x.keep(b, rec)
}

// spoken returns the text of a response whose round rests.
func (x *exchange) spoken(rec *responseRecord, state *session.ReplyState) (s livetext.Spoken, err error) {
	if state == nil || !rec.Spoken || x.demands != nil {
		s.Text = x.textOf(state)
		return s, nil
	}
	if x.heard == nil {
		heard := livetext.NewOrdered(x.flow.Flow)
		for it, err := range x.reply.Items(x.c.UntilDrain()) {
			if err != nil {
				return s, err
			}
			heard.Next(&it)
		}
		x.heard = heard
	}
	return x.heard.End(state.Text, questionText(state.Interrupts)), nil
}

// keep stores a response, unless the client asked not to.
func (x *exchange) keep(b *responseBody, rec *responseRecord) error {
	if b.Store != nil && !*b.Store || x.reply == nil {
		return nil
	}
	rec.Message = cmp.Or(x.own, x.reply.Message)
	if x.own != "" {
		at := x.reply.Start()
		rec.Start = &at
	}
	return x.put(kindResponse, rec.Message, rec)
}

// responseOf reads a response that the caller may see, and its session.
func responseOf(c *server.Caller, id string) (session string, rec *responseRecord, err error) {
	missing := server.NotFound("response", id)
	message, ok := strings.CutPrefix(id, "resp_")
	if !ok {
		return "", nil, missing
	}
	d, err := c.App().Store.Document(c.Context(), kindResponse, message)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil, missing
	}
	if err != nil {
		return "", nil, err
	}
	var l link
	if err := json.Unmarshal(d.Body, &l); err != nil {
		return "", nil, err
	}
	if err := json.Unmarshal(l.Data, &rec); err != nil {
		return "", nil, err
	}
	if !c.Owns(d.User) && (rec.Token == "" || rec.Token != c.Token()) {
		return "", nil, missing
	}
	return l.Session, rec, nil
}

// exchangeOf returns the exchange of a stored response.
func exchangeOf(c *server.Caller, session string, rec *responseRecord) (*exchange, error) {
	row, err := c.App().Store.Session(c.Context(), session)
	if err != nil {
		return nil, err
	}
	f, err := c.Flow(rec.Flow)
	if err != nil {
		return nil, err
	}
	x := &exchange{request: &request{flow: f, who: endUser{caller: c}, demands: rec.Demands}, c: c, at: time.Now(), session: session}
	if row.User != c.User() && c.MayActAs() {
		if x.c, err = c.As(row.User); err != nil {
			return nil, err
		}
		if err := x.c.RequireFlow(rec.Flow); err != nil {
			return nil, err
		}
	}
	in, err := x.open(weir.SessionOptions{ID: session})
	if err != nil {
		return nil, err
	}
	reply := weir.ReplyStart{Message: rec.Message}
	if rec.Start != nil {
		x.own, reply = rec.Message, *rec.Start
	}
	x.reply, err = in.ReplyTo(context.WithoutCancel(c.Context()), reply, "")
	return x, err
}

// getResponse returns a response in its present state.
func getResponse(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	stream, after, err := streamQuery(r)
	var rec *responseRecord
	if err == nil {
		rec, err = refreshed(c, r.PathValue("response"))
	}
	if err != nil {
		handle(w, c, err)
		return
	}
	if stream {
		streamRecord(w, c, &responseBody{}, rec, after, func() (*exchange, error) {
			session, rec, err := responseOf(c, r.PathValue("response"))
			if err != nil {
				return nil, err
			}
			return exchangeOf(c, session, rec)
		})
		return
	}
	writeJSON(w, http.StatusOK, rec.Object)
}

// refreshed reads a response, and completes it if its round rests by now.
func refreshed(c *server.Caller, id string) (*responseRecord, error) {
	session, rec, err := responseOf(c, id)
	if err != nil || rec.Object["status"] != "in_progress" {
		return rec, err
	}
	run, err := runOf(c, rec)
	if errors.Is(err, store.ErrNotFound) {
		rec.Object["status"] = "failed"
		rec.Object["error"] = map[string]any{"code": engine.CodeNotFound, "message": "the round of the response was deleted"}
		return rec, nil
	}
	if err != nil {
		return nil, err
	}
	if run == "" {
		rec.Object["status"] = "queued"
		return rec, nil
	}
	row, err := c.App().Store.Run(c.Context(), run)
	if err != nil || !row.Head.Status.Ended() && row.Head.Status != engine.Paused {
		return rec, err
	}
	x, err := exchangeOf(c, session, rec)
	if err != nil {
		return nil, err
	}
	return x.settle(&responseBody{}, rec)
}

// runOf returns the run of a response that is not complete, "" while its message is queued.
func runOf(c *server.Caller, rec *responseRecord) (string, error) {
	if rec.Start != nil {
		_, err := c.App().Store.Run(c.Context(), rec.Start.Run)
		return rec.Start.Run, err
	}
	q, err := c.App().Store.FindQueued(c.Context(), rec.Message)
	return q.TakenBy, err
}

// cancelResponse cancels a response in the background.
func cancelResponse(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	id := r.PathValue("response")
	session, rec, err := responseOf(c, id)
	if err == nil && !rec.Background {
		err = server.InvalidRequest("body", "only a response in the background can be cancelled")
	}
	var x *exchange
	if err == nil && rec.Object["status"] == "in_progress" {
		if x, err = exchangeOf(c, session, rec); err == nil {
			err = x.reply.Cancel(context.WithoutCancel(c.Context()), "cancelled by the client")
		}
		if err == nil {
			err = x.finish(&responseBody{}, rec)
		}
	}
	if err != nil {
		handle(w, c, err)
		return
	}
	writeJSON(w, http.StatusOK, rec.Object)
}

// deleteResponse makes a response unreadable. Its session stays.
func deleteResponse(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	id := r.PathValue("response")
	_, rec, err := responseOf(c, id)
	for _, kind := range []string{kindProgress, kindResponse} {
		if err == nil {
			err = ignoreMissing(c.App().Store.DeleteDocument(context.WithoutCancel(c.Context()), kind, rec.Message, 0))
		}
	}
	if err != nil {
		handle(w, c, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": id, "object": "response", "deleted": true})
}

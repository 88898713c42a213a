package openai

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/livetext"
)

// How often text is sent while it is made. For a response in the background each time is a small write to the store.
const (
	pace           = 20 * time.Millisecond
	backgroundPace = 100 * time.Millisecond
)

// responseStream sends the events of a response. They have the numbers 0, 1, 2 and so on, unless text was void; see textStream.
type responseStream struct {
	out    *server.Stream
	object map[string]any
	item   map[string]any
	number int
	begun  bool // the item was announced
	after  int  // the number of the last event that the client has, -1 for none
}

func (s *responseStream) send(kind string, members map[string]any) error {
	e := map[string]any{"type": kind, "sequence_number": s.number}
	if s.number++; s.number-1 <= s.after {
		return nil
	}
	maps.Copy(e, members)
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.out.Send("event: " + kind + "\ndata: " + string(data) + "\n\n")
}

func (s *responseStream) lifecycle(kind string) error {
	return s.send("response."+kind, map[string]any{"response": s.object})
}

// fail ends the stream with an error; the response itself may still be completed. The client gets it whatever events it has.
func (s *responseStream) fail(p *server.Problem) {
	s.after = -1
	e := errorOf(p)
	_ = s.send("error", map[string]any{"code": e.Code, "message": e.Message, "param": nil}) // or the client has gone
}

// at says which part of which item an event is about.
func (s *responseStream) at(members map[string]any) map[string]any {
	members["output_index"] = 0
	if members["item"] == nil {
		members["item_id"], members["content_index"] = s.item["id"], 0
	}
	return members
}

// begin announces the item of the text.
func (s *responseStream) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	if err := s.send("response.output_item.added", s.at(map[string]any{"item": s.item})); err != nil {
		return err
	}
	return s.send("response.content_part.added", s.at(map[string]any{"part": textPart("")}))
}

// delta sends a piece of the text.
func (s *responseStream) delta(text string) error {
	return s.send("response.output_text.delta", s.at(map[string]any{"delta": text, "logprobs": []any{}}))
}

// end sends what completes the item.
func (s *responseStream) end(text string) error {
	if !s.begun {
		return nil
	}
	s.item = messageItem(s.object, text, "completed")
	if err := s.send("response.output_text.done", s.at(map[string]any{"text": text, "logprobs": []any{}})); err != nil {
		return err
	}
	if err := s.send("response.content_part.done", s.at(map[string]any{"part": textPart(text)})); err != nil {
		return err
	}
	return s.send("response.output_item.done", s.at(map[string]any{"item": s.item}))
}

// streamRecord sends the events of a response after one of them, while its round executes. open returns the exchange of that round.
func streamRecord(w http.ResponseWriter, c *server.Caller, b *responseBody, rec *responseRecord, after int, open func() (*exchange, error)) {
	begun := maps.Clone(rec.Object)
	begun["status"], begun["output"], begun["usage"], begun["error"] = "in_progress", []any{}, nil, nil
	delete(begun, "completed_at")
	s := &responseStream{out: c.Events(w), object: begun, item: messageItem(begun, "", "in_progress"), after: after}
	defer s.out.Close()
	if s.lifecycle("created") != nil || s.lifecycle("in_progress") != nil {
		return // the client has gone
	}
	t := &textStream{s: s}
	if rec.Background {
		t.progress = &progressStore{c: c, rec: rec}
	}
	var x *exchange
	err := t.load()
	if status := rec.Object["status"]; err == nil && (status == "in_progress" || status == "queued") {
		if x, err = open(); err == nil {
			rec, err = t.follow(x, b, rec)
		}
	}
	if err == nil {
		err = t.complete(rec)
	}
	if err != nil {
		s.fail(c.ProblemOf(x.retracted(err)))
	}
}

// follow sends the text of a response while its round executes, and returns the complete record.
func (t *textStream) follow(x *exchange, b *responseBody, rec *responseRecord) (*responseRecord, error) {
	if x.reply == nil { // the answer is known
		return rec, x.finish(b, rec)
	}
	every := pace
	if rec.Background {
		every = backgroundPace
		t.progress.x = x
	}
	heard := livetext.NewOrdered(x.flow.Flow)
	ctx := x.c.UntilDrain()
	err := livetext.ForwardPaced(ctx, x.reply.Items(ctx), every, func(it *weir.Item) { heard.Next(it) }, func() error {
		if x.demands != nil || !rec.Spoken { // an answer that does not comply is made again: it is sent when it is complete
			return nil
		}
		return t.advance(heard.Spoken(), false)
	}, func() error { return t.s.out.Send(": waiting\n\n") })
	if err != nil {
		if x.c.IsDraining() {
			err = server.Unavailable()
		}
		return rec, err
	}
	x.heard = heard
	return x.settle(b, rec)
}

// settle completes a record, unless another request has.
func (x *exchange) settle(b *responseBody, rec *responseRecord) (*responseRecord, error) {
	if rec.Message == "" { // it is not stored
		return rec, x.finish(b, rec)
	}
	defer x.c.Enter("response " + rec.Message)()
	_, have, err := responseOf(x.c, "resp_"+rec.Message)
	if err != nil {
		return rec, err
	}
	if have.Object["status"] == "in_progress" {
		return have, x.finish(b, have)
	}
	return have, nil
}

// complete sends the rest of a response that is complete.
func (t *textStream) complete(rec *responseRecord) error {
	t.s.object = rec.Object
	if rec.Object["status"] != "completed" {
		t.s.number = max(t.s.number, t.p.Next)
		return t.s.lifecycle("failed")
	}
	text := livetext.Spoken{Text: outputText(rec.Object), Ends: rec.Ends}
	if err := t.advance(text, true); err != nil {
		return err
	}
	if err := t.jump(len(text.Text)); err != nil {
		return err
	}
	output, _ := rec.Object["output"].([]any)
	err := t.s.end(text.Text)
	if err == nil {
		err = t.s.sendCalls(output)
	}
	if err == nil {
		err = t.s.lifecycle("completed")
	}
	return err
}

// errVoid means that the client has text which is not part of the response.
var errVoid = errors.New("the text after event starting_after is void: its call was made again")

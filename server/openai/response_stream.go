package openai

import (
	"encoding/json"
	"maps"
	"net/http"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/session"
)

// responseStream sends the events of a response.
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

// at says which part of which item an event is about.
func (s *responseStream) at(members map[string]any) map[string]any {
	members["output_index"] = 0
	if members["item"] == nil {
		members["item_id"], members["content_index"] = s.item["id"], 0
	}
	return members
}

// say sends a piece of text.
func (s *responseStream) say(text string) error {
	if text == "" {
		return nil
	}
	if !s.begun {
		s.begun = true
		if err := s.send("response.output_item.added", s.at(map[string]any{"item": s.item})); err != nil {
			return err
		}
		if err := s.send("response.content_part.added", s.at(map[string]any{"part": textPart("")})); err != nil {
			return err
		}
	}
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

// streamResponse sends a response while its round executes.
func (x *exchange) streamResponse(w http.ResponseWriter, b *responseBody, rec *responseRecord) {
	defer x.forget()
	x.headers(w)
	s := &responseStream{out: x.c.Events(w), object: rec.Object, item: messageItem(rec.Object, "", "in_progress"), after: -1}
	defer s.out.Close()
	if s.lifecycle("created") != nil || s.lifecycle("in_progress") != nil {
		return
	}
	state, reader, err := x.speak(s.say, func() error { return s.out.Send(": waiting\n\n") })
	text := ""
	if err == nil {
		text, err = x.endResponse(state, joinTexts(reader.Sent(), x.question), s, rec)
	}
	kind := "completed"
	if err != nil {
		kind = "failed"
	}
	x.complete(rec.Object, &stateOf{state, text}, x.retracted(err))
	if state != nil { // otherwise the round was not seen to end, and GET will complete the response
		if err := x.keep(b, rec); err != nil {
			return
		}
	}
	_ = s.lifecycle(kind) // the client has gone if it fails
}

// endResponse sends what the round waits for and the end of the item.
func (x *exchange) endResponse(state *session.ReplyState, sent string, s *responseStream, rec *responseRecord) (text string, err error) {
	text = sent
	if state != nil {
		text = joinTexts(sent, questionText(state.Interrupts))
	}
	if err := s.say(text[len(sent):]); err != nil {
		return text, err
	}
	calls := x.calls(state)
	if rec.At, err = x.remember(text, calls); err != nil {
		return text, err
	}
	if err := s.end(text); err != nil {
		return text, err
	}
	return text, s.sendCalls(outputOf(s.object, text, calls))
}

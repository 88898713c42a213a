package openai

import (
	"encoding/json"
	"net/http"

	"github.com/weir-run/weir/session"
)

// streamChat sends a chat completion in chunks.
func (x *exchange) streamChat(w http.ResponseWriter, withUsage bool) {
	x.headers(w)
	out := x.c.Events(w)
	defer out.Close()
	send := func(v any) error {
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return out.Send("data: " + string(data) + "\n\n")
	}
	say := func(text string) error {
		if text == "" {
			return nil
		}
		return send(x.chunk(map[string]any{"content": text}, nil))
	}
	if send(x.chunk(map[string]any{"role": "assistant", "content": ""}, nil)) != nil {
		return
	}
	state, reader, err := x.speak(say, func() error { return out.Send(": waiting\n\n") })
	if err == nil {
		err = x.endChat(state, joinTexts(reader.Sent(), x.question), say)
	}
	if err != nil { // the client gets it unless it has gone
		_ = send(map[string]any{"error": errorOf(x.c.ProblemOf(x.retracted(err)))})
		return
	}
	finish := "stop"
	if calls := x.calls(state); len(calls) > 0 {
		finish = "tool_calls"
		if send(x.chunk(map[string]any{"tool_calls": chatCalls(calls, true)}, nil)) != nil {
			return
		}
	}
	if send(x.chunk(map[string]any{}, finish)) != nil {
		return
	}
	if withUsage {
		last := x.chunk(nil, nil)
		last["choices"], last["usage"] = []any{}, usage(state)
		if send(last) != nil {
			return
		}
	}
	_ = out.Send("data: [DONE]\n\n") // the client has gone if it fails
}

// endChat says what the round waits for and keeps what the client has of the history.
func (x *exchange) endChat(state *session.ReplyState, sent string, say func(string) error) error {
	if state == nil {
		_, err := x.remember(sent, nil)
		return err
	}
	question := questionText(state.Interrupts)
	text := joinTexts(sent, question)
	if err := say(text[len(sent):]); err != nil {
		return err
	}
	_, err := x.remember(text, x.calls(state))
	return err
}

// chunk returns a piece of a chat completion.
func (x *exchange) chunk(delta map[string]any, finish any) map[string]any {
	return map[string]any{
		"id": x.id(), "object": "chat.completion.chunk", "created": x.at.Unix(), "model": x.flow.Name,
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": nil}},
	}
}

package openai

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/livetext"
	"github.com/weir-run/weir/session"
)

func hexOf(b []byte) string { return hex.EncodeToString(b) }

// wait waits until the round rests. A round that fails is an error; the record has it.
func (x *exchange) wait() (*session.ReplyState, error) {
	if x.question != "" {
		return nil, nil
	}
	state, err := x.reply.Wait(x.c.UntilDrain())
	if err != nil {
		if x.c.IsDraining() {
			err = server.Unavailable()
		}
		return nil, err
	}
	if err := failureOf(&state); err != nil {
		return &state, err
	}
	return &state, x.checkAnswer(&state)
}

// failureOf returns the error of a round that failed or was cancelled.
func failureOf(state *session.ReplyState) error {
	switch {
	case state.Error != nil && state.Status == engine.Failed:
		p := server.NewProblem(http.StatusInternalServerError, state.Error.Code, "run "+state.Run+" failed: "+state.Error.Message)
		if state.Error.Hint != "" {
			p.Hint = state.Error.Hint
		}
		return p
	case state.Status == engine.Failed || state.Status == engine.Cancelled:
		return server.NewProblem(http.StatusConflict, engine.CodeStatusConflict, "run "+state.Run+" was "+state.Status.String())
	}
	return nil
}

// textOf returns the answer as the client gets it: what was said, and what the round waits for.
func (x *exchange) textOf(state *session.ReplyState) string {
	if state == nil {
		return x.question
	}
	return joinTexts(state.Text, questionText(state.Interrupts))
}

func joinTexts(texts ...string) string {
	var out []string
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	return strings.Join(out, "\n\n")
}

// questionText says what a paused round waits for. Of questions that messages answer it has the first: that of the next
// message.
func questionText(open []engine.Interrupt) string {
	if q := session.AnsweredQuestion(open); q != nil && session.ClientCallOf(q) == nil {
		return joinTexts(q.Prompt, choices(q.Schema))
	}
	var texts []string
	for i := range open {
		q := &open[i]
		if session.ClientCallOf(q) != nil { // the client gets it as a call
			continue
		}
		texts = append(texts, strings.TrimSpace(fmt.Sprintf("Waiting for %s (%s): %s", q.ID, q.Kind, q.Prompt)))
	}
	return strings.Join(texts, "\n\n")
}

// choices lists the values that a question takes.
func choices(schema map[string]any) string {
	list, _ := schema["enum"].([]any)
	var out []string
	for _, v := range list {
		text, err := json.Marshal(v)
		if s, ok := v.(string); ok {
			text, err = []byte(s), nil
		}
		if err == nil {
			out = append(out, string(text))
		}
	}
	if out == nil {
		return ""
	}
	return "(" + strings.Join(out, ", ") + ")"
}

// headers names the session and the run of the answer.
func (x *exchange) headers(w http.ResponseWriter) {
	if x.reply == nil {
		return
	}
	w.Header().Set("X-Weir-Session", x.reply.Session.ID)
	if run := x.reply.Run(); run != "" {
		w.Header().Set("X-Weir-Run", run)
	}
}

// usage returns what the answer cost.
func usage(state *session.ReplyState) map[string]any {
	if state == nil {
		state = &session.ReplyState{}
	}
	u := state.Spent
	return map[string]any{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details": map[string]any{"cached_tokens": u.Cached},
	}
}

// id is that of the completion.
func (x *exchange) id() string {
	switch {
	case x.own != "":
		return "chatcmpl-" + x.own
	case x.reply == nil:
		return "chatcmpl-" + x.c.NewID()
	}
	return "chatcmpl-" + x.reply.Message
}

// completion returns a whole chat completion.
func (x *exchange) completion(state *session.ReplyState, text string) map[string]any {
	message, finish := map[string]any{"role": "assistant", "content": text, "refusal": nil}, "stop"
	if calls := x.calls(state); len(calls) > 0 {
		message["tool_calls"], finish = chatCalls(calls, false), "tool_calls"
		if text == "" {
			message["content"] = nil
		}
	}
	return map[string]any{
		"id": x.id(), "object": "chat.completion", "created": x.at.Unix(), "model": x.flow.Name,
		"choices": []any{map[string]any{"index": 0, "finish_reason": finish, "logprobs": nil, "message": message}},
		"usage":   usage(state),
	}
}

// speak calls say with the pieces of the answer as they are made, and beat while there are
// none. It returns the result of the round. The error livetext.ErrRetracted means that text
// which was sent is void; the round continues.
func (x *exchange) speak(say func(text string) error, beat func() error) (*session.ReplyState, *livetext.Reader, error) {
	reader := livetext.NewReader(x.flow.Flow)
	if x.question != "" {
		return nil, reader, say(x.question)
	}
	ctx := x.c.UntilDrain()
	err := livetext.Forward(ctx, x.reply.Items(ctx), func(it *weir.Item) error {
		if x.demands != nil { // an answer that does not comply is made again: it is sent when it is complete
			return nil
		}
		text, err := reader.Next(it)
		if err == nil && text != "" {
			err = say(text)
		}
		return err
	}, beat)
	if err != nil {
		return nil, reader, err
	}
	state, err := x.wait()
	if err != nil {
		return state, reader, err
	}
	rest, err := reader.End(state.Text)
	if err == nil {
		err = say(rest)
	}
	return state, reader, err
}

// retracted turns the error of a stream whose text is void into a problem that says where
// the answer will be.
func (x *exchange) retracted(err error) error {
	if errors.Is(err, errVoid) {
		p := server.NewProblem(http.StatusConflict, engine.CodeStatusConflict, err.Error())
		p.Hint = "read the response without starting_after"
		return p
	}
	if !errors.Is(err, livetext.ErrRetracted) {
		return err
	}
	p := server.NewProblem(http.StatusConflict, engine.CodeStatusConflict, "text that was sent is void: its call failed and is made again")
	if x != nil && x.reply != nil {
		p.Hint = "the run continues; read it with GET /v1/runs/" + x.reply.Run()
	}
	return p
}

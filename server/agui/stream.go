package agui

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/livetext"
	"github.com/weir-run/weir/session"
)

// protocol is the version of AG-UI.
const protocol = "1.0"

// events writes the events of a run.
type events struct {
	out     *server.Stream
	round   *round
	reader  *livetext.Reader
	message string          // the id of the open text message, "" for none
	count   int             // of text messages
	steps   map[string]bool // open ones
	calls   map[string]bool // calls that were announced
	// speakers are the nodes whose reasoning is sent.
	speakers map[string]bool
	thought  thought
	state    sharedState
}

func (e *events) send(kind string, members map[string]any) error {
	o := map[string]any{"type": kind}
	maps.Copy(o, members)
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return e.out.Send("data: " + string(data) + "\n\n")
}

// stream sends the events of the round until it rests.
func (x *round) stream(w http.ResponseWriter) {
	e := &events{out: x.c.Events(w), round: x, reader: livetext.NewReader(x.flow.Flow), speakers: livetext.Speakers(x.flow.Flow), steps: map[string]bool{}, calls: map[string]bool{}}
	defer e.out.Close()
	ids := map[string]any{"threadId": x.in.ThreadID, "runId": x.in.RunID}
	if e.send("RUN_STARTED", merge(ids, map[string]any{"protocolVersion": protocol})) != nil {
		return
	}
	if x.steered != nil {
		_ = e.taken(ids) // or it has gone
		return
	}
	if x.reply == nil { // the client cancelled a question
		_ = e.send("RUN_FINISHED", merge(ids, map[string]any{"outcome": map[string]any{"type": "cancelled"}})) // or it has gone
		return
	}
	err := e.follow()
	var state session.ReplyState
	if err == nil {
		state, err = x.reply.Wait(x.c.UntilDrain())
	}
	if err == nil {
		err = e.finish(&state, ids)
	}
	if err != nil { // the client gets it unless it has gone
		p := x.c.ProblemOf(err)
		if errors.Is(err, livetext.ErrRetracted) {
			p = server.NewProblem(http.StatusConflict, engine.CodeStatusConflict, "text that was sent is void: its call failed and is made again; the run continues")
		}
		_ = e.send("RUN_ERROR", map[string]any{"message": p.Detail, "code": p.Code})
	}
}

func merge(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// follow sends what the round does while it executes.
func (e *events) follow() error {
	ctx := e.round.c.UntilDrain()
	return livetext.Forward(ctx, e.round.reply.Items(ctx), e.item, func() error { return e.out.Send(": waiting\n\n") })
}

// item sends what an item says.
func (e *events) item(it *weir.Item) error {
	if err := e.followState(it); err != nil {
		return err
	}
	if err := e.reason(it); err != nil {
		return err
	}
	text, err := e.reader.Next(it)
	if err == nil {
		err = e.say(text)
	}
	if err != nil || it.PathPrefix != "" {
		return err
	}
	if it.Chunk != nil && it.Chunk.Call != nil && !it.Snapshot {
		return e.call(it.Chunk.Call)
	}
	switch x := it.Event.(type) {
	case *engine.NodeStarted:
		return e.step(x.Path, true)
	case *engine.NodeCompleted:
		return e.step(x.Path, false)
	case *engine.NodeFailed:
		return e.step(x.Path, false)
	}
	return nil
}

// step opens or closes the step of a node.
func (e *events) step(path string, open bool) error {
	if e.steps[path] == open {
		return nil
	}
	e.steps[path] = open
	kind := "STEP_FINISHED"
	if open {
		kind = "STEP_STARTED"
	}
	return e.send(kind, map[string]any{"stepName": path})
}

// say sends a piece of a text message.
func (e *events) say(text string) error {
	if text == "" {
		return nil
	}
	if err := e.endReasoning(); err != nil {
		return err
	}
	if e.message == "" {
		text = strings.TrimPrefix(text, "\n\n")
		e.count++
		e.message = "msg_" + e.round.reply.Message + "_" + e.round.in.RunID
		if e.count > 1 {
			e.message += "_" + strings.Repeat("i", e.count)
		}
		if err := e.send("TEXT_MESSAGE_START", map[string]any{"messageId": e.message, "role": "assistant"}); err != nil {
			return err
		}
	}
	return e.send("TEXT_MESSAGE_CONTENT", map[string]any{"messageId": e.message, "delta": text})
}

// endText closes the open text message.
func (e *events) endText() error {
	if e.message == "" {
		return nil
	}
	id := e.message
	e.message = ""
	return e.send("TEXT_MESSAGE_END", map[string]any{"messageId": id})
}

// call sends a call of a tool of the server. Those of the client are sent when the round waits for their outputs.
func (e *events) call(c *convo.Call) error {
	if e.round.tools[c.Name] {
		return nil
	}
	return e.announce(c)
}

// announce sends a tool call, once.
func (e *events) announce(c *convo.Call) error {
	if e.calls[c.ID] || c.ID == "" {
		return nil
	}
	e.calls[c.ID] = true
	if err := e.endReasoning(); err != nil {
		return err
	}
	if err := e.endText(); err != nil {
		return err
	}
	id := map[string]any{"toolCallId": c.ID}
	if err := e.send("TOOL_CALL_START", merge(id, map[string]any{"toolCallName": c.Name})); err != nil {
		return err
	}
	if err := e.send("TOOL_CALL_ARGS", merge(id, map[string]any{"delta": c.Arguments})); err != nil {
		return err
	}
	return e.send("TOOL_CALL_END", id)
}

// finish sends what the record adds, and how the run ended.
func (e *events) finish(state *session.ReplyState, ids map[string]any) error {
	if err := e.results(state); err != nil {
		return err
	}
	rest, err := e.reader.End(state.Text)
	if err == nil {
		err = e.say(rest)
	}
	var pending []string
	if err == nil {
		pending, err = e.pending(state.Interrupts)
	}
	if err == nil {
		err = e.endReasoning()
	}
	if err == nil {
		err = e.endText()
	}
	for path, open := range e.steps { // order: steps are independent
		if open && err == nil {
			err = e.step(path, false)
		}
	}
	if err != nil {
		return err
	}
	if err := e.sendState(state.Run, 0); err != nil {
		return err
	}
	end := merge(ids, map[string]any{"outcome": map[string]any{"type": "success"}, "result": app.OrEmpty(state.Outputs)})
	switch state.Status { //nolint:exhaustive // all others have completed
	case engine.Failed:
		if state.Error == nil {
			return errors.New("the run failed")
		}
		return e.send("RUN_ERROR", map[string]any{"message": state.Error.Message, "code": state.Error.Code})
	case engine.Cancelled:
		end["outcome"] = map[string]any{"type": "cancelled"}
	case engine.Paused:
		delete(end, "result")
		if open := interruptsOf(state.Interrupts); len(open) > 0 {
			end["outcome"] = map[string]any{"type": "interrupt", "interrupts": open}
		} else {
			end["outcome"] = map[string]any{"type": "success", "pendingToolCallIds": pending}
		}
	}
	return e.send("RUN_FINISHED", end)
}

// results sends the calls and the results of tools that entered the history.
func (e *events) results(state *session.ReplyState) error {
	for i := range state.Messages {
		m := &state.Messages[i].Message
		for j := range m.Calls {
			if err := e.call(&m.Calls[j]); err != nil {
				return err
			}
		}
		if m.Role != convo.Tool || !e.calls[m.CallID] {
			continue
		}
		if err := e.endText(); err != nil {
			return err
		}
		if err := e.send("TOOL_CALL_RESULT", map[string]any{"messageId": m.ID, "toolCallId": m.CallID, "content": m.Text, "role": "tool"}); err != nil {
			return err
		}
	}
	return nil
}

// interruptsOf returns the open questions of a run that are no calls of the client's tools.
func interruptsOf(open []engine.Interrupt) []any {
	out := []any{}
	for i := range open {
		q := &open[i]
		if session.ClientCallOf(q) != nil {
			continue
		}
		o := map[string]any{"id": q.ID, "reason": string(q.Kind)}
		if q.Prompt != "" {
			o["message"] = q.Prompt
		}
		if q.Schema != nil {
			o["responseSchema"] = q.Schema
		}
		if q.Due > 0 {
			o["expiresAt"] = time.UnixMilli(q.Due).UTC().Format(time.RFC3339)
		}
		out = append(out, o)
	}
	return out
}

package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/session"
)

// functionTool is a tool of a client: nested in chat completions, flat in responses.
type functionTool struct {
	Type string `json:"type"`
	function
	Function *function `json:"function"`
}

type function struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  map[string]any `json:"parameters"`
	// Strict changes nothing: arguments are checked against the schema in any case.
	Strict json.RawMessage `json:"strict"`
}

// functionsOf reads the tools of a client, nil for none.
func functionsOf(raw json.RawMessage) (*convo.ClientTools, error) {
	var list []functionTool
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, server.InvalidRequest("body.tools", "expected a list of functions")
	}
	out := &convo.ClientTools{}
	for i := range list {
		f := list[i].function
		if list[i].Function != nil {
			f = *list[i].Function
		}
		if list[i].Type != "function" {
			return nil, server.InvalidRequest("body.tools", "tools of type "+list[i].Type+" are not supported: the flow has its own; send functions")
		}
		out.List = append(out.List, convo.ClientTool{Name: f.Name, Description: f.Description, Parameters: f.Parameters})
	}
	if len(list) == 0 {
		return nil, nil
	}
	return out, server.CheckClientTools("body.tools", out)
}

// calls are those that the answer of the round contains.
func (x *exchange) calls(state *session.ReplyState) []*session.ClientCall {
	if state == nil {
		return nil
	}
	return session.ClientCallsOf(state.Interrupts)
}

// messageWith is the answer as a client sends it back.
func messageWith(text string, calls []*session.ClientCall) convo.Message {
	m := convo.Message{Role: convo.Assistant, Text: text}
	for _, call := range calls {
		m.Calls = append(m.Calls, convo.Call{ID: call.ID, Name: call.Name, Arguments: call.Arguments})
	}
	return m
}

// takeOutputs takes the outputs of functions from the end of the history.
func (q *request) takeOutputs() {
	n := len(q.history)
	for n > 0 && q.history[n-1].Role == convo.Tool {
		n--
	}
	q.outputs, q.history = slices.Clone(q.history[n:]), q.history[:n]
}

// pendingCalls returns the calls that the round of a session waits for.
func (x *exchange) pendingCalls(in *weir.Session) ([]*session.ClientCall, error) {
	row, err := in.Info(x.c.Context())
	if err != nil || row.Holder == "" {
		return nil, err
	}
	run, err := x.c.App().Store.Run(x.c.Context(), row.Holder)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	return session.ClientCallsOf(run.Head.Waiting), nil
}

// checkNoCalls refuses a message to a session whose round waits for outputs.
func (x *exchange) checkNoCalls(in *weir.Session) error {
	calls, err := x.pendingCalls(in)
	if err != nil || len(calls) == 0 {
		return err
	}
	return server.InvalidRequest("body."+x.place, "No tool output found for function call "+calls[0].ID+".")
}

// continueRound gives outputs to the round of the session that the request names, or whose history it resends.
func (x *exchange) continueRound(named *weir.Session) (err error) {
	if named == nil {
		if named, err = x.find(); err != nil {
			return err
		}
	}
	return x.sendOutputs(named)
}

// sendOutputs gives a round the outputs of all calls that it waits for.
func (x *exchange) sendOutputs(in *weir.Session) error {
	if in == nil {
		p := server.InvalidRequest("body."+x.place, "no session waits for the output of function call "+x.outputs[0].CallID)
		p.Hint = "name the session by previous_response_id, conversation or the header X-Weir-Session, or send the whole history with a token of a user"
		return p
	}
	defer x.c.Enter("outputs " + in.ID)()
	calls, err := x.pendingCalls(in)
	if err != nil {
		return err
	}
	for i := range x.outputs {
		if !slices.ContainsFunc(calls, func(c *session.ClientCall) bool { return c.ID == x.outputs[i].CallID }) {
			return server.InvalidRequest("body."+x.place, "No tool call found for function call output with call_id "+x.outputs[i].CallID+".")
		}
	}
	outputs := make([]string, len(calls))
	for i, call := range calls {
		at := slices.IndexFunc(x.outputs, func(m convo.Message) bool { return m.CallID == call.ID })
		if at < 0 {
			return server.InvalidRequest("body."+x.place, "No tool output found for function call "+call.ID+".")
		}
		if len(x.outputs[at].Parts) > 0 {
			return server.InvalidRequest("body."+x.place, "the output of a function is a text: images and files are not supported")
		}
		outputs[i] = x.outputs[at].Text
	}
	x.session, x.own = in.ID, x.c.NewID()
	for i, call := range calls {
		x.reply, err = in.Answer(context.WithoutCancel(x.c.Context()), call.Interrupt, outputs[i], weir.SendOptions{By: x.c.By()})
		if err != nil {
			return err
		}
	}
	return nil
}

// chatCalls returns calls as the message of a chat completion has them; a chunk numbers them.
func chatCalls(calls []*session.ClientCall, numbered bool) []any {
	out := make([]any, len(calls))
	for i, call := range calls {
		o := map[string]any{"id": call.ID, "type": "function", "function": map[string]any{"name": call.Name, "arguments": call.Arguments}}
		if numbered {
			o["index"] = i
		}
		out[i] = o
	}
	return out
}

// callItem returns a call as an item of a response.
func callItem(id, name, arguments, status string) map[string]any {
	return map[string]any{"type": "function_call", "id": "fc_" + strings.TrimPrefix(id, "call_"), "call_id": id, "name": name, "arguments": arguments, "status": status}
}

// outputOf returns the items of a complete response.
func outputOf(o map[string]any, text string, calls []*session.ClientCall) []any {
	out := []any{}
	if text != "" || len(calls) == 0 {
		out = append(out, messageItem(o, text, "completed"))
	}
	for _, call := range calls {
		out = append(out, callItem(call.ID, call.Name, call.Arguments, "completed"))
	}
	return out
}

// sendCalls streams the calls among the items of a complete response.
func (s *responseStream) sendCalls(output []any) error {
	for i, v := range output {
		whole, _ := v.(map[string]any)
		if whole["type"] != "function_call" {
			continue
		}
		id, _ := whole["call_id"].(string)
		name, _ := whole["name"].(string)
		arguments, _ := whole["arguments"].(string)
		item := callItem(id, name, "", "in_progress")
		for _, e := range []struct {
			kind    string
			members map[string]any
		}{
			{"response.output_item.added", map[string]any{"item": item}},
			{"response.function_call_arguments.delta", map[string]any{"item_id": item["id"], "delta": arguments}},
			{"response.function_call_arguments.done", map[string]any{"item_id": item["id"], "name": name, "arguments": arguments}},
			{"response.output_item.done", map[string]any{"item": whole}},
		} {
			e.members["output_index"] = i
			if err := s.send(e.kind, e.members); err != nil {
				return err
			}
		}
	}
	return nil
}

// errBackground refuses outputs of functions for a response in the background.
func errBackground() error {
	return server.NewProblem(http.StatusBadRequest, engine.CodeRequest, "a response that takes outputs of functions is not made in the background")
}

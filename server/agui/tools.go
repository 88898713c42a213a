package agui

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/session"
)

// toolOf is a tool that the client offers. Its metadata is for the client itself.
type toolOf struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// clientTools checks and converts the tools of the client, nil for none.
func (in *input) clientTools() (*convo.ClientTools, error) {
	if len(in.Tools) == 0 {
		return nil, nil
	}
	out := &convo.ClientTools{}
	for i := range in.Tools {
		t := &in.Tools[i]
		c := convo.ClientTool{Name: t.Name, Description: t.Description}
		if len(t.Parameters) > 0 {
			if err := json.Unmarshal(t.Parameters, &c.Parameters); err != nil {
				return nil, server.InvalidRequest("body.tools."+strconv.Itoa(i)+".parameters", "expected a JSON Schema, an object")
			}
		}
		out.List = append(out.List, c)
	}
	return out, server.CheckClientTools("body.tools", out)
}

// outputs returns the messages of the role tool at the end of those of the client, by call.
func (x *round) outputs() (map[string]string, error) {
	var out map[string]string
	for i := len(x.in.Messages) - 1; i >= 0 && x.in.Messages[i].Role == "tool"; i-- {
		m := &x.in.Messages[i]
		place := "body.messages." + strconv.Itoa(i)
		text, parts, err := contentOf(place, m.Content)
		if err == nil && len(parts) > 0 {
			err = server.InvalidRequest(place, "the output of a tool is a text: images and documents are not supported")
		}
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = map[string]string{}
		}
		out[m.ToolCallID] = text
	}
	return out, nil
}

// open returns the questions that the round of the thread waits for, and its run.
func (x *round) open() (run string, list []engine.Interrupt, err error) {
	row, err := x.session.Info(x.detached())
	if err != nil || row.Holder == "" {
		return "", nil, err
	}
	r, err := x.c.App().Store.Run(x.detached(), row.Holder)
	return row.Holder, r.Head.Waiting, err
}

// sendOutputs gives a round the outputs of all calls that it waits for. Outputs of other calls are those of the server's tools, or
// were given before.
func (x *round) sendOutputs(outputs map[string]string) error {
	defer x.c.Enter("agui " + x.session.ID)()
	run, open, err := x.open()
	if err != nil {
		return err
	}
	calls := session.ClientCallsOf(open)
	if len(calls) == 0 {
		return server.NewProblem(http.StatusConflict, engine.CodeInterruptUnknown, "the thread waits for the output of no tool")
	}
	for _, call := range calls {
		if _, ok := outputs[call.ID]; !ok {
			return server.InvalidRequest("body.messages", "the output of tool call "+call.ID+" is missing")
		}
	}
	if err := x.known(run); err != nil {
		return err
	}
	for _, call := range calls {
		x.reply, err = x.session.Answer(x.detached(), call.Interrupt, outputs[call.ID], weir.SendOptions{By: x.c.By()})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkNoCalls refuses a message to a thread whose round waits for outputs of tools.
func (x *round) checkNoCalls() error {
	_, open, err := x.open()
	if err != nil {
		return err
	}
	if calls := session.ClientCallsOf(open); len(calls) > 0 {
		return server.InvalidRequest("body.messages", "the thread waits for the output of tool call "+calls[0].ID+": send a message of the role tool")
	}
	return nil
}

// known reads which tools of the client the round has: it keeps those with which it began.
func (x *round) known(run string) error {
	v, err := x.c.App().Inspect(x.detached(), run, 0)
	if err != nil {
		return err
	}
	for _, c := range v.Contexts {
		x.addTools(c.Settings.ClientTools)
	}
	return nil
}

func (x *round) addTools(given *convo.ClientTools) {
	if given == nil {
		return
	}
	for i := range given.List {
		x.tools[given.List[i].Name] = true
	}
}

// pending sends the calls that the client makes, except those that it has, and returns their ids.
func (e *events) pending(open []engine.Interrupt) (ids []string, err error) {
	for i := range e.round.in.Messages {
		for _, call := range e.round.in.Messages[i].ToolCalls {
			e.calls[call.ID] = true
		}
	}
	for _, call := range session.ClientCallsOf(open) {
		ids = append(ids, call.ID)
		if err := e.announce(&convo.Call{ID: call.ID, Name: call.Name, Arguments: call.Arguments}); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

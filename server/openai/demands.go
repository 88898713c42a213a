package openai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/livetext"
	"github.com/weir-run/weir/session"
	"github.com/weir-run/weir/tool"
)

// answerFormat is the form of an answer: of a chat completion with the schema nested, of a response flat.
type answerFormat struct {
	Type string `json:"type"`
	answerSchema
	Nested *answerSchema `json:"json_schema"`
}

type answerSchema struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Schema      map[string]any `json:"schema"`
	// Strict changes nothing: the answer is checked against the schema in any case.
	Strict *bool `json:"strict"`
}

// schemaOf reads the form of an answer and returns its schema, nil for text.
func schemaOf(place string, raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var f answerFormat
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, server.InvalidRequest(place, "expected a format of the type text, json_object or json_schema: "+err.Error())
	}
	switch f.Type {
	case "text":
		return nil, nil
	case "json_object":
		return map[string]any{"type": "object"}, nil
	case "json_schema":
	default:
		return nil, server.InvalidRequest(place, "the format "+f.Type+" is not supported: text, json_object and json_schema are")
	}
	s := f.answerSchema
	if f.Nested != nil {
		s = *f.Nested
	}
	switch {
	case !tool.ValidName(s.Name):
		return nil, server.InvalidRequest(place, "the name of a schema has 1 to 64 letters, digits, - and _")
	case s.Schema == nil:
		return nil, server.InvalidRequest(place, "the format json_schema needs a schema")
	case s.Schema["type"] != "object":
		return nil, server.InvalidRequest(place, "the schema of an answer is one of an object: its type is object")
	}
	if err := session.CheckAnswerSchema(s.Schema); err != nil {
		return nil, server.InvalidRequest(place, "the schema is not valid: "+err.Error())
	}
	// Models are shown the name and what it is for with the schema.
	if s.Schema["title"] == nil {
		s.Schema["title"] = s.Name
	}
	if s.Schema["description"] == nil && s.Description != "" {
		s.Schema["description"] = s.Description
	}
	return s.Schema, nil
}

// choiceOf reads which functions must be called: nil leaves it to the model. offered is false for the choice none.
func choiceOf(raw json.RawMessage, tools *convo.ClientTools) (must []string, offered bool, err error) {
	const place = "body.tool_choice"
	text := strings.Trim(string(raw), `"`)
	switch text {
	case "", "null", "auto", "none":
		return nil, text != "none", nil
	}
	var names []string
	if tools != nil {
		for i := range tools.List {
			names = append(names, tools.List[i].Name)
		}
	}
	if text == "required" {
		if len(names) == 0 {
			return nil, false, server.InvalidRequest(place, "a call is required, but the request has no functions")
		}
		return names, true, nil
	}
	var one functionTool
	if json.Unmarshal(raw, &one) != nil || one.Type != "function" {
		return nil, false, server.InvalidRequest(place, "tool_choice is auto, none, required or a function")
	}
	name := one.Name
	if one.Function != nil {
		name = one.Function.Name
	}
	if !slices.Contains(names, name) {
		return nil, false, server.InvalidRequest(place, "the function "+name+" is not among the tools of the request")
	}
	return []string{name}, true, nil
}

// takeTools reads the functions of a client and whether they must be called.
func (q *request) takeTools(raw, choice json.RawMessage) error {
	tools, err := functionsOf(raw)
	if err != nil {
		return err
	}
	must, offered, err := choiceOf(choice, tools)
	if err != nil {
		return err
	}
	if offered {
		q.tools = tools
	}
	if len(must) == 0 {
		return nil
	}
	q.demand().MustCall = must
	return nil
}

// takeFormat reads the form of the answer.
func (q *request) takeFormat(place string, raw json.RawMessage) error {
	schema, err := schemaOf(place, raw)
	if schema != nil {
		q.demand().Schema, q.formatPlace = schema, place
	}
	return err
}

func (q *request) demand() *convo.AnswerDemands {
	if q.demands == nil {
		q.demands = &convo.AnswerDemands{}
	}
	return q.demands
}

// checkDemands finds the nodes that give the answer, and refuses what they cannot comply with.
func (q *request) checkDemands() error {
	d := q.demands
	if d == nil {
		return nil
	}
	place := q.formatPlace
	if d.MustCall != nil {
		place = "body.tool_choice"
		if len(q.outputs) > 0 {
			return server.InvalidRequest(place, "with outputs of functions tool_choice is auto: the round continues as it began")
		}
	}
	last := livetext.Last(q.flow.Flow)
	if len(last) == 0 {
		return server.InvalidRequest(place, "the answer of the flow "+q.flow.Name+" is not that of a model, which could comply")
	}
	for _, n := range last {
		if why := cannotComply(n, d); why != "" {
			return server.InvalidRequest(place, "the node "+n.ID+" of the flow "+q.flow.Name+" gives the answer, and "+why)
		}
		d.Nodes = append(d.Nodes, n.ID)
	}
	return nil
}

// cannotComply returns why a node cannot give the answer that a client demands, "" if it can.
func cannotComply(n *flow.Node, d *convo.AnswerDemands) string {
	switch {
	case n.Type != "llmRequest" && n.Type != "agent":
		return "a node of type " + n.Type + " cannot comply"
	case d.Schema != nil && n.With["schema"] != nil:
		return "has a schema of its own"
	case d.MustCall != nil && n.Type == "agent" && slices.ContainsFunc([]string{"mode", "pre", "todo", "post", "flows", "queue"}, func(s string) bool { return n.With[s] != nil }):
		return "is an agent with a queue: its models are not made to call functions"
	}
	return ""
}

// checkAnswer refuses an answer that the client did not ask for: the round may have begun with other demands, or
// have taken a way without the nodes that comply. A round that waits has no answer.
func (x *exchange) checkAnswer(state *session.ReplyState) error {
	d := x.demands
	if d == nil || len(state.Interrupts) > 0 {
		return nil
	}
	problem := ""
	if d.MustCall != nil {
		problem = "no function was called"
	} else if err := session.CheckAnswer(d.Schema, state.Text); err != nil {
		problem = "the answer does not fit the format of the request: " + err.Error()
	}
	if problem == "" {
		return nil
	}
	p := server.NewProblem(http.StatusInternalServerError, engine.CodeModelAnswer, "run "+state.Run+": "+problem)
	p.Hint = "a round keeps the format and the choice of functions with which it began; the flow may have ended without the node that complies with them"
	return p
}

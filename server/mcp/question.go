package mcp

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/server"
)

// state is what a client sends back with its answers. It is signed, so that it is only
// accepted from whom it was given to, for the same call.
type state struct {
	Run       string            `json:"run"`
	Questions map[string]string `json:"questions"` // ids of interrupts by the names that the client knows
	User      string            `json:"user"`
	Token     string            `json:"token"`
	Tool      string            `json:"tool"`
	Arguments string            `json:"arguments"` // digest
	Expires   int64             `json:"expires"`   // Unix seconds
}

// canAsk reports whether the client of a request can be asked by a result. An older one over
// HTTP cannot.
func canAsk(r *sdk.CallToolRequest) bool {
	p := r.Session.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false
	}
	return p.ProtocolVersion >= stateless || r.Extra == nil || r.Extra.Header == nil // over stdio it can
}

// questionsOf returns the questions of a run for a person, with the ids of their interrupts.
// A question has the name of its node, if no other question has.
func questionsOf(open []engine.Interrupt) (out sdk.InputRequestMap, ids map[string]string) {
	out, ids = sdk.InputRequestMap{}, map[string]string{}
	for i := range open {
		if q := &open[i]; q.Kind == engine.AwaitInput || q.Kind == engine.AwaitApproval {
			prompt := q.Prompt
			if prompt == "" {
				prompt = q.ID
			}
			name, _, _ := strings.Cut(q.ID, ":")
			if ids[name] != "" {
				name = q.ID
			}
			ids[name] = q.ID
			out[name] = &sdk.ElicitParams{Mode: "form", Message: prompt, RequestedSchema: formOf(q.Schema)}
		}
	}
	return out, ids
}

// answerMember is the one member of the form for a question whose answer is no flat object.
const answerMember = "answer"

// formOf returns the schema of a form: an object whose members are plain.
func formOf(schema map[string]any) map[string]any {
	if isFlat(schema) {
		return schema
	}
	member := map[string]any{"type": "string"}
	if isPlain(schema) {
		member = schema
	}
	return map[string]any{"type": "object", "properties": map[string]any{answerMember: member}, "required": []any{answerMember}}
}

func isPlain(schema map[string]any) bool {
	kind, _ := schema["type"].(string)
	return slices.Contains([]string{"string", "number", "integer", "boolean"}, kind)
}

func isFlat(schema map[string]any) bool {
	members, ok := schema["properties"].(map[string]any)
	for _, m := range members {
		one, is := m.(map[string]any)
		ok = ok && is && isPlain(one)
	}
	return ok && schema["type"] == "object"
}

// valueOf returns the answer that a form gives.
func valueOf(schema map[string]any, content map[string]any) (engine.Value, error) {
	v, err := engine.Normalize(content)
	if err != nil || isFlat(schema) {
		return v, err
	}
	o, _ := v.(map[string]any)
	text, ok := o[answerMember].(string)
	if !ok {
		return o[answerMember], nil
	}
	if node.CheckAnswer(schema, text) == nil {
		return text, nil
	}
	return node.ParseAnswer(schema, text)
}

// sign returns the state of a call whose run asks something.
func (t *flowTool) sign(r *sdk.CallToolRequest, x weir.Result, questions map[string]string) string {
	s := state{
		Run: x.Run, User: t.c.User(), Token: t.c.Token(), Tool: r.Params.Name, Arguments: t.digest(r.Params.Arguments),
		Expires: time.Now().Add(questionTime).Unix(), Questions: questions,
	}
	body, _ := json.Marshal(s) // texts and numbers can always be marshalled
	text := base64.RawURLEncoding.EncodeToString(body)
	return text + "." + hex.EncodeToString(t.c.Digest("mcp state", text))
}

func (t *flowTool) digest(arguments json.RawMessage) string {
	v, err := engine.ParseValue(arguments)
	if err != nil {
		v = string(arguments)
	}
	text, _ := json.Marshal(v) // in one form, whatever the order of its members was
	return hex.EncodeToString(t.c.Digest("mcp arguments", string(text)))
}

// verify reads a state that sign made for this call of this caller.
func (t *flowTool) verify(r *sdk.CallToolRequest) (*state, error) {
	refuse := func(why string) error {
		return &jsonrpc.Error{
			Code:    jsonrpc.CodeInvalidParams,
			Message: engine.CodeForbidden + ": the requestState " + why + " (call the tool again without requestState: it starts another run)",
		}
	}
	text, sum, _ := strings.Cut(r.Params.RequestState, ".")
	given, err := hex.DecodeString(sum)
	if err != nil || !hmac.Equal(given, t.c.Digest("mcp state", text)) {
		return nil, refuse("is not one of this server")
	}
	body, err := base64.RawURLEncoding.DecodeString(text)
	var s state
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	switch {
	case err != nil:
		return nil, refuse("cannot be read")
	case s.User != t.c.User() || s.Token != t.c.Token():
		return nil, refuse("was given to another caller")
	case s.Tool != r.Params.Name || s.Arguments != t.digest(r.Params.Arguments):
		return nil, refuse("belongs to another call")
	case time.Now().Unix() > s.Expires:
		return nil, refuse("has expired")
	}
	return &s, nil
}

// answer gives the answers of a client to the run that asked for them, once. The same answers
// again change nothing, and others are refused. It returns the run and how many events that had before.
func (t *flowTool) answer(r *sdk.CallToolRequest) (run string, events int64, err error) {
	s, err := t.verify(r)
	if err != nil {
		return "", 0, err
	}
	if err := t.c.Require(server.Answer); err != nil {
		return "", 0, err
	}
	row, err := t.c.Run(s.Run)
	if err != nil {
		return "", 0, err
	}
	answers, byID := answersTo(s.Questions, r.Params.InputResponses)
	key := r.Params.RequestState[strings.LastIndex(r.Params.RequestState, ".")+1:]
	_, err = t.c.Once("mcp answer "+s.Run, key, answers, func(string) (string, error) {
		ctx := context.WithoutCancel(t.c.Context())
		for i := range row.Head.Waiting {
			q := &row.Head.Waiting[i]
			e := byID[q.ID]
			if e == nil {
				continue
			}
			if e.Action != "accept" {
				_, err := t.c.App().Cancel(ctx, s.Run, t.c.By(), "the question "+q.ID+" was not answered: "+e.Action)
				return s.Run, err
			}
			v, err := valueOf(q.Schema, e.Content)
			if err != nil {
				return "", err
			}
			if _, err := t.c.App().Answer(ctx, s.Run, q.ID, v, t.c.By()); err != nil {
				return "", err
			}
		}
		return s.Run, nil
	})
	return s.Run, row.Events, err
}

// answersTo returns the answers to questions, by the names of the questions and by their ids.
// Answers to nothing that was asked are left out.
func answersTo(questions map[string]string, given sdk.InputResponseMap) (byName map[string]any, byID map[string]*sdk.ElicitResult) {
	byName, byID = map[string]any{}, map[string]*sdk.ElicitResult{}
	for name, response := range given {
		if e, ok := response.(*sdk.ElicitResult); ok && questions[name] != "" {
			byName[name], byID[questions[name]] = []any{e.Action, e.Content}, e
		}
	}
	return byName, byID
}

// waitingText says what a run waits for to a client that cannot be asked.
func waitingText(x weir.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Run %s is paused.", x.Run)
	for i := range x.Interrupts {
		q := &x.Interrupts[i]
		fmt.Fprintf(&b, " It waits for %s (%s): %s", q.ID, q.Kind, q.Prompt)
		if q.Schema != nil {
			schema, _ := json.Marshal(q.Schema) // came from JSON
			fmt.Fprintf(&b, " %s", schema)
		}
	}
	fmt.Fprintf(&b, " Answer with the tool %s, or read it later with %s.", answerTool, showTool)
	return b.String()
}

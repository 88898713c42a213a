package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/server"
)

// Register adds the routes of OpenAI's API to a server: models, chat completions, responses
// and conversations.
func Register(s *server.Server) {
	f := server.Face{Fail: writeError}
	s.Handle("GET /v1/models", server.Read, f, listModels)
	s.Handle("GET /v1/models/{model}", server.Read, f, getModel)
	s.Handle("POST /v1/chat/completions", server.Start, f, createChat)
	s.Handle("POST /v1/responses", server.Start, f, createResponse)
	s.Handle("GET /v1/responses/{response}", server.Read, f, getResponse)
	s.Handle("GET /v1/responses/{response}/input_items", server.Read, f, listInputItems)
	s.Handle("POST /v1/responses/{response}/cancel", server.Start, f, cancelResponse)
	s.Handle("DELETE /v1/responses/{response}", server.Start, f, deleteResponse)
	s.Handle("POST /v1/conversations", server.Start, f, createConversation)
	s.Handle("GET /v1/conversations/{conversation}", server.Read, f, getConversation)
	s.Handle("POST /v1/conversations/{conversation}", server.Start, f, updateConversation)
	s.Handle("DELETE /v1/conversations/{conversation}", server.Start, f, deleteConversation)
	s.Handle("GET /v1/conversations/{conversation}/items", server.Read, f, listItems)
	s.Handle("POST /v1/conversations/{conversation}/items", server.Start, f, addItems)
	s.Handle("GET /v1/conversations/{conversation}/items/{item}", server.Read, f, getItem)
	s.Handle("DELETE /v1/conversations/{conversation}/items/{item}", server.Start, f, deleteItem)
}

// apiError is the error object of the protocol.
type apiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

// errorOf returns the error object for a problem. Its code is Weir's.
func errorOf(p *server.Problem) apiError {
	e := apiError{Message: p.Detail, Type: "invalid_request_error", Code: p.Code}
	if p.Hint != "" {
		e.Message += " (" + p.Hint + ")"
	}
	switch {
	case p.Status == http.StatusUnauthorized:
		e.Type = "authentication_error"
	case p.Status == http.StatusForbidden:
		e.Type = "permission_error"
	case p.Status == http.StatusTooManyRequests:
		e.Type = "rate_limit_error"
	case p.Status >= http.StatusInternalServerError:
		e.Type = "server_error"
	}
	if len(p.Errors) > 0 && strings.HasPrefix(p.Errors[0].Place, "body.") {
		param := strings.TrimPrefix(p.Errors[0].Place, "body.")
		e.Param = &param
	}
	return e
}

// writeError writes a problem as the protocol has it. A request that is not valid has the
// status 400 there.
func writeError(w http.ResponseWriter, p *server.Problem) {
	status := p.Status
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	if status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests {
		// A client that repeats a failed request would start another round.
		w.Header().Set("X-Should-Retry", "false")
	}
	writeJSON(w, status, map[string]any{"error": errorOf(p)})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer cannot be encoded","type":"server_error","param":null,"code":"failed"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client has gone if it fails
}

// handle adapts a function that fails with an error.
func handle(w http.ResponseWriter, c *server.Caller, err error) {
	if err != nil {
		writeError(w, c.ProblemOf(err))
	}
}

// decode reads the body of a request into v. A member that v lacks is refused: it would have
// no effect.
func decode(r *http.Request, v any) error {
	data, err := server.ReadJSON(r.Body)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		err = d.Decode(v)
	}
	if err == nil {
		return nil
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return server.NewProblem(http.StatusRequestEntityTooLarge, engine.CodeRequestTooLarge, large.Error())
	}
	if name, ok := strings.CutPrefix(err.Error(), `json: unknown field "`); ok {
		name = strings.TrimSuffix(name, `"`)
		return server.InvalidRequest("body."+name, "flows have no setting "+name+"; set it in the flow")
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return server.InvalidRequest("body."+kind.Field, "expected another type than "+kind.Value)
	}
	return server.InvalidRequest("body", "the body is not valid JSON: "+err.Error())
}

// refuse returns an error for a member that has a value without effect, unless it is one of
// those that say the same as none.
func refuse(name string, v json.RawMessage, neutral ...string) error {
	text := string(bytes.TrimSpace(v))
	if text == "" || text == "null" {
		return nil
	}
	if slices.Contains(neutral, text) {
		return nil
	}
	return server.InvalidRequest("body."+name, name+" is not supported: the flow decides that")
}

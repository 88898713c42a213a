package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
)

// Problem is an error of the API, as RFC 9457 has it. Code is one of docs/errors.md.
type Problem struct {
	Type   string `json:"type" doc:"urn:weir:error:CODE"`
	Title  string `json:"title" doc:"The HTTP status in words"`
	Status int    `json:"status"`
	Code   string `json:"code" doc:"Stable; see errors.md"`
	Detail string `json:"detail" doc:"What happened"`
	Hint   string `json:"hint,omitempty" doc:"What to do"`
	// Errors are the single mistakes of a request or a flow.
	Errors []Mistake `json:"errors,omitempty"`
	// Confirmation belongs to a deletion that lists what it would delete.
	Confirmation string   `json:"confirmation,omitempty" doc:"Send it as ?confirm= to carry out the deletion"`
	Deletes      *Deleted `json:"deletes,omitempty" doc:"What the deletion would delete"`
}

// Mistake is one of several.
type Mistake struct {
	Place   string `json:"place,omitempty" doc:"A member of the request, or file:line:column"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

func newProblem(status int, code, detail string) *Problem {
	return &Problem{
		Type: "urn:weir:error:" + code, Title: http.StatusText(status), Status: status, Code: code, Detail: detail,
		Hint: engine.Remedy(code),
	}
}

// invalidRequest returns a mistake in a request.
func invalidRequest(place, message string) *Problem {
	p := newProblem(http.StatusUnprocessableEntity, engine.CodeRequest, message)
	p.Errors = []Mistake{{Place: place, Message: message}}
	return p
}

// notFound returns what a caller gets for an object that does not exist or is another user's:
// the two look the same.
func notFound(kind, id string) *Problem {
	p := newProblem(http.StatusNotFound, engine.CodeNotFound, "there is no "+kind+" "+quoted(id))
	p.Hint = "check the id; a list of what there is contains only objects of your own user"
	return p
}

// quoted returns a text of a request in a message.
func quoted(s string) string {
	const most = 100
	if len(s) > most {
		s = s[:most] + "..."
	}
	return `"` + app.Printable(strings.ToValidUTF8(s, "?")) + `"`
}

// StatusOf returns the HTTP status of an error code; 500 for one that no request causes.
func StatusOf(code string) int {
	switch code {
	case engine.CodeNotFound:
		return http.StatusNotFound
	case engine.CodeInput, engine.CodeAnswer, engine.CodeFork, engine.CodeFlowInvalid, engine.CodeUsage, engine.CodeValue,
		engine.CodeRequest, engine.CodeRequestReused, engine.CodeTypesUnknown, engine.CodeModelUnknownProvider:
		return http.StatusUnprocessableEntity
	case engine.CodeRunOwned, engine.CodeRunPoisoned, engine.CodeStatusConflict, engine.CodeInterruptUnknown, engine.CodeDependenciesChanged,
		engine.CodeSessionBusy, engine.CodeSessionMoved, engine.CodeSessionWaits, engine.CodeSteerLate, engine.CodeStoreBackup, engine.CodeConfirmation, engine.CodeFlowChanged, engine.CodeFlowPaused, engine.CodeConfigRefused:
		return http.StatusConflict
	case engine.CodeLink:
		return http.StatusGone
	case engine.CodeTooMany, engine.CodeQuota:
		return http.StatusTooManyRequests
	case engine.CodeUnauthenticated:
		return http.StatusUnauthorized
	case engine.CodeForbidden, engine.CodeNotGranted:
		return http.StatusForbidden
	case engine.CodeRequestTooLarge:
		return http.StatusRequestEntityTooLarge
	case engine.CodeRunStopped, engine.CodeUnavailable:
		return http.StatusServiceUnavailable
	case engine.CodeStoreFull:
		return http.StatusInsufficientStorage
	case engine.CodeStoreUnsupported:
		return http.StatusNotImplemented
	}
	return http.StatusInternalServerError
}

// problemOf turns the error of an operation into a problem.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	code := app.ErrorCode(err)
	p := newProblem(StatusOf(code), code, app.Printable(err.Error()))
	if e, ok := errors.AsType[*engine.Error](err); ok && e.Hint != "" {
		p.Hint = e.Hint
	}
	if e, ok := errors.AsType[*runner.Missing](err); ok {
		p.Hint = app.Printable(e.Hint())
	}
	if e, ok := errors.AsType[*app.NotGrantedError](err); ok {
		for _, missing := range e.Missing {
			p.Errors = append(p.Errors, Mistake{Code: missing.Code, Message: missing.Message, Hint: missing.Hint})
		}
	}
	if invalid, ok := errors.AsType[*flow.Invalid](err); ok {
		p.Errors = mistakesOf(invalid)
	}
	return p
}

// mistakesOf lists the problems of a flow.
func mistakesOf(e *flow.Invalid) []Mistake {
	out := make([]Mistake, 0, len(e.Problems))
	for _, x := range e.Problems {
		out = append(out, Mistake{Place: x.Pos.String(), Code: x.Code, Message: x.Message, Hint: x.Hint})
	}
	return out
}

// routerProblem returns an error of the router: a request that does not fit the description.
func routerProblem(status int, message string, errs []error) *Problem {
	code := map[int]string{
		http.StatusRequestEntityTooLarge: engine.CodeRequestTooLarge, http.StatusInternalServerError: engine.CodeFailed,
	}[status]
	if code == "" {
		code = engine.CodeRequest
	}
	p := newProblem(status, code, message)
	for _, err := range errs {
		if d, ok := errors.AsType[*huma.ErrorDetail](err); ok {
			p.Errors = append(p.Errors, Mistake{Place: d.Location, Message: d.Message})
		} else if err != nil {
			p.Errors = append(p.Errors, Mistake{Message: err.Error()})
		}
	}
	return p
}

// write sends the problem.
func (p *Problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client has gone if it fails
}

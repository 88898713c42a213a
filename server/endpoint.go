package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// endpoint serves one operation of the API: it reads the input of the handler from a request, checks it against the schemas of
// the description, and writes the output. It works on types that are known when the program runs, since a generic one
// would be compiled for each of the operations again: 35 kB each in the program.
type endpoint struct {
	api     huma.API
	op      *huma.Operation
	handler func(ctx context.Context, in any) (out any, err error)

	in         reflect.Type
	parameters []parameter
	body       []int // the field of the body; nil for none
	bodySchema *huma.Schema

	headers []header
	status  []int // the field that overrides the status of success; nil for none
	answer  []int // the field that is sent; nil for none
}

// parameter is a field of an input that is read from the path, the query or a header.
type parameter struct {
	field    []int
	in, name string
	required bool
	standard string // if there is none in the request
	schema   *huma.Schema
}

// header is a field of an output that is sent as a header.
type header struct {
	field []int
	name  string
}

// serve answers a request.
func (e *endpoint) serve(ctx huma.Context) {
	in := reflect.New(e.in)
	if p := e.read(ctx, in.Elem()); p != nil {
		e.write(ctx, p.Status, "", p)
		return
	}
	out, err := e.handler(ctx.Context(), in.Interface())
	if err != nil {
		p, ok := errors.AsType[*Problem](err)
		if !ok {
			p = problemOf(err)
		}
		e.write(ctx, p.Status, "", p)
		return
	}
	e.send(ctx, reflect.ValueOf(out).Elem())
}

// read fills the input from a request, or returns what is wrong with the request.
func (e *endpoint) read(ctx huma.Context, in reflect.Value) *Problem {
	url := ctx.URL()
	place, res := huma.NewPathBuffer(nil, 0), &huma.ValidateResult{}
	for key := range url.Query() {
		if !e.takes(key) {
			res.Add(at(place, "query", key), "", "unknown query parameter")
		}
	}
	if len(res.Errors) > 0 {
		return routerProblem(http.StatusUnprocessableEntity, invalid, res.Errors)
	}
	for i := range e.parameters {
		e.parameters[i].read(ctx, e.api.OpenAPI().Components.Schemas, in, place, res)
	}
	status := http.StatusUnprocessableEntity
	if e.body != nil {
		var p *Problem
		if status, p = e.readBody(ctx, in.FieldByIndex(e.body), place, res); p != nil {
			return p
		}
	}
	if len(res.Errors) > 0 {
		return routerProblem(status, invalid, res.Errors)
	}
	return nil
}

// invalid is the detail of a problem whose members say what does not fit the description.
const invalid = "validation failed"

func (e *endpoint) takes(key string) bool {
	for i := range e.parameters {
		if p := &e.parameters[i]; p.in == "query" && p.name == key {
			return true
		}
	}
	return false
}

// at makes place that of a member of a part of the request.
func at(place *huma.PathBuffer, parts ...string) *huma.PathBuffer {
	place.Reset()
	for _, p := range parts {
		place.Push(p)
	}
	return place
}

func (p *parameter) read(ctx huma.Context, r huma.Registry, in reflect.Value, place *huma.PathBuffer, res *huma.ValidateResult) {
	var text string
	switch p.in {
	case "path":
		text = ctx.Param(p.name)
	case "query":
		text = ctx.Query(p.name)
	case "header":
		text = ctx.Header(p.name)
	}
	if text == "" {
		text = p.standard
	}
	at(place, p.in, p.name)
	if text == "" {
		if p.required {
			res.Add(place, "", "required "+p.in+" parameter is missing")
		}
		return
	}
	v, err := parse(in.FieldByIndex(p.field), text)
	if err != nil {
		res.Add(place, text, err.Error())
		return
	}
	huma.Validate(r, p.schema, place, huma.ModeWriteToServer, v, res)
}

// parse sets a field to what a text says, and returns the value as schemas know it. isParameter lists the types.
func parse(field reflect.Value, text string) (any, error) {
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
		return text, nil
	case reflect.Bool:
		v, err := strconv.ParseBool(text)
		field.SetBool(v)
		return v, explain(err, "invalid boolean")
	case reflect.Int, reflect.Int64:
		v, err := strconv.ParseInt(text, 10, 64)
		field.SetInt(v)
		return v, explain(err, "invalid integer")
	case reflect.Float64:
		v, err := strconv.ParseFloat(text, 64)
		field.SetFloat(v)
		return v, explain(err, "invalid float")
	case reflect.Slice:
		list := strings.Split(text, ",")
		field.Set(reflect.ValueOf(list))
		return list, nil
	default:
		v, err := time.Parse(time.RFC3339Nano, text)
		field.Set(reflect.ValueOf(v))
		return text, explain(err, "invalid date/time for format "+time.RFC3339Nano)
	}
}

// isParameter reports whether parse knows a type.
func isParameter(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return true
	default:
		return t == reflect.TypeFor[[]string]() || t == reflect.TypeFor[time.Time]()
	}
}

func explain(err error, message string) error {
	if err != nil {
		return errors.New(message)
	}
	return nil
}

// readBody fills the body from a request. What does not fit is added to res, and status is that of the problem with it.
func (e *endpoint) readBody(ctx huma.Context, body reflect.Value, place *huma.PathBuffer, res *huma.ValidateResult) (status int, p *Problem) {
	status = http.StatusUnprocessableEntity
	data, p := e.bodyOf(ctx, res.Errors)
	if p != nil || len(data) == 0 {
		return status, p
	}
	media := ctx.Header("Content-Type")
	if media == "" {
		media = "application/json"
	}
	wrong := func(err error) {
		res.Errors = append(res.Errors, &huma.ErrorDetail{Location: "body", Message: err.Error(), Value: string(data)})
	}
	var v any
	if err := e.api.Unmarshal(media, data, &v); err != nil {
		wrong(err)
		if errors.Is(err, huma.ErrUnknownContentType) {
			return http.StatusUnsupportedMediaType, nil
		}
		return http.StatusBadRequest, nil
	}
	before := len(res.Errors)
	huma.Validate(e.api.OpenAPI().Components.Schemas, e.bodySchema, at(place, "body"), huma.ModeWriteToServer, v, res)
	if len(res.Errors) == before {
		if err := e.api.Unmarshal(media, data, body.Addr().Interface()); err != nil {
			wrong(err)
		}
	}
	return status, nil
}

// bodyOf reads the body of a request, in a bounded time. A problem with it also has the errors of the parameters.
func (e *endpoint) bodyOf(ctx huma.Context, errs []error) ([]byte, *Problem) {
	_ = ctx.SetReadDeadline(time.Now().Add(e.op.BodyReadTimeout)) // a test's recorder has none
	most := e.op.MaxBodyBytes
	var data bytes.Buffer
	n, err := io.Copy(&data, io.LimitReader(ctx.BodyReader(), most))
	switch timeout, ok := errors.AsType[net.Error](err); {
	case n == most:
		return nil, routerProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("request body is too large limit=%d bytes", most), errs)
	case ok && timeout.Timeout():
		return nil, routerProblem(http.StatusRequestTimeout, "request body read timeout", errs)
	case err != nil:
		return nil, routerProblem(http.StatusInternalServerError, "cannot read request body", []error{err})
	case n == 0 && e.op.RequestBody.Required:
		return nil, routerProblem(http.StatusBadRequest, "request body is required", errs)
	}
	return data.Bytes(), nil
}

// send writes an output.
func (e *endpoint) send(ctx huma.Context, out reflect.Value) {
	media, status := "", e.op.DefaultStatus
	for _, h := range e.headers {
		text := out.FieldByIndex(h.field).String()
		if text == "" {
			continue
		}
		ctx.SetHeader(h.name, text)
		if h.name == "Content-Type" {
			media = text
		}
	}
	if e.status != nil {
		status = int(out.FieldByIndex(e.status).Int())
	}
	if e.answer == nil {
		ctx.SetStatus(status)
		return
	}
	switch body := out.FieldByIndex(e.answer).Interface().(type) {
	case func(huma.Context):
		body(ctx)
	case []byte:
		ctx.SetStatus(status)
		_, _ = ctx.BodyWriter().Write(body) // the client has gone if it fails
	default:
		e.write(ctx, status, media, body)
	}
}

// write sends a value as JSON. It panics if the value has no JSON, which ends the connection.
func (e *endpoint) write(ctx huma.Context, status int, media string, v any) {
	if media == "" {
		media = "application/json"
		if p, ok := v.(*Problem); ok {
			media = p.ContentType(media)
		}
		ctx.SetHeader("Content-Type", media)
	}
	ctx.SetStatus(status)
	if status == http.StatusNoContent || status == http.StatusNotModified {
		return
	}
	if err := e.api.Marshal(ctx.BodyWriter(), media, v); err != nil && ctx.Context().Err() == nil {
		panic(fmt.Errorf("write the answer of %s %s: %w", e.op.Method, e.op.Path, err))
	}
}

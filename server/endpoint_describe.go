package server

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// newEndpoint describes an operation from the types of the input and the output of its handler, which are structs, and returns
// what serves it. In an input, a field has a tag path, query or header; the field Body is the body. In an output, Body is what is
// sent, Status the status, and any other field a header. It panics on a type that it does not know.
func newEndpoint(api huma.API, op *huma.Operation, in, out reflect.Type, handler func(context.Context, any) (any, error)) *endpoint {
	e := &endpoint{api: api, op: op, handler: handler, in: in}
	op.Responses = map[string]*huma.Response{}
	e.describeInput()
	e.describeOutput(out)
	e.describeError()
	api.OpenAPI().AddOperation(op)
	return e
}

// eachField calls a function for the exported fields of a struct and of the structs that it embeds.
func eachField(t reflect.Type, do func(f reflect.StructField, index []int)) {
	for _, f := range reflect.VisibleFields(t) {
		if f.IsExported() && !f.Anonymous {
			do(f, f.Index)
		}
	}
}

// name returns the name that a schema of a field of a type gets unless it has one.
func (e *endpoint) name(t reflect.Type, field, other string) string {
	if t.Name() != "" {
		return t.Name() + field
	}
	return e.op.OperationID + other
}

func (e *endpoint) describeInput() {
	registry := e.api.OpenAPI().Components.Schemas
	eachField(e.in, func(f reflect.StructField, index []int) {
		if f.Name != "Body" {
			e.addParameter(registry, f, index)
		}
	})
	f, ok := e.in.FieldByName("Body")
	if !ok {
		return
	}
	e.body = f.Index
	e.bodySchema = huma.SchemaFromField(registry, f, e.name(e.in, f.Name, "Request"))
	e.bodySchema.PrecomputeMessages()
	members := e.bodySchema
	if members.Ref != "" {
		members = registry.SchemaFromRef(members.Ref)
	}
	for name, m := range members.Properties {
		if m.Default != nil {
			panic(fmt.Sprintf("operation %s: the member %s of the body cannot have a default", e.op.OperationID, name))
		}
	}
	e.op.RequestBody = &huma.RequestBody{
		Required: f.Type.Kind() != reflect.Pointer && f.Type.Kind() != reflect.Interface || f.Tag.Get("required") == "true",
		Content:  map[string]*huma.MediaType{"application/json": {Schema: e.bodySchema}},
	}
}

func (e *endpoint) addParameter(registry huma.Registry, f reflect.StructField, index []int) {
	p := parameter{field: index, standard: f.Tag.Get("default")}
	for _, p.in = range []string{"path", "query", "header"} {
		if p.name = f.Tag.Get(p.in); p.name != "" {
			break
		}
	}
	if p.name == "" || !isParameter(f.Type) {
		panic(fmt.Sprintf("operation %s: the field %s of type %s cannot be a parameter", e.op.OperationID, f.Name, f.Type))
	}
	p.required = p.in == "path"
	if text, ok := f.Tag.Lookup("required"); ok {
		p.required = text == "true"
	}
	p.schema = huma.SchemaFromField(registry, f, "")
	e.parameters = append(e.parameters, p)
	for _, known := range e.op.Parameters {
		if known.Name == p.name && known.In == p.in {
			return
		}
	}
	d := &huma.Param{Name: p.name, In: p.in, Description: p.schema.Description, Required: p.required, Schema: p.schema}
	if p.in == "query" {
		d.Explode = new(bool) // a list is one text with commas
	}
	e.op.Parameters = append(e.op.Parameters, d)
}

func (e *endpoint) describeOutput(t reflect.Type) {
	registry := e.api.OpenAPI().Components.Schemas
	body, hasBody := t.FieldByName("Body")
	if e.op.DefaultStatus == 0 {
		e.op.DefaultStatus = http.StatusNoContent
		if hasBody {
			e.op.DefaultStatus = http.StatusOK
		}
	}
	r := &huma.Response{Description: http.StatusText(e.op.DefaultStatus)}
	e.op.Responses[strconv.Itoa(e.op.DefaultStatus)] = r
	if hasBody {
		e.answer, r.Headers = body.Index, map[string]*huma.Param{}
		if body.Type.Kind() != reflect.Func {
			schema := huma.SchemaFromField(registry, body, e.name(t, body.Name, "Response"))
			r.Content = map[string]*huma.MediaType{"application/json": {Schema: schema}}
		}
	}
	eachField(t, func(f reflect.StructField, index []int) {
		switch {
		case f.Name == "Body":
		case f.Name == "Status" && f.Type.Kind() == reflect.Int:
			e.status = index
		case f.Type.Kind() == reflect.String && f.Tag.Get("header") != "":
			h := header{field: index, name: f.Tag.Get("header")}
			e.headers = append(e.headers, h)
			if r.Headers == nil {
				r.Headers = map[string]*huma.Param{}
			}
			r.Headers[h.name] = &huma.Header{Schema: huma.SchemaFromField(registry, f, e.name(t, f.Name, strconv.Itoa(e.op.DefaultStatus)+h.name))}
		default:
			panic(fmt.Sprintf("operation %s: the field %s of type %s cannot be a header", e.op.OperationID, f.Name, f.Type))
		}
	})
}

// describeError adds the form of all errors.
func (e *endpoint) describeError() {
	problem := reflect.TypeFor[Problem]()
	e.op.Responses["default"] = &huma.Response{Description: "Error", Content: map[string]*huma.MediaType{
		(*Problem)(nil).ContentType(""): {Schema: e.api.OpenAPI().Components.Schemas.Schema(problem, true, problem.Name())},
	}}
}

package weir

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// Function is a node type made from a Go function; see Func. Its methods add properties and
// return it, so that calls can be chained before the type is passed to Open.
type Function struct {
	spec flow.TypeSpec
	make func(with map[string]any) (node.Node, error)
}

// Func makes a node type from a function. The fields of In are its input ports and those of
// Out its output ports. The name of a port is that of the field with a lower-case first
// letter, or the name in a tag `weir:"name"`. Options follow the name in the tag: "optional",
// "lazy", or "many" (a slice, from any number of edges). A field without options is required.
// In or Out may be struct{}.
//
// Func panics if In or Out is not a struct, which is a mistake in the program.
func Func[In, Out any](name string, f func(Ctx, In) (Out, error)) *Function {
	return FuncWith(name, func(ctx Ctx, in In, _ struct{}) (Out, error) { return f(ctx, in) })
}

// FuncWith is Func for a type with settings. The fields of Set are the keys of `with:`, named
// by the same rules. They are decoded once per node.
func FuncWith[In, Out, Set any](name string, f func(Ctx, In, Set) (Out, error)) *Function {
	in, out := portsOf[In](), portsOf[Out]()
	t := &Function{spec: flow.TypeSpec{
		Name: name, Version: 1, Category: "custom",
		Summary: "A Go function.", Settings: settingsOf[Set](),
	}}
	for _, p := range in {
		t.spec.Ports.In = append(t.spec.Ports.In, p.port)
	}
	for _, p := range out {
		t.spec.Ports.Out = append(t.spec.Ports.Out, p.port)
	}
	t.make = func(with map[string]any) (node.Node, error) {
		var set Set
		if err := decode(with, &set); err != nil {
			return nil, fmt.Errorf("settings of %s: %w", name, err)
		}
		return node.NodeFunc(func(c *node.Ctx) error {
			var args In
			if err := in.readInputs(c, reflect.ValueOf(&args).Elem()); err != nil {
				return err
			}
			result, err := f(c, args, set)
			if err != nil {
				return err
			}
			return out.writeOutputs(c, reflect.ValueOf(&result).Elem())
		}), nil
	}
	return t
}

// Spec implements Type.
func (t *Function) Spec() *flow.TypeSpec { return &t.spec }

// Prepare implements Type.
func (t *Function) Prepare(with map[string]any) (node.Node, error) { return t.make(with) }

// Doc sets the description of the type: one sentence, and Markdown.
func (t *Function) Doc(summary, doc string) *Function {
	t.spec.Summary, t.spec.Doc = summary, doc
	return t
}

// Version sets the version of the type, which is among a run's pinned dependencies. Increase it
// when the behaviour of the function changes. The default is 1.
func (t *Function) Version(n int) *Function {
	t.spec.Version = n
	return t
}

// Pure declares that the function has no effects, writes no context, and has outputs that
// depend only on settings, inputs and state. The runner may then execute it before its start is
// durable, and its results can be cached.
func (t *Function) Pure() *Function {
	t.spec.Pure = true
	return t
}

// Inline declares that the function is fast (microseconds). The runner may then call it on the
// goroutine that drives the run.
func (t *Function) Inline() *Function {
	t.spec.Inline = true
	return t
}

// WritesContext declares that the function changes its context (Ctx.Context). The type gets the
// input and output ports `context`. Use ReadsContext for a function that only reads it.
func (t *Function) WritesContext() *Function { return t.context(flow.ContextWrite) }

// ReadsContext declares that the function reads its context.
func (t *Function) ReadsContext() *Function { return t.context(flow.ContextRead) }

func (t *Function) context(use flow.ContextUse) *Function {
	p := flow.Port{Name: "context", Type: flow.TypeContext, Description: "The conversation to use."}
	if t.spec.Context == flow.ContextNone {
		t.spec.Ports.In = append(t.spec.Ports.In, p)
		t.spec.Ports.Out = append(t.spec.Ports.Out, p)
		inner := t.make
		t.make = func(with map[string]any) (node.Node, error) {
			n, err := inner(with)
			if err != nil {
				return nil, err
			}
			return node.NodeFunc(func(c *node.Ctx) error {
				if err := n.Run(c); err != nil {
					return err
				}
				m, err := c.Context()
				if err != nil {
					return err
				}
				c.Output("context", engine.Handle{ID: m.ID()})
				return nil
			}), nil
		}
	}
	t.spec.Context = use
	return t
}

// structPorts maps the fields of a struct to ports.
type structPorts []structPort

type structPort struct {
	port  flow.Port
	field int
	typ   reflect.Type
	// direct fields receive the value without conversion.
	direct bool
}

func portsOf[T any]() structPorts {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("weir.Func: %s is not a struct", t))
	}
	var out structPorts
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		name, opts := fieldName(f)
		if name == "-" {
			continue
		}
		p := structPort{field: i, typ: f.Type, port: flow.Port{
			Name: name, Type: portType(f.Type), Required: true,
			Description: f.Tag.Get("doc"),
		}}
		for _, o := range opts {
			switch o {
			case "optional":
				p.port.Required = false
			case "lazy":
				p.port.Lazy = true
			case "many":
				if f.Type.Kind() != reflect.Slice {
					panic(fmt.Sprintf("weir.Func: field %s of %s: a port for many edges is a slice", f.Name, t))
				}
				p.port.Many, p.port.Type = true, portType(f.Type.Elem())
			default:
				panic(fmt.Sprintf("weir.Func: field %s of %s: unknown option %q", f.Name, t, o))
			}
		}
		p.direct = f.Type.Kind() == reflect.Interface && f.Type.NumMethod() == 0 || scalar(f.Type)
		out = append(out, p)
	}
	return out
}

// fieldName returns the name of a field as a port or setting, and its options.
func fieldName(f reflect.StructField) (string, []string) {
	tag := strings.Split(f.Tag.Get("weir"), ",")
	if tag[0] != "" {
		return tag[0], tag[1:]
	}
	return strings.ToLower(f.Name[:1]) + f.Name[1:], tag[1:]
}

func scalar(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[string](), reflect.TypeFor[bool](), reflect.TypeFor[int64](), reflect.TypeFor[float64](),
		reflect.TypeFor[Handle]():
		return true
	case reflect.TypeFor[convo.Context](), reflect.TypeFor[*convo.Context](), reflect.TypeFor[*convo.Manager]():
		return true // refused by the runner: a context is passed as its handle
	}
	return false
}

func portType(t reflect.Type) flow.PortType {
	if t == reflect.TypeFor[Handle]() {
		return flow.TypeContext
	}
	switch t.Kind() {
	case reflect.String:
		return flow.TypeText
	case reflect.Bool:
		return flow.TypeBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return flow.TypeNumber
	case reflect.Slice, reflect.Array:
		return flow.TypeList
	case reflect.Struct, reflect.Map:
		return flow.TypeObject
	case reflect.Pointer:
		return portType(t.Elem())
	default:
		return flow.TypeAny
	}
}

// readInputs fills a struct from the node's inputs.
func (ps structPorts) readInputs(c *node.Ctx, v reflect.Value) error {
	for i := range ps {
		p := &ps[i]
		x, ok := c.Input(p.port.Name)
		if p.port.Lazy {
			var err error
			if x, ok, err = c.Pull(p.port.Name); err != nil {
				return err
			}
		}
		if !ok || x == nil {
			continue
		}
		f := v.Field(p.field).Addr().Interface()
		if p.direct && assign(f, x) {
			continue
		}
		if err := convert(x, f); err != nil {
			return &engine.Error{
				Code: engine.CodeValue, Permanent: true,
				Message: fmt.Sprintf("input %s: expected %s: %v", p.port.Name, p.typ, err),
			}
		}
	}
	return nil
}

// assign stores x in a direct field if the types match.
func assign(field any, x engine.Value) (ok bool) {
	switch f := field.(type) {
	case *any:
		*f, ok = x, true
	case *string:
		*f, ok = x.(string)
	case *bool:
		*f, ok = x.(bool)
	case *int64:
		*f, ok = x.(int64)
	case *float64:
		*f, ok = x.(float64)
	case *Handle:
		*f, ok = x.(Handle)
	}
	return ok
}

// writeOutputs sets the node's outputs from a struct. An optional field that is a nil pointer,
// slice, map or interface sets no output.
func (ps structPorts) writeOutputs(c *node.Ctx, v reflect.Value) error {
	for i := range ps {
		p := &ps[i]
		f := v.Field(p.field)
		if !p.port.Required && f.IsZero() {
			continue
		}
		x := f.Interface()
		if !p.direct {
			n, err := engine.Normalize(x)
			if err != nil {
				return &engine.Error{
					Code: engine.CodeValue, Permanent: true,
					Message: fmt.Sprintf("output %s: %v", p.port.Name, err),
				}
			}
			x = n
		}
		c.Output(p.port.Name, x)
	}
	return nil
}

// convert decodes the JSON of a value into the target of into.
func convert(v engine.Value, into any) error {
	b, err := engine.AppendValue(nil, v)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// decode fills a settings struct and rejects unknown keys.
func decode(with map[string]any, into any) error {
	t := reflect.TypeOf(into).Elem()
	v := reflect.ValueOf(into).Elem()
	for i := range t.NumField() {
		name, _ := fieldName(t.Field(i))
		x, ok := with[name]
		if !ok || !t.Field(i).IsExported() {
			continue
		}
		if err := convert(x, v.Field(i).Addr().Interface()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// settingsOf returns the JSON Schema of a settings struct.
func settingsOf[T any]() map[string]any {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("weir.FuncWith: %s is not a struct", t))
	}
	props, required := map[string]any{}, []any{}
	for f := range t.Fields() {
		if !f.IsExported() {
			continue
		}
		name, opts := fieldName(f)
		p := map[string]any{}
		if s := schemaType(f.Type); s != "" {
			p["type"] = s
		}
		if d := f.Tag.Get("doc"); d != "" {
			p["description"] = d
		}
		props[name] = p
		optional := false
		for _, o := range opts {
			optional = optional || o == "optional"
		}
		if !optional {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func schemaType(t reflect.Type) string {
	switch portType(t) {
	case flow.TypeText:
		return "string"
	case flow.TypeBool:
		return "boolean"
	case flow.TypeNumber:
		if k := t.Kind(); k != reflect.Float32 && k != reflect.Float64 {
			return "integer"
		}
		return "number"
	case flow.TypeList:
		return "array"
	case flow.TypeObject:
		return "object"
	default:
		return ""
	}
}

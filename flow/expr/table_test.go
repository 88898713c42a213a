package expr

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/types"
)

// arguments are values of every type, empty, null and missing ones among them.
func arguments() map[string]any {
	return map[string]any{
		"null": nil, "bool": true, "int": int64(1), "negative": int64(-1), "uint": uint64(2), "double": 1.5, "text": "a", "empty text": "",
		"bytes": []byte("x"), "list": []any{int64(1), int64(2)}, "empty list": []any{}, "object": map[string]any{"a": int64(1)},
		"empty object": map[string]any{}, "time": time.Unix(0, 0), "duration": time.Second, "type": types.IntType,
		"optional": types.OptionalOf(types.String("b")), "no value": types.OptionalNone,
	}
}

// valid returns an argument of a declared type.
func valid(t *types.Type) any {
	of := map[types.Kind]string{
		types.BoolKind: "bool", types.IntKind: "int", types.UintKind: "uint", types.DoubleKind: "double", types.StringKind: "text",
		types.BytesKind: "bytes", types.ListKind: "list", types.MapKind: "object", types.TimestampKind: "time",
		types.DurationKind: "duration", types.TypeKind: "type", types.OpaqueKind: "optional",
	}
	if name := of[t.Kind()]; name != "" {
		return arguments()[name]
	}
	return int64(1)
}

func TestEveryFunctionGivesAValueOrANamedErrorForEveryTypeOfArgument(t *testing.T) {
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for name, f := range env.Functions() {
		if usageOf(name) == "" {
			continue
		}
		for _, o := range f.OverloadDecls() {
			p := callOf(t, name, o)
			for position := range o.ArgTypes() {
				for kind, argument := range arguments() {
					cases++
					checkCall(t, p, o, position, kind, argument)
				}
			}
		}
	}
	if cases < 3000 {
		t.Errorf("%d calls; want 3,000 and more", cases)
	}
}

// callOf compiles a call whose arguments are names.
func callOf(t *testing.T, name string, o *decls.OverloadDecl) *Program {
	t.Helper()
	var args []string
	for i := range o.ArgTypes() {
		args = append(args, fmt.Sprint("a", i))
	}
	src := name + "(" + strings.Join(args, ", ") + ")"
	if o.IsMemberFunction() {
		src = args[0] + "." + name + "(" + strings.Join(args[1:], ", ") + ")"
	}
	p, err := Compile(src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return p
}

// checkCall calls a function with one argument of any type, and valid ones elsewhere.
func checkCall(t *testing.T, p *Program, o *decls.OverloadDecl, position int, kind string, argument any) {
	t.Helper()
	vars := Map{UUIDSeed: "seed"}
	for i, a := range o.ArgTypes() {
		vars[fmt.Sprint("a", i)] = valid(a)
	}
	vars[fmt.Sprint("a", position)] = argument
	v, err := p.Eval(vars)
	again, errAgain := p.Eval(vars)
	if !reflect.DeepEqual(v, again) || (err == nil) != (errAgain == nil) {
		t.Errorf("%s: %v, %v; then %v, %v", p.Source(), v, err, again, errAgain)
	}
	if err == nil {
		return
	}
	e := new(EvalError)
	switch {
	case !errors.As(err, &e) || e.Message == "" || e.Offset > len(p.Source()):
		t.Errorf("%s: %T %v", p.Source(), err, err)
	case strings.Contains(e.Message, "no such overload") || strings.Contains(e.Message, "internal error") || strings.Contains(e.Message, "%!"):
		t.Errorf("%s with %s as number %d: %s", p.Source(), kind, position, e.Message)
	}
}

// The table of functions has what the environment has.
func TestTheTableOfFunctionsIsComplete(t *testing.T) {
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, f := range Functions() {
		if known[f.Name] {
			t.Errorf("%s is listed twice", f.Name)
		}
		known[f.Name] = true
		if !slices.Contains(Groups(), f.Group) {
			t.Errorf("%s is in the group %q, which is not listed", f.Name, f.Group)
		}
		if !strings.Contains(f.Usage, f.Name) {
			t.Errorf("the usage %q does not show %s", f.Usage, f.Name)
		}
	}
	for name := range env.Functions() {
		if !known[name] && name != "in" && !strings.ContainsAny(name, "@_!-") {
			t.Errorf("the function %s is not in the table", name)
		}
	}
	for _, m := range env.Macros() {
		name := m.Function()
		if !known[name] && !known["math."+name] && !known["cel."+name] {
			t.Errorf("the macro %s is not in the table", name)
		}
	}
}

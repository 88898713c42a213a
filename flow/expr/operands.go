package expr

import (
	"math"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// newDecorator returns the additions to the steps of an expression: bounded comparisons,
// arithmetic on ints and doubles, and errors that name operands.
func newDecorator(tree ast.Expr) interpreter.InterpretableDecoratorV2 {
	apart := branches(tree)
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok {
			if apart[i.ID()] {
				return branchStep{i}, nil
			}
			return i, nil
		}
		if n := call.Function(); n == fnOr || n == fnOrValue {
			return orStep{call.ID(), n[1:], call.Args()[0], call.Args()[1]}, nil
		}
		if g := boundComparisons(call); g != nil {
			return g, nil
		}
		if a := arithmetic(call); a != nil {
			return a, nil
		}
		if s := sorting(call); s != nil {
			return s, nil
		}
		return namedCall{call}, nil
	}
}

// branches returns the branches of ?: operators. The interpreter would join them into one
// step whose errors do not name the branch; as separate steps they do.
func branches(tree ast.Expr) map[int64]bool {
	found := make(map[int64]bool)
	ast.PostOrderVisit(tree, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Conditional {
			for _, b := range e.AsCall().Args()[1:] {
				found[b.ID()] = true
			}
		}
	}))
	return found
}

// branchStep is a step that is not joined with others.
type branchStep struct{ interpreter.InterpretableV2 }

// namedCall is a call with errors that name the operands that the function does not accept.
type namedCall struct{ interpreter.InterpretableCall }

// Exec implements interpreter.InterpretableV2.
func (n namedCall) Exec(f *interpreter.ExecutionFrame) ref.Val {
	out := n.InterpretableCall.Exec(f)
	err, ok := out.(*types.Err)
	// The library's error without a message is one value for all places, whose id is that
	// of its first use.
	if !ok || err.NodeID() != n.ID() && out != types.NoSuchOverloadErr() || !strings.HasPrefix(err.Error(), "no such overload") {
		return out
	}
	args := make([]ref.Val, len(n.Args()))
	for i, a := range n.Args() {
		args[i] = a.Exec(f)
	}
	if plain, has := unwrapOptionals(n.Function(), args); has {
		if types.IsError(plain[0]) {
			return types.LabelErrNode(n.ID(), plain[0])
		}
		return types.LabelErrNode(n.ID(), dispatch(n.Function(), plain))
	}
	return types.LabelErrNode(n.ID(), undefined(n.Function(), args...))
}

// orStep is OPTIONAL.or(OPTIONAL) or OPTIONAL.orValue(DEFAULT). It replaces the library's
// step, whose error does not say what is wrong.
type orStep struct {
	id          int64
	name        string
	first, then interpreter.InterpretableV2
}

// ID implements interpreter.InterpretableV2.
func (s orStep) ID() int64 { return s.id }

// Eval implements interpreter.InterpretableV2.
func (s orStep) Eval(a interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(a, s.Exec)
}

// Exec implements interpreter.InterpretableV2.
func (s orStep) Exec(f *interpreter.ExecutionFrame) ref.Val {
	v := s.first.Exec(f)
	o, ok := v.(*types.Optional)
	switch {
	case types.IsUnknownOrError(v):
		return v
	case !ok:
		return types.LabelErrNode(s.id, types.NewErr("%s requires an optional value before it, such as a.?b or LIST.first(); got %s", s.name, kind(v)))
	case !o.HasValue():
		return s.then.Exec(f)
	case s.name == "or":
		return o
	}
	return o.GetValue()
}

// unwrapOptionals replaces optional values by their values; false if there are none. The
// first result is an error if one has no value.
func unwrapOptionals(function string, args []ref.Val) ([]ref.Val, bool) {
	has := false
	out := make([]ref.Val, len(args))
	for i, a := range args {
		out[i] = a
		o, ok := a.(*types.Optional)
		if !ok {
			continue
		}
		has = true
		if !o.HasValue() {
			return []ref.Val{types.NewErr("%s: %v", operatorName(function), errNoValue)}, true
		}
		out[i] = o.GetValue()
	}
	return out, has
}

// accepts reports whether a function that checks nothing itself accepts its first argument.
func accepts(env *cel.Env, function string, v ref.Val) bool {
	all, err := env.Functions()[function].Bindings()
	if err != nil {
		return false
	}
	for _, o := range all {
		if o.Operator == function {
			return o.OperandTrait == 0 || v.Type().HasTrait(o.OperandTrait)
		}
	}
	return false
}

// dispatch calls a function with values.
func dispatch(function string, args []ref.Val) ref.Val {
	env, err := environment()
	if err != nil {
		return types.WrapErr(err)
	}
	var out ref.Val
	if do, err := binding(env, function, function); err == nil {
		if !accepts(env, function, args[0]) {
			return undefined(function, args...)
		}
		out = do(args...)
	} else if r, ok := args[0].(traits.Receiver); ok {
		out = r.Receive(function, "", args[1:])
	}
	if bad, is := out.(*types.Err); out == nil || is && strings.HasPrefix(bad.Error(), "no such overload") {
		return undefined(function, args...)
	}
	return out
}

// arithmetic returns a numeric operator that accepts an int and a double and returns a
// double; nil for any other call.
func arithmetic(call interpreter.InterpretableCall) interpreter.InterpretableV2 {
	of := operation(call.Function())
	if of == nil || len(call.Args()) != 2 {
		return nil
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		if plain, has := unwrapOptionals(call.Function(), args); has {
			if args = plain; types.IsError(args[0]) {
				return args[0]
			}
		}
		a, b := promote(args[0], args[1])
		out := of(a, b)
		if err, bad := out.(*types.Err); bad && strings.HasPrefix(err.Error(), "no such overload") {
			return undefined(call.Function(), args...)
		}
		return out
	})
}

// operation returns the operator as a function of two values converted by promote; nil if
// it is not an arithmetic operator.
func operation(operator string) func(a, b ref.Val) ref.Val {
	switch operator {
	case operators.Add:
		return func(a, b ref.Val) ref.Val {
			if t, ok := a.(traits.Adder); ok {
				return t.Add(b)
			}
			return types.NoSuchOverloadErr()
		}
	case operators.Subtract:
		return func(a, b ref.Val) ref.Val {
			if t, ok := a.(traits.Subtractor); ok {
				return t.Subtract(b)
			}
			return types.NoSuchOverloadErr()
		}
	case operators.Multiply:
		return func(a, b ref.Val) ref.Val {
			if t, ok := a.(traits.Multiplier); ok {
				return t.Multiply(b)
			}
			return types.NoSuchOverloadErr()
		}
	case operators.Divide:
		return func(a, b ref.Val) ref.Val {
			if t, ok := a.(traits.Divider); ok {
				return t.Divide(b)
			}
			return types.NoSuchOverloadErr()
		}
	case operators.Modulo:
		return remainder
	}
	return nil
}

// remainder returns a % b. CEL has none of doubles.
func remainder(a, b ref.Val) ref.Val {
	if t, ok := a.(traits.Modder); ok {
		return t.Modulo(b)
	}
	x, ok := a.(types.Double)
	y, both := b.(types.Double)
	switch {
	case !ok || !both:
		return types.NoSuchOverloadErr()
	case y == 0:
		return types.NewErr("modulus by zero")
	}
	return types.Double(math.Mod(float64(x), float64(y)))
}

// promote converts both numbers to one type: double if one is a double, otherwise int.
func promote(a, b ref.Val) (ref.Val, ref.Val) {
	if !number(a) || !number(b) || a.Type() == b.Type() {
		return a, b
	}
	to := ref.Type(types.IntType)
	if a.Type() == types.DoubleType || b.Type() == types.DoubleType {
		to = types.DoubleType
	}
	x, y := a.ConvertToType(to), b.ConvertToType(to)
	if types.IsError(x) || types.IsError(y) { // a uint over 2^63
		return a, b
	}
	return x, y
}

func number(v ref.Val) bool {
	switch v.(type) {
	case types.Int, types.Uint, types.Double:
		return true
	}
	return false
}

// undefined returns the error of a function or operator that does not accept its operands.
func undefined(function string, args ...ref.Val) ref.Val {
	for _, a := range args {
		if types.IsUnknownOrError(a) {
			return a
		}
	}
	kinds := make([]string, len(args))
	for i, a := range args {
		kinds[i] = kind(a)
	}
	return types.NewErr("%s does not accept %s", operatorName(function), strings.Join(kinds, " and "))
}

// operatorName returns a function as it is written.
func operatorName(function string) string {
	if function == operators.Negate {
		return "-"
	}
	if op, ok := operators.FindReverse(function); ok && op != "" {
		return op
	}
	return function
}

// kind returns the name of a value's type.
func kind(v ref.Val) string {
	switch v.(type) {
	case types.Int:
		return "an int"
	case types.Uint:
		return "a uint"
	case types.Double:
		return "a double"
	case types.String:
		return "a text"
	case types.Bool:
		return "a bool"
	case types.Null:
		return "null"
	case traits.Lister:
		return "a list"
	case traits.Mapper:
		return "an object"
	case *types.Optional:
		return "an optional value"
	case types.Bytes:
		return "bytes"
	case types.Timestamp:
		return "a time"
	}
	return "a " + v.Type().TypeName()
}

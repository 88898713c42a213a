package expr

import (
	"strings"

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
		if g := boundComparisons(call); g != nil {
			return g, nil
		}
		if a := arithmetic(call); a != nil {
			return a, nil
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
	if !ok || err.NodeID() != n.ID() || !strings.HasPrefix(err.Error(), "no such overload") {
		return out
	}
	args := make([]ref.Val, len(n.Args()))
	for i, a := range n.Args() {
		args[i] = a.Exec(f)
	}
	return types.LabelErrNode(n.ID(), undefined(n.Function(), args...))
}

// arithmetic returns a numeric operator that accepts an int and a double and returns a
// double; nil for any other call.
func arithmetic(call interpreter.InterpretableCall) interpreter.InterpretableV2 {
	of := operation(call.Function())
	if of == nil || len(call.Args()) != 2 {
		return nil
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
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
		return func(a, b ref.Val) ref.Val {
			if t, ok := a.(traits.Modder); ok {
				return t.Modulo(b)
			}
			return types.NoSuchOverloadErr()
		}
	}
	return nil
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
	name := function
	if op, ok := operators.FindReverse(function); ok && op != "" {
		name = op
	}
	if function == operators.Negate {
		name = "-"
	}
	return types.NewErr("%s does not accept %s", name, strings.Join(kinds, " and "))
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
	}
	return "a " + v.Type().TypeName()
}

package expr

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"
)

// explain converts an error of CEL to one with its place and, if a reference did not
// resolve, the name of the reference. It parses the expression again, because errors are
// rare and keeping the syntax tree takes memory.
func (p *Program) explain(v Vars, err error) error {
	if errors.As(err, new(interpreter.EvalCancelledError)) {
		return p.fail(0, fmt.Sprintf("the expression takes more than %d steps", MaxCost))
	}
	msg := translateMessage(err.Error())
	at := new(types.Err)
	if !errors.As(err, &at) {
		return p.fail(0, msg)
	}
	env, err := environment()
	if err != nil {
		return p.fail(0, msg)
	}
	tree, iss := parse(env, p.src)
	if iss.Err() != nil {
		return p.fail(0, msg)
	}
	w := newRefCollector(env, p.src, tree.NativeRep())
	w.nodes = make(map[int64]int)
	w.walk(tree.NativeRep().Expr())
	if i, ok := w.nodes[at.NodeID()]; ok {
		if why, n := missingMember(v, w.refs[i]); why != "" {
			return p.missing(w.refs[i], n, why)
		}
		return p.fail(w.refs[i].Offset, msg)
	}
	return p.fail(w.offsetOf(at.NodeID()), msg)
}

// translateMessage rewrites CEL's message about operands in the terms of this language.
func translateMessage(msg string) string {
	switch {
	case msg == "no such overload":
		return "expected true or false (as a condition of ?:, and on both sides of || and &&)"
	case msg == "no such attribute(s): "+UUIDSeed:
		return "uuid cannot be used here"
	case strings.HasPrefix(msg, "got '") && strings.HasSuffix(msg, "expected iterable type"):
		return "map, filter, all, exists and similar macros require a list or an object (" + msg + ")"
	}
	return msg
}

// missingMember says why a reference does not resolve, "" if it does, and which member is
// missing, counting the root as number 0.
func missingMember(v Vars, r Ref) (why string, n int) {
	cur, ok := v.Lookup(r.Root)
	if !ok {
		return unknownName(r.Root), 0
	}
	path := r.Path
	if r.IsHas {
		path = path[:len(path)-1]
	}
	at := r.Root
	for i, name := range path {
		next, why := member(cur, name)
		if why != "" {
			return at + why, i + 1
		}
		cur, at = next, at+"."+name
	}
	return "", 0
}

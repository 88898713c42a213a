package engine

import (
	"fmt"

	"github.com/weir-run/weir/flow"
)

// SessionChanges returns what a round that completes now changes of the state of its
// session, sorted by key, nil for a run that is no round. It returns an error if the
// session's state would be larger than flow.MaxScopedBytes.
func (r *Run) SessionChanges() ([]SessionChange, *Error) {
	if r.Start.Session == "" {
		return nil, nil
	}
	var out []SessionChange
	size := 0
	for _, k := range r.plan.Flow.State {
		if k.Scope != flow.ScopeSession {
			continue
		}
		was, kept := r.Start.State.Get(k.Name)
		before := kept
		if !kept {
			was, before = k.Initial, k.Initial != nil
		}
		now, there := r.state.Get(k.Name)
		if there {
			size += len(k.Name) + sizeOf(now)
		}
		switch {
		case !there && kept:
			out = append(out, SessionChange{Key: k.Name, Delete: true})
		case there && (!before || !sameValue(was, now)):
			out = append(out, SessionChange{Key: k.Name, Value: now, Reducer: ReducerName(k.Reducer)})
		}
	}
	if len(out) > 0 && size > flow.MaxScopedBytes {
		return nil, &Error{
			Code: CodeStateSize, Permanent: true,
			Message: fmt.Sprintf("the state of session %s would have %d bytes, and the limit is %d", r.Start.Session, size, flow.MaxScopedBytes),
			Hint:    "keep large data in files or messages, and limit lists that grow with each round",
		}
	}
	return out, nil
}

// CompletedSessionState returns what the events of a commit change of the state of the
// run's session: the changes of the RunCompleted in it, if there is one.
func CompletedSessionState(events []Event) []SessionChange {
	for _, e := range events {
		if done, ok := e.(*RunCompleted); ok {
			return done.Session
		}
	}
	return nil
}

// CheckSessionValue reports why a value that a session kept cannot be the present value of a
// key that is declared with a reducer; it returns nil if it can. Wrote is the ReducerName of
// the declaration under which the value was written, "" if that is not known.
func CheckSessionValue(declared flow.Reducer, wrote string, v Value) error {
	if now := ReducerName(declared); wrote != "" && wrote != now {
		return fmt.Errorf("it was written under the reducer %s, and the key is declared with %s", wrote, now)
	}
	if declared == flow.ReduceAppend {
		if _, ok := v.([]any); !ok {
			return fmt.Errorf("append needs a list, got %T", v)
		}
		return nil
	}
	if v == nil {
		return nil
	}
	return checkOperand(declared, v)
}

// ReducerName names how writes to a key of a session's state combine. "none" is also
// replace: both keep the value that is written last.
func ReducerName(red flow.Reducer) string {
	if red == flow.ReduceNone || red == flow.ReduceReplace {
		return "none"
	}
	return string(red)
}

// StateBytes returns the size of values by key, as the limits of states measure it.
func StateBytes(values map[string]Value) int {
	n := 0
	for k, v := range values { // order: the result is a sum
		n += len(k) + sizeOf(v)
	}
	return n
}

// sameValue reports whether two values are the same, of the same kinds.
func sameValue(a, b Value) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a { // order: all members must be the same
			if w, there := b[k]; !there || !sameValue(v, w) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case []any, map[string]any: // which cannot be compared
		return false
	}
	return a == b
}

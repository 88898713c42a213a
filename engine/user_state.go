package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-run/weir/flow"
)

// UserChanges returns the operations that a run which completes now applies to the state of
// its user, sorted by key; nil for none, for a run without a user, and for a fork, which
// never writes back. It returns an error if the run's own view of the values would be larger
// than flow.MaxScopedBytes.
func (r *Run) UserChanges() (*UserStateWrite, *Error) {
	read := r.Start.UserState
	if read == nil || r.forked != nil {
		return nil, nil
	}
	out := &UserStateWrite{User: r.Start.User, Flow: read.Flow}
	size := 0
	for i := range r.plan.Flow.State {
		k := &r.plan.Flow.State[i]
		if k.Scope != flow.ScopeUser {
			continue
		}
		was, kept := r.Start.State.Get(k.Name)
		now, there := r.state.Get(k.Name)
		if there {
			size += len(k.Name) + sizeOf(now)
		}
		if c, changed := userChange(k, was, kept, now, there); changed {
			if k.OnConflict != "" {
				c.Expect = read.digestOf(k.Name)
			}
			out.Changes = append(out.Changes, c)
		}
	}
	if len(out.Changes) == 0 {
		return nil, nil
	}
	if size > flow.MaxScopedBytes {
		return nil, &Error{
			Code: CodeStateSize, Permanent: true,
			Message: fmt.Sprintf("the state of user %s in flow %s would have %d bytes, and the limit is %d", r.Start.User, read.Flow, size, flow.MaxScopedBytes),
			Hint:    "keep large data in files, messages or memory, and limit lists that grow with each run",
		}
	}
	return out, nil
}

// userChange returns the operation that turns the value that a run read into the one that it
// leaves; kept and there say whether the key had and has one.
func userChange(k *flow.StateKey, was Value, kept bool, now Value, there bool) (c UserChange, changed bool) {
	c = UserChange{Key: k.Name, Reducer: ReducerName(k.Reducer)}
	if !there {
		c.Delete = true
		return c, kept
	}
	before := kept
	if !kept {
		was, before, c.Initial = k.Initial, k.Initial != nil, k.Initial
	}
	if before && sameValue(was, now) {
		return c, false
	}
	c.Value = now
	if k.OnConflict != "" {
		c.Initial, c.Replace = nil, true
		return c, true
	}
	if !before || was == nil {
		return c, true
	}
	operand, ok := operandOf(k.Reducer, was, now)
	if !ok { // the run removed the value and set another
		c.Replace = true
		return c, true
	}
	c.Value = operand
	return c, true
}

// operandOf returns what the reducer combines with was to make now; ok is false if no value
// does. A sum of fractions may differ in the last digit.
func operandOf(red flow.Reducer, was, now Value) (operand Value, ok bool) {
	switch red {
	case flow.ReduceAppend:
		a, list := was.([]any)
		b, list2 := now.([]any)
		if !list || !list2 || len(b) < len(a) || !sameValue(a, b[:len(a)]) {
			return nil, false
		}
		return slices.Clone(b[len(a):]), true
	case flow.ReduceMerge:
		return addedMembers(was, now)
	case flow.ReduceMin, flow.ReduceMax:
		combined, err := Reduce(red, was, true, now)
		return now, err == nil && sameValue(combined, now)
	case flow.ReduceSum:
		return difference(was, now)
	default:
		return nil, false
	}
}

// addedMembers returns the members of now that was has not, or has with another value.
func addedMembers(was, now Value) (Value, bool) {
	a, ok := was.(map[string]any)
	b, ok2 := now.(map[string]any)
	if !ok || !ok2 {
		return nil, false
	}
	out := map[string]any{}
	for k, v := range b { // order: the result is a map
		if old, there := a[k]; !there || !sameValue(old, v) {
			out[k] = v
		}
	}
	for k := range a { // order: any missing member gives the answer
		if _, there := b[k]; !there {
			return nil, false
		}
	}
	return out, true
}

// difference returns now - was.
func difference(was, now Value) (Value, bool) {
	i, ok := was.(int64)
	j, ok2 := now.(int64)
	if ok && ok2 {
		if d := j - i; (d > 0) == (j > i) { // no overflow
			return d, true
		}
	}
	a, ok := toFloat(was)
	b, ok2 := toFloat(now)
	return b - a, ok && ok2
}

// ErrUserValueChanged: the value of a user is not the one that the run has read.
var ErrUserValueChanged = errors.New("the value has changed since the run read it")

// noUserValue is the UserDigest of a key without a value.
const noUserValue = "none"

// UserDigest identifies a value of a user; known says whether there is one. It follows from the
// value alone, so that it is the same in every database that holds the value.
func UserDigest(v Value, known bool) string {
	if !known {
		return noUserValue
	}
	b, err := EncodeValue(nil, v)
	if err != nil {
		return "" // what was stored can be encoded
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// digestOf returns the UserDigest of the value of a key as the run has read it.
func (u *UserStateRead) digestOf(key string) string {
	for i := range u.Versions {
		if v := &u.Versions[i]; v.Key == key {
			return v.Digest
		}
	}
	return noUserValue
}

// CompletedUserState returns the operations on the state of a user in the events of a
// commit: those of the RunCompleted in it, nil for none.
func CompletedUserState(events []Event) *UserStateWrite {
	for _, e := range slices.Backward(events) {
		if done, ok := e.(*RunCompleted); ok {
			return done.UserState
		}
	}
	return nil
}

// ApplyUserChange returns the value of a key after an operation; there is false if it has
// none then. Old is the present value, known whether there is one, and reducer the name under
// which it was written, "" if it was set by hand. The error says why the two do not fit; it is
// ErrUserValueChanged if the operation expects another value.
func ApplyUserChange(old Value, known bool, reducer string, c *UserChange) (v Value, there bool, err error) {
	switch {
	case c.Expect != "" && c.Expect != UserDigest(old, known):
		return nil, false, fmt.Errorf("state key %q: %w", c.Key, ErrUserValueChanged)
	case c.Delete:
		return nil, false, nil
	case c.Replace:
		return c.Value, true, nil
	case known && reducer != "" && reducer != c.Reducer:
		return nil, false, fmt.Errorf("state key %q was written under the reducer %s, and the operation has %s", c.Key, reducer, c.Reducer)
	case !known:
		old, known = c.Initial, c.Initial != nil
	}
	if v, err = Reduce(flow.Reducer(c.Reducer), old, known, c.Value); err != nil {
		return nil, false, fmt.Errorf("state key %q: %w", c.Key, err)
	}
	return v, true, nil
}

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/store"
)

// userKeys returns the state keys of a flow whose values live as long as the user, by name.
func userKeys(f *flow.Flow) map[string]*flow.StateKey {
	out := map[string]*flow.StateKey{}
	for i := range f.State {
		if f.State[i].Scope == flow.ScopeUser {
			out[f.State[i].Name] = &f.State[i]
		}
	}
	return out
}

// readUserState adds the values that the flow keeps for the user to those with which a run
// starts. A child run and a run without a user have none. Values that the caller has given
// stay. The error has the code state_incompatible if a value does not fit its key.
func (l *Local) readUserState(ctx context.Context, p *Program, b *StartOptions) error {
	keys := userKeys(p.Flow)
	if len(keys) == 0 || b.User == "" || b.Parent != "" {
		return nil
	}
	kept, err := l.store.UserState(ctx, b.User, p.Flow.Name)
	if errors.Is(err, store.ErrUnsupported) {
		return fmt.Errorf("flow %s has state keys with the scope user: %w", p.Flow.Name, err)
	}
	if err != nil {
		return err
	}
	read := &engine.UserStateRead{Flow: p.Flow.Name}
	state := slices.Clone(b.State)
	var bad []string
	for i := range kept {
		v := &kept[i]
		k := keys[v.Key]
		if k == nil {
			continue
		}
		if err := checkSessionValue(k, p.schemas[v.Key], v.Reducer, v.Value); err != nil {
			bad = append(bad, fmt.Sprintf("state key %q: %v", v.Key, err))
		}
		read.Versions = append(read.Versions, engine.UserVersion{Key: v.Key, Version: v.Version})
		if _, given := state.Get(v.Key); !given {
			state = append(state, engine.Named{Name: v.Key, Value: v.Value})
		}
	}
	if bad != nil {
		return userStateError(b.User, p.Flow.Name, strings.Join(bad, "; "))
	}
	b.State, b.userState = state, read
	return nil
}

// userStateError says that what a flow keeps for a user does not fit the flow.
func userStateError(user, name, why string) *engine.Error {
	return &engine.Error{
		Code: engine.CodeStateUnfit, Permanent: true,
		Message: fmt.Sprintf("the state of user %s does not fit flow %s as it is now: %s", user, name, why),
		Hint: fmt.Sprintf("set another value with `%s`, remove it with `%s`, or restore the declaration under `state:`",
			engine.CommandLine("users", "state", "set", user, "KEY=VALUE", "--flow", "FILE"), engine.CommandLine("users", "state", "reset", user, "KEY", "--flow-name", name)),
	}
}

// userChanges returns what the run that completes now does to the state of its user. The
// error says that the values cannot be combined with those that are stored by now, or are too
// large. The commit decides in the end: the store applies the operations to what is there then.
func (m *machine) userChanges() (*engine.UserStateWrite, *engine.Error) {
	w, err := m.run.UserChanges()
	if w == nil || err != nil || m.users == nil {
		return w, err
	}
	kept, failed := m.users.UserState(context.Background(), w.User, w.Flow)
	if errors.Is(failed, store.ErrUnsupported) {
		e := userStateError(w.User, w.Flow, "this database keeps no values of users")
		e.Hint = "continue the run in the database that it was started in"
		return nil, e
	}
	if failed != nil {
		return w, nil //nolint:nilerr // the commit reads the values again
	}
	for i := range w.Changes {
		c := &w.Changes[i]
		j := slices.IndexFunc(kept, func(v store.UserValue) bool { return v.Key == c.Key })
		if j < 0 {
			continue
		}
		if _, _, err := engine.ApplyUserChange(kept[j].Value, true, kept[j].Reducer, c); err != nil {
			return nil, userStateError(w.User, w.Flow, err.Error())
		}
	}
	return w, nil
}

// CheckUserEdit checks a value that is set by hand against the declaration of its key. The
// error has the code input_invalid.
func CheckUserEdit(f *flow.Flow, key string, v engine.Value) error {
	k := userKeys(f)[key]
	if k == nil {
		return &engine.Error{
			Code: engine.CodeInput, Permanent: true,
			Message: fmt.Sprintf("flow %s declares no state key %q with the scope user", f.Name, key),
			Hint:    fmt.Sprintf("declare it: `state: {%s: {scope: user, reducer: sum}}`", key),
		}
	}
	schema, err := schemaOf(k)
	if err != nil {
		return err
	}
	if err := checkSessionValue(k, schema, "", v); err != nil {
		return &engine.Error{
			Code: engine.CodeInput, Permanent: true,
			Message: fmt.Sprintf("state key %q: %v", key, err),
			Hint:    "give a value that fits the key's schema and reducer",
		}
	}
	return nil
}

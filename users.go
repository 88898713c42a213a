package weir

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// UserState returns the values of state keys with the scope user, for one user or, if user is
// "", for all users. They are sorted by user, flow and key.
func (w *Weir) UserState(ctx context.Context, user string) ([]store.UserValue, error) {
	return w.store.UserStates(ctx, user)
}

// SetUserState sets values that a flow keeps for a user, all or none. Runs that are in progress
// combine their writes with the new values. The error has the code input_invalid if the flow
// does not declare a key with the scope user, if a value does not fit its key, or if the values
// would exceed 64 KiB. By is the person who sets them.
func (w *Weir) SetUserState(ctx context.Context, f *Flow, user string, values map[string]any, by string) error {
	if err := checkUserName(user); err != nil {
		return err
	}
	kept, err := w.store.UserState(ctx, user, f.Name)
	if err != nil {
		return err
	}
	sizes := map[string]engine.Value{}
	for i := range kept {
		sizes[kept[i].Key] = kept[i].Value
	}
	e := store.UserStateEdit{Write: engine.UserStateWrite{User: user, Flow: f.Name}, By: by, At: time.Now()}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		v, err := engine.Normalize(values[key])
		if err == nil {
			err = runner.CheckUserEdit(f, key, v)
		}
		if err != nil {
			return err
		}
		sizes[key] = v
		e.Write.Changes = append(e.Write.Changes, engine.UserChange{Key: key, Value: v, Replace: true})
	}
	if n := engine.StateBytes(sizes); n > flow.MaxScopedBytes {
		return &engine.Error{
			Code: engine.CodeInput, Permanent: true,
			Message: fmt.Sprintf("the state of user %s in flow %s would have %d bytes, and the limit is %d", user, f.Name, n, flow.MaxScopedBytes),
			Hint:    "set a smaller value, or reset other keys",
		}
	}
	return w.store.EditUserState(ctx, e)
}

// ResetUserState removes values that the named flow keeps for a user, or all of them if no keys
// are given. The next run then starts with the initial values. The error has the code
// input_invalid if there is no such value.
func (w *Weir) ResetUserState(ctx context.Context, flowName, user string, keys []string, by string) error {
	if err := checkUserName(user); err != nil {
		return err
	}
	kept, err := w.store.UserState(ctx, user, flowName)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for i := range kept {
		known[kept[i].Key] = true
	}
	if len(keys) == 0 {
		keys = slices.Sorted(maps.Keys(known))
	}
	e := store.UserStateEdit{Write: engine.UserStateWrite{User: user, Flow: flowName}, By: by, At: time.Now()}
	for _, key := range keys {
		if !known[key] {
			return &engine.Error{
				Code: engine.CodeInput, Permanent: true,
				Message: fmt.Sprintf("flow %s keeps no value for user %s under the state key %q", flowName, user, key),
				Hint:    fmt.Sprintf("`%s` lists the keys", engine.CommandLine("users", "state", "show", user)),
			}
		}
		e.Write.Changes = append(e.Write.Changes, engine.UserChange{Key: key, Delete: true})
	}
	if len(e.Write.Changes) == 0 {
		return nil
	}
	return w.store.EditUserState(ctx, e)
}

// checkUserName checks that a name identifies a user.
func checkUserName(user string) error {
	if user == "" {
		return &engine.Error{Code: engine.CodeInput, Permanent: true, Message: "the name of the user is empty", Hint: "name the user"}
	}
	return runner.CheckName("user", user)
}

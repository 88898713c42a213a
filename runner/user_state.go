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
		version := engine.UserVersion{Key: v.Key, Version: v.Version}
		if k.OnConflict != "" {
			version.Digest = engine.UserDigest(v.Value, true)
		}
		read.Versions = append(read.Versions, version)
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

// userChanges returns what the run that completes now does to the state of its user, or how it
// fails: the values cannot be combined with those that are stored by now, or are too large. The
// commit decides in the end: the store applies the operations to what is there then.
func (m *machine) userChanges() (*engine.UserStateWrite, *engine.RunFailed) {
	w, err := m.run.UserChanges()
	if err != nil {
		return nil, &engine.RunFailed{Error: err}
	}
	if w == nil || m.users == nil {
		return w, nil
	}
	if failed := m.checkUserChanges(w); failed != nil {
		return nil, failed
	}
	return w, nil
}

// checkUserChanges compares operations with the values that are stored, and returns the failure of
// the run if they do not fit. It returns nil if the values cannot be read: the commit reads them again.
func (m *machine) checkUserChanges(w *engine.UserStateWrite) *engine.RunFailed {
	kept, failed := m.users.UserState(context.Background(), w.User, w.Flow)
	if errors.Is(failed, store.ErrUnsupported) {
		e := userStateError(w.User, w.Flow, "this database keeps no values of users")
		e.Hint = "continue the run in the database that it was started in"
		return &engine.RunFailed{Error: e}
	}
	if failed != nil {
		return nil
	}
	var changed []string
	keys, repeat := userKeys(m.program.Flow), true
	for i := range w.Changes {
		c := &w.Changes[i]
		j := slices.IndexFunc(kept, func(v store.UserValue) bool { return v.Key == c.Key })
		v := store.UserValue{}
		if j >= 0 {
			v = kept[j]
		}
		_, _, err := engine.ApplyUserChange(v.Value, j >= 0, v.Reducer, c)
		switch {
		case errors.Is(err, engine.ErrUserValueChanged):
			changed = append(changed, fmt.Sprintf("state key %q was %s", c.Key, changedBy(&v)))
			repeat = repeat && keys[c.Key] != nil && keys[c.Key].OnConflict == flow.ConflictRetryRound
		case err != nil:
			return &engine.RunFailed{Error: userStateError(w.User, w.Flow, err.Error())}
		}
	}
	if changed == nil {
		return nil
	}
	return m.lostRace(w, strings.Join(changed, "; "), repeat)
}

// changedBy says what changed a value of a user.
func changedBy(v *store.UserValue) string {
	switch {
	case v.Run != "":
		return "changed by run " + v.Run
	case v.By != "":
		return "set by " + v.By
	case v.Key != "":
		return "changed"
	}
	return "removed"
}

// maxRepeats limits how often the same round is repeated: each repetition pays for its model calls again.
const maxRepeats = 5

// lostRace returns the failure of a run because another one has changed the state of the user since. With repeat, a
// round of a session is put first into the queue of the session again.
func (m *machine) lostRace(w *engine.UserStateWrite, why string, repeat bool) *engine.RunFailed {
	e := &engine.Error{
		Code: engine.CodeStateChanged, Permanent: true,
		Message: fmt.Sprintf("the state of user %s in flow %s has changed since the run read it: %s", w.User, w.Flow, why),
		Hint:    "start the flow, or send the message, again; the change of this run is not applied",
	}
	out, s := &engine.RunFailed{Error: e}, m.run.Start
	if !repeat || s.Session == "" {
		return out
	}
	r := engine.RepeatedRound{Run: m.run.ID, Try: 1}
	if s.Repeats != nil {
		r.Try += s.Repeats.Try
	}
	if r.Try > maxRepeats {
		e.Hint = fmt.Sprintf("send the message again later: the round was repeated %d times, and other runs of the user were faster each time", maxRepeats)
		return out
	}
	e.Hint = "the round is repeated with the new values"
	out.Repeat = &engine.RoundRepeat{Message: engine.RepeatID(m.run.ID), Flow: s.Fingerprint, RepeatedRound: r}
	return out
}

// commitFailure makes the failure of a run durable in place of its completion, which the store has
// refused because of the state of the user. The other events of the commit stay.
func (x *Execution) commitFailure(one *[1]store.Append, c *engine.Commit, refused error) error {
	i := slices.IndexFunc(c.Events, func(e engine.Event) bool { _, ok := e.(*engine.RunCompleted); return ok })
	if i < 0 {
		return refused
	}
	w := c.Events[i].(*engine.RunCompleted).UserState
	failed := x.m.checkUserChanges(w)
	for tries := 0; failed == nil && tries < maxRepeats; tries++ { // the value is what it was, or was not read
		if err := x.local.committer.commit(one[:], x.ack); !errors.Is(err, store.ErrStateConflict) {
			return err
		}
		failed = x.m.checkUserChanges(w)
	}
	if failed == nil {
		return refused
	}
	if err := x.m.run.FailInstead(failed); err != nil {
		return err
	}
	c.Events[i] = failed
	a := &one[0]
	a.Commit, a.Head, a.Release = *c, head(x.m.run), x.releasesLease()
	return x.local.committer.commit(one[:], x.ack)
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

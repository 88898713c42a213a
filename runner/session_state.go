package runner

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/store"
)

// HasSessionState reports whether the flow declares state keys whose values live as long as
// the session.
func (p *Program) HasSessionState() bool { return len(sessionKeys(p.Flow)) > 0 }

func sessionKeys(f *flow.Flow) map[string]flow.StateKey {
	out := map[string]flow.StateKey{}
	for _, k := range f.State {
		if k.Scope == flow.ScopeSession {
			out[k.Name] = k
		}
	}
	return out
}

// SessionState returns the values of a session's state that the flow declares, as a round
// starts with them. The error has the code state_incompatible and lists every value that
// does not fit its key's schema or reducer.
func (p *Program) SessionState(session string, kept []store.StateValue) (engine.Values, error) {
	keys := sessionKeys(p.Flow)
	var out engine.Values
	var bad []string
	for _, v := range kept {
		k, declared := keys[v.Key]
		if !declared {
			continue
		}
		if err := checkSessionValue(&k, p.schemas[v.Key], v.Reducer, v.Value); err != nil {
			bad = append(bad, fmt.Sprintf("state key %q: %v", v.Key, err))
		}
		out = append(out, engine.Named{Name: v.Key, Value: v.Value})
	}
	if bad == nil {
		return out, nil
	}
	set := engine.CommandLine("sessions", "state", "set", session, "KEY=VALUE")
	reset := engine.CommandLine("sessions", "state", "reset", session, "KEY")
	return nil, &engine.Error{
		Code: engine.CodeStateUnfit, Permanent: true,
		Message: fmt.Sprintf("the state of session %s does not fit flow %s as it is now: %s", session, p.Flow.Name, strings.Join(bad, "; ")),
		Hint:    fmt.Sprintf("set another value with `%s`, remove it with `%s`, or restore the declaration under `state:`", set, reset),
	}
}

func checkSessionValue(k *flow.StateKey, s *node.Schema, wrote string, v engine.Value) error {
	if err := engine.CheckSessionValue(k.Reducer, wrote, v); err != nil {
		return err
	}
	if s != nil {
		return s.Check(v)
	}
	return nil
}

// CheckSessionEdit checks a value that is set by hand against the declaration of its key.
// The error has the code input_invalid.
func CheckSessionEdit(f *flow.Flow, key string, v engine.Value) error {
	k, declared := sessionKeys(f)[key]
	if !declared {
		return &engine.Error{
			Code: engine.CodeInput, Permanent: true,
			Message: fmt.Sprintf("flow %s declares no state key %q with the scope session", f.Name, key),
			Hint:    fmt.Sprintf("declare it: `state: {%s: {scope: session}}`, and name the flow's file if it has changed since the last round", key),
		}
	}
	schema, err := schemaOf(&k)
	if err != nil {
		return err
	}
	if err := checkSessionValue(&k, schema, "", v); err != nil {
		return &engine.Error{
			Code: engine.CodeInput, Permanent: true,
			Message: fmt.Sprintf("state key %q: %v", key, err),
			Hint:    "give a value that fits the key's schema and reducer, and name the flow's file if it has changed since the last round",
		}
	}
	return nil
}

// schemaOf compiles the schema of a state key, nil for none.
func schemaOf(k *flow.StateKey) (*node.Schema, error) {
	if k.Schema == nil {
		return nil, nil
	}
	s, err := node.CompileSchema(k.Schema)
	if err != nil {
		return nil, fmt.Errorf("state key %q: %w", k.Name, err)
	}
	return s, nil
}

// RunScopeNotices says, for a run without a session, which state keys live only as long as
// the run although the flow declares a longer life. User is the user of the run, "" for none.
func RunScopeNotices(f *flow.Flow, user string) []string {
	var out []string
	for _, k := range f.State {
		if k.Scope == flow.ScopeUser && user == "" {
			out = append(out, fmt.Sprintf("state key %s has the scope user, and this run has no user: its value ends with the run", k.Name))
		}
		if k.Scope == flow.ScopeSession {
			out = append(out, fmt.Sprintf("state key %s has the scope session, and this run has no session: its value ends with the run", k.Name))
		}
	}
	return out
}

package node

import (
	"fmt"
	"net/http"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow/expr"
)

// HTTPDoer performs HTTP requests; *http.Client is one.
type HTTPDoer interface {
	Do(req *http.Request) (*http.Response, error)
}

// TextOf renders a value as text: strings unchanged, message objects by their "text"
// member, nil as "", everything else as JSON.
func TextOf(v engine.Value) string {
	switch t := v.(type) {
	case nil:
		return ""
	case string:
		return t
	case map[string]any:
		if s, ok := t["text"].(string); ok && t["role"] != nil {
			return s
		}
	}
	b, err := engine.AppendValue(nil, v)
	if err != nil {
		return ""
	}
	return string(b)
}

// Lookup resolves the names that settings may read: inputs, state, run and now. It implements
// expr.Vars.
func (c *Ctx) Lookup(name string) (any, bool) {
	switch name {
	case "inputs":
		return c.inputs.Map(), true
	case "state":
		return c.state.current().Members(), true
	case "run":
		return c.host.RunVars(), true
	case "now":
		return c.info.Started, true
	case expr.UUIDSeed:
		return UUIDSeed(c.info.Run, c.info.Path, c.info.Attempt), true
	}
	return nil, false
}

// UUIDSeed returns what uuid(n) derives its values from: an attempt of a node, or with
// attempt 0 the outputs of the scope at path.
func UUIDSeed(run, path string, attempt int) string {
	return fmt.Sprintf("%s/%s@%d", run, path, attempt)
}

// Secrets returns the names of Lookup and also `secrets`, for settings marked secret,
// inside an effect.
func (c *Ctx) Secrets() SecretVars { return SecretVars{c} }

// SecretVars implements expr.Vars with secrets.
type SecretVars struct{ c *Ctx }

// Lookup resolves inputs, state, run and secrets.
func (s SecretVars) Lookup(name string) (any, bool) {
	if name == "secrets" {
		return secrets{s.c.host}, true
	}
	return s.c.Lookup(name)
}

// secrets implements expr.Object; it lists no names.
type secrets struct{ s Services }

// Get resolves one secret.
func (s secrets) Get(name string) (any, bool) { return s.s.Secret(name) }

// Len is 0: secrets cannot be listed.
func (s secrets) Len() int { return 0 }

// All is empty: secrets cannot be listed.
func (s secrets) All() map[string]any { return map[string]any{} }

package config

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Executors say what may run the code of action and decision nodes.
type Executors struct {
	// Order lists those that are offered, the first of a language being what
	// nodes in it use that name none. It is always set.
	Order  []string `json:"order"`
	Python Python   `json:"python"`
	E2B    E2B      `json:"e2b"`

	// Chosen: the files say something of the order or of executors.python.
	Chosen bool `json:"-"`
}

// Python is how executors.python runs code; zero fields are its own defaults.
type Python struct {
	Interpreter string   `json:"interpreter"` // its path, or a name to look for in the PATH
	Packages    []string `json:"packages"`    // folders that code may import from
	Memory      int64    `json:"memory"`      // MB of one job
	Parallel    int      `json:"parallel"`    // jobs at once
}

// Names of executors.
const (
	ExecutorPython   = "python"
	ExecutorStarlark = "starlark"
	ExecutorE2B      = "e2b"
)

// E2B is the cloud that executors.e2b runs code in. Empty addresses are those of
// E2B itself.
type E2B struct {
	Key        Key    `json:"key"`
	URL        string `json:"url"`        // of the API
	SandboxURL string `json:"sandboxURL"` // of all sandboxes, where they have one
	Domain     string `json:"domain"`     // under which the API and each sandbox have an address
	Template   string `json:"template"`
}

// isOtherCloud reports whether the file names another server than E2B's own.
func (e E2B) isOtherCloud() bool { return e.URL != "" || e.SandboxURL != "" || e.Domain != "" }

// variables of the environment that the public clients of E2B read too.
const (
	e2bKey     = "E2B_API_KEY"
	e2bURL     = "E2B_API_URL"
	e2bSandbox = "E2B_SANDBOX_URL"
	e2bDomain  = "E2B_DOMAIN"
)

// applyExecutorDefaults adds the order, and what the environment gives for E2B. A
// server that the file names is given no key that it does not name too.
func (c *Config) applyExecutorDefaults() {
	e := &c.Executors
	e.Chosen = e.Order != nil || !reflect.ValueOf(e.Python).IsZero()
	if !e.E2B.isOtherCloud() {
		e.E2B.URL, _ = c.env(e2bURL)
		e.E2B.SandboxURL, _ = c.env(e2bSandbox)
		e.E2B.Domain, _ = c.env(e2bDomain)
		if key, _ := c.env(e2bKey); key != "" && !e.E2B.Key.Set() {
			e.E2B.Key = Key{Env: e2bKey, assumed: true}
		}
	}
	e.E2B.Key.getenv = c.env
	if e.Order == nil {
		e.Order = []string{ExecutorPython, ExecutorStarlark}
		if e.E2B.Key.Set() {
			e.Order = append(e.Order, ExecutorE2B)
		}
	}
}

// checkExecutors finds what the schema cannot say of them.
func (d *document) checkExecutors() {
	d.checkUnique("executors", "order")
	e2b := mapAt(d.values, "executors", "e2b")
	for _, key := range []string{"url", "sandboxURL", "domain"} {
		if e2b[key] != nil && e2b["key"] == nil {
			d.report([]string{"executors", "e2b"}, "needs key, as it names a server of its own", literalHint)
			return
		}
	}
}

// executorFindings checks the executors as far as that is possible without calling them.
func (c *Config) executorFindings() []Finding {
	e := c.Executors.E2B
	offered := slices.Contains(c.Executors.Order, ExecutorE2B)
	if !offered {
		return nil
	}
	f := Finding{About: "executor e2b", State: "ok", Detail: RedactedURL(e.URL)}
	switch {
	case f.Detail != "":
	case e.Domain != "":
		f.Detail = "api." + e.Domain
	default:
		f.Detail = "api.e2b.app"
	}
	switch _, err := e.Key.Value(); {
	case !e.Key.Set():
		f.State, f.Detail, f.Remedy = "bad", f.Detail+", without a key", "set "+e2bKey+", or say where the key is: executors: {e2b: {key: {env: NAME}}}"
	case err != nil:
		f.State, f.Detail, f.Remedy = "bad", f.Detail+", "+err.Error(), "set the key, or say elsewhere where it is"
	default:
		f.Detail += ", " + e.Key.String()
	}
	return []Finding{f}
}

// resolvePythonPath makes the paths of executors.python begin at the folder of the
// file; a bare name of an interpreter is left to the PATH.
func (d *document) resolvePythonPath(dir string) {
	python := mapAt(d.values, "executors", "python")
	if path, ok := python["interpreter"].(string); ok && strings.ContainsRune(path, '/') && !filepath.IsAbs(path) {
		python["interpreter"] = filepath.Join(dir, path)
	}
	packages, _ := python["packages"].([]any)
	for i, p := range packages {
		if path, ok := p.(string); ok && !filepath.IsAbs(path) {
			packages[i] = filepath.Join(dir, path)
		}
	}
}

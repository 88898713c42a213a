package e2b

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

// The default options.
const (
	DefaultDomain   = "e2b.app"
	DefaultTemplate = "code-interpreter-v1"
)

// The default limits of jobs.
const (
	DefaultTime   = 60 * time.Second
	DefaultMemory = 512 << 20 // bytes
	DefaultOutput = 1 << 20   // bytes
)

// Options select the server that creates the sandboxes.
type Options struct {
	// Key returns the API key each time it is needed. It is sent to API only.
	Key func() (string, error)
	// API is the address for creating and deleting sandboxes; empty means api. of the domain.
	API string
	// Sandbox is the one address of all sandboxes; if empty, each has its own below Domain, as with E2B itself.
	Sandbox string
	// Domain is the domain of sandboxes if the server names none; empty means DefaultDomain.
	Domain string
	// Template is the template of sandboxes; empty means DefaultTemplate. It must have the code interpreter.
	Template string
	// HTTP makes the requests; nil means a client of its own. It must not follow redirects, because the key would be
	// sent along.
	HTTP *http.Client
}

// Executor runs Python in cloud sandboxes.
type Executor struct{ options Options }

// New returns an executor. It calls no server.
func New(o Options) *Executor {
	fill := func(field *string, otherwise string) {
		if *field == "" {
			*field = otherwise
		}
	}
	fill(&o.Domain, DefaultDomain)
	fill(&o.API, "https://api."+o.Domain)
	fill(&o.Template, DefaultTemplate)
	o.API, o.Sandbox = strings.TrimRight(o.API, "/"), strings.TrimRight(o.Sandbox, "/")
	if o.HTTP == nil {
		o.HTTP = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Executor{options: o}
}

// Name is "e2b".
func (e *Executor) Name() string { return "e2b" }

// Language is "python".
func (e *Executor) Language() string { return "python" }

// Probe reports whether there is a key. It calls no server: an invalid key is detected by the first job.
func (e *Executor) Probe(context.Context) error {
	if _, fault := e.key(); fault != nil {
		return fault
	}
	return nil
}

func (e *Executor) key() (string, *sandbox.Error) {
	fault := &sandbox.Error{
		Code: engine.CodeSandboxUnavailable, Message: "there is no key for E2B",
		Hint: "Set E2B_API_KEY, or say under executors.e2b.key of the configuration where the key is.",
	}
	if e.options.Key == nil {
		return "", fault
	}
	key, err := e.options.Key()
	if err != nil {
		fault.Message += ": " + err.Error()
		return "", fault
	}
	if key == "" {
		return "", fault
	}
	return key, nil
}

func withDefaults(l sandbox.Limits) sandbox.Limits {
	return l.WithDefaults(sandbox.Limits{Time: DefaultTime, Memory: DefaultMemory, Output: DefaultOutput})
}

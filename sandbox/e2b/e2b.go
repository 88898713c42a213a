package e2b

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

// What the options say where they say nothing.
const (
	DefaultDomain   = "e2b.app"
	DefaultTemplate = "code-interpreter-v1"
)

// What a job gets where its limits say nothing.
const (
	DefaultTime   = 60 * time.Second
	DefaultMemory = 512 << 20 // bytes
	DefaultOutput = 1 << 20   // bytes
)

// Options say which server makes the sandboxes.
type Options struct {
	// Key reads the API key, whenever it is needed. It is sent to API alone.
	Key func() (string, error)
	// API is the address that makes and deletes sandboxes, api. of the domain
	// where it is empty.
	API string
	// Sandbox is the one address of all sandboxes; empty, each has its own below
	// Domain, as with E2B itself.
	Sandbox string
	// Domain is that of sandboxes whose answer names none, DefaultDomain where it
	// is empty.
	Domain string
	// Template is what sandboxes are made from, DefaultTemplate where it is empty.
	// It must have the code interpreter.
	Template string
	// HTTP makes the requests, nil for a client of its own. Redirects must not be
	// followed, since the key would go along.
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

// Probe says whether there is a key. No server is called: whether it takes the
// key shows with the first job.
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

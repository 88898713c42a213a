// Package httptool creates tools from declared HTTP requests: a method, a URL and the
// places of the arguments.
//
// It must not know flows or nodes, or which addresses are allowed: its Doer decides that.
package httptool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/internal/httpcall"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/tool/template"
)

// Doer performs HTTP requests. It decides which destinations are allowed, including
// redirects: use one that cannot be led into your own network.
type Doer interface {
	Do(req *http.Request) (*http.Response, error)
}

// The default limits of a tool.
const (
	// DefaultTimeout limits one request.
	DefaultTimeout = 30 * time.Second
	// DefaultMaxBody is the number of bytes of a response that are read.
	DefaultMaxBody = 1 << 20
)

// Spec declares a tool. URL, Query, Headers and Body are templates over
// {{ args.NAME }}; Query, Headers and Body also over {{ secrets.NAME }}.
type Spec struct {
	// Name and Description are for models.
	Name, Description string
	// Parameters is the JSON Schema of the arguments; nil means none. Unless it allows
	// them, unknown arguments are refused.
	Parameters map[string]any
	// Method is GET by default. Tools with GET and HEAD are read-only; others send the key
	// of the call as Idempotency-Key.
	Method string
	// URL begins with http:// or https:// and a host, which contain no reference. Inserted
	// values are escaped: a value cannot add a segment to the path or a parameter to the
	// query, and a value in the path may not be empty or contain a segment "..".
	URL string
	// Query are parameters added to the URL. One whose template is a single reference is
	// omitted if the argument is not given, and repeated for each element of a list.
	Query map[string]string
	// Headers are sent with the request. One that is a single reference is omitted if the
	// argument is not given.
	Headers map[string]string
	// Body is a JSON value whose texts are templates. A text that is a single reference
	// becomes the value of that argument, and a member of an object is omitted if the
	// argument is not given. It is sent as JSON, a text verbatim. Nil sends the arguments
	// that no template names as an object; with GET, HEAD, DELETE and OPTIONS they are
	// added to the query instead.
	Body any

	Approve tool.Approval
	// OnUnknown is the policy for unknown outcomes; see tool.Tool.
	OnUnknown tool.OnUnknown
	// Timeout limits one request; 0 means DefaultTimeout.
	Timeout time.Duration
	// MaxBody is the number of bytes of a response that are read; 0 means DefaultMaxBody.
	// The rest is omitted, and the result says so.
	MaxBody int
	// MaxOutput limits the stored result in bytes; see tool.Tool.
	MaxOutput int
}

// Options are the external services of tools.
type Options struct {
	// HTTP performs the requests; required.
	HTTP Doer
	// Secrets resolves secrets.NAME for each request; nil has none.
	Secrets func(name string) (string, bool)
}

// New creates a tool. The error says what is wrong with the spec: a reference in the host,
// a secret in the URL, a parameter without a place, a header of the connection.
func New(s Spec, o Options) (*tool.Tool, error) {
	if o.HTTP == nil {
		return nil, errors.New("http tools need Options.HTTP")
	}
	r, err := compile(s)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", s.Name, err)
	}
	c := &requestTool{request: r, http: o.HTTP, secrets: o.Secrets, maxBody: s.MaxBody}
	if c.maxBody <= 0 {
		c.maxBody = DefaultMaxBody
	}
	t, err := tool.FromSchema(s.Name, s.Description, closedSchema(s.Parameters), c.call)
	if err != nil {
		return nil, err
	}
	t.ReadOnly = r.isReadOnly()
	t.Approve, t.OnUnknown, t.MaxOutput, t.Timeout = s.Approve, s.OnUnknown, s.MaxOutput, s.Timeout
	if t.Timeout == 0 {
		t.Timeout = DefaultTimeout
	}
	if names := r.secretNames(); len(names) > 0 {
		t.MissingSecrets = func() []string { return c.missing(names) }
	}
	t.Origin, err = origin(s, r.method)
	return t, err
}

// closedSchema returns a schema that accepts only the arguments it names; a schema that
// names none, such as {type: object}, accepts any.
func closedSchema(parameters map[string]any) map[string]any {
	if parameters == nil {
		return nil
	}
	c := maps.Clone(parameters)
	_, names := c["properties"]
	if _, ok := c["additionalProperties"]; !ok && names {
		c["additionalProperties"] = false
	}
	if _, ok := c["type"]; !ok {
		c["type"] = "object"
	}
	return c
}

// origin names the request and a digest of its details, so that the tool's hash changes
// with either.
func origin(s Spec, method string) (string, error) {
	b, err := json.Marshal([]any{s.Query, s.Headers, s.Body})
	if err != nil {
		return "", fmt.Errorf("tool %s: body: %w", s.Name, err)
	}
	sum := sha256.Sum256(b)
	return fmt.Sprintf("http:%s %s %s", method, s.URL, hex.EncodeToString(sum[:8])), nil
}

// compiledSpec is a Spec with parsed templates.
type compiledSpec struct {
	method          string
	url             urlTemplate
	query           map[string]template.Template
	headers         map[string]template.Template
	body            any      // with template.Text for texts
	unusedArguments []string // the arguments that no template names
	// open: the parameters name no properties and accept any.
	open bool
}

// secretNames returns the names of the secrets that requests contain, in alphabetical order.
func (r *compiledSpec) secretNames() []string {
	var names []string
	add := func(t template.Template) {
		for _, p := range t {
			if p.Kind == template.Secret {
				names = append(names, p.Path[0])
			}
		}
	}
	for _, set := range []map[string]template.Template{r.query, r.headers} {
		for _, t := range set { // order: the names are sorted below
			add(t)
		}
	}
	eachText(r.body, add)
	slices.Sort(names)
	return slices.Compact(names)
}

// others returns the arguments of a call that no template names, in order.
func (r *compiledSpec) others(args map[string]any) []string {
	if r.open {
		return slices.Sorted(maps.Keys(args))
	}
	return r.unusedArguments
}

func compile(s Spec) (*compiledSpec, error) {
	r := &compiledSpec{method: firstNonEmpty(s.Method, http.MethodGet)}
	switch r.method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		return nil, fmt.Errorf("method %q: expected GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS", s.Method)
	}
	if s.Body != nil && r.isReadOnly() {
		return nil, fmt.Errorf("a %s request cannot have a body", r.method)
	}
	var err error
	if r.url, err = parseURLTemplate(s.URL); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	if r.query, err = parseAll(s.Query); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	if r.headers, err = parseAll(s.Headers); err != nil {
		return nil, fmt.Errorf("headers: %w", err)
	}
	for name := range r.headers {
		if !httpcall.IsHeaderName(name) || httpcall.IsConnectionHeader(http.CanonicalHeaderKey(name)) {
			return nil, fmt.Errorf("headers: %q cannot be set", name)
		}
	}
	if r.body, err = parseBody(s.Body); err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	return r, r.findUnusedArguments(s)
}

func parseAll(texts map[string]string) (map[string]template.Template, error) {
	out := make(map[string]template.Template, len(texts))
	for name, s := range texts {
		t, err := template.Parse(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = t
	}
	return out, nil
}

// findUnusedArguments finds the arguments that no template names, and refuses references to
// unknown arguments.
func (r *compiledSpec) findUnusedArguments(s Spec) error {
	properties, _ := s.Parameters["properties"].(map[string]any)
	named := map[string]bool{}
	r.eachPart(func(p template.Part) {
		if p.Kind == template.Args {
			named[p.Path[0]] = true
		}
	})
	for name := range named {
		if _, ok := properties[name]; !ok {
			return fmt.Errorf("{{ args.%s }}: the parameters have no property %s", name, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !named[name] {
			r.unusedArguments = append(r.unusedArguments, name)
		}
	}
	_, names := s.Parameters["properties"]
	r.open = s.Parameters != nil && !names && s.Parameters["additionalProperties"] != false
	if r.open && r.body != nil {
		return errors.New("the parameters name no properties, and the body has no place for the arguments: name them under properties")
	}
	if len(r.unusedArguments) > 0 && r.body != nil {
		return fmt.Errorf("the parameters %s are not used: name them in the url, query, headers or body", strings.Join(r.unusedArguments, ", "))
	}
	return nil
}

// eachPart visits all parts of all templates.
func (r *compiledSpec) eachPart(visit func(template.Part)) {
	all := func(t template.Template) {
		for _, p := range t {
			visit(p)
		}
	}
	all(r.url.text)
	for _, t := range r.query {
		all(t)
	}
	for _, t := range r.headers {
		all(t)
	}
	eachText(r.body, all)
}

// isReadOnly reports whether the request only reads.
func (r *compiledSpec) isReadOnly() bool {
	return r.method == http.MethodGet || r.method == http.MethodHead
}

// hasNoBody reports whether arguments go into the query by default.
func (r *compiledSpec) hasNoBody() bool {
	return r.isReadOnly() || r.method == http.MethodDelete || r.method == http.MethodOptions
}

func firstNonEmpty(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// requestTool makes the requests of one tool.
type requestTool struct {
	request *compiledSpec
	http    Doer
	secrets func(name string) (string, bool)
	maxBody int
}

// missing returns those of the secrets that do not exist.
func (c *requestTool) missing(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		if c.secrets == nil {
			return false
		}
		_, ok := c.secrets(name)
		return ok
	})
}

// call makes one request.
func (c *requestTool) call(ctx context.Context, call tool.Call, args map[string]any) (string, error) {
	secrets := template.NewSecrets(c.secrets)
	text, err := c.sendRequest(ctx, call, args, secrets)
	if err != nil && ctx.Err() != nil {
		return "", ctx.Err()
	}
	return text, secrets.Error(err)
}

// Package anthropic calls models that speak Anthropic's Messages API: Claude,
// and the servers and gateways that offer the same wire.
//
// It must not know contexts, flows or the service, keep a conversation, retry,
// or let the key out of this folder.
package anthropic

import (
	"context"
	"net/http"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/wire"
)

// name is what messages with native blocks carry as their provider.
const name = "anthropic"

const (
	vendorHost = "api.anthropic.com"
	// path is where messages are posted, below the base URL.
	path = "v1/messages"
	// apiVersion is the version of the API that is spoken.
	apiVersion = "2023-06-01"
)

// Options configure a Provider. The zero value is Anthropic itself, which needs
// an APIKey. Nothing is read from the environment.
type Options struct {
	// APIKey is sent as x-api-key; empty sends none, for local servers.
	APIKey string
	// BaseURL is where the path v1/messages begins; empty is
	// https://api.anthropic.com. A path that ends in /v1 is taken without it.
	BaseURL string
	// HTTPClient is used as it is, save that it follows no redirect where it does
	// not say how (CheckRedirect): the key would go along. nil is a client with
	// its own connections and no time limit but the call's context.
	HTTPClient *http.Client
	// NoCache sends no marks for the vendor's prompt cache. Without it the last
	// tool, the system text, the end of Request.Stable and the last message are
	// marked: what is written to the cache costs a quarter more, what is read
	// from it a tenth.
	NoCache bool
}

// Provider calls models over Anthropic's wire. It is safe for concurrent use.
//
// The wire takes less than a history may hold, so what is sent is made to fit:
// messages of one side are one turn, those without words are left out, results
// of tools come first in their turn. A history that begins with the assistant
// gets a few words of the user before it; one that ends with the assistant is
// gone on from by the models that can, and gets "Continue." for the others. A
// message of the system that is not at the beginning is a text of the user's
// between <system> tags. Calls get other ids where theirs repeat or hold
// letters that the API refuses, and arguments that are no JSON object are put
// into one. A temperature over 1 is 1, and none is sent to a model that takes
// none or beside thinking. Which model takes what is read from its name.
//
// The wire has no idempotency key, so Request.Key is not sent: a call whose
// outcome is unknown may be charged twice. It keeps no conversations either,
// so Request.Keep and Request.Session are ignored.
type Provider struct {
	host    string
	vendor  bool // the host is Anthropic's own
	noKey   bool
	marks   bool
	invalid error
	errors  wire.ErrorFormatter
	address string // where messages are posted
	models  string // where the list of models is
	server  wire.Endpoint
}

// New returns a provider. Options that cannot work are told by every Generate,
// as model_invalid_request.
func New(o Options) *Provider {
	p := &Provider{noKey: o.APIKey == "", marks: !o.NoCache, errors: wire.ErrorFormatter{Name: name, Scrub: wire.Scrubber(o.APIKey)}}
	base := o.BaseURL
	if base == "" {
		base = "https://" + vendorHost
	}
	u, err := wire.Address(base)
	if err != nil {
		p.invalid = err
		return p
	}
	p.host, p.vendor = u.Host, u.Hostname() == vendorHost
	u.Path, u.RawPath = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1"), ""
	p.address, p.models = u.JoinPath(path).String(), u.JoinPath("v1/models").String()
	p.server = wire.Endpoint{Client: wire.Client(o.HTTPClient), Refused: p.errorOfResponse, Fault: p.faultIn, Sign: func(h http.Header) {
		h.Set("Anthropic-Version", apiVersion)
		if o.APIKey != "" {
			h.Set("X-Api-Key", o.APIKey)
		}
	}}
	return p
}

// Ping reports whether the server answers and accepts the key. It spends nothing. A failure
// is like that of Generate.
func (p *Provider) Ping(ctx context.Context) error {
	if p.invalid != nil {
		return p.errors.InvalidRequest("%v", p.invalid)
	}
	if err := p.server.Ping(ctx, p.models); err != nil {
		return p.errors.Failure(ctx, err)
	}
	return nil
}

// Generate makes one call and streams it; see llm.Provider. A failure is an
// *llm.Error, save that a cancelled ctx gives an error that wraps ctx's.
// Calls in the answer are complete: one that the token limit cut is left out,
// and Stop is then "length".
func (p *Provider) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	if err := p.check(req); err != nil {
		return nil, err
	}
	if emit == nil {
		emit = func(llm.Chunk) {}
	}
	sent, names := bounds().Rename(req, 0)
	res, err := p.generate(ctx, sent, names.Emit(emit))
	if err != nil {
		return nil, p.errors.Failure(ctx, err)
	}
	return names.Answer(res), nil
}

// Body is the body that Generate would send for req, which it does not send. It
// fails as Generate does before it sends.
func (p *Provider) Body(req *llm.Request) ([]byte, error) {
	if err := p.check(req); err != nil {
		return nil, err
	}
	sent, _ := bounds().Rename(req, 0)
	params, err := p.params(sent)
	if err != nil {
		return nil, err
	}
	return p.encode(params)
}

func (p *Provider) encode(params *messagesRequest) ([]byte, error) {
	body, err := wire.Encode(params)
	if err != nil {
		return nil, p.errors.InvalidRequest("%v", err)
	}
	return body, nil
}

// check refuses what no server can answer, before anything is sent.
func (p *Provider) check(req *llm.Request) error {
	switch {
	case p.invalid != nil:
		return p.errors.InvalidRequest("%v", p.invalid)
	case p.vendor && p.noKey:
		return &llm.Error{Code: engine.CodeModelAuth, Message: "anthropic: no API key"}
	case req.Model == "":
		return p.errors.InvalidRequest("no model is named")
	case len(req.Messages) == 0:
		return p.errors.InvalidRequest("there is no message to answer")
	case req.Temperature != nil && (*req.Temperature < 0 || *req.Temperature > 2):
		return p.errors.InvalidRequest("the temperature %v is not between 0 and 2", *req.Temperature)
	}
	seen := map[string]bool{}
	for _, t := range req.Tools {
		if seen[t.Name] {
			return p.errors.InvalidRequest("two tools are named %q", t.Name)
		}
		seen[t.Name] = true
	}
	switch {
	case req.ToolChoice == "required" && len(req.Tools) == 0:
		return p.errors.InvalidRequest("a tool call is required and there is no tool")
	case req.ToolChoice == "", req.ToolChoice == "auto", req.ToolChoice == "none", req.ToolChoice == "required":
		return nil
	case !seen[req.ToolChoice]:
		return p.errors.InvalidRequest("the tool %q is to be called and is not among the tools", req.ToolChoice)
	}
	return nil
}

// Package anthropic calls models with Anthropic's Messages API: Claude, and compatible servers and gateways. It must
// not know contexts, flows or the service, store conversations, retry, or expose the API key outside this folder.
package anthropic

import (
	"context"
	"net/http"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// name is the provider name in native blocks.
const name = "anthropic"

const (
	vendorHost = "api.anthropic.com"
	// path is the path of the messages endpoint below the base URL.
	path = "v1/messages"
	// apiVersion is the anthropic-version header.
	apiVersion = "2023-06-01"
)

// Options configure a Provider. The zero value calls Anthropic itself and needs an APIKey. Nothing is read from the
// environment.
type Options struct {
	// APIKey is sent as x-api-key; if empty, no key is sent, for local servers.
	APIKey string
	// BaseURL is the prefix of v1/messages; empty means https://api.anthropic.com. A trailing /v1 is removed.
	BaseURL string
	// HTTPClient is used unchanged, except that it follows no redirect unless its CheckRedirect is set, because the
	// key would be sent along. nil means a client with its own connections and no time limit other than the call's
	// context.
	HTTPClient *http.Client
	// NoCache sends no marks for the vendor's prompt cache. By default the last tool, the system text, the end of
	// Request.StablePrefix and the last message are marked: tokens written to the cache cost a quarter more, tokens
	// read from it a tenth.
	NoCache bool
}

// Provider calls models with Anthropic's Messages API. It is safe for concurrent use.
//
// The API accepts fewer histories than Weir, so requests are adapted. Consecutive messages of one role are joined,
// empty messages are omitted, and tool results come first in their turn. A short user message is inserted before a
// history that begins with the assistant. A history that ends with the assistant is sent unchanged to models that can
// continue it; for others "Continue." is appended. A system message after the beginning becomes user text between
// <system> tags. Ids of calls are replaced if they are duplicates or contain characters that the API refuses, and
// arguments that are not a JSON object are wrapped in one. A temperature over 1 is sent as 1; none is sent with
// thinking or to a model that accepts none. What a model accepts is derived from its name.
//
// The API has no idempotency key, so Request.Key is not sent: a call with an unknown outcome may be charged twice. It
// stores no conversations, so Request.KeepSession and Request.Session are ignored.
type Provider struct {
	host    string
	vendor  bool // the host is Anthropic's own
	noKey   bool
	marks   bool
	invalid error
	errors  vendorapi.ErrorFormatter
	address string // address of the messages endpoint
	models  string // address of the list of models
	server  vendorapi.Endpoint
}

// KeepsHistory implements llm.HistoryKeeper.
func (p *Provider) KeepsHistory() bool { return false }

// New returns a provider. If the options are invalid, every Generate fails with model_invalid_request.
func New(o Options) *Provider {
	p := &Provider{noKey: o.APIKey == "", marks: !o.NoCache, errors: vendorapi.ErrorFormatter{Name: name, Scrub: vendorapi.Scrubber(o.APIKey)}}
	base := o.BaseURL
	if base == "" {
		base = "https://" + vendorHost
	}
	u, err := vendorapi.Address(base)
	if err != nil {
		p.invalid = err
		return p
	}
	p.host, p.vendor = u.Host, u.Hostname() == vendorHost
	u.Path, u.RawPath = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1"), ""
	p.address, p.models = u.JoinPath(path).String(), u.JoinPath("v1/models").String()
	p.server = vendorapi.Endpoint{Client: vendorapi.Client(o.HTTPClient), Refused: p.errorOfResponse, Fault: p.faultIn, Sign: func(h http.Header) {
		h.Set("Anthropic-Version", apiVersion)
		if o.APIKey != "" {
			h.Set("X-Api-Key", o.APIKey)
		}
	}}
	return p
}

// Ping reports whether the server answers and accepts the key. It costs nothing. Errors are those of Generate.
func (p *Provider) Ping(ctx context.Context) error {
	return p.errors.Ping(ctx, &p.server, p.models, p.invalid)
}

// Generate makes one call and streams it; see llm.Provider. Errors are *llm.Error, except that a cancelled ctx gives
// an error that wraps ctx's. All calls in the answer are complete: a call that the token limit cut off is omitted,
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

// Body returns the body that Generate would send for req, without sending it. Errors are those of Generate before it
// sends.
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
	body, err := vendorapi.Encode(params)
	if err != nil {
		return nil, p.errors.InvalidRequest("%v", err)
	}
	return body, nil
}

// check refuses invalid requests before anything is sent.
func (p *Provider) check(req *llm.Request) error {
	switch {
	case p.invalid != nil:
		return p.errors.InvalidRequest("%v", p.invalid)
	case p.vendor && p.noKey:
		return &llm.Error{Code: engine.CodeModelAuth, Message: "anthropic: no API key"}
	case req.Model == "":
		return p.errors.InvalidRequest("the model is missing")
	case len(req.Messages) == 0:
		return p.errors.InvalidRequest("the request has no message")
	case req.Temperature != nil && (*req.Temperature < 0 || *req.Temperature > 2):
		return p.errors.InvalidRequest("the temperature %v is not between 0 and 2", *req.Temperature)
	}
	seen := map[string]bool{}
	for _, t := range req.Tools {
		if seen[t.Name] {
			return p.errors.InvalidRequest("two tools have the name %q", t.Name)
		}
		seen[t.Name] = true
	}
	switch {
	case req.ToolChoice == "required" && len(req.Tools) == 0:
		return p.errors.InvalidRequest("a tool call is required, but the request has no tools")
	case req.ToolChoice == "", req.ToolChoice == "auto", req.ToolChoice == "none", req.ToolChoice == "required":
		return nil
	case !seen[req.ToolChoice]:
		return p.errors.InvalidRequest("the tool %q must be called, but it is not among the request's tools", req.ToolChoice)
	}
	return nil
}

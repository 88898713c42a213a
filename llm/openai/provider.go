// Package openai calls models with OpenAI's APIs: Responses, and Chat Completions as OpenAI and many compatible
// servers (llama.cpp, vLLM, Ollama, LM Studio, DeepSeek, gateways) offer it. It must not know contexts, flows or the
// service, store conversations, retry, or expose the API key outside this folder.
package openai

import (
	"context"
	"fmt"
	"net/http"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// The APIs that a Provider supports.
const (
	// Responses is OpenAI's own API, which keeps reasoning between calls.
	Responses = "responses"
	// Chat is Chat Completions, the API of compatible servers.
	Chat = "chat"
)

// name is the provider name in native blocks.
const name = "openai"

const vendorHost = "api.openai.com"

// Options configure a Provider. The zero value calls OpenAI itself and needs an APIKey. Nothing is read from the
// environment.
type Options struct {
	// APIKey is sent as a bearer token; if empty, no key is sent, for local servers.
	APIKey string
	// BaseURL is the prefix of the API's paths, such as "http://localhost:11434/v1"; empty means
	// https://api.openai.com/v1.
	BaseURL string
	// API is Responses or Chat. Empty means Responses at api.openai.com and Chat at every other host, because
	// compatible servers support that.
	API string
	// HTTPClient is used unchanged, except that it follows no redirect unless its CheckRedirect is set, because the
	// key would be sent along. nil means a client with its own connections and no time limit other than the call's
	// context.
	HTTPClient *http.Client
	// Organization and Project are sent as OpenAI's headers unless empty.
	Organization, Project string
	// Summary is the reasoning summary that is requested when the request sets Reasoning (Responses only): "auto"
	// (also if empty), "concise", "detailed", or "none" for no summary, which OpenAI requires for unverified
	// organizations.
	Summary string
}

// Provider calls models with OpenAI's APIs. It is safe for concurrent use.
type Provider struct {
	api     string
	host    string
	vendor  bool // the host is OpenAI's own
	summary string
	noKey   bool
	invalid error
	errors  vendorapi.ErrorFormatter
	address string // address to which requests are posted
	models  string // address of the list of models
	server  vendorapi.Endpoint
}

// KeepsHistory implements llm.HistoryKeeper: the Responses API stores conversations.
func (p *Provider) KeepsHistory() bool { return p.api == Responses }

// New returns a provider. If the options are invalid (an address that is not a URL, an unknown API), every Generate
// fails with model_invalid_request.
func New(o Options) *Provider {
	p := &Provider{api: o.API, summary: o.Summary, noKey: o.APIKey == "", errors: vendorapi.ErrorFormatter{Name: name, Scrub: vendorapi.Scrubber(o.APIKey)}}
	base := o.BaseURL
	if base == "" {
		base = "https://" + vendorHost + "/v1"
	}
	u, err := vendorapi.Address(base)
	if err != nil {
		p.invalid = err
		return p
	}
	p.host, p.vendor = u.Host, u.Hostname() == vendorHost
	if p.api == "" {
		p.api = Chat
		if p.vendor {
			p.api = Responses
		}
	}
	if p.api != Chat && p.api != Responses {
		p.invalid = fmt.Errorf("unknown API %q: use %q or %q", p.api, Responses, Chat)
		return p
	}
	path := "responses"
	if p.api == Chat {
		path = "chat/completions"
	}
	p.address, p.models = u.JoinPath(path).String(), u.JoinPath("models").String()
	p.server = vendorapi.Endpoint{Client: vendorapi.Client(o.HTTPClient), Refused: p.errorOfResponse, Fault: p.faultIn, Sign: func(h http.Header) {
		for name, value := range map[string]string{
			"Authorization": "Bearer " + o.APIKey, "OpenAI-Organization": o.Organization, "OpenAI-Project": o.Project,
		} {
			if value != "" && (name != "Authorization" || o.APIKey != "") {
				h.Set(name, value)
			}
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
	sent, names := p.bounds().Rename(req, p.heldOf(req))
	body, err := p.body(sent)
	if err != nil {
		return nil, p.errors.Failure(ctx, err)
	}
	a := newAnswerBuilder(sent, names.Emit(emit))
	var r vendorapi.AnswerReader = p.chatReader(sent, a)
	if p.api == Responses {
		r = p.responsesReader(sent, a)
	}
	header := http.Header{}
	if req.Key != "" {
		header.Set("Idempotency-Key", req.Key)
	}
	if err := p.server.Post(ctx, p.address, header, body, r); err != nil {
		a.emitUsage()
		return nil, p.errors.Failure(ctx, err)
	}
	res, err := a.complete()
	if err != nil {
		return nil, p.errors.Failure(ctx, err)
	}
	return names.Answer(res), nil
}

// check refuses invalid requests before anything is sent.
func (p *Provider) check(req *llm.Request) error {
	switch {
	case p.invalid != nil:
		return p.errors.InvalidRequest("%v", p.invalid)
	case p.vendor && p.noKey:
		return &llm.Error{Code: engine.CodeModelAuth, Message: "openai: no API key"}
	case req.Model == "":
		return p.errors.InvalidRequest("the model is missing")
	case len(req.Messages) == 0 && (p.api == Responses || req.System == ""):
		return p.errors.InvalidRequest("the request has no message")
	}
	return p.checkChoice(req)
}

func (p *Provider) checkChoice(req *llm.Request) error {
	switch req.ToolChoice {
	case "", "auto", "none":
		return nil
	case "required":
		if len(req.Tools) == 0 {
			return p.errors.InvalidRequest("a tool call is required, but the request has no tools")
		}
		return nil
	}
	for _, t := range req.Tools {
		if t.Name == req.ToolChoice {
			return nil
		}
	}
	return p.errors.InvalidRequest("the tool %q must be called, but it is not among the request's tools", req.ToolChoice)
}

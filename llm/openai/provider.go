// Package openai calls models that speak OpenAI's wire: the Responses API, and
// Chat Completions as OpenAI and the many compatible servers (llama.cpp, vLLM,
// Ollama, LM Studio, DeepSeek, gateways) serve it.
//
// It must not know contexts, flows or the service, keep a conversation, retry,
// or let the key out of this folder.
package openai

import (
	"context"
	"fmt"
	"net/http"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/wire"
)

// The APIs a Provider can speak.
const (
	// Responses is OpenAI's own API, with reasoning kept between calls.
	Responses = "responses"
	// Chat is Chat Completions, which compatible servers speak.
	Chat = "chat"
)

// name is what messages with native blocks carry as their provider.
const name = "openai"

const vendorHost = "api.openai.com"

// Options configure a Provider. The zero value is OpenAI itself, which needs
// an APIKey. Nothing is read from the environment.
type Options struct {
	// APIKey is sent as a bearer token; empty sends none, for local servers.
	APIKey string
	// BaseURL is where the API's paths begin, such as
	// "http://localhost:11434/v1"; empty is https://api.openai.com/v1.
	BaseURL string
	// API is Responses or Chat. Empty is Responses at api.openai.com and Chat
	// at every other host, since that is what compatible servers speak.
	API string
	// HTTPClient is used as it is, save that it follows no redirect where it does
	// not say how (CheckRedirect): the key would go along. nil is a client with
	// its own connections and no time limit but the call's context.
	HTTPClient *http.Client
	// Organization and Project are sent as OpenAI's headers where not empty.
	Organization, Project string
	// Summary is the summary of its reasoning a model is asked for when the
	// request sets Reasoning (Responses only): "auto" (also if empty),
	// "concise", "detailed", or "none" to ask for no summary, which OpenAI
	// demands of organizations it has not verified.
	Summary string
}

// Provider calls models over OpenAI's wire. It is safe for concurrent use.
type Provider struct {
	api     string
	host    string
	vendor  bool // the host is OpenAI's own
	summary string
	noKey   bool
	invalid error
	errors  wire.ErrorFormatter
	address string // where requests of the API are posted
	models  string // where the list of models is
	server  wire.Endpoint
}

// New returns a provider. Options that cannot work (an address that is no URL,
// an unknown API) are told by every Generate, as model_invalid_request.
func New(o Options) *Provider {
	p := &Provider{api: o.API, summary: o.Summary, noKey: o.APIKey == "", errors: wire.ErrorFormatter{Name: name, Scrub: wire.Scrubber(o.APIKey)}}
	base := o.BaseURL
	if base == "" {
		base = "https://" + vendorHost + "/v1"
	}
	u, err := wire.Address(base)
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
		p.invalid = fmt.Errorf("unknown API %q: it is %q or %q", p.api, Responses, Chat)
		return p
	}
	path := "responses"
	if p.api == Chat {
		path = "chat/completions"
	}
	p.address, p.models = u.JoinPath(path).String(), u.JoinPath("models").String()
	p.server = wire.Endpoint{Client: wire.Client(o.HTTPClient), Refused: p.errorOfResponse, Fault: p.faultIn, Sign: func(h http.Header) {
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
	sent, names := p.bounds().Rename(req, p.heldOf(req))
	body, err := p.body(sent)
	if err != nil {
		return nil, p.errors.Failure(ctx, err)
	}
	a := newAnswerBuilder(sent, names.Emit(emit))
	var r wire.AnswerReader = p.chatReader(sent, a)
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

// check refuses what no server can answer, before anything is sent.
func (p *Provider) check(req *llm.Request) error {
	switch {
	case p.invalid != nil:
		return p.errors.InvalidRequest("%v", p.invalid)
	case p.vendor && p.noKey:
		return &llm.Error{Code: engine.CodeModelAuth, Message: "openai: no API key"}
	case req.Model == "":
		return p.errors.InvalidRequest("no model is named")
	case len(req.Messages) == 0 && (p.api == Responses || req.System == ""):
		return p.errors.InvalidRequest("there is no message to answer")
	}
	return p.checkChoice(req)
}

func (p *Provider) checkChoice(req *llm.Request) error {
	switch req.ToolChoice {
	case "", "auto", "none":
		return nil
	case "required":
		if len(req.Tools) == 0 {
			return p.errors.InvalidRequest("a tool call is required and there is no tool")
		}
		return nil
	}
	for _, t := range req.Tools {
		if t.Name == req.ToolChoice {
			return nil
		}
	}
	return p.errors.InvalidRequest("the tool %q is to be called and is not among the tools", req.ToolChoice)
}

// Package gemini calls models over Google's Gemini API: GenerateContent, and
// Interactions where the vendor is to keep the conversation.
//
// It must not know contexts, flows or the service, keep a conversation, retry,
// or let the key out of this folder.
package gemini

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/wire"
)

// name is what messages with native blocks carry as their provider.
const name = "gemini"

const (
	vendorHost     = "generativelanguage.googleapis.com"
	defaultVersion = "v1beta"
	// interactionsRevision is the revision of the Interactions API whose steps
	// this package reads and writes.
	interactionsRevision = "2026-05-20"
)

// The APIs whose native blocks differ.
const (
	apiGenerate     = "generate"
	apiInteractions = "interactions"
)

// versionPattern is a last path segment that is the API's version.
var versionPattern = regexp.MustCompile(`^v[0-9]+[a-z0-9]*$`)

// Options configure a Provider. The zero value is Google's own API, which
// needs an APIKey. Nothing is read from the environment.
type Options struct {
	// APIKey is sent as x-goog-api-key; empty sends none, for local servers.
	APIKey string
	// BaseURL is where the API begins, with or without its version, such as
	// "http://localhost:8080" or "http://localhost:8080/v1beta"; empty is
	// Google's own. Without a version it is v1beta.
	BaseURL string
	// HTTPClient is used as it is, save that it follows no redirect where it does
	// not say how (CheckRedirect): the key would go along. nil is a client with
	// its own connections and no time limit but the call's context.
	HTTPClient *http.Client
}

// Provider calls models over the Gemini API. It is safe for concurrent use.
//
// What the API cannot say as it stands is said so:
//   - System messages at the front join the system instruction; one further on
//     is a text of the user's at its place.
//   - Contents alternate and begin and end with the user's: neighbours of one
//     role are merged, and where a history begins or ends with the model, or says
//     nothing at all, a short neutral text of the user's stands there.
//   - A text that is empty is left out.
//   - Results of calls stand in one content right after the model's, in the order
//     of the calls, as {"output": text} or, failed, {"error": text}.
//   - Arguments that are no JSON object are sent as {"arguments": text}.
//   - A call that has no signature of this model's gets the one that the vendor
//     documents for histories from elsewhere, where the model demands one.
//   - Temperature, MaxOutput, Reasoning ("none", "minimal", "low", "medium",
//     "high", or a budget in tokens) and Schema are the generation config's. A
//     model before Gemini 3 refuses a schema beside tools: it is told of the
//     schema in its system instruction instead.
//
// The request's Key is not sent: the API has no idempotency key. Keep and
// Session use the Interactions API, which generates as well and stores; where
// neither is set nothing is stored for a later call.
type Provider struct {
	host    string
	vendor  bool // the host is Google's own
	noKey   bool
	invalid error
	errors  wire.ErrorFormatter
	base    *url.URL // with the version
	server  wire.Endpoint
}

// New returns a provider. Options that cannot work (an address that is no URL)
// are told by every Generate, as model_invalid_request.
func New(o Options) *Provider {
	p := &Provider{noKey: o.APIKey == "", errors: wire.ErrorFormatter{Name: name, Scrub: wire.Scrubber(o.APIKey)}}
	base := o.BaseURL
	if base == "" {
		base = "https://" + vendorHost
	}
	u, err := wire.Address(base)
	if err != nil {
		p.invalid = err
		return p
	}
	p.vendor, p.host = u.Hostname() == vendorHost, u.Host
	path := strings.TrimRight(u.Path, "/")
	if last := path[strings.LastIndex(path, "/")+1:]; !versionPattern.MatchString(last) {
		path += "/" + defaultVersion
	}
	u.Path, u.RawPath, u.RawQuery, u.Fragment = path, "", "", ""
	p.base = u
	p.server = wire.Endpoint{Client: wire.Client(o.HTTPClient), Refused: p.errorOfResponse, Fault: p.faultIn, Sign: func(h http.Header) {
		if o.APIKey != "" {
			h.Set("X-Goog-Api-Key", o.APIKey)
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
	if err := p.server.Ping(ctx, p.base.JoinPath("models").String()); err != nil {
		return p.errors.Failure(ctx, err)
	}
	return nil
}

// Generate makes one call and streams it; see llm.Provider. A failure is an
// *llm.Error, save that a cancelled ctx gives an error that wraps ctx's.
func (p *Provider) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	if err := p.check(req); err != nil {
		return nil, err
	}
	if emit == nil {
		emit = func(llm.Chunk) {}
	}
	sent, names := withAPINames(req)
	body, err := p.body(sent)
	if err != nil {
		return nil, err
	}
	a := newAnswerBuilder(sent, names.Emit(emit))
	address, header := p.generateAddress(sent.Model), http.Header{}
	var r wire.AnswerReader = &generateReader{p: p, answer: a}
	if usesInteractions(sent) {
		r = &interactionReader{p: p, answer: a, steps: map[int]*step{}, keep: sent.KeepSession}
		address = p.base.JoinPath("interactions").String()
		header.Set("Api-Revision", interactionsRevision)
	}
	if end, ok := ctx.Deadline(); ok { // else the server ends a long thought at a limit of its own
		header.Set("X-Server-Timeout", strconv.Itoa(int(max(time.Until(end), 0)/time.Second)+1))
	}
	if err := p.server.Post(ctx, address, header, body, r); err != nil {
		a.emitUsage()
		return nil, p.sessionError(req, p.errors.Failure(ctx, err))
	}
	return names.Answer(a.complete(p)), nil
}

// generateAddress is where a model's answers are generated.
func (p *Provider) generateAddress(model string) string {
	if !strings.HasPrefix(model, "models/") && !strings.HasPrefix(model, "tunedModels/") {
		model = "models/" + model
	}
	u := p.base.JoinPath(model + ":streamGenerateContent")
	u.RawQuery = "alt=sse"
	return u.String()
}

// Body is the body of the request that Generate would send for req, which it
// does not send. It fails as Generate does before it sends.
func (p *Provider) Body(req *llm.Request) ([]byte, error) {
	if err := p.check(req); err != nil {
		return nil, err
	}
	sent, _ := withAPINames(req)
	return p.body(sent)
}

func (p *Provider) body(req *llm.Request) ([]byte, error) {
	write := p.generateBody
	if usesInteractions(req) {
		write = p.interactionBody
	}
	body, err := write(req)
	if err == nil {
		var data []byte
		if data, err = wire.Encode(body); err == nil {
			return data, nil
		}
	}
	if own, ok := errors.AsType[*llm.Error](err); ok {
		return nil, own
	}
	return nil, p.errors.InvalidRequest("the request cannot be written: %v", err)
}

// check refuses what no server can answer, before anything is sent.
func (p *Provider) check(req *llm.Request) error {
	switch {
	case p.invalid != nil:
		return p.errors.InvalidRequest("%v", p.invalid)
	case p.vendor && p.noKey:
		return &llm.Error{Code: engine.CodeModelAuth, Message: "gemini: no API key"}
	case req.Model == "":
		return p.errors.InvalidRequest("no model is named")
	case strings.ContainsAny(req.Model, "?&#%") || strings.Contains(req.Model, ".."):
		return p.errors.InvalidRequest("the model %q is no name of one", req.Model)
	case len(req.Messages) == 0:
		return p.errors.InvalidRequest("there is no message to answer")
	case req.Temperature != nil && (math.IsNaN(*req.Temperature) || math.IsInf(*req.Temperature, 0)):
		return p.errors.InvalidRequest("the temperature is no number")
	case req.MaxOutput > math.MaxInt32:
		return p.errors.InvalidRequest("the limit of %d tokens is past any model's", req.MaxOutput)
	}
	return p.checkTools(req)
}

func (p *Provider) checkTools(req *llm.Request) error {
	chosen := req.ToolChoice == "" || req.ToolChoice == "auto" || req.ToolChoice == "none"
	if req.ToolChoice == "required" {
		if len(req.Tools) == 0 {
			return p.errors.InvalidRequest("a tool call is required and there is no tool")
		}
		chosen = true
	}
	seen := map[string]bool{}
	for _, t := range req.Tools {
		if seen[t.Name] {
			return p.errors.InvalidRequest("two tools are named %q", t.Name)
		}
		seen[t.Name] = true
		chosen = chosen || t.Name == req.ToolChoice
	}
	if !chosen {
		return p.errors.InvalidRequest("the tool %q is to be called and is not among the tools", req.ToolChoice)
	}
	return nil
}

// Package gemini calls models with Google's Gemini API: GenerateContent, and Interactions if the vendor is to store
// the conversation. It must not know contexts, flows or the service, store conversations, retry, or expose the API
// key outside this folder.
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
	"github.com/weir-run/weir/llm/vendorapi"
)

// name is the provider name in native blocks.
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

// versionPattern matches a last path segment that is the API's version.
var versionPattern = regexp.MustCompile(`^v[0-9]+[a-z0-9]*$`)

// Options configure a Provider. The zero value calls Google's own API and needs an APIKey. Nothing is read from the
// environment.
type Options struct {
	// APIKey is sent as x-goog-api-key; if empty, no key is sent, for local servers.
	APIKey string
	// BaseURL is the API's address with or without its version, such as "http://localhost:8080" or
	// "http://localhost:8080/v1beta"; empty means Google's own. The default version is v1beta.
	BaseURL string
	// HTTPClient is used unchanged, except that it follows no redirect unless its CheckRedirect is set, because the
	// key would be sent along. nil means a client with its own connections and no time limit other than the call's
	// context.
	HTTPClient *http.Client
}

// Provider calls models with the Gemini API. It is safe for concurrent use.
//
// The API accepts fewer histories than Weir, so requests are adapted:
//   - Leading system messages are joined to the system instruction; a later one
//     becomes user text at its place.
//   - Contents must alternate and begin and end with the user's: neighbours of one
//     role are merged, and a short neutral user text is inserted where a history
//     begins or ends with the model, or is empty.
//   - Empty texts are omitted.
//   - The results of calls are one content directly after the model's, in the order
//     of the calls, as {"output": text} or, if failed, {"error": text}.
//   - Arguments that are not a JSON object are sent as {"arguments": text}.
//   - A call without a signature of this model gets the one that the vendor
//     documents for foreign histories, if the model requires one.
//   - Temperature, MaxOutput, Reasoning ("none", "minimal", "low", "medium",
//     "high", or a budget in tokens) and Schema are set in the generation config.
//     Models before Gemini 3 refuse a schema together with tools: the schema is then part
//     of the system instruction.
//
// The API has no idempotency key, so the request's Key is not sent. KeepSession and Session use the Interactions API,
// which stores conversations; if neither is set, the vendor stores nothing for a later call.
type Provider struct {
	host    string
	vendor  bool // the host is Google's own
	noKey   bool
	invalid error
	errors  vendorapi.ErrorFormatter
	base    *url.URL // includes the version
	models  string   // address of the list of models
	server  vendorapi.Endpoint
}

// New returns a provider. If the options are invalid (the address is not a URL), every Generate fails with
// model_invalid_request.
func New(o Options) *Provider {
	p := &Provider{noKey: o.APIKey == "", errors: vendorapi.ErrorFormatter{Name: name, Scrub: vendorapi.Scrubber(o.APIKey)}}
	base := o.BaseURL
	if base == "" {
		base = "https://" + vendorHost
	}
	u, err := vendorapi.Address(base)
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
	p.base, p.models = u, u.JoinPath("models").String()
	p.server = vendorapi.Endpoint{Client: vendorapi.Client(o.HTTPClient), Refused: p.errorOfResponse, Fault: p.faultIn, Sign: func(h http.Header) {
		if o.APIKey != "" {
			h.Set("X-Goog-Api-Key", o.APIKey)
		}
	}}
	return p
}

// Ping reports whether the server answers and accepts the key. It costs nothing. Errors are those of Generate.
func (p *Provider) Ping(ctx context.Context) error {
	return p.errors.Ping(ctx, &p.server, p.models, p.invalid)
}

// Generate makes one call and streams it; see llm.Provider. Errors are *llm.Error, except that a cancelled ctx gives
// an error that wraps ctx's.
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
	var r vendorapi.AnswerReader = &generateReader{p: p, answer: a}
	if usesInteractions(sent) {
		r = &interactionReader{p: p, answer: a, steps: map[int]*step{}, keep: sent.KeepSession}
		address = p.base.JoinPath("interactions").String()
		header.Set("Api-Revision", interactionsRevision)
	}
	if end, ok := ctx.Deadline(); ok { // otherwise the server ends a long thought at its own limit
		header.Set("X-Server-Timeout", strconv.Itoa(int(max(time.Until(end), 0)/time.Second)+1))
	}
	if err := p.server.Post(ctx, address, header, body, r); err != nil {
		a.emitUsage()
		return nil, p.sessionError(req, p.errors.Failure(ctx, err))
	}
	return names.Answer(a.complete(p)), nil
}

// generateAddress returns the address at which a model generates answers.
func (p *Provider) generateAddress(model string) string {
	if !strings.HasPrefix(model, "models/") && !strings.HasPrefix(model, "tunedModels/") {
		model = "models/" + model
	}
	u := p.base.JoinPath(model + ":streamGenerateContent")
	u.RawQuery = "alt=sse"
	return u.String()
}

// Body returns the body of the request that Generate would send for req, without sending it. Errors are those of
// Generate before it sends.
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
		if data, err = vendorapi.Encode(body); err == nil {
			return data, nil
		}
	}
	if own, ok := errors.AsType[*llm.Error](err); ok {
		return nil, own
	}
	return nil, p.errors.InvalidRequest("the request cannot be encoded: %v", err)
}

// check refuses invalid requests before anything is sent.
func (p *Provider) check(req *llm.Request) error {
	switch {
	case p.invalid != nil:
		return p.errors.InvalidRequest("%v", p.invalid)
	case p.vendor && p.noKey:
		return &llm.Error{Code: engine.CodeModelAuth, Message: "gemini: no API key"}
	case req.Model == "":
		return p.errors.InvalidRequest("the model is missing")
	case strings.ContainsAny(req.Model, "?&#%") || strings.Contains(req.Model, ".."):
		return p.errors.InvalidRequest("the model name %q is invalid", req.Model)
	case len(req.Messages) == 0:
		return p.errors.InvalidRequest("the request has no message")
	case req.Temperature != nil && (math.IsNaN(*req.Temperature) || math.IsInf(*req.Temperature, 0)):
		return p.errors.InvalidRequest("the temperature is not a number")
	case req.MaxOutput > math.MaxInt32:
		return p.errors.InvalidRequest("the limit of %d tokens is too large", req.MaxOutput)
	}
	return p.checkTools(req)
}

func (p *Provider) checkTools(req *llm.Request) error {
	chosen := req.ToolChoice == "" || req.ToolChoice == "auto" || req.ToolChoice == "none"
	if req.ToolChoice == "required" {
		if len(req.Tools) == 0 {
			return p.errors.InvalidRequest("a tool call is required, but the request has no tools")
		}
		chosen = true
	}
	seen := map[string]bool{}
	for _, t := range req.Tools {
		if seen[t.Name] {
			return p.errors.InvalidRequest("two tools have the name %q", t.Name)
		}
		seen[t.Name] = true
		chosen = chosen || t.Name == req.ToolChoice
	}
	if !chosen {
		return p.errors.InvalidRequest("the tool %q must be called, but it is not among the request's tools", req.ToolChoice)
	}
	return nil
}

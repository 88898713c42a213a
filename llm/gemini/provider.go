// Package gemini calls models over Google's Gemini API by the vendor's own SDK:
// GenerateContent, and Interactions where the vendor is to keep the
// conversation.
//
// It must not know contexts, flows or the service, keep a conversation, retry,
// or let a type of the vendor's SDK, or the key, out of this folder.
package gemini

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"

	"google.golang.org/genai"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/wire"
)

// name is what messages with native blocks carry as their provider.
const name = "gemini"

const (
	vendorHost     = "generativelanguage.googleapis.com"
	defaultVersion = "v1beta"
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
	keyless bool
	invalid error
	speaker wire.Speaker
	client  *genai.Client
}

// New returns a provider. Options that cannot work (an address that is no URL)
// are told by every Generate, as model_invalid_request.
func New(o Options) *Provider {
	p := &Provider{keyless: o.APIKey == "", speaker: wire.Speaker{Name: name, Scrub: wire.Scrubber(o.APIKey)}}
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
	version := defaultVersion
	path := strings.TrimRight(u.Path, "/")
	if cut := strings.LastIndex(path, "/"); versionPattern.MatchString(path[cut+1:]) {
		path, version = path[:max(cut, 0)], path[cut+1:]
	}
	u.Path, u.RawPath = path, ""
	key := o.APIKey
	if key == "" {
		key = "none" // the SDK wants one, and would look for it in the environment; the courier takes it out
	}
	p.client, err = genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI,
		HTTPClient:  &http.Client{Transport: &courier{provider: p, client: wire.Client(o.HTTPClient)}},
		HTTPOptions: genai.HTTPOptions{BaseURL: u.String(), APIVersion: version},
	})
	if err != nil {
		p.invalid = fmt.Errorf("the SDK refuses the options") // its words hold the key
	}
	return p
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
	x := &exchange{}
	sent, names := named(req)
	if err := p.send(ctx, sent, x); err != nil {
		return nil, p.mislaid(req, p.speaker.Failure(ctx, err))
	}
	res, err := p.receive(sent, x, names.Emit(emit))
	if err != nil {
		return nil, p.speaker.Failure(ctx, err)
	}
	return names.Answer(res), nil
}

// Body is the body of the request that Generate would send for req, which it
// makes in the same way and does not send. Errors are those of a request that
// cannot be sent.
func (p *Provider) Body(req *llm.Request) ([]byte, error) {
	if err := p.check(req); err != nil {
		return nil, err
	}
	x := &exchange{keep: true}
	ctx := context.Background()
	sent, _ := named(req)
	if err := p.send(ctx, sent, x); err != nil {
		return nil, p.speaker.Failure(ctx, err)
	}
	return x.body, nil
}

// send gives the request to the SDK, which sends it through the courier; the
// answer is then x's.
func (p *Provider) send(ctx context.Context, req *llm.Request, x *exchange) error {
	ctx = x.in(ctx)
	var err error
	if interacts(req) {
		err = p.interact(ctx, req)
	} else {
		err = p.generate(ctx, req)
	}
	switch {
	case x.err != nil:
		return x.err
	case x.sent:
		return nil // what the SDK makes of the empty answer it got is of no interest
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		err = fmt.Errorf("the SDK sent nothing")
	}
	if own, ok := err.(*llm.Error); ok { //nolint:errorlint // only what this package refused itself
		return own
	}
	return p.speaker.Refused("the request cannot be written: %v", err)
}

// check refuses what no server can answer, before anything is sent.
func (p *Provider) check(req *llm.Request) error {
	switch {
	case p.invalid != nil:
		return p.speaker.Refused("%v", p.invalid)
	case p.vendor && p.keyless:
		return &llm.Error{Code: engine.CodeModelAuth, Message: "gemini: no API key"}
	case req.Model == "":
		return p.speaker.Refused("no model is named")
	case len(req.Messages) == 0:
		return p.speaker.Refused("there is no message to answer")
	case req.Temperature != nil && (math.IsNaN(*req.Temperature) || math.IsInf(*req.Temperature, 0)):
		return p.speaker.Refused("the temperature is no number")
	case req.MaxOutput > math.MaxInt32:
		return p.speaker.Refused("the limit of %d tokens is past any model's", req.MaxOutput)
	}
	return p.checkTools(req)
}

func (p *Provider) checkTools(req *llm.Request) error {
	chosen := req.ToolChoice == "" || req.ToolChoice == "auto" || req.ToolChoice == "none"
	if req.ToolChoice == "required" {
		if len(req.Tools) == 0 {
			return p.speaker.Refused("a tool call is required and there is no tool")
		}
		chosen = true
	}
	seen := map[string]bool{}
	for _, t := range req.Tools {
		if seen[t.Name] {
			return p.speaker.Refused("two tools are named %q", t.Name)
		}
		seen[t.Name] = true
		chosen = chosen || t.Name == req.ToolChoice
	}
	if !chosen {
		return p.speaker.Refused("the tool %q is to be called and is not among the tools", req.ToolChoice)
	}
	return nil
}

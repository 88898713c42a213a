package llm

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/breaker"
	"github.com/weir-run/weir/tool"
)

// Service makes model calls from contexts. It stores nothing between turns except for
// caches, and is safe for concurrent use.
type Service struct {
	providers map[string]Provider
	replay    Provider
	models    *Catalogue
	limits    *Limits
	stopped   func(ctx context.Context, provider, model string) (*Stop, error)
	timeouts  map[string]Timeouts
	views     *convo.Views
	digests   digestCache
	breakers  *breaker.Set
	// breakerSettings are those of the providers, by name.
	breakerSettings map[string]Breaker
	log             *slog.Logger
}

// Options configure a Service.
type Options struct {
	// Providers by name: "openai" in "openai/gpt-5-mini".
	Providers map[string]Provider
	// Replay, if set, answers every call, whatever provider it names.
	Replay Provider
	// Models describes models; nil means NewCatalogue().
	Models *Catalogue
	// Limits are shared by all calls; nil means none.
	Limits *Limits
	// Stopped returns the stop that calls of a model wait for, nil for none. It is called
	// before each try, and again twice a second while the call waits. nil stops nothing.
	Stopped func(ctx context.Context, provider, model string) (*Stop, error)
	// Timeouts limit calls, by provider; see there for the defaults.
	Timeouts map[string]Timeouts
	// Breakers say when models are not called for a while, by provider.
	Breakers map[string]Breaker
	// Logger logs failed tries; nil means none.
	Logger *slog.Logger
}

// NewService returns a service.
func NewService(o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Models == nil {
		o.Models = NewCatalogue()
		o.Models.Logger = o.Logger
	}
	if o.Limits == nil {
		o.Limits = NewLimits(nil)
	}
	if o.Stopped == nil || o.Replay != nil {
		o.Stopped = func(context.Context, string, string) (*Stop, error) { return nil, nil }
	}
	return &Service{
		providers: maps.Clone(o.Providers), replay: o.Replay, models: o.Models, limits: o.Limits, stopped: o.Stopped,
		timeouts: maps.Clone(o.Timeouts), breakers: breaker.NewSet(), breakerSettings: maps.Clone(o.Breakers),
		views: convo.NewViews(0), log: o.Logger,
	}
}

// Host is the attempt for which a turn is made.
type Host interface {
	// Run is the id of the run.
	Run() string
	// MustCount reports whether the tokens of a call must be counted because a budget binds
	// it, instead of only knowing that they fit.
	MustCount() bool
	// ModelCall runs do as an effect with the next ordinal, named "model" or after another
	// purpose, or returns the response recorded for it. The key passed to do is the
	// effect's. The request must not be changed; its digest is that of Canonical. An answer
	// that do returns together with an error was rejected: the effect has failed and keeps
	// the answer and its cost. Both are returned.
	ModelCall(req *Request, do func(ctx context.Context, key string) (*Response, error)) (*Response, error)
	// ToolCall runs one tool call as an effect with that index, or returns the recorded
	// result. It is called concurrently. An error ends the turn, for example if the call
	// has to wait for approval.
	ToolCall(index int, t *tool.Tool, call convo.Call) (ToolResult, error)
	// Emit passes on a piece of a stream. It is called from within do.
	Emit(c Chunk)
}

// ToolResult is the result of a tool call.
type ToolResult struct {
	// Text is the result for the model; Failed marks an error.
	Text   string
	Failed bool
	// Metadata is stored with the result and not sent, such as who approved the call; nil
	// means none.
	Metadata convo.Metadata
}

// DefaultMaxSteps is the default limit of model calls in one turn.
const DefaultMaxSteps = 16

// Turn describes a turn.
type Turn struct {
	// Context is the context that the model sees and that the turn is added to; nil means
	// an empty one that is discarded.
	Context *convo.Manager
	// Message is added before the call, unless its id is known. With nil the model answers
	// the history as it is. The default role is user.
	Message *convo.Message
	// Tools are the tools that the model may call.
	Tools []*tool.Tool
	// Provider, Model and the following override the settings of the context, unless they
	// are zero.
	Provider string
	Model    string // "provider/model", or only the model if Provider is set
	// Fallback, if set, replaces Model by several models, of which the next one is asked
	// after certain failures.
	Fallback *Fallback
	// Timeouts bound each call of the turn, also one for a summary, in place of the context's and
	// the provider's; zero fields leave those.
	Timeouts    Timeouts
	System      string
	Temperature *float64
	MaxOutput   int // tokens
	Reasoning   string
	// Schema requests an answer that is JSON of this schema.
	Schema map[string]any
	// CanonicalAnswer replaces the text of a structured answer by its JSON in the history: a model may have written prose or a
	// code fence around it.
	CanonicalAnswer bool
	// MustCall are names of tools, of which the model must call one before anything else; it is offered them alone until then.
	// An answer without such a call is invalid. Empty leaves the choice to the model.
	MustCall []string
	// ParseAnswer reads the answer instead of the schema, nil for none. It must depend only
	// on the text. Its error says to the model what to correct, in one more call.
	ParseAnswer func(text string) (engine.Value, error)
	// Window and Reserve limit the input in tokens, instead of the context's settings; see
	// Model.Room. View overrides the view settings in the fields that it sets.
	Window, Reserve int
	View            convo.ViewSettings
	// History is HistoryServer if the vendor may store the conversation.
	History string
	// SkipHistory reads the context and adds nothing to it.
	SkipHistory bool
	// MaxSteps limits the number of model calls; 0 means DefaultMaxSteps. At the limit,
	// with StopAtMax the turn ends after the last call's tools; without it the turn fails.
	MaxSteps  int
	StopAtMax bool
	// CheckLimit, if set, is another limit: it is called before each model call but the
	// first, with the result so far, and returns the Stop of a turn that must end, ""
	// otherwise.
	CheckLimit func(r Result) (stop string, err error)
	// Steer, if set, returns messages of people that the next model call takes, nil for
	// none. It is called before each model call for an answer; a repair of an answer takes
	// none. The messages have ids.
	Steer func() ([]convo.Message, error)
	// MoreSteering, if set, is called when the turn would end with an answer. If it reports
	// true, the turn makes one more call, beyond MaxSteps too.
	MoreSteering func() bool
	// EarlierToolCalls is the number of tool calls in earlier turns of the same attempt
	// (the length of their Calls), from which indexes continue.
	EarlierToolCalls int
}

// Result is the result of a turn.
type Result struct {
	// Text and Reasoning are those of the last answer. For a structured answer Text is its
	// JSON, and Value the parsed value.
	Text, Reasoning string
	Value           engine.Value
	// Calls are all tool calls of the turn, in order.
	Calls []convo.Call
	// Usage is the sum over all model calls.
	Usage Usage
	// Steps is the number of model calls.
	Steps int
	// Stop is the reason why the last answer ended: "end", "calls" (a tool that ends the
	// turn was called), "length", "filter", StopInterrupted, StopSteps, or the result of
	// CheckLimit.
	Stop string
}

// HistoryServer lets the vendor store the conversation, so that calls send only new
// messages.
const HistoryServer = "server"

// StopSteps is the Stop of a turn that ended at its limit of model calls.
const StopSteps = "steps"

// SplitModel splits "provider/model"; the provider is "" if there is none.
func SplitModel(s string) (provider, model string) {
	if p, m, ok := strings.Cut(s, "/"); ok {
		return p, m
	}
	return "", s
}

// resolve finds the provider of a turn and the provider's name of the model.
func (s *Service) resolve(t Turn, set convo.Settings) (p Provider, name, model string, err error) {
	name, model = t.Provider, t.Model
	switch {
	case t.Model == "":
		model = set.Model
		if name == "" {
			name = set.Provider
		}
	case name == "" && !strings.Contains(t.Model, "/"):
		name = set.Provider
	}
	if name == "" {
		name, model = SplitModel(model)
	} else {
		model = strings.TrimPrefix(model, name+"/")
	}
	if name == "" && len(s.providers) == 1 {
		for only := range s.providers {
			name = only
		}
	}
	p = s.providers[name]
	if s.replay != nil {
		p = s.replay
	}
	if p == nil {
		return nil, "", "", s.unknown(name, model)
	}
	return p, name, model, nil
}

func (s *Service) unknown(name, model string) error {
	configured := "none is configured"
	if len(s.providers) > 0 {
		configured = "configured: " + strings.Join(slices.Sorted(maps.Keys(s.providers)), ", ")
	}
	msg := fmt.Sprintf("no provider is named %q (%s)", name, configured)
	switch {
	case name == "" && model == "":
		msg = fmt.Sprintf("no model is set: write it as provider/model (%s)", configured)
	case name == "":
		msg = fmt.Sprintf("model %q has no provider: write it as provider/model (%s)", model, configured)
	}
	return &Error{Code: engine.CodeModelUnknownProvider, Message: msg, Err: ErrNoProvider}
}

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
	"github.com/weir-run/weir/tool"
)

// Service turns contexts into model calls. It keeps nothing between turns and
// may be used by any number of goroutines.
type Service struct {
	providers map[string]Provider
	replay    Provider
	models    *Catalogue
	limits    *Limits
	timeouts  map[string]Timeouts
	views     *convo.Views
	digests   digestCache
	log       *slog.Logger
}

// Options configure a Service.
type Options struct {
	// Providers by the name that models are written with: "openai" in
	// "openai/gpt-5-mini".
	Providers map[string]Provider
	// Replay, where set, answers every call, whatever provider it names.
	Replay Provider
	// Models is what is known of models; nil is NewCatalogue().
	Models *Catalogue
	// Limits are shared by all calls; nil is none.
	Limits *Limits
	// Timeouts bound calls, by provider; see there for the defaults.
	Timeouts map[string]Timeouts
	// Logger is told of tries that failed; nil is nobody.
	Logger *slog.Logger
}

// NewService makes a service.
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
	return &Service{
		providers: maps.Clone(o.Providers), replay: o.Replay, models: o.Models, limits: o.Limits,
		timeouts: maps.Clone(o.Timeouts),
		views:    convo.NewViews(0), log: o.Logger,
	}
}

// Host is the attempt that a turn is made for.
type Host interface {
	// Run is the id of the run.
	Run() string
	// MustCount reports whether what a call may take has to be counted, since a
	// budget binds it, and not only known to fit.
	MustCount() bool
	// ModelCall runs do as an effect under the name "model", or another for
	// another purpose, with the next ordinal, or returns the response recorded for it. The key given to do is
	// the effect's. The request is not to be changed; its digest is that of
	// Canonical. An answer that do returns together with an error was rejected: the
	// effect has failed, and keeps the answer and what it cost. Both are returned.
	ModelCall(req *Request, do func(ctx context.Context, key string) (*Response, error)) (*Response, error)
	// ToolCall runs one tool call as an effect with that index, or returns what
	// was recorded for it. It is called concurrently. An error ends
	// the turn, as when the call has to wait for somebody.
	ToolCall(index int, t *tool.Tool, call convo.Call) (ToolResult, error)
	// Emit passes a piece of a stream on. It is called from within do.
	Emit(c Chunk)
}

// ToolResult is what came of a tool call.
type ToolResult struct {
	// Text is what the model is told, Failed marks it as an error.
	Text   string
	Failed bool
	// Metadata is kept with the result and not sent, such as who allowed the call;
	// nil is none.
	Metadata convo.Metadata
}

// DefaultMaxSteps bounds the model calls of one turn.
const DefaultMaxSteps = 16

// Turn is what a model is asked for.
type Turn struct {
	// Context is what the model sees and what the turn is added to; nil is an
	// empty one that is not kept.
	Context *convo.Manager
	// Message is added before the model is asked, unless its id is known. Nil
	// answers the history as it stands. A role that is not given is user.
	Message *convo.Message
	// Tools are what the model may call.
	Tools []*tool.Tool
	// Provider, Model and the rest override the settings of the context; zero
	// values do not.
	Provider    string
	Model       string // "provider/model", or with Provider the model alone
	System      string
	Temperature *float64
	MaxOutput   int // tokens
	Reasoning   string
	// Schema asks for an answer that is JSON of this schema.
	Schema map[string]any
	// ParseAnswer reads the answer instead of the schema, nil for none. It is a function of
	// the text alone. Its error tells the model what to change, and the model is asked
	// once more.
	ParseAnswer func(text string) (engine.Value, error)
	// Window and Reserve bound the input, in tokens, in place of the context's;
	// see Model.Room. View says how the context is shown, where its fields are
	// set.
	Window, Reserve int
	View            convo.ViewSettings
	// History is HistoryServer where the vendor may keep the conversation.
	History string
	// SkipHistory reads the context and adds nothing to it.
	SkipHistory bool
	// MaxSteps bounds the model calls; 0 is DefaultMaxSteps. With StopAtMax a
	// turn that reaches the bound ends after the last call's tools; without it
	// fails.
	MaxSteps  int
	StopAtMax bool
	// CheckLimit, where set, is another limit: it is asked before each model call but
	// the first, with what came of the turn so far, and gives the Stop of a turn
	// that may not go on, "" for one that may.
	CheckLimit func(r Result) (stop string, err error)
	// EarlierToolCalls is how many tool calls earlier turns of the same attempt
	// made (the length of their Calls): indexes go on from there.
	EarlierToolCalls int
}

// Result is what came of a turn.
type Result struct {
	// Text and Reasoning are those of the last answer; a structured one is the JSON in
	// it, and Value what that reads as.
	Text, Reasoning string
	Value           engine.Value
	// Calls are all tool calls of the turn, in order.
	Calls []convo.Call
	// Usage is the sum over all model calls.
	Usage Usage
	// Steps is how many model calls there were.
	Steps int
	// Stop is why the last answer ended: "end", "calls" (a tool that ends the
	// turn was called), "length", "filter", StopSteps, or what Bound gave.
	Stop string
}

// HistoryServer lets the vendor keep the conversation, so that calls send what
// is new alone.
const HistoryServer = "server"

// StopSteps is the Stop of a turn that ended at its limit of model calls.
const StopSteps = "steps"

// SplitModel splits "provider/model"; the provider is "" where there is none.
func SplitModel(s string) (provider, model string) {
	if p, m, ok := strings.Cut(s, "/"); ok {
		return p, m
	}
	return "", s
}

// resolve finds the provider of a turn and what it calls the model.
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
		msg = fmt.Sprintf("model %q does not say its provider: write it as provider/model (%s)", model, configured)
	}
	return &Error{Code: engine.CodeModelUnknownProvider, Message: msg, Err: ErrNoProvider}
}

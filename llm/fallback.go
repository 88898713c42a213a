package llm

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// Fallback lists the models that the turns of one attempt may ask. It remembers which one
// the last turn used, so that all turns of an attempt must be given the same Fallback.
type Fallback struct {
	// Models are written "provider/model"; the first one is asked first.
	Models []string
	// On are the codes of the failures after which the next model is asked; nil means
	// FallbackCodes. With model_answer_invalid, an answer that is invalid after its repair
	// makes the next model answer.
	On []string

	current int
}

// FallbackCodes returns the codes after which the next model is asked by default.
func FallbackCodes() []string {
	return []string{
		engine.CodeModelOverloaded, engine.CodeModelRateLimited, engine.CodeModelTimeout,
		engine.CodeModelUnavailable, engine.CodeModelContextLength, engine.CodeBreakerOpen,
	}
}

// AllFallbackCodes returns the codes that On may have.
func AllFallbackCodes() []string {
	return append(FallbackCodes(), engine.CodeModelAnswer, engine.CodeModelFiltered, engine.CodeModelAuth, engine.CodeModelRequest)
}

// ContextFallback returns the models of a context, with its model first; nil if it has only one.
func ContextFallback(set convo.Settings) *Fallback {
	if set.Fallback == nil {
		return nil
	}
	first := set.Model
	if set.Provider != "" {
		first = set.Provider + "/" + strings.TrimPrefix(set.Model, set.Provider+"/")
	}
	return &Fallback{Models: append([]string{first}, set.Fallback.Models...), On: set.Fallback.On}
}

// candidate is one of the models that a turn may ask.
type candidate struct {
	provider    Provider
	name, model string
}

// resolveCandidates finds the providers of all models that the turn may ask, and starts
// with the one that the attempt uses.
func (t *turn) resolveCandidates(set convo.Settings) error {
	first := t.Turn
	names := []string{t.Model}
	if f := t.Fallback; f != nil && len(f.Models) > 0 {
		names = f.Models
	}
	for _, name := range names {
		first.Model = name
		p, provider, model, err := t.service.resolve(first, set)
		if err != nil {
			return err
		}
		t.candidates = append(t.candidates, candidate{p, provider, model})
	}
	if t.Fallback != nil {
		t.current = min(t.Fallback.current, len(t.candidates)-1)
	}
	c := &t.candidates[t.current]
	t.provider, t.req.Provider, t.req.Model = c.provider, c.name, c.model
	return nil
}

// fallsBackOn reports whether the turn asks another model after a failure with that code.
func (t *turn) fallsBackOn(code string) bool {
	if t.Fallback == nil || t.current+1 >= len(t.candidates) {
		return false
	}
	on := t.Fallback.On
	if on == nil {
		on = FallbackCodes()
	}
	if code == engine.CodeModelUnsupported {
		return true // whatever On says: this model cannot answer, and nothing was sent
	}
	if code == engine.CodeBreakerOpen && slices.ContainsFunc(OutageCodes(), func(c string) bool { return slices.Contains(on, c) }) {
		return true // one of these has opened it
	}
	return slices.Contains(on, code)
}

// fallBack makes the next model the one that the turn asks, if there is one for this
// failure. A request that is too long only moves to a model with more room, and none moves to
// a model that is known not to take it.
func (t *turn) fallBack(err error) bool {
	if err == nil || !t.fallsBackOn(codeOf(err)) {
		return false
	}
	room := t.window.room
	for next := t.current + 1; next < len(t.candidates); next++ {
		c := &t.candidates[next]
		t.provider, t.req.Provider, t.req.Model = c.provider, c.name, c.model
		t.window = windowBudget{}
		t.measureWindow(t.lane.Settings)
		if codeOf(err) == engine.CodeModelContextLength && t.window.room <= room {
			continue
		}
		if t.service.replay == nil && t.window.model.Refusals(t.demands) != nil {
			continue
		}
		t.service.log.Warn("a model call failed and another model is asked", "run", t.host.Run(), "error", err, "provider", c.name, "model", c.model)
		t.current, t.Fallback.current = next, next
		t.keepMarks()
		return true
	}
	c := &t.candidates[t.current]
	t.provider, t.req.Provider, t.req.Model = c.provider, c.name, c.model
	t.window = windowBudget{}
	t.measureWindow(t.lane.Settings)
	return false
}

// keepMarks sets the marks of the context aside: what a later model is shown changes
// neither them nor the factor that was learned for the first model.
func (t *turn) keepMarks() {
	if t.ownMarks == nil {
		marks := t.lane.Marks
		t.ownMarks = &marks
	}
	t.lane.Marks.Factor, t.lane.Marks.Learned = 0, 0
}

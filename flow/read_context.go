package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

func (l *loader) contextSettings(v *value) ContextSettings {
	f, ok := l.object(v, "context")
	if !ok {
		return ContextSettings{}
	}
	f.rejectUnknown("model", "models", "on", "callTimeout", "system", "temperature", "maxOutput", "reasoning", "history", "budget", "view")
	const tokens = 100_000_000
	c := ContextSettings{
		Model: f.text("model"), System: f.text("system"), Reasoning: f.text("reasoning"),
		MaxOutput: f.count("maxOutput", tokens),
	}
	if c.Model != "" && !strings.Contains(strings.Trim(c.Model, "/"), "/") {
		l.reportAt(v.get("model"), CodeBadValue, fmt.Sprintf("model must be provider/model, such as openai/gpt-5-mini; got %s", quote(c.Model)), "")
	}
	if m := v.get("models"); m != nil {
		l.contextModels(&c, f, m)
	} else if on := v.get("on"); on != nil {
		l.reportAt(on, CodeBadValue, "on says when the next of models is asked, and there are no models", "")
	}
	if t := v.get("callTimeout"); t != nil {
		c.CallTimeout = l.callTimeout(t)
	}
	if t := v.get("temperature"); t != nil {
		c.Temperature = l.temperature(t)
	}
	if b := v.get("budget"); b != nil {
		if bf, ok := l.object(b, "budget"); ok {
			bf.rejectUnknown("window", "reserve")
			c.Budget = Budget{Window: bf.count("window", tokens), Reserve: bf.count("reserve", tokens)}
			if c.Budget.Window > 0 && c.Budget.Reserve >= c.Budget.Window {
				l.reportAt(b.get("reserve"), CodeBadValue, fmt.Sprintf("reserve must be less than window, %d; got %d", c.Budget.Window, c.Budget.Reserve), "")
			}
		}
	}
	c.History = f.choice("history", "client", "server")
	if w := v.get("view"); w != nil {
		c.View = l.view(w)
	}
	return c
}

// minModels is the number of models below which a list of them has no meaning.
const minModels = 2

// contextModels reads models and on.
func (l *loader) contextModels(c *ContextSettings, f fields, v *value) {
	if m := f.v.get("model"); m != nil {
		l.reportAt(m, CodeBadValue, "models replaces model: write the model as the first of models", "")
	}
	for _, e := range l.distinctTexts(v, "models", "models as provider/model") {
		if !strings.Contains(strings.Trim(e.text, "/"), "/") {
			l.reportAt(e, CodeBadValue, fmt.Sprintf("a model must be provider/model, such as openai/gpt-5-mini; got %s", quote(e.text)), "")
			continue
		}
		c.Models = append(c.Models, e.text)
	}
	if len(c.Models) > 0 {
		c.Model = c.Models[0]
	}
	if v.kind == kindList && len(v.items) < minModels {
		l.reportAt(v, CodeBadValue, fmt.Sprintf("models has %d entries; it needs at least %d", len(v.items), minModels), "write model: for a single one")
	}
	if on := f.v.get("on"); on != nil {
		for _, e := range l.distinctTexts(on, "on", "error codes") {
			if known := FallbackCodes(); !slices.Contains(known, e.text) {
				l.reportAt(e, CodeBadValue, fmt.Sprintf("on has the code %s; expected one of %s", quote(e.text), strings.Join(known, ", ")), l.nearest(e.text, FallbackCodes))
				continue
			}
			c.On = append(c.On, e.text)
		}
	}
}

// FallbackCodes lists the codes of failures after which the next of several models may be asked.
func FallbackCodes() []string {
	return []string{
		"model_overloaded", "model_rate_limited", "model_timeout", "model_unavailable", "model_context_length", "breaker_open",
		"model_answer_invalid", "model_filtered", "model_auth", "model_invalid_request",
	}
}

// distinctTexts reads a list of different texts.
func (l *loader) distinctTexts(v *value, key, what string) []*value {
	if v.kind != kindList || len(v.items) == 0 {
		l.reportAt(v, CodeBadValue, fmt.Sprintf("%s must be a list of %s; got %s", key, what, l.describe(v)), "")
		return nil
	}
	var out []*value
	seen := map[string]bool{}
	for _, e := range v.items {
		switch {
		case e.kind != kindText || e.text == "":
			l.reportAt(e, CodeBadValue, fmt.Sprintf("%s must be a list of %s; got %s", key, what, l.describe(e)), "")
		case seen[e.text]:
			l.reportAt(e, CodeBadValue, fmt.Sprintf("%s has %s twice", key, quote(e.text)), "")
		default:
			seen[e.text] = true
			out = append(out, e)
		}
	}
	return out
}

// callTimeout reads limits of a model call.
func (l *loader) callTimeout(v *value) CallTimeout {
	f, ok := l.object(v, "callTimeout")
	if !ok {
		return CallTimeout{}
	}
	f.rejectUnknown("first", "idle", "total")
	c := CallTimeout{First: f.duration("first"), Idle: f.duration("idle"), Total: f.duration("total")}
	limits := map[string]time.Duration{"first": c.First, "idle": c.Idle, "total": c.Total}
	for _, key := range []string{"first", "idle", "total"} {
		switch k := v.get(key); {
		case k == nil:
		case limits[key] == 0:
			l.reportAt(k, CodeBadValue, fmt.Sprintf("callTimeout.%s must be a duration above 0, such as 20s", key), "")
		case key != "total" && c.Total > 0 && limits[key] >= c.Total:
			l.reportAt(k, CodeBadValue, fmt.Sprintf("callTimeout.%s never passes, as callTimeout.total is not longer", key), "")
		}
	}
	return c
}

// isZero reports whether the flow sets nothing.
func (c *ContextSettings) isZero() bool {
	return c.Model == "" && c.System == "" && c.Temperature == nil && c.MaxOutput == 0 && c.Reasoning == "" && c.History == "" &&
		c.Budget == (Budget{}) && c.View == (View{}) && len(c.Models) == 0 && len(c.On) == 0 && c.CallTimeout == (CallTimeout{})
}

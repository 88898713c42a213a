package otel

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// The names of effects, as package node and the node types give them.
const (
	effectModel = "model"
	effectPlan  = "plan"
	effectTool  = "tool"
)

// effect is a completed effect with the parts of its key.
type effect struct {
	*engine.EffectCompleted
	path   string
	prefix string // of the name, "" or ending with a dot
	name   string
	number int // the ordinal
	try    int // from 1
}

// effectOf splits the key PATH/[PREFIX.]NAME#ORDINAL[.TRY].
func effectOf(e *engine.EffectCompleted) effect {
	x := effect{EffectCompleted: e, try: 1}
	var full string
	x.path, full = engine.SplitEffectKey(e.Key)
	full, number, _ := strings.Cut(full, "#")
	i := strings.LastIndexByte(full, '.') + 1
	x.prefix, x.name = full[:i], full[i:]
	number, try, again := strings.Cut(number, ".")
	x.number, _ = strconv.Atoi(number)
	if again {
		x.try, _ = strconv.Atoi(try)
	}
	return x
}

// effectCompleted adds the span of an effect. The journal has its end and its duration.
func (b *builder) effectCompleted(e *engine.EffectCompleted) {
	x := effectOf(e)
	attempt := max(1, b.latest[x.path])
	key := nodeKey(e.Key, attempt)
	if b.seen[key]++; b.seen[key] > 1 {
		key += "." + strconv.Itoa(b.seen[key])
	}
	s := Span{
		Trace: b.trace, ID: spanOf(b.run, key), Parent: spanOf(b.run, ""), Start: b.at - e.Micros*1000,
		Attributes: []Attribute{{attrRun, b.run}, {attrNode, x.path}, {attrAttempt, int64(attempt)}, {attrEffect, e.Key}},
	}
	least := b.root.Start
	if b.latest[x.path] > 0 {
		s.Parent = spanOf(b.run, nodeKey(x.path, attempt))
	}
	if n := b.open[x.path]; n != nil {
		least = n.span.Start
	}
	if at, known := b.begun[e.Key]; known {
		s.Start = min(s.Start, at)
		delete(b.begun, e.Key)
	}
	if x.name == effectTool { // a run that it starts has milliseconds
		s.Start -= s.Start % 1e6
	}
	s.Start = min(max(s.Start, least), b.at)
	switch {
	case x.name == effectTool:
		b.toolCall(&s, &x)
	case b.isCode(&x):
		name(&s, toolOperation(), codeTool)
		s.Attributes = append(s.Attributes, Attribute{attrTool, codeTool}, Attribute{attrToolType, "extension"})
	case isModel(&x):
		b.modelCall(&s, &x)
	default:
		name(&s, effectOperation(), x.prefix+x.name)
	}
	b.end(&s, e.Error)
}

// name sets the name, the kind and the operation of a span.
func name(s *Span, op operation, object string) {
	s.Name, s.Kind = strings.TrimSpace(op.verb+" "+object), op.kind
	if op.name != "" {
		s.Attributes = append(s.Attributes, Attribute{attrOperation, op.name})
	}
}

// isModel reports whether an effect is a call of a model. One that failed without an answer
// has no usage.
func isModel(x *effect) bool {
	return x.Usage != nil && x.Usage.Calls > 0 || slices.Contains([]string{effectModel, effectPlan, llm.PurposeSummary}, x.name)
}

// isCode reports whether an effect runs code.
func (b *builder) isCode(x *effect) bool {
	if !slices.Contains([]string{"execute", "analyse", "confirm"}, x.name) {
		return false
	}
	d := b.node(x.path)
	return d != nil && (d.Type == "action" || d.Type == "decision")
}

func (b *builder) modelCall(s *Span, x *effect) {
	var r llm.Response
	answered := x.Result != nil && decode(x.Result, &r) == nil
	provider, model := b.requested(x)
	if provider == "" {
		provider = r.Message.Provider
	}
	object := model
	if object == "" {
		object = r.Model
	}
	name(s, chatOperation(), object)
	s.Attributes = append(s.Attributes, Attribute{attrProvider, providerName(provider)})
	s.text(attrRequestModel, model)
	s.text(attrResponseModel, r.Model)
	s.text(attrResponseID, r.ID)
	if b.start != nil {
		s.text(attrConversation, b.start.Session)
	}
	if answered && r.Stop != "" {
		s.Attributes = append(s.Attributes, Attribute{attrFinishReasons, []string{finishReason(r.Stop)}})
	}
	if u := x.Usage; u != nil {
		s.Attributes = append(s.Attributes, Attribute{attrInputTokens, int64(u.Input)}, Attribute{attrOutputTokens, int64(u.Output)},
			Attribute{attrCachedTokens, int64(u.Cached)}, Attribute{attrReasoning, int64(u.Reasoning)}, Attribute{attrCost, u.CostMicros}, Attribute{attrCalls, int64(u.Calls)})
	}
	if !answered {
		return
	}
	if b.contents {
		s.Attributes = append(s.Attributes, outputMessages(&r))
	}
	if x.Error == nil && x.name == effectModel {
		b.listOf(x).add(x.number, r.Message.Calls)
	}
}

// text adds a text, unless it is empty.
func (s *Span) text(name, value string) {
	if value != "" {
		s.Attributes = append(s.Attributes, Attribute{name, value})
	}
}

// requested returns the provider and the model of a call as far as the flow says it: the
// journal has no requests. A node with fallback models may have asked any of them, and a node
// without a model of its own any that a context has.
func (b *builder) requested(x *effect) (provider, model string) {
	d := b.node(x.path)
	if d == nil || d.With["models"] != nil {
		return "", ""
	}
	full := literal(d.With, "model")
	if full == "" && d.With["model"] == nil && len(b.models) == 1 {
		full = b.models[0]
	}
	if p := literal(d.With, "provider"); p != "" {
		return p, strings.TrimPrefix(full, p+"/")
	}
	provider, model, ok := strings.Cut(full, "/")
	if !ok {
		return "", full
	}
	return provider, model
}

// noteModels notes the models of contexts that an event creates or changes.
func (b *builder) noteModels(contexts []engine.ContextChange) {
	for _, c := range contexts {
		var change struct {
			Settings *convo.Settings `json:"settings"`
			Set      *convo.Settings `json:"set"`
		}
		if c.Body == nil || decode(c.Body, &change) != nil {
			continue
		}
		for _, set := range []*convo.Settings{change.Settings, change.Set} {
			if set == nil || set.Model == "" {
				continue
			}
			model := set.Model
			if set.Provider != "" && !strings.HasPrefix(model, set.Provider+"/") {
				model = set.Provider + "/" + model
			}
			if !slices.Contains(b.models, model) {
				b.models = append(b.models, model)
			}
		}
	}
}

// callList has the calls of the answers of a node's models, by the number of the answer.
type callList struct {
	numbers []int // in order
	of      map[int][]convo.Call
}

func (l *callList) add(number int, calls []convo.Call) {
	if l.of == nil {
		l.of = make(map[int][]convo.Call)
	}
	if _, known := l.of[number]; !known {
		i, _ := slices.BinarySearch(l.numbers, number)
		l.numbers = slices.Insert(l.numbers, i, number)
	}
	l.of[number] = calls
}

// call returns the call with a number from 1, counted over all answers.
func (l *callList) call(n int) (c convo.Call, ok bool) {
	for _, number := range l.numbers {
		calls := l.of[number]
		if n <= len(calls) {
			return calls[n-1], true
		}
		n -= len(calls)
	}
	return c, false
}

func (b *builder) listOf(x *effect) *callList {
	key := x.path + "/" + x.prefix
	if b.calls[key] == nil {
		b.calls[key] = new(callList)
	}
	return b.calls[key]
}

// toolCall describes a call of a tool: a model's, or that of a node of the type tool.
func (b *builder) toolCall(s *Span, x *effect) {
	call, known := convo.Call{}, false
	if x.number > 0 {
		call, known = b.listOf(x).call(x.number)
	}
	if d := b.node(x.path); !known && d != nil {
		call.Name = literal(d.With, "tool")
	}
	name(s, toolOperation(), call.Name)
	s.text(attrTool, call.Name)
	s.text(attrToolCall, call.ID)
	s.text(attrToolType, "function")
	var r struct {
		Text   string `json:"text"`
		Failed bool   `json:"failed"`
	}
	if x.Result != nil && decode(x.Result, &r) == nil && r.Failed && x.Error == nil {
		s.Failed, s.Code = true, engine.CodeToolError
		s.text(attrError, engine.CodeToolError)
	}
	if b.contents {
		s.text(attrToolArguments, cut(call.Arguments))
		s.text(attrToolResult, cut(r.Text))
	}
}

// decode decodes a value of a journal, or the body of a change of a context.
func decode(v, into any) error {
	raw, ok := v.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(v); err != nil {
			return err
		}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	return d.Decode(into)
}

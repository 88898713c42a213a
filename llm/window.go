package llm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/guard"
	"github.com/weir-run/weir/token"
)

// windowBudget is the room for the calls of a turn.
type windowBudget struct {
	model        Model
	room         int // tokens of everything that is sent
	reserve      int
	viewSettings convo.ViewSettings
	// reader: results that are not shown in full can be read with a tool.
	reader bool

	counter counter
	loaded  bool
	// The sizes of what is sent besides the messages, in the counter's tokens.
	system, tools, fixed int
	last                 *Request
	// bytes is what is sent besides the messages, as viewByBytes counts it.
	bytes int
	// unrecordedCuts: the newest view omits something that its marks do not describe.
	unrecordedCuts bool
}

// counter counts messages as they are sent to one provider.
type counter struct {
	token.Counter
	provider string
}

// Message does not count the blocks of other providers, which are not sent, and counts
// calls as they are sent.
func (c counter) Message(m convo.Message) int {
	if m.Provider != c.provider {
		m.Native = nil
	}
	var calls []convo.Call // a copy, if one is not sent as it is recorded
	for i, was := range m.Calls {
		now := convo.Call{ID: was.ID, Name: was.Name, Arguments: string(NormalizeArguments(was.Arguments))}
		if !validName().MatchString(now.Name) {
			now.Name = ToolNameFor(now.Name, 0)
		}
		if now == was {
			continue
		}
		if calls == nil {
			calls = slices.Clone(m.Calls)
		}
		calls[i] = now
	}
	if calls != nil {
		m.Calls = calls
	}
	return c.Counter.Message(m)
}

// byteCounter counts every byte as a token, an upper bound of every count: what fits this
// way need not be counted.
type byteCounter struct{}

// maxMessageOverhead is an upper bound, in tokens, of every vendor's overhead of a message,
// call or part without data.
const maxMessageOverhead = 64

// maxPrior is an upper bound of every Counter's Prior, in per cent.
const maxPrior = 200

// Message returns its bytes plus the maximum overhead.
func (byteCounter) Message(m convo.Message) int {
	n := maxMessageOverhead + len(m.Text) + len(m.Name) + len(m.CallID) + len(m.Native)
	for _, c := range m.Calls {
		n += maxMessageOverhead + len(c.ID) + max(len(c.Name), maxToolName) + len(NormalizeArguments(c.Arguments))
	}
	for _, p := range m.Parts {
		n += 4096 + len(p.Data) + len(p.URL) + len(p.Name)
	}
	return n
}

// Head returns the first n bytes.
func (byteCounter) Head(text string, n int) string { return text[:min(n, len(text))] }

// Tail returns the last n bytes.
func (byteCounter) Tail(text string, n int) string { return text[max(len(text)-n, 0):] }

// measureWindow computes the available room.
func (t *turn) measureWindow(set convo.Settings) {
	model, known := t.service.models.Find(t.req.Provider, t.req.Model)
	if w := cmp.Or(t.Window, set.Window); w > 0 && (!known || w < model.Window) {
		model.Window = w
	}
	w := &t.window
	w.model, w.viewSettings = model, set.View.Override(t.View)
	w.reserve = cmp.Or(t.Reserve, set.Reserve)
	if w.reserve > 0 {
		w.room = model.Window - w.reserve
		if model.MaxInput > 0 {
			w.room = min(w.room, model.MaxInput)
		}
	} else {
		w.reserve, w.room = model.Reserve(t.req.MaxOutput), model.Room(t.req.MaxOutput)
	}
	w.reader = len(t.req.Tools) > 0 && w.viewSettings.Strategy != convo.All && t.tools[ReaderTool] == nil
}

// loadCounter creates the counter and counts what is sent besides messages. Reading
// vocabularies takes time, so it is done only if bytes alone do not decide.
func (t *turn) loadCounter() error {
	w := &t.window
	if w.loaded {
		return nil
	}
	c, err := w.model.Counter(t.service.models.Vendor(t.req.Provider))
	if err != nil {
		return fmt.Errorf("count tokens for %s: %w", t.req.Model, err)
	}
	w.counter, w.loaded = counter{c, t.req.Provider}, true
	w.system = c.System(t.req.System)
	w.tools = 0
	tools := t.req.Tools
	if w.reader {
		tools = append(slices.Clip(tools), readerTool())
	}
	for _, tl := range tools {
		w.tools += c.Tool(tl.Name, tl.Description, tl.Parameters)
	}
	if t.req.Schema != nil {
		w.tools += c.Tool("answer", "", t.req.Schema)
	}
	w.fixed = c.RequestOverhead(t.req.System != "", len(tools))
	return nil
}

// requestApart is request on a goroutine of its own. The stack that building a request needs is then free while the model answers.
func (t *turn) requestApart(shrink int) (req *Request, err error) {
	err = guard.Call(func() (err error) {
		req, err = t.request(shrink)
		return err
	})
	return req, err
}

// request returns the call for the lane; shrink is the number of times that the provider
// refused one as too long.
func (t *turn) request(shrink int) (*Request, error) {
	t.window.unrecordedCuts = false
	view, err := t.view(shrink)
	if err != nil {
		return nil, err
	}
	if len(view.Messages) == 0 {
		return nil, &Error{
			Code:    engine.CodeModelRequest,
			Message: "there is nothing to answer: the context has no messages and none was given",
		}
	}
	w, req := &t.window, t.req
	t.lane.Marks, w.unrecordedCuts = view.Marks, w.unrecordedCuts || view.Manifest.Shortened > 0
	req.Messages, req.AnswerPosition = view.Messages, t.lane.History.Len()
	req.digests, req.digestKey = &t.service.digests, digestKey{t.scope(t.lane), t.lane.ID}
	if w.last != nil && view.Manifest.Reason == "" {
		req.StablePrefix = len(w.last.Messages)
	}
	t.resumeSession(&req, view)
	if w.reader && hidesResults(t.lane, view) {
		req.Tools = append(slices.Clip(req.Tools), readerTool())
	}
	if t.isForced() {
		t.force(&req)
	}
	t.estimate(&req, view)
	m := view.Manifest
	if m.Omitted > 0 || m.Cleared > 0 || m.Shortened > 0 || m.Repaired > 0 || m.Summary != nil || req.HeldMessages > 0 {
		req.Manifest = &Manifest{
			Manifest: m, Window: w.model.Window, Reserve: w.reserve,
			System: w.system, Tools: w.tools, Factor: t.factor() % 100, HeldMessages: req.HeldMessages,
		}
		if req.Manifest.Factor != 0 || !w.counter.Exact() {
			req.Manifest.Factor = t.factor()
		}
	}
	w.last = &req
	return &req, nil
}

// hidesResults reports whether a result of the lane is not shown in full.
func hidesResults(c convo.Context, v convo.View) bool {
	return v.Marks.Cut > c.Epoch || v.Marks.Cleared > c.Epoch || v.Manifest.Shortened > 0
}

// estimate returns the maximum usage of a request.
func (t *turn) estimate(req *Request, v convo.View) {
	w := &t.window
	in := v.Tokens + t.corrected(w.overheadTokens())
	if !w.loaded { // by bytes, about four a token
		in = (v.Tokens + w.bytes) / 4
	}
	req.Estimate = Usage{Input: in, Output: req.MaxOutput}
	if req.MaxOutput <= 0 {
		req.Estimate.Output = max(w.reserve-outputMargin, min(w.reserve, outputMargin))
	}
	if most := w.model.MaxOutput; most > 0 {
		req.Estimate.Output = min(req.Estimate.Output, most)
	}
	req.Estimate.CostMicros, req.OutputCost = w.model.Cost(req.Estimate), w.model.Cost(Usage{Output: req.Estimate.Output})
	req.Unpriced = !w.model.Price.Known()
}

// view selects what is sent: by bytes if that fits, otherwise by counting.
func (t *turn) view(shrink int) (convo.View, error) {
	w := &t.window
	if shrink == 0 && !w.loaded && !t.host.MustCount() {
		v, ok, err := t.viewByBytes()
		if ok || err != nil {
			return v, err
		}
	}
	if err := t.loadCounter(); err != nil {
		return convo.View{}, err
	}
	beside := t.corrected(w.overheadTokens())
	room := w.room - beside
	if shrink > 0 { // the vendor's window is smaller than the known one
		room = min(room, t.sentTokens()) * (4 - shrink) / 4
	}
	if room <= 0 {
		return convo.View{}, &Error{
			Code: engine.CodeModelContextLength,
			Message: fmt.Sprintf("system instructions and tools take %d tokens and the room is %d (the window of %d minus the reserve of %d): "+
				"shorten them, or use a model with a larger window", beside, w.room, w.model.Window, w.reserve),
		}
	}
	if err := t.checkCanFit(room); err != nil {
		return convo.View{}, err
	}
	v, err := t.summarisedView(t.spec(room))
	if large, ok := errors.AsType[*convo.TooLarge](err); ok {
		return v, &Error{
			Code: engine.CodeModelContextLength, Err: err,
			Message: fmt.Sprintf("%s (the window is %d, %d are reserved for the answer, system instructions and tools take %d)",
				large, w.model.Window, w.reserve, beside),
		}
	}
	return v, err
}

// overheadTokens returns the size of what is sent besides the messages, in the counter's
// tokens.
func (w *windowBudget) overheadTokens() int { return w.system + w.tools + w.fixed }

// sentTokens returns the size of the messages of the last request.
func (t *turn) sentTokens() int {
	n := 0
	for _, m := range t.window.last.Messages {
		n += t.corrected(t.window.counter.Message(m))
	}
	return n
}

// viewByBytes returns the view if everything fits even with one token for each byte. The
// placeholder of a cleared result has its number of tokens, which are counted then.
func (t *turn) viewByBytes() (convo.View, bool, error) {
	w := &t.window
	if t.lane.Marks.Cleared > t.lane.Epoch {
		return convo.View{}, false, nil
	}
	beside := len(t.req.System) + 2*maxMessageOverhead
	for _, tl := range t.req.Tools {
		beside += maxMessageOverhead + len(tl.Name) + len(tl.Description) + schemaBytes(tl.Parameters)
	}
	if t.req.Schema != nil {
		beside += maxMessageOverhead + schemaBytes(t.req.Schema)
	}
	if w.reader {
		beside += 10 * maxMessageOverhead
	}
	w.bytes = beside
	room := w.room - t.corrected(beside) - 512 // overhead of tools
	if room <= 0 {
		return convo.View{}, false, nil
	}
	spec := t.spec(room)
	spec.Count = byteCounter{}
	c := t.lane
	c.Marks.Factor = t.factor()
	v, fits, err := t.service.views.Fits(t.scope(c), c, spec)
	if err != nil || !fits {
		return v, false, err
	}
	v.Marks.Factor = t.lane.Marks.Factor
	// What is shortened depends on the counter.
	return v, !t.hasLongResult(v.Messages, t.spec(room).MaxResult, room), err
}

// schemaBytes returns the size of a schema in bytes.
func schemaBytes(schema map[string]any) int {
	b, err := json.Marshal(schema)
	if err != nil {
		return 1 << 20 // so that it is counted where the error is reported
	}
	return len(b)
}

// hasLongResult reports whether a result may be longer than what is shown of one.
func (t *turn) hasLongResult(ms []convo.Message, limit, room int) bool {
	if t.window.viewSettings.Strategy == convo.All {
		return false
	}
	if limit <= 0 {
		limit = room / 4
	}
	for _, m := range ms {
		if m.Role == convo.Tool && len(m.Text) > limit*100/maxPrior {
			return true
		}
	}
	return false
}

func (t *turn) spec(room int) convo.ViewSpec {
	w := &t.window
	s := convo.ViewSpec{
		Room: room, Count: w.counter, Strategy: w.viewSettings.Strategy, Low: w.viewSettings.Low,
		KeepResults: w.viewSettings.KeepResults, MaxResult: w.viewSettings.MaxResult, Summary: w.viewSettings.Summary,
	}
	if w.reader {
		s.Reader = ReaderTool
	}
	return s
}

// factor returns the factor of the counter's tokens, in per cent.
func (t *turn) factor() int {
	if f := t.lane.Marks.Factor; f > 0 {
		return f
	}
	w := &t.window
	if w.model.exact() {
		return 100
	}
	if w.loaded {
		return int(w.counter.PriorFactor())
	}
	return 100 // of bytes, an upper bound of tokens
}

func (t *turn) corrected(n int) int { return token.Factor(t.factor()).Correct(n) }

// learnFactor records the factor learned from the vendor's count, for the next change of
// the view.
func (t *turn) learnFactor(req *Request, resp *Response) {
	w := &t.window
	if t.current > 0 || !w.loaded || w.counter.Exact() || resp.Usage.Input == 0 || resp.Usage.Estimated || req.Session != "" {
		return
	}
	estimated := req.Estimate.Input * 100 / max(t.factor(), 1)
	learned := int(token.LearnFactor(token.Factor(t.factor()), token.EstimateReport{Estimated: estimated, Reported: resp.Usage.Input}))
	// Too low makes requests too large, too high only cuts a little early.
	if d := learned - cmp.Or(t.lane.Marks.Learned, t.factor()); d > 0 || d <= -5 {
		t.lane.Marks.Learned = learned
	}
}

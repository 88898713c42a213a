package llm

import (
	"cmp"
	"strings"
	"sync"

	"github.com/weir-run/weir/convo"
)

// maxPlausibleTokens is more than any call takes. What a vendor reports beyond is not
// believed: sums of it would overflow.
const maxPlausibleTokens = 1_000_000_000

// plausible is what a vendor reported, as far as it can be.
func (u Usage) plausible() Usage {
	bound := func(n, most int) int { return min(max(n, 0), most) }
	u.Input, u.Output = bound(u.Input, maxPlausibleTokens), bound(u.Output, maxPlausibleTokens)
	u.Cached = bound(u.Cached, u.Input)
	u.Written = bound(u.Written, u.Input-u.Cached)
	u.Reasoning = bound(u.Reasoning, u.Output)
	u.CostMicros, u.Estimated = 0, false
	return u
}

// usageOf is what a try took: what the vendor reported, and where it reported nothing
// the estimate: of the input what was counted before the call, of the output what came
// of it. Without an answer that came (nil), what was reported is all.
func (t *turn) usageOf(req *Request, reported Usage, came *convo.Message) Usage {
	u := reported.plausible()
	if came != nil {
		if u.Input == 0 && req.Estimate.Input > 0 {
			u.Input, u.Estimated = req.Estimate.Input, true
		}
		if u.Output == 0 {
			u.Output = t.outputTokens(came)
			u.Estimated = u.Estimated || u.Output > 0
		}
	}
	u.CostMicros = t.window.model.Cost(u)
	return u
}

// outputTokens is how many tokens an answer has, or part of one.
func (t *turn) outputTokens(m *convo.Message) int {
	var b strings.Builder
	b.WriteString(m.Text)
	b.WriteString(m.Reasoning)
	for _, c := range m.Calls {
		b.WriteString(c.Name)
		b.WriteString(c.Arguments)
	}
	text := b.String()
	switch {
	case text == "":
		return 0
	case !t.window.loaded: // four bytes make a token, more or less
		return (len(text) + 3) / 4
	}
	return t.corrected(t.window.counter.Message(convo.Message{Role: convo.Assistant, Text: text}))
}

// usageFunc says what a try took, of what was reported and of what came.
type usageFunc func(req *Request, reported Usage, came *convo.Message) Usage

// usageMeter counts what comes of one try.
type usageMeter struct {
	emit          func(Chunk)
	answerStarted func() // is told that the answer has begun

	mu              sync.Mutex
	closed          bool
	reported        Usage
	text, reasoning strings.Builder
	calls           []convo.Call
	received        bool
}

// Emit counts a piece and passes it on, unless the meter is closed.
func (m *usageMeter) Emit(c Chunk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	if c.Usage != nil {
		m.reported, m.received = *c.Usage, true
	}
	if c.Call != nil {
		m.calls = append(m.calls, *c.Call)
	}
	m.text.WriteString(c.Text)
	m.reasoning.WriteString(c.Reasoning)
	if c.Text != "" || c.Reasoning != "" || c.Call != nil {
		m.received = true
		m.answerStarted()
	}
	m.emit(c)
}

// close drops what an abandoned provider still emits.
func (m *usageMeter) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// failedUsage is what a try that failed has cost; zero is nothing: one that the vendor refused
// costs nothing. Where nothing came and it is not known what the vendor has done, it is
// what the call may take at most.
func (m *usageMeter) failedUsage(req *Request, e *Error, cut bool, by usageFunc) Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	unknown := e != nil && e.OutcomeUnknown
	var u Usage
	switch {
	case m.received || cut:
		// The vendor did not say what the whole took: a count that came early is of
		// what was there then.
		counted := by(req, Usage{}, &convo.Message{Text: m.text.String(), Reasoning: m.reasoning.String(), Calls: m.calls})
		u = m.reported.plausible()
		u.Input, u.Output = cmp.Or(u.Input, counted.Input), max(u.Output, counted.Output)
	case unknown:
		u.Input, u.Output = req.Estimate.Input, req.Estimate.Output
		if most := req.MaxOutput; most > 0 {
			u.Output = min(most, u.Output)
		}
	default:
		return Usage{}
	}
	u = by(req, u, nil)
	u.Estimated = true
	return u
}

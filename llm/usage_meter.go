package llm

import (
	"cmp"
	"strings"
	"sync"

	"github.com/weir-run/weir/convo"
)

// maxPlausibleTokens is more than any call can use. Larger reported numbers are ignored,
// because sums of them would overflow.
const maxPlausibleTokens = 1_000_000_000

// plausible returns the plausible part of a vendor's report.
func (u Usage) plausible() Usage {
	bound := func(n, most int) int { return min(max(n, 0), most) }
	u.Input, u.Output = bound(u.Input, maxPlausibleTokens), bound(u.Output, maxPlausibleTokens)
	u.Cached = bound(u.Cached, u.Input)
	u.Written = bound(u.Written, u.Input-u.Cached)
	u.Reasoning = bound(u.Reasoning, u.Output)
	u.CostMicros, u.Estimated = 0, false
	return u
}

// usageOf returns the usage of a try: what the vendor reported, with estimates for what it
// did not: for the input the count before the call, for the output the count of the
// received answer. Without an answer (nil) it is only what was reported.
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

// outputTokens returns the number of tokens of an answer, or of a part of one.
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
	case !t.window.loaded: // about four bytes a token
		return (len(text) + 3) / 4
	}
	return t.corrected(t.window.counter.Message(convo.Message{Role: convo.Assistant, Text: text}))
}

// usageFunc computes the usage of a try from what was reported and received.
type usageFunc func(req *Request, reported Usage, came *convo.Message) Usage

// usageMeter counts the received output of one try.
type usageMeter struct {
	emit          func(Chunk)
	answerStarted func() // called when the answer starts

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

// close drops further output of an abandoned provider.
func (m *usageMeter) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// failedUsage returns the cost of a failed try. A refused try costs nothing, which is zero.
// If nothing was received and the vendor may have processed the request, it is the maximum
// usage of the call.
func (m *usageMeter) failedUsage(req *Request, e *Error, cut bool, by usageFunc) Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	unknown := e != nil && e.OutcomeUnknown
	var u Usage
	switch {
	case m.received || cut:
		// The vendor did not report the total: an early report covers only the output at
		// that time.
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

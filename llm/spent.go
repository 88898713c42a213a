package llm

import (
	"cmp"

	"github.com/weir-run/weir/convo"
)

// mostTokens is more than any call takes. What a vendor reports beyond is not
// believed: sums of it would overflow.
const mostTokens = 1_000_000_000

// plausible is what a vendor reported, as far as it can be.
func (u Usage) plausible() Usage {
	bound := func(n, most int) int { return min(max(n, 0), most) }
	u.Input, u.Output = bound(u.Input, mostTokens), bound(u.Output, mostTokens)
	u.Cached = bound(u.Cached, u.Input)
	u.Written = bound(u.Written, u.Input-u.Cached)
	u.Reasoning = bound(u.Reasoning, u.Output)
	u.CostMicros, u.Estimated = 0, false
	return u
}

// measured is what a try took: what the vendor reported, and the estimate where it
// reported nothing, or zeros: of the input what was counted before the call, of the
// output what came of it.
func (t *turn) measured(req *Request, reported Usage, came convo.Message) Usage {
	u := reported.plausible()
	if u.Input == 0 && req.Estimate.Input > 0 {
		u.Input, u.Estimated = req.Estimate.Input, true
	}
	if u.Output == 0 {
		if n := t.output(came); n > 0 {
			u.Output, u.Estimated = n, true
		}
	}
	u.CostMicros = t.space.model.Cost(u)
	return u
}

// output is how many tokens an answer has, or part of one.
func (t *turn) output(m convo.Message) int {
	text := m.Text + m.Reasoning
	for _, c := range m.Calls {
		text += c.Name + c.Arguments
	}
	switch {
	case text == "":
		return 0
	case !t.space.loaded: // four bytes make a token, more or less
		return (len(text) + 3) / 4
	}
	return t.correct(t.space.counter.Message(convo.Message{Role: convo.Assistant, Text: text}))
}

// measure says what a try took, of what was reported and of what came.
type measure func(req *Request, reported Usage, came convo.Message) Usage

// meter listens to one try.
type meter struct {
	emit     func(Chunk)
	reported Usage
	came     convo.Message
	heard    bool
}

// Emit passes on what comes.
func (m *meter) Emit(c Chunk) {
	if c.Usage != nil {
		m.reported, m.heard = *c.Usage, true
	}
	if c.Call != nil {
		m.came.Calls = append(m.came.Calls, *c.Call)
	}
	m.came.Text += c.Text
	m.came.Reasoning += c.Reasoning
	m.heard = m.heard || c.Text != "" || c.Reasoning != "" || c.Call != nil
	m.emit(c)
}

// lost is what a try that failed has cost, and whether it has cost anything: one that
// the vendor refused has not. Where nothing came and nobody knows what the vendor has
// done, it is what the call may take at most.
func (m *meter) lost(req *Request, e *Error, cut bool, by measure) (Usage, bool) {
	if !m.heard && !cut && (e == nil || !e.Unknown) {
		return Usage{}, false
	}
	u := by(req, m.reported, m.came)
	if !m.heard && !cut {
		u = req.Estimate
		u.Output = cmp.Or(req.MaxOutput, u.Output)
		u.Estimated = true
		return u, true
	}
	// The vendor did not say what the whole took.
	u.Estimated = true
	return u, true
}

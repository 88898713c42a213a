package proof

import (
	"slices"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// TestCheckerDetectsBrokenRequests breaks requests that are as they should be, one
// way after another, and wants each to be found by every vendor's proof.
func TestCheckerDetectsBrokenRequests(t *testing.T) {
	t.Parallel()
	data := read(t)
	for _, v := range vendors(t) {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			p := newProver(t, data, v)
			set := settings{1_000_000, convo.Window}
			c := p.context(data.all[1].messages)
			h := newHost(nil)
			turn := p.turn(set, convo.NewManager(c, false))
			turn.SkipHistory = true
			if _, err := p.service.Turn(t.Context(), h, turn); err != nil {
				t.Fatal(err)
			}
			req := h.sent[0]
			if problem := p.problem(req, c, set); problem != nil {
				t.Fatal(problem)
			}
			for name, breaks := range breakages(t, req.Messages) {
				broken := *req
				broken.Messages = breaks
				if p.problem(&broken, c, set) == nil {
					t.Errorf("%s: nothing was found", name)
				}
			}
			set.budget = p.vendor.tokens(req) - p.otherTokens - 1
			if p.problem(req, c, set) == nil {
				t.Error("a token over the budget: nothing was found")
			}
		})
	}
}

// breakages are messages with one thing wrong in each.
func breakages(t *testing.T, ms []convo.Message) map[string][]convo.Message {
	t.Helper()
	at := func(what string, is func(convo.Message) bool) int {
		i := slices.IndexFunc(ms, is)
		if i < 0 {
			t.Fatalf("there is no %s", what)
		}
		return i
	}
	without := func(i int) []convo.Message { return slices.Delete(slices.Clone(ms), i, i+1) }
	changed := func(i int, f func(*convo.Message)) []convo.Message {
		out := slices.Clone(ms)
		f(&out[i])
		return out
	}
	result := at("result", func(m convo.Message) bool { return m.Role == convo.Tool })
	several := at("parallel call", func(m convo.Message) bool { return len(m.Calls) > 1 })
	return map[string][]convo.Message{
		"a result is missing":         without(result),
		"a call is missing":           without(result - 1),
		"one of two calls is missing": changed(several, func(m *convo.Message) { m.Calls = m.Calls[1:] }),
		"a result comes twice":        slices.Insert(slices.Clone(ms), result, ms[result]),
		"a pinned message is missing": without(at("pin", func(m convo.Message) bool { return m.Pinned && m.Role == convo.User })),
		"the order is another":        append(slices.Clone(ms[2:4]), append(slices.Clone(ms[:2]), ms[4:]...)...),
		"a message is made up":        append(slices.Clone(ms), convo.Message{Role: convo.User, Text: "I never said this."}),
		"a result is another":         changed(result, func(m *convo.Message) { m.Text = "{}" }),
	}
}

// problem returns what is wrong with a request.
func (p *prover) problem(req *llm.Request, c convo.Context, set settings) error {
	if _, err := p.vendor.written(req); err != nil {
		return err
	}
	return p.checkPinned(req, c, set)
}

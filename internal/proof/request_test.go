package proof

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/tool"
)

var (
	exhaustive = flag.Bool("views.all", false, "check every conversation at every budget and cut point, not one in some")
	samples    = flag.Int("views.sample", 61, "of how many conversations one is checked; prime")
	step       = flag.Int("views.step", 500, "the step of budgets, in tokens")
)

const (
	leastBudget = 500
	reserve     = 700
)

// TestEveryRequestIsValid builds the requests that can come of the recorded
// conversations: at budgets from 500 tokens for messages up to where all fits,
// with the history as it is after each message (as after a crash, a cancelled
// turn or a trim), and as turns continue. Each is valid by its vendor's rules, is
// within its budget, keeps what must stay, and has the same bytes again.
func TestEveryRequestIsValid(t *testing.T) {
	t.Parallel()
	data := read(t)
	list := vendors(t)
	tallies := make([]totals, len(list))
	t.Run("vendors", func(t *testing.T) {
		for i, v := range list {
			t.Run(v.name, func(t *testing.T) {
				t.Parallel()
				p := newProver(t, data, v)
				p.conversations(len(v.name))
				t.Logf("%+v", p.totals)
				tallies[i] = p.totals
			})
		}
	})
	var sum totals
	for _, one := range tallies {
		sum.add(one)
	}
	t.Logf("in all: %+v", sum)
	if sum.Requests < 1000 || sum.Refused > sum.Requests/5 || sum.Less < sum.Requests/5 {
		t.Errorf("too few requests, or too many refused, or too few that leave out anything: %+v", sum)
	}
}

func serviceOf(v vendor) *llm.Service {
	return llm.NewService(llm.Options{Providers: map[string]llm.Provider{v.name: v.provider}, Models: v.models})
}

// totals counts requests that were built; the different bodies among them, by
// each wire, all checked; requests that leave out, clear or shorten something; summaries asked for;
// and turns that were refused since what must stay is too large, under the
// strategy that leaves nothing out apart.
type totals struct{ Requests, Bodies, Less, Summaries, Refused, RefusedAll int }

func (a *totals) add(b totals) {
	a.Requests += b.Requests
	a.Bodies += b.Bodies
	a.Less += b.Less
	a.Summaries += b.Summaries
	a.Refused += b.Refused
	a.RefusedAll += b.RefusedAll
}

// prover checks one vendor's requests.
type prover struct {
	t           *testing.T
	data        corpus
	vendor      vendor
	tools       []*tool.Tool
	service     *llm.Service
	otherTokens int
	totals      totals
	runs        int
	known       map[[sha256.Size]byte]bool // requests whose bodies were checked
}

func newProver(t *testing.T, data corpus, v vendor) *prover {
	t.Helper()
	return &prover{
		t: t, data: data, vendor: v, tools: data.runnable(), service: serviceOf(v), known: map[[sha256.Size]byte]bool{},
		otherTokens: v.beside(data.system, append(slices.Clone(data.tools), readerOf(t, v))),
	}
}

// conversation checks all that can come of one.
func (p *prover) conversation(c conversation) {
	whole := p.context(c.messages)
	size := 0
	for _, m := range c.messages {
		size += p.vendor.message(m)
	}
	budget := leastBudget
	for n := 0; ; n++ {
		for _, strategy := range []convo.Strategy{convo.Window, convo.Summarise, convo.All} {
			set := settings{budget, strategy}
			p.playConversation(c, set)
			if *exhaustive || n%3 == 0 {
				p.points(c, whole, set)
			}
		}
		if budget > size {
			return
		}
		budget += *step * stride()
	}
}

// conversations checks all, or a sample that begins with one.
func (p *prover) conversations(first int) {
	for n, c := range p.data.all {
		if *exhaustive || n%sample() == first {
			p.conversation(c)
		}
		if *exhaustive && n%10 == 9 {
			p.t.Logf("%d conversations: %+v", n+1, p.totals)
		}
	}
}

// sample is of how many conversations one is checked. It is prime, so that all
// kinds that read makes are among them.
func sample() int {
	if testing.Short() {
		return 61
	}
	return *samples
}

// stride returns how many steps are taken at once.
func stride() int {
	switch {
	case *exhaustive:
		return 1
	case testing.Short():
		return 4
	}
	return 2
}

// settings are how messages are shown.
type settings struct {
	budget   int
	strategy convo.Strategy
}

func (p *prover) context(ms []convo.Message) convo.Context {
	p.runs++
	c := convo.Context{ID: fmt.Sprint("c", p.runs), Settings: convo.Settings{
		System: p.data.system, Model: p.vendor.name + "/" + p.vendor.model,
	}}
	c.History = c.History.Append(ms...)
	return c
}

// turn returns one that has set's budget for messages.
func (p *prover) turn(set settings, m *convo.Manager) llm.Turn {
	return llm.Turn{
		Context: m, Tools: p.tools, Window: set.budget + p.otherTokens + reserve, Reserve: reserve,
		View: convo.ViewSettings{Strategy: set.strategy}, MaxSteps: 60,
	}
}

// points asks for an answer to the history as it is after each message: as it
// stands, where a person continues from there, and after a trim there.
func (p *prover) points(c conversation, whole convo.Context, set settings) {
	for n := 1; n <= len(c.messages); n++ {
		if !*exhaustive && n%5 != 0 {
			continue
		}
		at := p.context(c.messages[:n])
		p.checkTurn(at, set, nil)
		p.checkTurn(at, set, &convo.Message{Role: convo.User, Text: "Are you still there? Please go on."})
		if n == len(c.messages) {
			return
		}
		if pins, ok := trimmed(c.messages, n); ok {
			cut := whole
			cut.ID, cut.Marks = at.ID+"cut", convo.Marks{Cut: n, Pins: pins, Cleared: n / 2}
			p.checkTurn(cut, set, nil)
		}
		reset := whole
		reset.ID, reset.Epoch = at.ID+"reset", n
		p.checkTurn(reset, set, nil)
	}
}

// trimmed returns the pins before a trim at n: what is pinned, and the newest that
// the person said. A trim in the midst of what is pinned is none.
func trimmed(ms []convo.Message, n int) (pins []int, ok bool) {
	asked := -1
	for i, m := range ms {
		if m.Role == convo.User {
			asked = i
		}
	}
	for i := 0; i < n; {
		end := i + 1
		for end < len(ms) && ms[end].Role == convo.Tool {
			end++
		}
		if ms[i].Pinned || i == asked {
			if end > n {
				return nil, false
			}
			for at := i; at < end; at++ {
				pins = append(pins, at)
			}
		}
		i = end
	}
	return pins, true
}

// checkTurn makes one turn that keeps nothing.
func (p *prover) checkTurn(c convo.Context, set settings, msg *convo.Message) {
	p.checkTwice(c, set, msg, nil, func(c convo.Context) *convo.Manager { return convo.NewManager(c, false) })
}

// playConversation holds a conversation again, turn by turn, its marks kept.
func (p *prover) playConversation(c conversation, set settings) {
	main := convo.NewManager(p.context(nil), true)
	for i, m := range c.messages {
		if m.Role != convo.User {
			continue
		}
		end := i + 1
		for end < len(c.messages) && c.messages[end].Role != convo.User {
			end++
		}
		first := true
		p.checkTwice(main.Get(), set, &m, c.messages[i+1:end], func(c convo.Context) *convo.Manager {
			if first {
				first = false
				return main
			}
			return convo.NewManager(c, true)
		})
	}
}

// checkTwice makes a turn, and again by another service from the context as it would
// be restored; script is what the model and the tools say.
func (p *prover) checkTwice(c convo.Context, set settings, msg *convo.Message, script []convo.Message, manager func(convo.Context) *convo.Manager) {
	p.t.Helper()
	var hosts [2]*host
	var errs [2]error
	before := c
	for i, s := range []*llm.Service{p.service, serviceOf(p.vendor)} {
		m := manager(c)
		turn := p.turn(set, m)
		turn.SkipHistory, turn.Message = !m.Writable(), msg
		hosts[i] = newHost(script)
		_, errs[i] = s.Turn(p.t.Context(), hosts[i], turn)
		c = restored(p.t, c)
	}
	if fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) {
		p.t.Fatalf("one ended with %v, the other with %v", errs[0], errs[1])
	}
	p.checkSameRequests(hosts[0], hosts[1])
	if msg != nil {
		before.History = before.History.Append(*msg)
	}
	before.History = before.History.Append(hosts[0].added...)
	p.requests(hosts[0].sent, before, set)
	p.checkError(errs[0], before, set, hosts[0])
}

// checkError checks how a turn ended: where it failed, what must stay is too large
// for its budget, and no summary was paid for before.
func (p *prover) checkError(err error, c convo.Context, set settings, h *host) {
	p.t.Helper()
	if err == nil {
		return
	}
	if failed, ok := errors.AsType[*llm.Error](err); ok && failed.Code == "model_invalid_request" {
		if ms, _ := c.Messages(); len(convo.Repair(ms)) == 0 {
			return // nothing is left that could be answered
		}
	}
	if _, ok := errors.AsType[*convo.TooLarge](err); !ok {
		p.t.Fatalf("%s, %+v: %v", c.ID, set, err)
	}
	if set.strategy == convo.All {
		p.totals.RefusedAll++
	} else {
		p.totals.Refused++
	}
	least, failed := p.vendor.least(c, set.strategy)
	if failed != nil {
		p.t.Fatal(failed)
	}
	if least <= set.budget {
		p.t.Errorf("%s, %+v: refused, though what must stay takes %d: %v\n%s", c.ID, set, least, err, encoded(c.Marks))
	}
	if n := len(h.sent); n > 0 && h.sent[n-1].Purpose == llm.PurposeSummary {
		p.t.Errorf("%s, %+v: a summary was paid for before it was refused: %v", c.ID, set, err)
	}
}

// checkSameRequests: two ways to the same requests give the same bytes, which are valid.
func (p *prover) checkSameRequests(a, b *host) {
	p.t.Helper()
	if len(a.sent) != len(b.sent) {
		p.t.Fatalf("%d requests, and %d from the context as restored", len(a.sent), len(b.sent))
	}
	for i := range a.sent {
		if !sameRequest(a.sent[i], b.sent[i]) {
			p.t.Fatalf("request %d is another from the context as restored:\n%s\n%s", i, encoded(a.sent[i]), encoded(b.sent[i]))
		}
		// What else is sent is the same in all.
		key := sha256.Sum256([]byte(fmt.Sprint(a.sent[i].Purpose, a.sent[i].StablePrefix, len(a.sent[i].Tools), encoded(unnamed(a.sent[i].Messages)))))
		if p.known[key] {
			continue // a body follows from its request
		}
		p.known[key] = true
		p.totals.Bodies += len(p.vendor.apis)
		body, err := p.vendor.written(a.sent[i])
		if err != nil {
			p.t.Fatal(err)
		}
		again, err := p.vendor.bodies(b.sent[i])
		if err != nil || string(body) != string(slices.Concat(again...)) {
			p.t.Fatalf("%v; the bodies differ:\n%s\n%s", err, body, again)
		}
	}
}

// unnamed are messages without ids, which no vendor gets.
func unnamed(ms []convo.Message) []convo.Message {
	out := make([]convo.Message, len(ms))
	for i, m := range ms {
		out[i] = sent(m)
	}
	return out
}

func sameRequest(a, b *llm.Request) bool {
	return a.System == b.System && a.StablePrefix == b.StablePrefix && slices.EqualFunc(a.Messages, b.Messages, convo.Message.Equal) &&
		slices.EqualFunc(a.Tools, b.Tools, func(a, b llm.Tool) bool { return a.Name == b.Name && a.Description == b.Description })
}

// requests checks the requests of one turn of a context. What came before a
// request is a beginning of what is in the context now.
func (p *prover) requests(sent []*llm.Request, c convo.Context, set settings) {
	p.t.Helper()
	for _, req := range sent {
		p.totals.Requests++
		if err := p.checkPinned(req, c, set); err != nil {
			p.t.Fatalf("%s, %+v: %v\n%s", c.ID, set, err, encoded(req.Manifest))
		}
		if req.Purpose == llm.PurposeSummary {
			p.totals.Summaries++
			continue
		}
		if req.Manifest != nil {
			p.totals.Less++
		}
	}
}

// checkPinned checks that a request is within its budget and shows what it should.
func (p *prover) checkPinned(req *llm.Request, c convo.Context, set settings) error {
	room := set.budget + p.otherTokens
	if n := p.vendor.tokens(req); n > room {
		return fmt.Errorf("a request %s takes %d tokens, over %d", req.Purpose, n, room)
	}
	if req.Purpose == llm.PurposeSummary {
		return nil
	}
	return p.content(req, c, set)
}

func readerOf(t *testing.T, v vendor) llm.Tool {
	t.Helper()
	// The reader is offered once something is not shown in full.
	h := newHost(nil)
	text := strings.Repeat("word ", 30_000)
	c := convo.Context{ID: "reader", Settings: convo.Settings{Model: v.name + "/" + v.model}}
	c.History = c.History.Append(
		convo.Message{Role: convo.User, Text: "Look."},
		convo.Message{Role: convo.Assistant, Calls: []convo.Call{{ID: "1", Name: "look", Arguments: "{}"}}},
		convo.Message{Role: convo.Tool, CallID: "1", Name: "look", Text: text},
	)
	_, err := serviceOf(v).Turn(t.Context(), h, llm.Turn{
		Context: convo.NewManager(c, false), SkipHistory: true, Window: 8000, Reserve: 100, Tools: []*tool.Tool{{Name: "look"}},
	})
	if err != nil || len(h.sent) != 1 || len(h.sent[0].Tools) != 2 {
		t.Fatalf("no reader is offered: %v", err)
	}
	return h.sent[0].Tools[1]
}

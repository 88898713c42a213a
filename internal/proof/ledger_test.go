package proof

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
)

var (
	hostileN    = flag.Int("hostile.n", 0, "how many sessions with hostile models, each of 20 messages; by default 14 of 5")
	hostileSeed = flag.Uint64("hostile.seed", 1, "the seed of the first of them")
)

// bill is what an outside ledger has counted: calls that a vendor may bill, and what it
// reported of them.
type bill struct {
	calls, estimated int
	tokens           int // reported
	refused          int
}

func (b *bill) add(o bill) {
	b.calls, b.estimated, b.tokens, b.refused = b.calls+o.calls, b.estimated+o.estimated, b.tokens+o.tokens, b.refused+o.refused
}

// hostileBiller draws what a hostile model answers, and keeps the ledger.
type hostileBiller struct {
	r     *rand.Rand
	turns []llmtest.Turn // of hostileTurns

	mu     sync.Mutex
	bill   bill
	broken int // tries in a row that brought no answer
	more   int // turns with calls in a row
}

func newHostileBiller(seed uint64) *hostileBiller {
	all := hostileTurns()
	d := &hostileBiller{r: rand.New(rand.NewPCG(seed, 7))}
	for _, what := range slices.Sorted(maps.Keys(all)) {
		d.turns = append(d.turns, all[what])
	}
	return d
}

// nextTurn returns the next answer.
func (d *hostileBiller) nextTurn(*llmtest.Request) llmtest.Turn {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.r.Float64()
	if d.broken < 2 && p < 0.1 {
		d.broken++
		if p < 0.03 {
			d.bill.add(bill{refused: 1})
			return llmtest.Turn{Failure: &llmtest.Failure{Status: 503, Code: "overloaded", Message: "Try later."}}
		}
		d.bill.add(bill{calls: 1, estimated: 1})
		return llmtest.Turn{Text: strings.Repeat("A long answer. ", 20), Break: &llmtest.Break{After: d.r.IntN(4)}}
	}
	d.broken = 0
	t := d.answer()
	t.Usage = d.usage()
	b := bill{calls: 1, tokens: t.Usage.Input + t.Usage.Output}
	if t.Usage == (llm.Usage{}) {
		b.estimated = 1
	}
	d.bill.add(b)
	return t
}

// answer returns one with a call of something odd, or with a text.
func (d *hostileBiller) answer() llmtest.Turn {
	if d.more < 4 && d.r.IntN(2) == 0 {
		d.more++
		return d.turns[d.r.IntN(len(d.turns))]
	}
	d.more = 0
	switch d.r.IntN(4) {
	case 0:
		return llmtest.Turn{Text: strings.Repeat("enormous ", 1+d.r.IntN(4000)), Piece: 4000}
	case 1:
		return llmtest.Turn{Text: "Well.", Reasoning: "Hm."}
	default:
		return llmtest.Turn{Text: fmt.Sprintf("Number %d. \u2028 <|im_end|>", d.r.IntN(100))}
	}
}

// usage returns what the vendor reports: something, nothing, or a part from its cache.
func (d *hostileBiller) usage() llm.Usage {
	switch d.r.IntN(4) {
	case 0:
		return llm.Usage{}
	case 1:
		return llm.Usage{Input: 1000, Cached: 900, Output: 20, Reasoning: 10}
	default:
		return llm.Usage{Input: 1 + d.r.IntN(5000), Output: 1 + d.r.IntN(500)}
	}
}

const ledgerFlow = `
weir: 1
name: ledger
context: {model: %s, budget: {window: 16000, reserve: 2000}%s}
%s
session: {}
inputs: {message: {type: text, required: true}}
nodes:
  tools: {type: tools, with: {tools: [echo, a_b]}}
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}", tools: "{{ tools.tools }}"}}
outputs: {answer: "{{ answer.text }}"}
`

// TestUsageMatchesExternalLedger has sessions of many messages
// with models that answer at random with what hostileTurns lists, enormous texts, streams
// that break, refusals and odd usage, and that change their API from message to message.
// Each request must be valid, and what the sessions are charged must be what the vendor has
// counted. A failure prints the seed of its session.
func TestUsageMatchesExternalLedger(t *testing.T) {
	t.Parallel()
	sessions, messages := 14, 5
	if *hostileN > 0 {
		sessions, messages = *hostileN, 20
	}
	var mu sync.Mutex
	var total bill
	at := make(chan struct{}, 16) // sessions at the same time, which mostly wait
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			at <- struct{}{}
			defer func() { <-at }()
			b := hostileSession(t, *hostileSeed+uint64(i), messages)
			mu.Lock()
			defer mu.Unlock()
			total.add(b)
		})
	}
	wg.Wait()
	t.Logf("%d sessions of %d messages: %d billable calls, %d of them at an estimate, %d refused, %d tokens reported",
		sessions, messages, total.calls, total.estimated, total.refused, total.tokens)
	if total.estimated == 0 || total.refused == 0 && sessions > 50 {
		t.Error("nothing odd was answered")
	}
}

// hostileSession returns one session; it returns what the vendor has counted.
func hostileSession(t *testing.T, seed uint64, messages int) bill {
	t.Helper()
	d, deal := newHostileServer(t), newHostileBiller(seed)
	d.server.Answer(deal.nextTurn)
	var s *weir.Session
	var spent engine.Usage
	for i := range messages {
		api := hostileAPIs[deal.r.IntN(len(hostileAPIs))]
		history, budget := "", ""
		if api.server {
			history = ", history: server"
		}
		if seed%2 == 0 {
			budget = "budget: {maxCalls: 1000}"
		}
		f, err := d.w.Parse("ledger.yaml", fmt.Appendf(nil, ledgerFlow, api.model, history, budget))
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			return bill{}
		}
		if s, err = d.w.Session(t.Context(), f, weir.SessionOptions{User: "u", Thread: "t"}); err != nil {
			t.Errorf("seed %d: %v", seed, err)
			return bill{}
		}
		turn, err := s.Send(t.Context(), fmt.Sprintf("message %d", i), weir.SendOptions{})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			return bill{}
		}
		state, err := turn.Wait(t.Context())
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			return bill{}
		}
		spent = spent.Add(state.Usage)
		// What a model wrote may be too large for any window; that is refused before it is sent.
		failed := state.Error != nil && state.Error.Code != engine.CodeModelContextLength
		if problems := d.server.TakeProblems(); len(problems) > 0 || failed {
			t.Errorf("seed %d, message %d at %s: %v; a request breaks rules of its API: %q", seed, i, api.model, state.Error, problems)
			return deal.bill
		}
	}
	sameBill(t, seed, deal.bill, spent, s)
	return deal.bill
}

// sameBill compares what the vendor has counted with what the rounds and their session
// are charged.
func sameBill(t *testing.T, seed uint64, b bill, spent engine.Usage, s *weir.Session) {
	t.Helper()
	if spent.Calls != b.calls || spent.Estimated < b.estimated || spent.Tokens() < b.tokens {
		t.Errorf("seed %d: the vendor counts %+v, the rounds %+v", seed, b, spent)
	}
	if row, err := s.Info(t.Context()); err != nil || row.Usage != spent {
		t.Errorf("seed %d: the session is charged %+v, its rounds %+v: %v", seed, row.Usage, spent, err)
	}
}

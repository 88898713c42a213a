package proof

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// wanted is the share of input tokens, in per cent, that must repeat the call
// before.
const wanted = 80

// TestRequestsReuseCachedPrefix replays the longest conversations as
// one of over 2,000 messages under a window of 16,000 tokens, and adds up how
// much of each request is what the one before began with: its tools, system
// instructions and messages up to the first that is another.
func TestRequestsReuseCachedPrefix(t *testing.T) {
	t.Parallel()
	data := read(t)
	length := 2000
	if testing.Short() {
		length = 800
	}
	ms := data.longest(length)
	v := &counts{vendors(t)[0], map[string]int{}}
	rows := []replayed{
		replay(t, data, v, ms, "Weir, window", convo.ViewSettings{}),
		replay(t, data, v, ms, "Weir, window, results not cleared", convo.ViewSettings{KeepResults: -1}),
		replay(t, data, v, ms, "Weir, window, low mark at 30 %", convo.ViewSettings{Low: 30}),
		replay(t, data, v, ms, "Weir, window, low mark at 90 %", convo.ViewSettings{Low: 90}),
		replay(t, data, v, ms, "Weir, summaries", convo.ViewSettings{Strategy: convo.Summarise}),
	}
	plain := keepWhatFits(t, data, v, ms)
	var table strings.Builder
	fmt.Fprintf(&table, "%d messages\n| | calls | input tokens | repeated | repeated of the messages | the front moved |\n|---|---|---|---|---|---|\n", len(ms))
	for _, r := range append(rows, plain) {
		fmt.Fprintln(&table, r)
	}
	t.Log(table.String())
	for _, r := range []replayed{rows[0], rows[4]} {
		if r.share() < wanted {
			t.Errorf("%s repeats %.1f %%, want %d %%", r.name, r.share(), wanted)
		}
	}
	if plain.share() > rows[0].share()-10 {
		t.Errorf("keeping what fits repeats %.1f %%, as much as the views: the test says nothing", plain.share())
	}
}

// longest returns the longest conversations one after another, n messages at least.
func (c *corpus) longest(n int) []convo.Message {
	list := slices.Clone(c.all)
	slices.SortStableFunc(list, func(a, b conversation) int { return cmp.Compare(len(b.messages), len(a.messages)) })
	var out []convo.Message
	for _, one := range list {
		if len(out) >= n {
			break
		}
		for _, m := range one.messages {
			m.Pinned = false
			out = append(out, m)
		}
	}
	return out
}

// replayed adds up the requests of one way to show a history.
type replayed struct {
	name                       string
	calls, moved               int
	input, repeated, of, again int // of and again: of the messages alone
	last                       *llm.Request
	at                         int // the call at which the front moved last
}

func (r *replayed) share() float64 { return 100 * float64(r.repeated) / float64(r.input) }

// String returns a row of the table.
func (r replayed) String() string {
	return fmt.Sprintf("| %s | %d | %d | %.1f %% | %.1f %% | %d |",
		r.name, r.calls, r.input, r.share(), 100*float64(r.again)/float64(r.of), r.moved)
}

// counts are a vendor's, of messages and of what is besides them, each counted
// once.
type counts struct {
	vendor
	known map[string]int
}

func (c *counts) of(m convo.Message) int {
	key := fmt.Sprint(m.Role, m.CallID, m.Name, m.Calls, m.Text)
	n, ok := c.known[key]
	if !ok {
		n = c.message(m)
		c.known[key] = n
	}
	return n
}

func (c *counts) cachedPrefix(req *llm.Request) int {
	key := fmt.Sprint(len(req.Tools))
	n, ok := c.known[key]
	if !ok {
		n = c.beside(req.System, req.Tools)
		c.known[key] = n
	}
	return n
}

// add compares a request with the one before.
func (r *replayed) add(c *counts, req *llm.Request) {
	front := c.cachedPrefix(req)
	r.calls++
	r.input += front
	same := r.last != nil && len(r.last.Tools) == len(req.Tools) && r.last.System == req.System
	if same {
		r.repeated += front
	}
	for i, m := range req.Messages {
		n := c.of(m)
		r.input += n
		r.of += n
		if same = same && i < len(r.last.Messages) && sent(m).Equal(sent(r.last.Messages[i])); same {
			r.repeated += n
			r.again += n
		} else if r.last != nil && i < len(r.last.Messages) && r.at != r.calls {
			r.moved, r.at = r.moved+1, r.calls
		}
	}
	r.last = req
}

// sent returns the form of a message in a vendor's request.
func sent(m convo.Message) convo.Message {
	m.ID = ""
	return m
}

const window = 16_000

// replay holds the conversation by the service.
func replay(t *testing.T, data corpus, v *counts, ms []convo.Message, name string, view convo.ViewSettings) replayed {
	t.Helper()
	r := replayed{name: name}
	s := serviceOf(v.vendor)
	main := convo.NewManager(convo.Context{ID: "main", Settings: convo.Settings{
		System: data.system, Model: v.name + "/" + v.model, Window: window, View: view,
	}}, true)
	tools := data.runnable()
	for i, m := range ms {
		if m.Role != convo.User {
			continue
		}
		end := i + 1
		for end < len(ms) && ms[end].Role != convo.User {
			end++
		}
		h := newHost(ms[i+1 : end])
		h.textOnly = true
		if _, err := s.Turn(t.Context(), h, llm.Turn{Context: main, Message: &m, Tools: tools, MaxSteps: 100}); err != nil {
			t.Fatal(err)
		}
		for _, req := range h.sent {
			if req.Purpose == llm.PurposeTurn {
				r.add(v, req)
			}
		}
	}
	return r
}

// keepWhatFits makes the same calls with the newest groups that fit.
func keepWhatFits(t *testing.T, data corpus, v *counts, ms []convo.Message) replayed {
	t.Helper()
	r := replayed{name: "the newest that fit"}
	model, _ := llm.NewCatalogue().Find(v.name, v.model)
	model.Window = window
	room := model.Room(0) - v.beside(data.system, data.tools)
	for n := 1; n <= len(ms); n++ {
		if n < len(ms) && ms[n].Role != convo.Assistant {
			continue // no call is made here
		}
		free, from := room, n
		for at := n - 1; at >= 0 && free >= 0; at-- {
			if free -= v.of(ms[at]); free >= 0 && ms[at].Role != convo.Tool {
				from = at
			}
		}
		if from < n && (n == len(ms) || ms[n].Role == convo.Assistant) {
			r.add(v, &llm.Request{System: data.system, Tools: data.tools, Messages: ms[from:n]})
		}
	}
	return r
}

package draw_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/draw"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

// hand makes a session by hand: a round after the other.
type hand struct {
	t       *testing.T
	pool    *trajectory.RecorderPool
	r       *trajectory.Recorder
	records []trajectory.Record
}

func byHand(t *testing.T) *hand {
	t.Helper()
	return &hand{t: t, pool: trajectory.NewRecorderPool(nil, nil)}
}

// round begins a round; the one before is kept.
func (h *hand) round(number int) {
	h.t.Helper()
	h.keep()
	r, release, err := h.pool.Open(h.t.Context(), trajectory.Key{Session: "late-suppliers", Round: number})
	if err != nil {
		h.t.Fatal(err)
	}
	h.r = r
	h.t.Cleanup(func() { _ = release(h.t.Context()) })
}

func (h *hand) keep() {
	if h.r != nil {
		h.records = append(h.records, h.r.Record())
	}
}

func (h *hand) add(n trajectory.NewNode) trajectory.ID {
	h.t.Helper()
	n.By, n.At = trajectory.Attribution{Run: "r1", Path: "research/agent"}, time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	id, err := h.r.Add(n)
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

func (h *hand) link(from, to trajectory.ID, r trajectory.Relation) {
	h.t.Helper()
	if err := h.r.Link(from, to, r); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hand) graph() *trajectory.Graph {
	h.t.Helper()
	h.keep()
	g, err := trajectory.JoinRounds(h.records...)
	if err != nil {
		h.t.Fatal(err)
	}
	return g
}

func after(ids ...trajectory.ID) []trajectory.ID { return ids }

type values = map[string]any

// everyKind has Actions, States and data of every kind, in three rounds.
func everyKind(t *testing.T) *trajectory.Graph {
	t.Helper()
	h := byHand(t)
	h.round(1)
	query := h.add(trajectory.NewNode{Type: trajectory.Query, Attributes: values{"text": "Which suppliers were late last month, what did that cost us, and whom should we talk to first?"}})
	h.add(trajectory.NewNode{Type: trajectory.Knowledge, Name: "Terms of delivery", Description: "Late is what comes more than two days after the promised day, Saturdays counted.", After: after(query), Relation: trajectory.FindRelevantKnowledge})
	load := h.add(trajectory.NewNode{Type: trajectory.Action, Name: "load", Attributes: values{"kind": "node", "type": "httpRequest", "result": "200, 18 KB"}, After: after(query)})
	file := h.add(trajectory.NewNode{Type: trajectory.File, Name: "deliveries_of_all_suppliers_october_2026_final_v3.parquet", Description: "All deliveries of the month", After: after(load), Relation: trajectory.Produces})
	answer := h.add(trajectory.NewNode{Type: trajectory.Action, Name: "answer", Attributes: values{"kind": "answer", "text": "I look at orders and deliveries, and have the contracts read by the lawyer."}, After: after(load), Relation: trajectory.Triggers})
	call := func(name, arguments, result string, failed bool) trajectory.ID {
		a := values{"kind": "call", "tool": name, "arguments": arguments, "result": result}
		if failed {
			a["failed"] = true
		}
		id := h.add(trajectory.NewNode{Type: trajectory.Action, Name: name, Attributes: a, After: after(answer), Relation: trajectory.Generates})
		h.add(trajectory.NewNode{Type: trajectory.Tool, Name: name, Description: "A tool", After: after(id), Relation: trajectory.RefersTo})
		return id
	}
	orders := call("query_orders", `{"month":"2026-10","late":true,"columns":["id","promised_at","price"]}`, `{"rows": 12, "sum": 90124.5}`, false)
	table := h.add(trajectory.NewNode{Type: trajectory.Table, Name: "orders", Description: "Orders of October, a row each", After: after(orders), Relation: trajectory.ToolOutput})
	promised := h.add(trajectory.NewNode{Type: trajectory.Column, Name: "promised_at", Description: "The day that the supplier named", After: after(table), Relation: trajectory.HasColumn})
	h.add(trajectory.NewNode{Type: trajectory.Column, Name: "price", Attributes: values{"unit": "EUR", "nulls": 0}, After: after(table), Relation: trajectory.HasColumn})
	h.link(orders, file, trajectory.RefersTo)
	lawyer := call("lawyer", `{"question":"What do the contracts of ACME and Umbrella say about late deliveries?"}`, "Both owe 2 % a week.", false)
	agent := h.add(trajectory.NewNode{Type: trajectory.Action, Name: "lawyer", Attributes: values{"kind": "agent", "type": "agent", "sub": 2}, After: after(lawyer), Relation: trajectory.Generates})
	h.add(trajectory.NewNode{Type: trajectory.Knowledge, Name: "Penalties", Attributes: values{"text": "ACME and Umbrella owe 2 % of the price for each week that they are late, at most 10 %."}, After: after(agent), Relation: trajectory.Produces})
	broken := call("read_contract", `{"supplier":"Initech"}`, "no such file: contracts/initech.pdf", true)
	skill := h.add(trajectory.NewNode{Type: trajectory.Skill, Name: "spreadsheets", Description: "How we make spreadsheets here", After: after(answer), Relation: "chosen_by_hand"})
	script := h.add(trajectory.NewNode{Type: trajectory.Script, Name: "late.py", Description: "Finds late orders", After: after(skill), Relation: trajectory.HasScript})
	h.add(trajectory.NewNode{Type: trajectory.File, Name: "template.xlsx", After: after(skill), Relation: trajectory.HasAdditionalFile})
	h.link(promised, script, trajectory.RefersTo)
	h.add(trajectory.NewNode{Type: trajectory.State, Attributes: values{"text": "Without its contract Initech cannot be judged."}, After: after(broken), Pointer: trajectory.PointerKeep})
	run := h.add(trajectory.NewNode{Type: trajectory.Action, Name: "evaluate", Attributes: values{"kind": "flow", "type": "flow", "sub": 3, "result": "3 suppliers, 4,210 EUR"}, After: after(orders, agent, broken), Relation: trajectory.Triggers})
	h.add(trajectory.NewNode{Type: trajectory.File, Name: "late.xlsx", Description: "A sheet for each supplier", After: after(run), Relation: trajectory.Produces})
	h.add(trajectory.NewNode{Type: trajectory.State, Attributes: values{"text": "ACME, Umbrella and Hooli were late, which cost 4,210 EUR. Talk to ACME first: it owes more than half of that."}, After: after(run)})

	h.round(2)
	query = h.add(trajectory.NewNode{Type: trajectory.Query, Attributes: values{"text": "\u05de\u05d9 \u05d4\u05e1\u05e4\u05e7 \u05d4\u05d2\u05e8\u05d5\u05e2 \u05d1\u05d9\u05d5\u05ea\u05e8? ACME, \u05e0\u05db\u05d5\u05df?"}})
	fails := h.add(trajectory.NewNode{Type: trajectory.Action, Name: "score", Attributes: values{"kind": "node", "type": "action", "failed": true, "result": "division by zero in line 3"}, After: after(query)})
	h.add(trajectory.NewNode{Type: trajectory.State, Attributes: values{"kind": "outcome", "failed": true, "text": "node_failed: score: division by zero in line 3"}, After: after(fails)})

	h.round(3)
	query = h.add(trajectory.NewNode{Type: trajectory.Query, Attributes: values{"text": "\u3082\u3046\u4e00\u5ea6\u304a\u9858\u3044\u3057\u307e\u3059\u3002\u6765\u9031\u306e\u4f1a\u8b70\u307e\u3067\u306b\u5fc5\u8981\u3067\u3059\u306e\u3067\u3001\u6025\u3044\u3067\u304f\u3060\u3055\u3044\u3002 \U0001F64F\U0001F3FD \U0001F468\u200d\U0001F469\u200d\U0001F467\u200d\U0001F466 \U0001F1EB\U0001F1F7"}})
	asks := h.add(trajectory.NewNode{Type: trajectory.Action, Name: "answer", Attributes: values{"kind": "answer", "reasoning": "They want it again; I ask which suppliers."}, After: after(query), Relation: trajectory.Triggers})
	question := h.add(trajectory.NewNode{Type: trajectory.Action, Name: "ask_the_person_who_is_responsible", Attributes: values{"kind": "call", "arguments": "{}", "result": "all of them"}, After: after(asks), Relation: trajectory.Generates})
	input := h.add(trajectory.NewNode{Type: trajectory.Action, Name: "input", Attributes: values{"kind": "input", "text": "All of them, please. \u0627\u0644\u0645\u0648\u0631\u062f\u0648\u0646 \u0643\u0644\u0647\u0645"}, After: after(question), Relation: trajectory.Triggers})
	var items []trajectory.ID
	for i := range 6 {
		items = append(items, h.add(trajectory.NewNode{Type: trajectory.Action, Name: fmt.Sprintf("each#%d/score", i), Attributes: values{"kind": "node", "type": "llmRequest", "result": fmt.Sprintf("0.%d", 9-i)}, After: after(input), Relation: trajectory.Triggers}))
	}
	sum := h.add(trajectory.NewNode{Type: trajectory.Action, Name: "sum", Attributes: values{"kind": "node", "type": "action"}, After: items, Relation: trajectory.Triggers})
	left := h.add(trajectory.NewNode{Type: trajectory.Action, Name: "mail", Attributes: values{"kind": "node", "type": "httpRequest", "unfinished": true}, After: after(sum), Relation: trajectory.Triggers})
	h.add(trajectory.NewNode{Type: trajectory.Action, Name: "archive", Attributes: values{"kind": "node", "type": "sql"}, After: after(sum), Relation: trajectory.Triggers, Pointer: trajectory.PointerAppend})
	h.add(trajectory.NewNode{Type: trajectory.State, Attributes: values{"text": "Mailed."}, After: after(left)})
	return h.graph()
}

// shapes returns the graphs whose pictures were looked at (-pictures).
func shapes(t *testing.T, from map[string][]convo.Message) map[string]*trajectory.Graph {
	t.Helper()
	return map[string]*trajectory.Graph{
		"10":     airline(t, from, "airline-10-1"),
		"30":     airline(t, from, "airline-0-1"),
		"60":     airline(t, from, "airline-17-1"),
		"100":    airline(t, from, "airline-9-2", "airline-20-1"),
		"200":    airline(t, from, "airline-9-2", "airline-0-3", "airline-17-1", "airline-2-0"),
		"forty":  oneRound(t, from, 40),
		"thirty": shortRounds(t, 30),
		"kinds":  everyKind(t),
		"wide":   wide(t),
		"lanes":  lanes(t, 14),
	}
}

// oneRound returns a round of that many steps that real conversations took.
func oneRound(t *testing.T, from map[string][]convo.Message, steps int) *trajectory.Graph {
	t.Helper()
	said := []convo.Message{{Role: convo.User, Text: "Please look at all of my reservations, find out what each of them would cost in economy, and then change those that become cheaper."}}
	for _, id := range []string{"airline-2-1", "airline-9-2"} {
		for _, m := range from[id] {
			if len(m.Calls) > 0 && steps > 0 {
				steps--
				said = append(said, m)
			} else if n := len(said) - 1; m.Role == convo.Tool && len(said[n].Calls) > 0 && said[n].Calls[0].ID == m.CallID {
				said = append(said, m)
			}
		}
	}
	said = append(said, convo.Message{Role: convo.Assistant, Text: "All of your reservations are in economy now; you get 23,553 dollars back to the original payment method."})
	return session(t, "one-round", said)
}

func shortRounds(t *testing.T, n int) *trajectory.Graph {
	t.Helper()
	var said []convo.Message
	for i := range n {
		said = append(said,
			convo.Message{Role: convo.User, Text: fmt.Sprintf("And what about reservation number %d?", i+1)},
			convo.Message{Role: convo.Assistant, Text: "One moment."},
			convo.Message{Role: convo.Assistant, Text: fmt.Sprintf("Reservation %d is confirmed, with two bags and a seat at the window.", i+1)})
	}
	return session(t, "short-rounds", said)
}

// wide returns a step with many calls of which a table has many columns, many steps
// next to each other, and edges that lead far.
func wide(t *testing.T) *trajectory.Graph {
	t.Helper()
	h := byHand(t)
	h.round(1)
	query := h.add(trajectory.NewNode{Type: trajectory.Query, Attributes: values{"text": "Compare all of our regions."}})
	answer := h.add(trajectory.NewNode{Type: trajectory.Action, Name: "answer", Attributes: values{"kind": "answer"}, After: after(query), Relation: trajectory.Triggers})
	var calls []trajectory.ID
	for i := range 9 {
		calls = append(calls, h.add(trajectory.NewNode{Type: trajectory.Action, Name: "sales", Attributes: values{"kind": "call", "arguments": fmt.Sprintf(`{"region": %d}`, i), "result": "ok"}, After: after(answer), Relation: trajectory.Generates}))
	}
	table := h.add(trajectory.NewNode{Type: trajectory.Table, Name: "sales", After: after(calls[0]), Relation: trajectory.ToolOutput})
	for i := range 14 {
		h.add(trajectory.NewNode{Type: trajectory.Column, Name: fmt.Sprintf("month_%02d", i), After: after(table), Relation: trajectory.HasColumn})
	}
	var ends []trajectory.ID
	for i := range 24 {
		ends = append(ends, h.add(trajectory.NewNode{Type: trajectory.Action, Name: fmt.Sprintf("each#%d/plan", i), Attributes: values{"kind": "node", "type": "llmRequest"}, After: calls, Relation: trajectory.Triggers}))
	}
	state := h.add(trajectory.NewNode{Type: trajectory.State, Attributes: values{"text": "The north is best."}, After: ends})
	var lanes []trajectory.ID
	for i := range 3 {
		lane := state
		for j := range 9 {
			lane = h.add(trajectory.NewNode{Type: trajectory.Action, Name: fmt.Sprintf("lane %d step %d", i, j), Attributes: values{"kind": "node", "type": "action", "result": "done"}, After: after(lane), Relation: trajectory.Triggers})
		}
		lanes = append(lanes, lane)
	}
	last := h.add(trajectory.NewNode{Type: trajectory.State, Attributes: values{"text": "All lanes are done."}, After: lanes})
	h.link(query, last, trajectory.HasConclusion)
	h.link(state, last, trajectory.HasConclusion)
	return h.graph()
}

// lanes returns a list whose items were worked on side by side, in some steps each.
func lanes(t *testing.T, n int) *trajectory.Graph {
	t.Helper()
	h := byHand(t)
	h.round(1)
	query := h.add(trajectory.NewNode{Type: trajectory.Query, Name: "each", Attributes: values{"text": "Welcome everybody on the list."}})
	var ends []trajectory.ID
	for i := range n {
		input := h.add(trajectory.NewNode{Type: trajectory.Action, Name: "input", Attributes: values{"kind": "input", "text": fmt.Sprintf("Welcome guest %d.", i)}, After: after(query)})
		last := input
		if i%2 == 0 {
			answer := h.add(trajectory.NewNode{Type: trajectory.Action, Name: "answer", Attributes: values{"kind": "answer"}, After: after(input), Relation: trajectory.Triggers})
			last = h.add(trajectory.NewNode{Type: trajectory.Action, Name: "look_up", Attributes: values{"kind": "call", "arguments": fmt.Sprintf(`{"guest":%d}`, i), "result": "no such guest", "failed": i == 4}, After: after(answer), Relation: trajectory.Generates})
		}
		ends = append(ends, h.add(trajectory.NewNode{Type: trajectory.State, Attributes: values{"text": fmt.Sprintf("Good to have you with us, guest %d.", i)}, After: after(last)}))
	}
	sum := h.add(trajectory.NewNode{Type: trajectory.Action, Name: "sum", Attributes: values{"kind": "node", "type": "template", "outputs": values{"text": "All are welcome."}}, After: ends, Relation: trajectory.Triggers})
	h.add(trajectory.NewNode{Type: trajectory.State, Attributes: values{"text": "All are welcome."}, After: after(sum)})
	return h.graph()
}

func session(t *testing.T, id string, said []convo.Message) *trajectory.Graph {
	t.Helper()
	s := newTables()
	trajectorytest.Record(t, s, id, said, nil)
	g, err := trajectory.LoadGraph(t.Context(), s, "customer", id, 0)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestEveryShapeIsDrawnWholeWithoutSidewaysScrolling(t *testing.T) {
	t.Parallel()
	for name, g := range shapes(t, conversations(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svg := draw.SVG(g)
			keep(t, name+".svg", svg)
			keep(t, name+".dot", draw.DOT(g))
			keep(t, name+".mmd", draw.Mermaid(g))
			p := parse(t, svg)
			p.holds(t, g)
			if p.width > 1600 {
				t.Errorf("the page is %.0f wide", p.width)
			}
		})
	}
}

func TestLongRoundSpansSeveralPanels(t *testing.T) {
	t.Parallel()
	p := parse(t, draw.SVG(oneRound(t, conversations(t), 40)))
	if !slices.Contains(p.texts, "Round 1 \u00b7 1 of 6") || len(p.panels) != 6 {
		t.Errorf("there are %d panels", len(p.panels))
	}
	for i, b := range p.panels {
		if b.h > 880 {
			t.Errorf("panel %d is %.0f high", i, b.h)
		}
	}
	if p.height > 2000 {
		t.Errorf("the page is %.0f high", p.height)
	}
}

func TestCardsShowFailedActiveAndInactiveNodes(t *testing.T) {
	t.Parallel()
	svg := string(draw.SVG(everyKind(t)))
	for class, want := range map[string]int{"t-state active": 1, "t-action active": 1, "t-action failed": 2, "t-state failed": 1, "t-state off": 1, " off": 1, "t-action open": 1} {
		if got := strings.Count(svg, class+`" transform`); got != want {
			t.Errorf("%q: %d cards, want %d", class, got, want)
		}
	}
	if n := strings.Count(svg, `direction="rtl"`); n != 1 {
		t.Errorf("%d texts are read from the right", n)
	}
}

func TestUndrawnEdgesAreWrittenOnCards(t *testing.T) {
	t.Parallel()
	texts := parse(t, draw.SVG(everyKind(t))).texts
	for _, want := range []string{
		"Tool 0", "\u2192 File 0", "\u2192 Script 0", "\u2190 call 5", "produces", "has_additional_file", "chosen_by_hand",
		"sub-agent 2", "month: 2026-10, late: true, columns:\u2026", "\u2192 rows: 12, sum: 90124.5",
	} {
		if !slices.Contains(texts, want) {
			t.Errorf("nowhere is written %q: %q", want, texts)
		}
	}
}

// update writes the picture of the docs.
var update = flag.Bool("update", false, "write the picture of the docs")

func TestThePictureInTheDocsIsWhatIsDrawn(t *testing.T) {
	t.Parallel()
	g, err := everyKind(t).OnlyRound(1)
	if err != nil {
		t.Fatal(err)
	}
	const file = "../../docs/images/trajectory.svg"
	svg := draw.SVG(g)
	if *update {
		if err := os.WriteFile(file, svg, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(file); err != nil || !bytes.Equal(kept, svg) {
		t.Errorf("the picture is not that of the docs (%v); go test ./trajectory/draw -args -update writes it", err)
	}
}

func TestParallelItemsAreStacked(t *testing.T) {
	t.Parallel()
	p := parse(t, draw.SVG(lanes(t, 40)))
	if p.width > 1600 || p.height > 2200 {
		t.Errorf("the page is %.0f x %.0f", p.width, p.height)
	}
	of := map[float64]int{}
	for _, b := range p.boxes {
		of[b.w]++
	}
	if of[262] < 40 || of[262-17] < 40 || of[262-34] != 20 {
		t.Errorf("cards are of the widths %v", of)
	}
}

func TestOutlineShowsParentsOfNodes(t *testing.T) {
	t.Parallel()
	byID := map[trajectory.ID]draw.OutlineLine{}
	for _, l := range draw.Outline(everyKind(t)) {
		byID[l.ID] = l
	}
	column, call, state := byID["Column(column00000)"], byID["Action(action00005)"], byID["State(state00000)"]
	if column.Depth != 3 || !slices.Equal(column.Refers, []string{"\u2192 Script 0"}) {
		t.Errorf("the column is %+v", column)
	}
	if call.Depth != 1 || !call.Failed || call.Result != "no such file: contracts/initech.pdf" || call.Said != "supplier: Initech" || len(call.Refers) > 0 {
		t.Errorf("the call is %+v", call)
	}
	if !state.Off || !slices.Equal(state.After, []string{"call 5"}) {
		t.Errorf("the state is %+v", state)
	}
}

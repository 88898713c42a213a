package draw_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/draw"
)

// hostile is text that is not meant well.
const hostile = "</title><script>alert(1)</script> & \"quotes\" 'too' ]]> --> \\n %% #1; | ` \x00\x1b[31m \u202e\ufffe {{ state.x }}"

// name is as bad, and short enough to be written whole.
const name = "\\\"];`<b>#1;&"

// everything is two rounds with all types, parallel calls, a dead branch, a
// failure and hostile text.
func everything(t *testing.T) *trajectory.Graph {
	t.Helper()
	var records []trajectory.Record
	b := trajectory.NewRecorderPool(nil, nil)
	one, release, err := b.Open(t.Context(), trajectory.Key{User: "ann", Session: "s<1>", Round: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer release(t.Context()) //nolint:errcheck // nothing is stored
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	by := trajectory.Attribution{Run: "r1", Path: "work/ask", Agent: "buyer"}
	say := func(messages ...convo.Message) {
		t.Helper()
		_, err := one.AddMessages(trajectory.MessageOptions{By: by}, messages...)
		do(err)
	}
	say(
		convo.Message{Role: convo.User, Text: "Which suppliers were late last month, and what did that cost us?"},
		convo.Message{Role: convo.Assistant, Text: "I look at orders and deliveries.", Calls: []convo.Call{
			{ID: "1", Name: "query_orders", Arguments: `{"month":"2026-10"}`},
			{ID: "2", Name: "query_deliveries", Arguments: `{"month":"2026-10"}`},
			{ID: "3", Name: "read_contract", Arguments: `{"supplier":"ACME"}`},
		}},
		convo.Message{Role: convo.Tool, CallID: "1", Text: "12 rows"},
		convo.Message{Role: convo.Tool, CallID: "2", Text: "9 rows"},
		convo.Message{Role: convo.Tool, CallID: "3", Text: "no such file", Failed: true},
	)
	add := func(n trajectory.NewNode) trajectory.ID {
		t.Helper()
		n.By = by
		id, err := one.Add(n)
		do(err)
		return id
	}
	after := func(ids ...trajectory.ID) []trajectory.ID { return ids }
	table := add(trajectory.NewNode{Type: trajectory.Table, Name: "orders", Description: "Orders of October, a row each", After: after("Action(action00001)"), Relation: trajectory.ToolOutput})
	column := add(trajectory.NewNode{Type: trajectory.Column, Name: "promised_at", After: after(table), Relation: trajectory.HasColumn})
	add(trajectory.NewNode{Type: trajectory.Column, Name: "price", Attributes: map[string]any{"unit": "EUR", "nulls": 0}, After: after(table), Relation: trajectory.HasColumn})
	add(trajectory.NewNode{Type: trajectory.Knowledge, Name: name, After: after("Query(query00000)"), Relation: trajectory.FindRelevantKnowledge})
	skill := add(trajectory.NewNode{Type: trajectory.Skill, Name: "spreadsheets", After: after("Action(action00000)"), Relation: "chosen_by_hand"})
	script := add(trajectory.NewNode{Type: trajectory.Script, Name: "late.py", After: after(skill), Relation: trajectory.HasScript})
	do(one.Link(column, script, trajectory.RefersTo))
	add(trajectory.NewNode{Type: trajectory.File, Name: "late.xlsx", Attributes: map[string]any{trajectory.AttrText: hostile}, After: after(script), Relation: trajectory.Produces})
	add(trajectory.NewNode{Type: trajectory.State, Attributes: map[string]any{trajectory.AttrText: "A dead end."}, After: after("Action(action00003)"), Pointer: trajectory.PointerKeep})
	say(convo.Message{Role: convo.Assistant, Text: hostile})
	records = append(records, one.Record())
	two := trajectory.Record{Key: trajectory.Key{User: "ann", Session: "s<1>", Round: 2}, Initial: "Query(query00001)", Current: after("Query(query00001)")}
	two.Nodes = []trajectory.Node{{ID: "Query(query00001)", Type: trajectory.Query, Round: 2, Attributes: trajectory.Attributes{trajectory.AttrText: strings.Repeat("\u65e5\u672c\u8a9e", 40) + " \U0001F468\u200d\U0001F469\u200d\U0001F467"}}}
	g, err := trajectory.JoinRounds(append(records, two)...)
	do(err)
	return g
}

// picture is what a test reads out of an SVG.
type picture struct {
	width, height float64
	boxes, panels []box
	titles        []string
	texts         []string
	elements      map[string]int
}

type box struct{ x, y, w, h float64 }

func parse(t *testing.T, svg []byte) *picture {
	t.Helper()
	r := reader{picture: &picture{elements: map[string]int{}}}
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return r.picture
		}
		if err != nil {
			t.Fatalf("the SVG is no XML: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			r.start(e.Name.Local, attributes(e))
		case xml.CharData:
			if r.into != nil {
				(*r.into)[len(*r.into)-1] += string(e)
			}
		case xml.EndElement:
			if e.Name.Local == "text" || e.Name.Local == "title" {
				r.into = nil
			}
			if e.Name.Local == "g" {
				r.offset = r.offset[:len(r.offset)-1]
			}
		}
	}
}

// reader is where a test is in an SVG.
type reader struct {
	*picture
	offset []box     // of the open groups
	into   *[]string // where text goes
}

func (r *reader) start(name string, a map[string]string) {
	r.elements[name]++
	switch {
	case name == "svg":
		r.width, r.height = number(a["width"]), number(a["height"])
	case name == "g":
		r.offset = append(r.offset, moved(a["transform"]))
	case name == "rect" && a["class"] == "panel":
		r.panels = append(r.panels, box{w: number(a["width"]), h: number(a["height"])})
	case name == "rect" && a["class"] == "card":
		b := box{w: number(a["width"]), h: number(a["height"])}
		for _, o := range r.offset {
			b.x, b.y = b.x+o.x, b.y+o.y
		}
		r.boxes = append(r.boxes, b)
	case name == "title":
		r.titles = append(r.titles, "")
		r.into = &r.titles
	case name == "text":
		r.texts = append(r.texts, "")
		r.into = &r.texts
	}
}

func attributes(e xml.StartElement) map[string]string {
	out := map[string]string{}
	for _, a := range e.Attr {
		out[a.Name.Local] = a.Value
	}
	return out
}

func number(s string) float64 {
	v, _ := strconv.ParseFloat(s, 64)
	return v
}

func moved(transform string) (b box) {
	_, _ = fmt.Sscanf(transform, "translate(%g %g)", &b.x, &b.y)
	return b
}

// holds fails where the picture does not have all of the graph, boxes lie over
// each other or beyond the page, or text runs out of its box.
func (p *picture) holds(t *testing.T, g *trajectory.Graph) {
	t.Helper()
	if len(p.boxes) != len(g.Nodes) {
		t.Errorf("there are %d boxes for %d nodes", len(p.boxes), len(g.Nodes))
	}
	for i, a := range p.boxes {
		if a.x < 0 || a.y < 0 || a.x+a.w > p.width || a.y+a.h > p.height {
			t.Errorf("box %d lies beyond the page: %+v", i, a)
		}
		for j, b := range p.boxes[:i] {
			if a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h {
				t.Errorf("boxes %d and %d lie over each other: %+v %+v", i, j, a, b)
			}
		}
	}
	all := strings.Join(p.titles, "\n")
	for _, n := range g.Nodes {
		if !strings.Contains(all, string(n.ID)) {
			t.Errorf("%s has no tooltip", n.ID)
		}
	}
	for _, text := range p.texts {
		if r := []rune(text); len(r) > 60 {
			t.Errorf("a text of %d letters is not cut: %q", len(r), text)
		}
	}
}

func TestAPictureHasEverything(t *testing.T) {
	t.Parallel()
	g := everything(t)
	svg := draw.SVG(g)
	keep(t, "everything.svg", svg)
	keep(t, "everything.dot", draw.DOT(g))
	keep(t, "everything.mmd", draw.Mermaid(g))
	p := parse(t, svg)
	p.holds(t, g)
	titles, texts := strings.Join(p.titles, "\n"), strings.Join(p.texts, "\n")
	for _, want := range []string{
		"Which suppliers were late last month, and what did that cost us?", "</title><script>alert(1)</script> &", "no such file",
		"refers_to: to Script(script00000)", "continues_to: round 1 to round 2", "r1 / work/ask / buyer", "{{ state.x }}",
	} {
		if !strings.Contains(titles, want) {
			t.Errorf("no tooltip has %q", want)
		}
	}
	for _, want := range []string{"Trajectory of session s<1>", "Round 2", "Skill 1", "Column 2", "chosen_by_hand", "failed", "late.py", "unit EUR"} {
		if !strings.Contains(texts, want) {
			t.Errorf("nowhere is written %q", want)
		}
	}
	if p.elements["script"] > 0 {
		t.Error("text became an element")
	}
	if !bytes.Contains(svg, []byte("prefers-color-scheme: dark")) {
		t.Error("there is no dark scheme")
	}
}

func TestTheSameGraphGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	g := everything(t)
	for _, format := range draw.Formats() {
		first, err := draw.Render(g, format)
		if err != nil || len(first) == 0 {
			t.Fatalf("%s: %v", format, err)
		}
		for range 10 {
			if again, err := draw.Render(g, format); err != nil || !bytes.Equal(first, again) {
				t.Fatalf("%s differs from time to time, %v", format, err)
			}
		}
	}
	if _, err := draw.Render(g, "png"); err == nil || !strings.Contains(err.Error(), "mermaid") {
		t.Errorf("png: got %v, want an error with the formats", err)
	}
}

func TestAnEmptyGraphIsDrawn(t *testing.T) {
	t.Parallel()
	g, err := trajectory.JoinRounds(trajectory.Record{Key: trajectory.Key{Session: "s", Round: 1}})
	if err != nil {
		t.Fatal(err)
	}
	parse(t, draw.SVG(g)).holds(t, g)
	parse(t, draw.SVG(&trajectory.Graph{})).holds(t, &trajectory.Graph{})
	if len(draw.DOT(g)) == 0 || len(draw.Mermaid(g)) == 0 {
		t.Error("nothing was drawn")
	}
}

func TestTextsCannotBreakOutOfDOTAndMermaid(t *testing.T) {
	t.Parallel()
	g := everything(t)
	quoted := regexp.MustCompile(`"(\\.|[^"\\])*"`)
	for i, line := range strings.Split(string(draw.DOT(g)), "\n") {
		if bare := quoted.ReplaceAllString(line, ""); strings.ContainsAny(bare, "\"<\\`") || strings.Contains(bare, "alert") {
			t.Errorf("DOT line %d has text outside quotes: %s", i+1, line)
		}
	}
	box := regexp.MustCompile(`^    n\d+\["[^"]*"\]:::[A-Z][a-z]+$`)
	for i, line := range strings.Split(string(draw.Mermaid(g)), "\n") {
		text := strings.ReplaceAll(line, "<br/>", "")
		if strings.HasPrefix(line, "    ") && (!box.MatchString(line) || strings.ContainsAny(text, "<`\\&")) {
			t.Errorf("Mermaid line %d is broken: %s", i+1, line)
		}
	}
}

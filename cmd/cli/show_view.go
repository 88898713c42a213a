package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
)

// viewReport is what `weir show --node --view --json` prints.
type viewReport struct {
	Run   string           `json:"run"`
	Node  string           `json:"node"`
	Calls []app.CallReport `json:"calls"`

	nodeType string
}

// sentRequest is the canonical form of a request as it is shown.
type sentRequest struct {
	Provider    string          `json:"provider"`
	Model       string          `json:"model"`
	System      string          `json:"system"`
	Messages    []convo.Message `json:"messages"`
	Tools       []llm.Tool      `json:"tools"`
	ToolChoice  string          `json:"tool_choice"`
	Temperature *float64        `json:"temperature"`
	MaxOutput   int             `json:"max_output"`
	Reasoning   string          `json:"reasoning"`
	Schema      map[string]any  `json:"schema"`
}

// showView shows what each model call of a node was sent, and what not.
func (p *cli) showView(ctx context.Context, a *application, v *runner.RunView, o *showOptions) error {
	c := history.NewTimeline(v)
	if c.Nodes[o.node] == nil {
		return noNode(v, o.node, c)
	}
	sent, err := a.InspectPrompts(ctx, v.Run.ID, o.node)
	if err != nil {
		return err
	}
	out := viewReport{Run: v.Run.ID, Node: o.node, Calls: []app.CallReport{}, nodeType: c.Nodes[o.node].Type}
	entered, err := a.Inspect(ctx, v.Run.ID, c.Nodes[o.node].Entered)
	if err != nil {
		return err
	}
	before := history.ContextStartOf(entered, c.Nodes[o.node].Entered)
	for _, s := range sent {
		call := app.CallReport{Call: s.Key, Digest: s.Digest, Verified: s.Proven, Sent: s.Request, Manifest: s.Manifest, Answer: s.Result, Error: s.Error}
		if showsContext(out.nodeType, s.Key) {
			call.ContextStart = before
		}
		out.Calls = append(out.Calls, call)
	}
	if o.json {
		writeJSON(p.out, &out)
		return nil
	}
	return p.printView(&out)
}

func (p *cli) printView(v *viewReport) error {
	if len(v.Calls) == 0 {
		fmt.Fprintf(p.out, "%s has asked no model\n", v.Node)
		return nil
	}
	w := &viewPrinter{cli: p, st: p.styleFor(p.out), shorten: isTerminal(p.out), nodeType: v.nodeType}
	for i, c := range v.Calls {
		if i > 0 {
			fmt.Fprintln(p.out)
		}
		if err := w.call(&c); err != nil {
			return fmt.Errorf("show %s: %w", c.Call, err)
		}
	}
	if w.shortened {
		p.notef("long texts are shortened; to print them in full: %s | cat", p.commandLine("show", v.Run, "--node", v.Node, "--view"))
	}
	return nil
}

// viewPrinter prints model calls for people.
type viewPrinter struct {
	*cli
	st        style
	shorten   bool // long texts
	shortened bool // one was
	// nodeType is the type of the node that asked.
	nodeType string
}

func (w *viewPrinter) call(c *app.CallReport) error {
	var r sentRequest
	if c.Sent == nil {
		return w.recorded(c)
	}
	if err := json.Unmarshal(c.Sent, &r); err != nil {
		return err
	}
	proof := w.st.good.Render("proven by the journal's digest")
	if !c.Verified {
		proof = w.st.bad.Render("not proven: the call has not ended, or the program or its tools have changed since")
	}
	fmt.Fprintf(w.out, "%s  %s\n", w.st.bold.Render(c.Call), proof)
	fmt.Fprintln(w.out, w.st.dim.Render("  "+app.Printable(r.asked())))
	if c.ContextStart != nil {
		t := w.table("")
		t.row(w.st.ask.Render("  not sent"), omittedLine(c.ContextStart))
		t.row(w.st.ask.Render("  why"), c.ContextStart.Why)
		t.print()
	}
	switch {
	case c.Manifest != nil:
		if err := w.manifest(c.Manifest, len(r.Messages)); err != nil {
			return err
		}
	case c.ContextStart != nil:
		fmt.Fprintln(w.out, "  all of the context after that was sent")
	default:
		fmt.Fprintln(w.out, "  "+w.nothingOmitted(c.Call))
	}
	if r.System != "" {
		w.section("System")
		w.text(r.System, "  ")
	}
	if len(r.Tools) > 0 {
		w.section("Tools")
		for _, t := range r.Tools {
			w.tool(t)
		}
	}
	if r.Schema != nil {
		w.section("Schema of the answer")
		w.text(plain(r.Schema), "  ")
	}
	w.section(fmt.Sprintf("Messages, %d", len(r.Messages)))
	for i := range r.Messages {
		w.message(i+1, &r.Messages[i])
	}
	return w.answered(c)
}

// recorded prints what the journal has of a call, where the node's type is not at
// hand that would make its request again.
func (w *viewPrinter) recorded(c *app.CallReport) error {
	fmt.Fprintf(w.out, "%s  %s\n", w.st.bold.Render(c.Call), w.st.dim.Render("request "+c.Digest))
	fmt.Fprintln(w.out, "  the exact request needs the node type "+w.nodeType+", as it was when the run was recorded")
	if c.Manifest != nil {
		if err := w.manifest(c.Manifest, 0); err != nil {
			return err
		}
	}
	return w.answered(c)
}

// answered prints the answer to a call.
func (w *viewPrinter) answered(c *app.CallReport) error {
	w.section("Answer")
	if c.Answer != nil {
		return w.answer(c.Answer)
	}
	text := "none is recorded"
	if c.Error != nil {
		text = w.st.bad.Render(app.Printable(c.Error.Error()))
	}
	fmt.Fprintln(w.out, "  "+text)
	return nil
}

// asked returns one line about who was asked, and how.
func (r *sentRequest) asked() string {
	parts := []string{"asked " + app.ModelOf(convo.Settings{Provider: r.Provider, Model: r.Model})}
	if r.Temperature != nil {
		parts = append(parts, fmt.Sprintf("temperature %v", *r.Temperature))
	}
	if r.MaxOutput > 0 {
		parts = append(parts, fmt.Sprintf("an answer of at most %d tokens", r.MaxOutput))
	}
	if r.Reasoning != "" {
		parts = append(parts, "reasoning "+r.Reasoning)
	}
	if r.ToolChoice != "" {
		parts = append(parts, "tool choice "+r.ToolChoice)
	}
	return strings.Join(parts, ", ")
}

// nothingOmitted says what a call was sent of which nothing was left out.
func (w *viewPrinter) nothingOmitted(key string) string {
	switch {
	case showsContext(w.nodeType, key):
		return "all of the context was sent"
	case summarises(key):
		return "the part of the conversation that is to be summarised was sent, and nothing else of it"
	}
	return "what the node was given was sent, and nothing of the context beside it"
}

// showsContext reports whether a call of a node is one that shows a model the
// node's context.
func showsContext(nodeType, key string) bool {
	return !summarises(key) && nodeType != "categorizer" && nodeType != "extract" && nodeType != "summarize"
}

func summarises(key string) bool {
	_, name := engine.SplitEffectKey(key)
	return strings.HasPrefix(name, "summary#")
}

// manifest returns what the window held, and what of the context was not sent.
func (w *viewPrinter) manifest(v engine.Value, messages int) error {
	var m llm.Manifest
	b, err := engine.AppendValue(nil, v)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	t := w.table("")
	for _, row := range windowUse(&m, messages) {
		t.row(w.st.dim.Render("  "+row[0]), row[1])
	}
	if m.HeldMessages > 0 {
		t.row(w.st.ask.Render("  not sent"), fmt.Sprintf("the first %s below: the vendor keeps them (history: server)", count(m.HeldMessages, "message")))
	}
	for _, text := range omissions(&m) {
		t.row(w.st.ask.Render("  not sent"), text)
	}
	if m.Reason != "" {
		t.row(w.st.ask.Render("  why"), app.Printable(m.Reason))
	}
	t.print()
	return nil
}

// windowUse says what took the tokens of a window.
func windowUse(m *llm.Manifest, messages int) [][2]string {
	counted := "counted exactly"
	if m.Factor > 0 {
		counted = fmt.Sprintf("estimated, times %d%%", m.Factor)
	}
	rows := [][2]string{
		{"window", fmt.Sprintf("%d tokens, %d of them kept for the answer, %d for system and %d for tools", m.Window, m.Reserve, m.System, m.Tools)},
		{"room", fmt.Sprintf("%d tokens for messages; %d are used by %s (%s)", m.Room, m.Tokens, count(messages, "message"), counted)},
	}
	shown := fmt.Sprintf("messages %d to %d of the context", m.From+1, m.To)
	if m.From >= m.To {
		shown = fmt.Sprintf("none of the %s of the context", count(m.To, "message"))
	}
	if len(m.Pins) > 0 {
		shown += ", and the pinned " + numbers(m.Pins)
	}
	if s := m.Summary; s != nil {
		shown += fmt.Sprintf(", and a summary of %d to %d", s[0]+1, s[1])
	}
	return append(rows, [2]string{"shown", shown})
}

// omissions says what of the context was not sent as it is.
func omissions(m *llm.Manifest) []string {
	var out []string
	if m.Omitted > 0 {
		s := count(m.Omitted, "message")
		if m.From > 0 {
			s += fmt.Sprintf(", all before message %d", m.From+1)
		}
		out = append(out, s)
	}
	if m.Cleared > 0 {
		out = append(out, "the text of "+count(m.Cleared, "old tool result"))
	}
	if m.Shortened > 0 {
		out = append(out, "the middle of "+count(m.Shortened, "long tool result"))
	}
	if m.Repaired > 0 {
		out = append(out, count(m.Repaired, "message")+" that no provider takes as they are (left out or changed)")
	}
	return out
}

// numbers are positions, counted from 1.
func numbers(positions []int) string {
	out := make([]string, len(positions))
	for i, n := range positions {
		out[i] = fmt.Sprint(n + 1)
	}
	return strings.Join(out, ", ")
}

func (w *viewPrinter) tool(t llm.Tool) {
	fmt.Fprintf(w.out, "  %s\n", w.st.bold.Render(app.Printable(t.Name)))
	if t.Description != "" {
		w.text(t.Description, "    ")
	}
	if t.Parameters != nil {
		w.text(plain(t.Parameters), "    ")
	}
}

func (w *viewPrinter) message(n int, m *convo.Message) {
	head := []string{string(m.Role)}
	if m.Name != "" {
		head = append(head, m.Name)
	}
	if m.CallID != "" {
		head = append(head, "answers "+m.CallID)
	}
	if m.Failed {
		head = append(head, "failed")
	}
	fmt.Fprintf(w.out, "  %s\n", w.st.dim.Render(fmt.Sprintf("%d  %s", n, app.Printable(strings.Join(head, "  ")))))
	if m.Text != "" {
		w.text(m.Text, "     ")
	}
	for _, part := range m.Parts {
		w.text(partOf(part), "     ")
	}
	for _, c := range m.Calls {
		w.text(fmt.Sprintf("calls %s %s  (%s)", c.Name, c.Arguments, c.ID), "     ")
	}
	if m.Native != nil {
		w.text(fmt.Sprintf("blocks of %s's own: %s", m.Provider, m.Native), "     ")
	}
}

// partOf returns one line about an image or a file.
func partOf(p convo.Part) string {
	words := slices.DeleteFunc([]string{p.Kind, p.MIME, p.Name, p.URL}, func(s string) bool { return s == "" })
	s := strings.Join(words, " ")
	if p.Data != nil {
		s += fmt.Sprintf(", %d bytes", len(p.Data))
	}
	return "[" + s + "]"
}

// answer prints what the model answered.
func (w *viewPrinter) answer(v engine.Value) error {
	var r llm.Response
	b, err := engine.AppendValue(nil, v)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if r.Message.Reasoning != "" {
		w.text("thought: "+r.Message.Reasoning, "  ")
	}
	if r.Message.Text != "" {
		w.text(r.Message.Text, "  ")
	}
	for _, call := range r.Message.Calls {
		w.text(fmt.Sprintf("calls %s %s  (%s)", call.Name, call.Arguments, call.ID), "  ")
	}
	u := engine.Usage{Input: r.Usage.Input, Output: r.Usage.Output, CostMicros: r.Usage.CostMicros}
	if r.Usage.Estimated {
		u.Calls, u.Estimated = 1, 1
	}
	fmt.Fprintln(w.out, "  "+w.st.dim.Render(usageText(u)+", ended by "+r.Stop))
	return nil
}

// What of a long text is shown in a terminal.
const (
	maxTextLines = 14
	maxTextRunes = 1600
)

// text prints a text, in a terminal no more than what fits it.
func (w *viewPrinter) text(s, by string) {
	s = strings.TrimRight(app.Printable(s), "\n")
	if !w.shorten {
		fmt.Fprintln(w.out, indent(s, by))
		return
	}
	head, rest := firstLines(s)
	head = wrapped(head, max(widthOf(w.out)-lipgloss.Width(by), 0))
	fmt.Fprintln(w.out, indent(head, by))
	if rest != "" {
		w.shortened = true
		fmt.Fprintln(w.out, by+w.st.dim.Render("… "+rest))
	}
}

// firstLines returns the beginning of a long text and how much more there is, "" where
// that is all.
func firstLines(s string) (head, rest string) {
	lines := strings.Split(s, "\n")
	if len(lines) > maxTextLines {
		return strings.Join(lines[:maxTextLines-2], "\n"), count(len(lines)-maxTextLines+2, "more line")
	}
	if runes := []rune(s); len(runes) > maxTextRunes {
		return string(runes[:maxTextRunes-200]), count(len(runes)-maxTextRunes+200, "more character")
	}
	return s, ""
}

// omittedLine says which messages were before the context of a call.
func omittedLine(e *history.ContextStart) string {
	if e.Messages == 1 {
		return fmt.Sprintf("message 1 of %d", e.Of)
	}
	return fmt.Sprintf("messages 1 to %d of %d", e.Messages, e.Of)
}

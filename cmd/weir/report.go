package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
)

// report is the one object that --json prints. All keys are always there.
type report struct {
	Run        string        `json:"run"`
	Status     string        `json:"status"`
	Outputs    engine.Values `json:"outputs"`
	Absent     engine.Values `json:"absent"` // declared outputs without a value, and why
	Interrupts []interrupt   `json:"interrupts"`
	Usage      usage         `json:"usage"`
	Error      *engine.Error `json:"error"`
}

// forkReport is that of `weir fork`.
type forkReport struct {
	report
	Fork *forkDetails `json:"fork"`
}

// interrupt is what a paused run waits for.
type interrupt struct {
	ID     string         `json:"id"`
	Node   string         `json:"node"`
	Prompt string         `json:"prompt"`
	Schema map[string]any `json:"schema"` // null is any text
}

// usage is engine.Usage with all keys but Estimated where it is 0. Cost is in millionths of a US dollar; Estimated is
// how many of Calls are charged at an estimate, since their usage was not reported.
type usage struct {
	Calls     int   `json:"calls"`
	Input     int   `json:"input"`
	Cached    int   `json:"cached"`
	Output    int   `json:"output"`
	Reasoning int   `json:"reasoning"`
	Cost      int64 `json:"cost"`
	Estimated int   `json:"estimated,omitempty"`
}

func reportOf(r weir.Result) *report {
	return &report{
		Run: r.Run, Status: r.Status.String(), Outputs: r.Outputs, Absent: orEmpty(r.Absent), Interrupts: interruptsOf(r.Interrupts),
		Usage: usageReportOf(r.Usage), Error: r.Error,
	}
}

func interruptsOf(list []engine.Interrupt) []interrupt {
	out := make([]interrupt, 0, len(list))
	for _, i := range list {
		out = append(out, interrupt{ID: i.ID, Node: history.NodeOfInterrupt(i.ID), Prompt: i.Prompt, Schema: i.Schema})
	}
	return out
}

func usageReportOf(u engine.Usage) usage {
	return usage{Calls: u.Calls, Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning, Cost: u.CostMicros, Estimated: u.Estimated}
}

// report tells how far a run has come: on stdout what it gave or waits for, on
// stderr what to do next.
func (p *cli) report(r weir.Result, d *runDriver) {
	switch {
	case p.json && d.forked != nil:
		p.printJSON(&forkReport{*reportOf(r), d.forked})
	case p.json:
		p.printJSON(reportOf(r))
	case d.events:
	case r.Status == engine.Completed:
		p.printOutputs(r.Outputs)
		for _, a := range r.Absent {
			p.notef("weir: the output %s is absent: %s", a.Name, plain(a.Value))
		}
	case r.Status == engine.Paused:
		for _, i := range r.Interrupts {
			if !d.interactive() || i.Kind == engine.AwaitEvent { // else it has been asked
				fmt.Fprintln(p.out, describe(i))
			}
		}
	}
	p.printNextSteps(r)
}

// printNextSteps says on stderr how a run that has not completed is moved on.
func (p *cli) printNextSteps(r weir.Result) {
	switch r.Status {
	case engine.Completed:
	case engine.Paused:
		what := "waits for input"
		if len(r.Interrupts) > 0 && !slices.ContainsFunc(r.Interrupts, func(i engine.Interrupt) bool { return i.Kind != engine.AwaitBreak }) {
			what = "is paused at a breakpoint"
		}
		p.notef("run %s %s", r.Run, what)
		for _, i := range r.Interrupts {
			if i.Kind != engine.AwaitBreak {
				p.notef("  %s", p.commandLine("answer", r.Run, i.ID, exampleAnswer(i)))
			}
		}
		if slices.ContainsFunc(r.Interrupts, func(i engine.Interrupt) bool { return i.Kind == engine.AwaitBreak }) {
			p.notef("  %s   continues past the breakpoint", p.commandLine("resume", r.Run))
		}
	case engine.Failed:
		if r.Error == nil {
			p.notef("run %s failed", r.Run)
			return
		}
		p.notef("run %s failed: %s", r.Run, r.Error.Error())
		if h := remedyOf(r.Error); h != "" {
			p.notef("  hint: %s", strings.ReplaceAll(h, "weir retry RUN NODE", p.commandLine("retry", r.Run, r.Error.Node)))
		}
		if r.Error.Node != "" {
			p.notef("  look:      %s", p.commandLine("show", r.Run, "--node", r.Error.Place()))
			p.notef("  try again: %s", p.commandLine("retry", r.Run, r.Error.Node))
		}
	case engine.Cancelled:
		p.notef("run %s was cancelled", r.Run)
	default:
		p.notef("run %s is kept; continue it with: %s", r.Run, p.commandLine("resume", r.Run))
	}
}

// remedyOf is what a person at the command line can do about an error.
func remedyOf(e *engine.Error) string {
	switch {
	case e.Code == engine.CodeModelUnknownProvider && e.Hint == "":
		return "set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or name the server in .weir/config.yaml; see `weir doctor`"
	case e.Code == engine.CodeHTTPBlocked:
		return `where it is yours, allow it in .weir/config.yaml: http: {allowPrivate: ["ADDRESS"]}`
	}
	return e.Hint
}

// describe is one line about what a run waits for.
func describe(i engine.Interrupt) string {
	s := i.ID
	if i.Prompt != "" {
		s += "  " + i.Prompt
	}
	if i.Event != "" && i.Kind == engine.AwaitEvent {
		s += "  event " + i.Event
	}
	if c := choices(i.Schema); len(c) > 0 {
		s += "  [" + strings.Join(c, " | ") + "]"
	}
	return s
}

// exampleAnswer stands for the value in an example of how to answer.
func exampleAnswer(i engine.Interrupt) string {
	if c := choices(i.Schema); len(c) > 0 {
		return c[0]
	}
	switch i.Kind {
	case engine.AwaitBreak:
		return "true"
	case engine.AwaitApproval:
		return approveAnswer
	case engine.AwaitBudget:
		return exampleOf(i.Prompt)
	default:
		return "VALUE"
	}
}

// exampleOf is the example of an answer that a question about a budget gives.
func exampleOf(prompt string) string {
	if _, after, ok := strings.Cut(prompt, " such as "); ok {
		if example, _, ok := strings.Cut(after, ", or with "); ok {
			return example
		}
	}
	return `{"maxTokens": 10000}`
}

// printOutputs writes outputs for people: a line each, long texts below their
// name.
func (p *cli) printOutputs(vs engine.Values) {
	for _, v := range vs {
		text := plain(v.Value)
		if strings.ContainsRune(text, '\n') {
			fmt.Fprintf(p.out, "%s:\n%s\n", v.Name, p.wrap(text, "  "))
			continue
		}
		p.printf("%s: %s", v.Name, text)
	}
}

// printJSON writes one object on a line of its own.
func (p *cli) printJSON(v any) {
	r, ok := v.(*report)
	if f, forked := v.(*forkReport); forked {
		r, ok = &f.report, true
	}
	if ok {
		if r.Outputs == nil {
			r.Outputs = engine.Values{}
		}
		if r.Interrupts == nil {
			r.Interrupts = []interrupt{}
		}
	}
	writeJSON(p.out, v)
}

func writeJSON(w io.Writer, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		fmt.Fprintf(w, `{"error":{"code":"failed","message":%q}}`+"\n", err.Error())
	}
}

// notef writes a line to stderr.
func (p *cli) notef(format string, args ...any) {
	fmt.Fprintf(p.err, format+"\n", args...)
}

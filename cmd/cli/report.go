package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
)

// forkReport is the report of `weir fork --json`.
type forkReport struct {
	app.RunReport
	Fork *forkDetails `json:"fork"`
}

// report prints the state of a run: on stdout its outputs or what it waits for, on
// stderr what to do next.
func (p *cli) report(r weir.Result, d *runDriver) {
	switch {
	case p.json && d.forked != nil:
		writeJSON(p.out, &forkReport{app.RunReportOf(r), d.forked})
	case p.json:
		writeJSON(p.out, app.RunReportOf(r))
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

// printNextSteps prints on stderr how to continue a run that has not completed.
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

// remedyOf returns what a person at the command line can do about an error.
func remedyOf(e *engine.Error) string {
	switch {
	case e.Code == engine.CodeModelUnknownProvider && e.Hint == "":
		return "set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or name the server in .weir/config.yaml; see `weir doctor`"
	case e.Code == engine.CodeHTTPBlocked:
		return `where it is yours, allow it in .weir/config.yaml: http: {allowPrivate: ["ADDRESS"]}`
	}
	return e.Hint
}

// describe returns one line about what a run waits for.
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

// exampleOf returns the example of an answer that a question about a budget gives.
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

// writeJSON writes one value on a line of its own.
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

package cli

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/store"
)

// showChain shows the chain of work of a run, or of one node of it.
func (p *cli) showChain(ctx context.Context, a *application, run string, o *showOptions) error {
	var work []history.Work
	for w, err := range a.Chain(ctx, run) {
		if err != nil {
			return err
		}
		if o.node == "" || w.Node == o.node {
			work = append(work, w)
		}
	}
	slices.SortFunc(work, func(a, b history.Work) int { return a.Seq - b.Seq })
	if o.node != "" && len(work) == 0 {
		return usagef("node %q of run %s has not run; `%s` lists those that have", o.node, run, p.commandLine("show", run, "--chain"))
	}
	if o.diff {
		return p.showStateDiff(run, work[len(work)-1], o)
	}
	if o.json {
		rows := make([]app.WorkRow, 0, len(work))
		for i := range work {
			r, err := app.WorkRowOf(run, &work[i])
			if err != nil {
				return err
			}
			rows = append(rows, r)
		}
		writeJSON(p.out, rows)
		return nil
	}
	args := []string{"show", run, "--chain", "--limit", "0"}
	if o.node != "" {
		args = append(args, "--node", o.node)
	}
	row, err := a.Store.Run(ctx, run)
	if err != nil {
		return err
	}
	p.printChain(work, openStatus(&row), o.limit, p.commandLine(args...))
	return nil
}

// openStatus says what the attempts of a run that have not ended are doing.
func openStatus(r *store.Run) string {
	switch {
	case app.IsInterrupted(r):
		return "stopped"
	case r.Head.Status == engine.Paused:
		return engine.Waiting.String()
	default:
		return history.WorkRunning
	}
}

// topLine returns the first line of an error, without the traceback below it.
func topLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return oneLine(line)
}

// printChain shows people what was done, with the steps of each node below it. open is the status of attempts that have
// not ended.
func (p *cli) printChain(work []history.Work, open string, limit rowLimit, all string) {
	st := p.styleFor(p.out)
	t := p.table("SEQ NODE TYPE STATUS TIME MODEL TOKENS COST NOTE", "MODEL", "TYPE", "SEQ", "TIME")
	chosen := limit.choose(len(work), func(i int) bool { return work[i].Status != workSucceeded })
	stepsLeftOut := 0
	for _, i := range chosen {
		w := &work[i]
		name := w.Node
		if w.Attempt > 1 {
			name += fmt.Sprintf(" (attempt %d)", w.Attempt)
		}
		note := ""
		if w.Error != nil {
			note = w.Error.Message
		}
		status := w.Status
		if status == history.WorkRunning {
			status = open
		}
		t.row(fmt.Sprint(w.Seq), name, w.Type, statusStyle(st, status), took(w.Took), "", tokensIn(w.Usage), spentIn(w.Usage), topLine(note))
		steps := limit.choose(len(w.Steps), func(j int) bool { return w.Steps[j].Status != workSucceeded })
		stepsLeftOut += len(w.Steps) - len(steps)
		for _, j := range steps {
			s := &w.Steps[j]
			u := engine.Usage{}
			if s.Usage != nil {
				u = *s.Usage
			}
			t.row("", fmt.Sprintf("  %d %s", s.Number, s.Name), fmt.Sprintf("attempt %d", s.Attempt), statusStyle(st, s.Status),
				took(time.Duration(s.Micros)*time.Microsecond), s.Model, tokensIn(u), spentIn(u), topLine(s.Error))
		}
	}
	t.print()
	limit.note(p.out, len(chosen), len(work), "attempt", all)
	if stepsLeftOut > 0 {
		fmt.Fprintf(p.out, "%s of these attempts are left out; list all with `%s`\n", count(stepsLeftOut, "step"), all)
	}
}

// workSucceeded is the status of attempts and steps that succeeded.
const workSucceeded = "success"

func statusStyle(st style, status string) string {
	switch status {
	case workSucceeded:
		return st.good.Render(status)
	case "failed":
		return st.bad.Render(status)
	}
	return status
}

func tokensIn(u engine.Usage) string {
	if u.Input+u.Output == 0 {
		return "-"
	}
	return approx(u, fmt.Sprint(u.Input+u.Output))
}

func spentIn(u engine.Usage) string {
	if u.CostMicros == 0 {
		return "-"
	}
	return approx(u, dollars(u.CostMicros))
}

// stateChange is one place in which a node changed the state.
type stateChange struct {
	Path   string       `json:"path"` // as amount, or items[2].name
	Before engine.Value `json:"before"`
	After  engine.Value `json:"after"`
	Was    bool         `json:"was"` // there was something before
	Is     bool         `json:"is"`  // there is something after
}

// showStateDiff shows what a node changed in the state.
func (p *cli) showStateDiff(run string, w history.Work, o *showOptions) error {
	if w.Ended.IsZero() {
		return usagef("node %q of run %s has not ended: there is no state after it yet", w.Node, run)
	}
	changes := differences(nil, "", app.StateMap(w.Before), app.StateMap(w.After))
	if o.json {
		if changes == nil {
			changes = []stateChange{}
		}
		writeJSON(p.out, map[string]any{"execution_id": run, "node_id": w.Node, "attempt": w.Attempt, "status": w.Status, "changes": changes})
		return nil
	}
	st := p.styleFor(p.out)
	fmt.Fprintln(p.out, st.bold.Render(fmt.Sprintf("state before and after %s (attempt %d, %s)", w.Node, w.Attempt, w.Status)))
	if len(changes) == 0 {
		fmt.Fprintln(p.out, "  no change")
	}
	d := &diffPrinter{p: p, st: st}
	for _, c := range changes {
		d.line("  %s", app.Printable(c.Path))
		d.pair("    ", c.Before, c.After, c.Was, c.Is)
	}
	return nil
}

// differences appends where two values differ, as deep as both are objects, or
// lists of the same length, or of which one continues the other.
func differences(out []stateChange, path string, a, b engine.Value) []stateChange {
	if reflect.DeepEqual(a, b) {
		return out
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		keys := slices.Sorted(maps.Keys(x))
		for k := range y {
			if _, both := x[k]; !both {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		for _, k := range keys {
			out = member(out, join(path, k), x, y, k)
		}
		return out
	case []any:
		y, ok := b.([]any)
		if !ok {
			break
		}
		for i := range max(len(x), len(y)) {
			at := fmt.Sprintf("%s[%d]", path, i)
			switch {
			case i >= len(x):
				out = append(out, stateChange{Path: at, After: y[i], Is: true})
			case i >= len(y):
				out = append(out, stateChange{Path: at, Before: x[i], Was: true})
			default:
				out = differences(out, at, x[i], y[i])
			}
		}
		return out
	}
	return append(out, stateChange{Path: path, Before: a, After: b, Was: true, Is: true})
}

func member(out []stateChange, path string, x, y map[string]any, key string) []stateChange {
	a, was := x[key]
	b, is := y[key]
	if was && is {
		return differences(out, path, a, b)
	}
	return append(out, stateChange{Path: path, Before: a, After: b, Was: was, Is: is})
}

func join(path, key string) string {
	if strings.ContainsAny(key, ".[]\" ") || key == "" {
		key = fmt.Sprintf("%q", key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
)

// workRow is an attempt of a node as `weir show --chain --json` prints it, in the
// words of the view chain_of_work.
type workRow struct {
	Execution string          `json:"execution_id"`
	Node      string          `json:"node_id"`
	Type      string          `json:"node_type"`
	Code      string          `json:"code_executed"`
	Input     json.RawMessage `json:"input_context"`
	Output    json.RawMessage `json:"output_result"` // null where it has not ended
	Took      float64         `json:"execution_time"`
	Status    string          `json:"status"`
	Metadata  json.RawMessage `json:"ai_metadata"`
	Seq       int             `json:"seq"`
	Attempt   int             `json:"attempt"`
	Started   time.Time       `json:"started"`
	Ended     *time.Time      `json:"ended"`
	Error     *engine.Error   `json:"error"`
	Usage     app.Usage       `json:"usage"`
	Steps     []workStep      `json:"steps"`
}

// workStep is a step in it, in the words of the view chain_of_work_step.
type workStep struct {
	Sequence int             `json:"sequence"`
	Number   int             `json:"step_number"`
	Attempt  int             `json:"attempt_number"`
	Agent    string          `json:"agent_name"`
	Input    json.RawMessage `json:"input_data"`
	Output   json.RawMessage `json:"output_data"`
	Code     string          `json:"generated_code"`
	Status   string          `json:"status"`
	Error    string          `json:"error_message"`
	Took     float64         `json:"execution_time_ms"`
	Model    string          `json:"model_used"`
	In       int             `json:"tokens_input"`
	Out      int             `json:"tokens_output"`
	Cost     float64         `json:"cost_usd"`
	// Estimated is how many calls are charged at an estimate.
	Estimated int    `json:"calls_estimated"`
	Sandbox   string `json:"sandbox_id"`
}

// showChain shows the chain of work of a run, or of one node of it.
func (p *cli) showChain(ctx context.Context, desk *application, run string, o *showOptions) error {
	var work []weir.Work
	for w, err := range desk.Chain(ctx, run) {
		if err != nil {
			return err
		}
		if o.node == "" || w.Node == o.node {
			work = append(work, w)
		}
	}
	slices.SortFunc(work, func(a, b weir.Work) int { return a.Seq - b.Seq })
	if o.node != "" && len(work) == 0 {
		return usagef("node %q of run %s has not run; `%s` lists those that have", o.node, run, p.commandLine("show", run, "--chain"))
	}
	if o.diff {
		return p.showStateDiff(run, work[len(work)-1], o)
	}
	if o.json {
		rows := make([]workRow, 0, len(work))
		for i := range work {
			r, err := workRowOf(run, &work[i])
			if err != nil {
				return err
			}
			rows = append(rows, r)
		}
		writeJSON(p.out, rows)
		return nil
	}
	p.printChain(work)
	return nil
}

func workRowOf(run string, w *weir.Work) (workRow, error) {
	r := workRow{
		Execution: run, Node: w.Node, Type: w.Type, Code: w.Code, Took: millis(w.Took), Status: w.Status, Seq: w.Seq, Attempt: w.Attempt,
		Started: w.Started, Error: w.Error, Usage: app.UsageOf(w.Usage), Steps: []workStep{},
	}
	values := []struct {
		to   *json.RawMessage
		from engine.Value
	}{{&r.Input, stateMap(w.Before)}, {&r.Metadata, w.Metadata}}
	if !w.Ended.IsZero() {
		r.Ended = &w.Ended
		values = append(values, struct {
			to   *json.RawMessage
			from engine.Value
		}{&r.Output, stateMap(w.After)})
	}
	for i := range w.Steps {
		s := &w.Steps[i]
		t := workStep{
			Sequence: s.Sequence, Number: s.Number, Attempt: s.Attempt, Agent: s.Name, Code: s.Code, Status: s.Status, Error: s.Error,
			Took: float64(s.Micros) / 1000, Model: s.Model, Sandbox: s.Sandbox,
		}
		if u := s.Usage; u != nil {
			t.In, t.Out, t.Cost, t.Estimated = u.Input, u.Output, float64(u.CostMicros)/1e6, u.Estimated
		}
		var err error
		if t.Input, err = engine.AppendValue(nil, s.Input); err == nil {
			t.Output, err = engine.AppendValue(nil, s.Output)
		}
		if err != nil {
			return r, err
		}
		r.Steps = append(r.Steps, t)
	}
	for _, v := range values {
		data, err := engine.AppendValue(nil, v.from)
		if err != nil {
			return r, err
		}
		*v.to = data
	}
	return r, nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func stateMap(s engine.State) map[string]any {
	m := make(map[string]any, s.Len())
	for _, k := range s.Keys() {
		m[k], _ = s.Get(k)
	}
	return m
}

// topLine is the first line of an error, without the traceback below it.
func topLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return oneLine(line)
}

// printChain shows people what was done, with the steps of each node below it.
func (p *cli) printChain(work []weir.Work) {
	st := p.styleFor(p.out)
	t := p.table("SEQ NODE TYPE STATUS TIME MODEL TOKENS COST NOTE", "MODEL", "TYPE", "SEQ", "TIME")
	for i := range work {
		w := &work[i]
		name := w.Node
		if w.Attempt > 1 {
			name += fmt.Sprintf(" (attempt %d)", w.Attempt)
		}
		note := ""
		if w.Error != nil {
			note = w.Error.Message
		}
		t.row(fmt.Sprint(w.Seq), name, w.Type, statusStyle(st, w.Status), took(w.Took), "", tokensIn(w.Usage), spentIn(w.Usage), topLine(note))
		for j := range w.Steps {
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
}

func statusStyle(st style, status string) string {
	switch status {
	case "success":
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
func (p *cli) showStateDiff(run string, w weir.Work, o *showOptions) error {
	if w.Ended.IsZero() {
		return usagef("node %q of run %s has not ended: there is no state after it yet", w.Node, run)
	}
	changes := differences(nil, "", stateMap(w.Before), stateMap(w.After))
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
// lists of one length or of which one goes on from the other.
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

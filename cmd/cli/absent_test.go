package cli

import (
	"bytes"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/store/sqlite"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// otherType is a built-in node type as another version of Weir had it.
type otherType struct {
	weir.Type
	spec *flow.TypeSpec
}

func (t *otherType) Spec() *flow.TypeSpec { return t.spec }

// Prepare leaves out what the type of this version does not know.
func (t *otherType) Prepare(with map[string]any) (node.Node, error) {
	with = maps.Clone(with)
	delete(with, "style")
	return t.Type.Prepare(with)
}

// otherwise changes userInput.
func otherwise(change func(*flow.TypeSpec)) func(weir.Type) weir.Type {
	return func(t weir.Type) weir.Type {
		if t.Spec().Name != "userInput" {
			return t
		}
		spec := *t.Spec()
		change(&spec)
		return &otherType{t, &spec}
	}
}

// absence is something that the command lacks and the process that started a run had.
type absence struct {
	options weir.Options
	flow    string // has a node ask, which waits
	// refuses is what a command names that would execute a node; "" where it is
	// executed, and says what then.
	refuses string
	accepts bool // --accept-changes continues the run
	blocked bool // `weir runs --blocked` lists it
}

// absences returns all kinds of it.
func absences() map[string]absence {
	const head = "weir: 1\nname: rec\nnodes:\n"
	const ask = "  ask: {type: userInput, with: {prompt: Sure?}}\n"
	const end = "outputs: {said: \"{{ ask.text }}\"}\n"
	look := &weir.Tool{Name: "look", Description: "Looks.", Parameters: map[string]any{"type": "object"}, Call: func(context.Context, tool.Call) (string, error) { return "", nil }}
	return map[string]absence{
		"nothing": {flow: head + ask + end, accepts: true},
		"node type": {
			options: weir.Options{Types: []weir.Type{shoutingType()}}, flow: head + "  a: {type: loud, in: {text: hey}}\n" + ask + end,
			refuses: "loud", blocked: true,
		},
		"version of a node type": {
			options: weir.Options{Wrap: otherwise(func(s *flow.TypeSpec) { s.Version = 99 })}, flow: head + ask + end,
			refuses: "userInput was version 99", accepts: true, blocked: true,
		},
		"output of a node type": {
			options: weir.Options{Wrap: otherwise(func(s *flow.TypeSpec) {
				s.Ports.Out = append(slices.Clone(s.Ports.Out), flow.Port{Name: "mood", Type: "text"})
			})}, flow: head + ask + end,
			refuses: "the output mood was removed", blocked: true,
		},
		"input of a node type": {
			options: weir.Options{Wrap: otherwise(func(s *flow.TypeSpec) {
				s.Ports.In = append(slices.Clone(s.Ports.In), flow.Port{Name: "mood", Type: "text"})
				s.Reads = nil
			})}, flow: head + "  ask: {type: userInput, in: {mood: good}, with: {prompt: Sure?}}\n" + end,
			refuses: "mood", blocked: true,
		},
		"setting": {
			options: weir.Options{Wrap: otherwise(func(s *flow.TypeSpec) {
				s.Settings = maps.Clone(s.Settings)
				props := maps.Clone(s.Settings["properties"].(map[string]any))
				props["style"] = map[string]any{"type": "string"}
				s.Settings["properties"] = props
			})}, flow: head + "  ask: {type: userInput, with: {prompt: Sure?, style: loud}}\n" + end,
			refuses: "style", blocked: true,
		},
		"tool": {
			options: weir.Options{Tools: []*weir.Tool{look}, Replay: recorded.NewScriptedTurns(weirtest.Says("fine", "fine"), nil)},
			flow: "weir: 1\nname: rec\ncontext: {model: p/m}\nnodes:\n  say: {type: llmRequest, in: {message: hey, tools: [look]}}\n" +
				"  ask: {type: userInput, after: say, with: {prompt: Sure?}}\n" + end,
			refuses: "look", accepts: true, blocked: true,
		},
		"provider": {
			options: weir.Options{Replay: recorded.NewScriptedTurns(weirtest.Says("fine", "fine"), nil)},
			flow: "weir: 1\nname: rec\ncontext: {model: p/m}\nnodes:\n  say: {type: llmRequest, in: {message: hey}}\n" +
				"  ask: {type: userInput, after: say, with: {prompt: Sure?}}\n" + end,
			accepts: true, blocked: true, // what is left of the run needs no model
		},
		"secret": {
			options: weir.Options{Secrets: func(string) (string, bool) { return "s3cret-value", true }},
			flow:    head + ask + "  check: {type: decision, after: ask, with: {expr: \"'yes'\", branches: [yes, no]}}\n  get: {type: httpRequest, after: check.no, with: {url: \"http://127.0.0.1:1\", headers: {A: \"{{ secrets.TOKEN }}\"}}}\n" + end,
			accepts: true, blocked: true,
		},
	}
}

// absentRuns makes a database with a run that waits and one that was cancelled.
func absentRuns(t *testing.T, a *absence) (db string) {
	t.Helper()
	db = filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), db, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := a.options
	o.Store = s
	w, err := weir.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // what it did is durable
	f, err := w.Parse("rec.yaml", []byte(a.flow))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"over", "waits"} {
		run, err := w.Start(t.Context(), f, weir.Start{ID: id, User: "ada"})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := run.Wait(t.Context()); err != nil || r.Status != engine.Paused {
			t.Fatal(r.Status, r.Error, err)
		}
	}
	run, err := w.Cancel(t.Context(), "over", "ada", "")
	if err == nil {
		_, err = run.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// inProcess carries out a command line in this process.
func inProcess(t *testing.T, db, line string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := &cli{terminal: terminal{in: strings.NewReader(""), out: &stdout, err: &stderr}, env: func(string) (string, bool) { return "", false }}
	code = p.command(t.Context(), append([]string{"--db", db}, strings.Fields(line)...))
	return code, stdout.String(), stderr.String()
}

// TestOnlyCommandsThatExecuteNodesNeedWhatIsAbsent enumerates commands and what the
// program may lack that continues a run.
func TestOnlyCommandsThatExecuteNodesNeedWhatIsAbsent(t *testing.T) {
	t.Parallel()
	for name, a := range absences() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := absentRuns(t, &a)
			dir := t.TempDir()
			for _, line := range []string{
				"runs", "runs --json", "verify --all", "sessions", "memory", "code", "tools",
				"show over", "show waits", "show waits --json", "show waits --events", "show waits --at 2", "show waits --chain",
				"show waits --chain --json", "show waits --node ask", "show waits --node ask --json", "show waits --node ask --view",
				"trajectory waits", "verify waits", "diff waits waits", "export waits -o " + filepath.Join(dir, "run.jsonl"),
				"--db " + filepath.Join(dir, "other.db") + " import " + filepath.Join(dir, "run.jsonl"),
				"sessions delete --user ada --dry-run", "sessions prune --older-than 1d --yes",
			} {
				if code, out, errs := inProcess(t, db, line); code != 0 {
					t.Errorf("weir %s: exit %d\n%s%s", line, code, out, errs)
				}
			}
			a.blocks(t, db)
			a.executes(t, db)
			a.ends(t, db)
		})
	}
}

// ends checks that the run can be cancelled and deleted.
func (a *absence) ends(t *testing.T, db string) {
	t.Helper()
	if !a.accepts { // it has not ended
		if code, out, errs := inProcess(t, db, "cancel waits"); code != 0 || !strings.Contains(out, "cancelled") {
			t.Errorf("weir cancel: exit %d\n%s%s", code, out, errs)
		}
	}
	if code, out, errs := inProcess(t, db, "sessions delete --user ada --yes"); code != 0 || !strings.Contains(out, "2 runs") {
		t.Errorf("deleting: exit %d\n%s%s", code, out, errs)
	}
}

// blocks checks whether the run is listed as blocked.
func (a *absence) blocks(t *testing.T, db string) {
	t.Helper()
	code, out, errs := inProcess(t, db, "runs --blocked --json")
	if code != 0 || strings.Contains(out, `"run":"waits"`) != a.blocked || strings.Contains(out, `"run":"over"`) {
		t.Errorf("weir runs --blocked: exit %d, expected the run in it: %v\n%s%s", code, a.blocked, out, errs)
	}
	if a.refuses != "" && !strings.Contains(out, a.refuses) {
		t.Errorf("weir runs --blocked does not name %q: %s", a.refuses, out)
	}
}

// executes checks the commands that would execute nodes.
func (a *absence) executes(t *testing.T, db string) {
	t.Helper()
	if a.refuses != "" {
		for _, line := range []string{"answer waits ask yes", "resume waits", "retry waits ask", "skip waits ask", "complete waits ask --output text=x"} {
			if code, out, errs := inProcess(t, db, line); code == 0 || !strings.Contains(errs, a.refuses) {
				t.Errorf("weir %s: exit %d, expected that %q is named\n%s%s", line, code, a.refuses, out, errs)
			}
		}
	}
	code, out, errs := inProcess(t, db, "answer waits ask yes --accept-changes")
	if done := code == 0 && strings.Contains(out, "said: yes"); done != a.accepts {
		t.Errorf("weir answer --accept-changes: exit %d, expected that it continues: %v\n%s%s", code, a.accepts, out, errs)
	}
	if a.accepts && a.refuses != "" {
		if _, out, _ := inProcess(t, db, "show waits --events"); !strings.Contains(out, "changes.accepted") || !strings.Contains(out, a.refuses) {
			t.Errorf("the record does not say what was accepted: %s", out)
		}
	}
}

package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store/sqlite"
)

// shoutingType returns a node type that the command does not have: it says louder what it is
// given.
func shoutingType() weir.Type {
	type in struct {
		Text string `weir:"text,optional"`
	}
	type out struct {
		Text string `weir:"text"`
	}
	return weir.Func("loud", func(_ weir.Ctx, i in) (out, error) { return out{i.Text + "!"}, nil })
}

// recordOf makes a database with runs of a node type that the command lacks.
func recordOf(t *testing.T) (db string) {
	t.Helper()
	db = filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), db, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := weir.Open(weir.Options{Store: s, Types: []weir.Type{shoutingType()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	child, err := w.Parse("child", []byte("weir: 1\nname: child\nnodes:\n  a: {type: loud, in: {text: hey}}\n  ask: {type: userInput, after: a, with: {prompt: Sure?}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	head := "weir: 1\nname: rec\nnodes:\n  a: {type: loud, in: {text: hey}}\n"
	for id, text := range map[string]string{
		"done":   head + "outputs: {r: \"{{ a.text }}\"}\n",
		"waits":  head + "  ask: {type: userInput, after: a, with: {prompt: Sure?}}\n",
		"parent": head + "  c: {type: flow, after: a, with: {flow: child}}\n",
	} {
		f, err := w.Parse("rec.yaml", []byte(text), child)
		if err != nil {
			t.Fatal(err)
		}
		run, err := w.Start(t.Context(), f, weir.Start{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := run.Wait(t.Context()); err != nil || r.Status == engine.Failed {
			t.Fatal(err, r.Error)
		}
	}
	return db
}

// checkRead checks what a command line came to that reads the record: only fork,
// which would run nodes, may ask for the node type that is missing.
func checkRead(t *testing.T, line string, code int, out, errs string) {
	t.Helper()
	if running := strings.Fields(line)[0] == "fork"; running {
		if code == 0 || !strings.Contains(errs, "loud") {
			t.Errorf("weir %s: exit %d, expected the node type that is missing:\n%s%s", line, code, out, errs)
		}
		return
	}
	if code != 0 || strings.Contains(errs, "node type") {
		t.Errorf("weir %s: exit %d\n%s%s", line, code, out, errs)
	}
}

func TestReadingCommandsDoNotNeedNodeTypes(t *testing.T) {
	db := recordOf(t)
	weir := func(args ...string) (code int, out, errs string) {
		var stdout, stderr bytes.Buffer
		p := &cli{terminal: terminal{in: strings.NewReader(""), out: &stdout, err: &stderr}, env: func(string) (string, bool) { return "", false }}
		code = p.command(t.Context(), append([]string{"--db", db}, args...))
		return code, stdout.String(), stderr.String()
	}
	export := filepath.Join(t.TempDir(), "run.jsonl")
	for _, line := range []string{
		"runs", "runs --json", "verify --all",
		"show done", "show done --json", "show done --events", "show done --at 2", "show done --chain", "show done --chain --json",
		"show done --node a", "show done --node a --json", "show done --node a --diff", "show done --node a --view",
		"show waits", "show parent", "show parent --json", "show parent --node c>a", "show parent --node c>a --view",
		"trajectory done", "trajectory parent", "verify done", "verify parent",
		"export parent -o " + export, "--db " + filepath.Join(t.TempDir(), "other.db") + " import " + export,
		"fork waits --from a --dry-run",
	} {
		code, out, errs := weir(strings.Fields(line)...)
		checkRead(t, line, code, out, errs)
	}
	for _, line := range []string{"diff done waits", "diff done parent --json"} {
		if code, out, errs := weir(strings.Fields(line)...); code != 1 || out == "" {
			t.Errorf("weir %s: exit %d, expected that they differ:\n%s%s", line, code, out, errs)
		}
	}
	for _, line := range []string{"answer waits ask:ask#1 yes", "resume waits", "retry waits ask", "skip waits ask", "answer parent c>ask:ask#1 yes", "rerun done"} {
		if code, _, errs := weir(strings.Fields(line)...); code == 0 || !strings.Contains(errs, "loud") {
			t.Errorf("weir %s: exit %d, expected the node type that is missing: %s", line, code, errs)
		}
	}
	for _, id := range []string{"waits", "parent"} {
		code, out, errs := weir("cancel", id)
		if code != 0 || !strings.Contains(out, "cancelled") {
			t.Errorf("weir cancel %s: exit %d\n%s%s", id, code, out, errs)
		}
	}
}

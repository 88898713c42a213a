package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store/sqlite"
)

// unansweredModel is a provider whose answers do not come. It closes asked when it is called.
type unansweredModel struct{ asked chan struct{} }

func (m unansweredModel) Generate(ctx context.Context, _ *llm.Request, _ func(llm.Chunk)) (*llm.Response, error) {
	close(m.asked)
	<-ctx.Done()
	return nil, ctx.Err()
}

// interruptedRun makes a database with a run whose process stopped during a model call.
func interruptedRun(t *testing.T, child, text string) (db string) {
	t.Helper()
	db = filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), db, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	model := unansweredModel{make(chan struct{})}
	w, err := weir.Open(weir.Options{Store: s, Types: []weir.Type{shoutingType()}, Providers: map[string]weir.Provider{"mine": model}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.Parse("child", []byte(child))
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("rec.yaml", []byte(text), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Start(t.Context(), f, weir.Start{ID: "cut"}); err != nil {
		t.Fatal(err)
	}
	<-model.asked
	if err := w.Close(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return db
}

// TestInterruptedRunsSayWhatIsAbsentAndWhatWorks enumerates what a command lacks to continue a run that was executing,
// each in the run itself and in a child run. What the command suggests must work.
func TestInterruptedRunsSayWhatIsAbsentAndWhatWorks(t *testing.T) {
	t.Parallel()
	const loud, say = "  a: {type: loud, in: {text: hey}}\n", "  say: {type: llmRequest, in: {message: hello}}\n"
	const root, child = "weir: 1\nname: rec\ncontext: {model: mine/m}\nnodes:\n", "weir: 1\nname: child\ncontext: {model: mine/m}\nnodes:\n"
	const calls = "  c: {type: flow, with: {flow: child}}\n"
	for name, c := range map[string]struct{ child, flow, names, from string }{
		"node type":                    {child + say, root + loud + say, `the node type "loud" does not exist`, "say"},
		"node type of a child and its": {child + loud + say, root + loud + calls, `the node type "loud" does not exist`, "c"},
		"node type of a child":         {child + loud + say, root + calls, `the node type "loud" does not exist`, "c"},
		"provider":                     {child + say, root + say, `mine`, "say"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkInterrupted(t, interruptedRun(t, c.child, c.flow), c.names, c.from)
		})
	}
}

// checkInterrupted checks the commands that would continue the run, and those that they suggest.
func checkInterrupted(t *testing.T, db, names, from string) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "other.yaml")
	text := "weir: 1\nname: rec\nnodes:\n  " + from + ": {type: template, with: {text: done}}\noutputs: {text: \"{{ " + from + ".text }}\"}\n"
	if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"resume cut", "resume cut --accept-changes"} {
		_, out, errs := inProcess(t, db, line)
		if strings.Count(errs, names) != 1 || !strings.Contains(errs, "cannot be continued here") || !strings.Contains(errs, "--flow FILE") ||
			strings.Contains(errs, "--accept-changes") {
			t.Errorf("weir %s: %s%s", line, out, errs)
		}
	}
	if code, out, errs := inProcess(t, db, "runs --blocked"); code != 0 || !strings.Contains(out, names) || !strings.Contains(errs, "--flow FILE") {
		t.Errorf("weir runs --blocked: exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := inProcess(t, db, "fork cut --at 1 --flow "+other); code != 0 || !strings.Contains(out, "done") {
		t.Errorf("weir fork: exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := inProcess(t, db, "cancel cut"); code != 0 {
		t.Errorf("weir cancel: exit %d\n%s%s", code, out, errs)
	}
}

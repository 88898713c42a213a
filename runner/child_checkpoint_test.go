package runner_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// newReportType returns a node type that outputs all that its view has, and adds to it.
func newReportType() node.Type {
	return &funcType{flow.TypeSpec{
		Name: "tells", Version: 1, Context: flow.ContextWrite, Ports: flow.Ports{Out: []flow.Port{{Name: "seen", Type: flow.TypeText}}},
	}, func(ctx *node.Ctx) error {
		m, err := ctx.Context()
		if err != nil {
			return err
		}
		view, err := m.Get().Messages()
		if err != nil {
			return err
		}
		var seen []string
		for _, said := range view {
			seen = append(seen, said.Text)
		}
		ctx.Output("seen", strings.Join(seen, " "))
		_, err = m.Add(convo.Message{Role: convo.User, Text: ctx.Info().Path})
		return err
	}}
}

// reportChain returns a chain of n nodes of type tell, after one node.
func reportChain(prefix, after string, n int) (text, last string) {
	var b strings.Builder
	for i := range n {
		needs := ""
		if after != "" {
			needs = ", after: " + after
		}
		after = fmt.Sprintf("%s%d", prefix, i)
		fmt.Fprintf(&b, "  %s: {type: tells%s}\n", after, needs)
	}
	return b.String(), after
}

func TestChildWithInheritedHistoryResumesFromACheckpoint(t *testing.T) {
	for _, isolation := range []string{"fork", "share"} {
		t.Run(isolation, func(t *testing.T) {
			tr := newTree(t, newReportType())
			s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			_ = tr.local.Close(t.Context())
			tr.store = s
			tr.open()
			child, last := reportChain("c", "", 40)
			tr.add("l0", "nodes:\n"+child+"  ask: {type: userInput, after: "+last+", with: {prompt: more}}\n  end: {type: tells, after: ask}\noutputs: {out: \"{{ end.seen }}\"}\n")
			above, top := reportChain("p", "", 30)
			p := tr.add("l1", "nodes:\n"+above+"  down: {type: sub, after: "+top+", with: {flow: l0, isolation: "+isolation+"}}\n"+
				"  last: {type: tells, after: down}\noutputs: {out: \"{{ down.out }}\", end: \"{{ last.seen }}\"}\n")
			r := tr.wait(tr.start(p))
			equal(t, "status", r.Status, engine.Paused)
			tr.reopenFromCheckpoints()
			if _, err := tr.local.Do(t.Context(), p, "r", runner.Answer(r.Interrupts[0].ID, "yes", "me")); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() bool { return tr.runs()[0].Head.Status.Ended() })
			x, err := tr.local.Resume(t.Context(), p, "r")
			if err != nil {
				t.Fatal(err)
			}
			r = tr.wait(x)
			equal(t, "status", r.Status, engine.Completed)
			own, below := numberedNames("p", 30), numberedNames("c", 40)
			out, _ := r.Outputs.Get("out")
			equal[any](t, "what the child sees", out, own+" "+below)
			end, _ := r.Outputs.Get("end")
			if isolation == "share" {
				own += " " + below + " end"
			}
			equal[any](t, "what is seen afterwards", end, own)
		})
	}
}

// numberedNames are prefix0, prefix1 and so on.
func numberedNames(prefix string, n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s%d", prefix, i))
	}
	return strings.Join(out, " ")
}

// reopenFromCheckpoints continues in another process, for which all runs have a
// checkpoint.
func (t *tree) reopenFromCheckpoints() {
	t.tb.Helper()
	if err := t.local.Close(context.Background()); err != nil {
		t.tb.Fatal(err)
	}
	for _, run := range t.runs() {
		if _, err := store.Complete(t.store).Checkpoint(t.tb.Context(), run.ID); err != nil {
			t.tb.Fatalf("no checkpoint of run %s: %v", run.ID, err)
		}
	}
	t.open()
}

package builtin_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm/recorded"
)

// TestViewKeysThatTheContextsStrategyDoesNotReadAreRefused combines the strategy of the
// context, where it is from, and the keys of a node's view that names none.
func TestViewKeysThatTheContextsStrategyDoesNotReadAreRefused(t *testing.T) {
	t.Parallel()
	keys := map[string]string{"low": "50", "keepResults": "2", "maxResult": "500", "summary": "300", "model": "p/m"}
	unread := map[string]string{"all": "low keepResults maxResult summary model", "window": "summary model", "summary": "", "": "summary model"}
	for strategy, list := range unread {
		for key, value := range keys {
			refused := strings.Contains(" "+list+" ", " "+key+" ")
			view, settings := "", ""
			if strategy != "" {
				view, settings = "strategy: "+strategy, ", view: {strategy: "+strategy+"}"
			}
			say := "  say: {type: llmRequest, with: {view: {" + key + ": " + value + "}}, in: {message: hi"
			for where, nodes := range map[string]string{
				"flow": "context: {model: p/m" + settings + "}\nnodes:\n" + say + "}}\n",
				"port": "context: {model: p/m}\nnodes:\n  own: {type: newContext, with: {base: fork, view: {" + view + "}}}\n" + say + ", context: \"{{ own.context }}\"}}\n",
				"fork": "context: {model: p/m" + settings + "}\nnodes:\n  own: {type: newContext, with: {base: fork, view: {" + key + ": " + value + "}}}\n",
			} {
				checkViewKey(t, key, strategy, where, nodes, refused)
			}
		}
	}
}

// checkViewKey loads and runs nodes with a key of a view under a strategy. A refused key is
// an error of loading where the flow names the strategy, and of the run in all cases.
func checkViewKey(t *testing.T, key, strategy, where, nodes string, refused bool) {
	t.Helper()
	w := weirkit.Open(t, weir.Options{Providers: map[string]weir.Provider{"p": recorded.NewScripted("fine")}})
	f, err := w.Parse("f.yaml", []byte("weir: 1\nname: f\n"+nodes))
	if err != nil {
		if !refused || where == "port" || !strings.Contains(err.Error(), "view."+key+" has no effect with strategy") {
			t.Errorf("%s of %s, by %s: %v", key, strategy, where, err)
		}
		return
	}
	if refused && where == "flow" && strategy != "" {
		t.Errorf("%s of %s, by %s: it loads", key, strategy, where)
	}
	run, err := w.Start(t.Context(), f, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	r := weirkit.Wait(t, run)
	if refused != (r.Status == engine.Failed) || refused && (r.Error.Code != engine.CodeValue || !strings.Contains(r.Error.Message, "view."+key)) {
		t.Errorf("%s of %q, by %s: %s %v", key, strategy, where, r.Status, r.Error)
	}
}

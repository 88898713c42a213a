//go:build linux

package temporal_test

import (
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/engine"
)

// sdk is a client of the server without Weir.
func (w *world) sdk() client.Client {
	w.t.Helper()
	c, err := client.Dial(client.Options{HostPort: w.address, Logger: quiet{}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// quiet is a logger of the SDK that writes nothing.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

func (w *world) describe(run string) *workflowservice.DescribeWorkflowExecutionResponse {
	w.t.Helper()
	d, err := w.sdk().DescribeWorkflowExecution(w.t.Context(), run, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// workflowStatus is that of the newest workflow of a run: "Running", "Completed", ...
func (w *world) workflowStatus(run string) string {
	return w.describe(run).GetWorkflowExecutionInfo().GetStatus().String()
}

func (w *world) pendingActivities(run string) int { return len(w.describe(run).GetPendingActivities()) }

// history is the history of the newest workflow of a run.
func (w *world) history(run string) *historypb.History {
	w.t.Helper()
	h := &historypb.History{}
	it := w.sdk().GetWorkflowHistory(w.t.Context(), run, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		h.Events = append(h.Events, e)
	}
	return h
}

// journaledEffects are the keys of the effects that have a result in the journal of a run.
func (w *world) journaledEffects(x *weir.Weir, run string) map[string]bool {
	w.t.Helper()
	v, err := x.Inspect(w.t.Context(), run, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	out := make(map[string]bool)
	for _, c := range v.Commits {
		for _, e := range c.Events {
			if d, ok := e.(*engine.EffectCompleted); ok {
				out[run+"/"+d.Key] = true
			}
		}
	}
	return out
}

// verify checks the chains and rows of the store.
func (w *world) verify(s weir.Store) {
	w.t.Helper()
	r, err := audit.Verify(w.t.Context(), s, audit.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range r.Findings {
		w.t.Errorf("verify: %+v", f)
	}
}

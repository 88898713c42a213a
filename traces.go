package weir

import (
	"context"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/otel"
	"github.com/weir-run/weir/runner"
)

// openTraces starts the exporter of traces, and passes it the runs that end or pause.
func (w *Weir) openTraces(c *otel.Config, ro *runner.Options) (err error) {
	if c == nil {
		return nil
	}
	if w.traces, err = otel.NewExporter(*c, w.store, w.logger); err != nil {
		return err
	}
	ro.Rested = func(run string, f *flow.Flow, after int64) {
		w.traces.Rested(otel.Rest{Run: run, Flow: f, After: after})
	}
	return nil
}

// Trace returns the spans of a run and of the runs below it that have ended so far; contents
// is otel.Config.Contents. A run that waits lacks the spans of itself and of what waits.
func (w *Weir) Trace(ctx context.Context, run string, contents bool) ([]otel.Span, error) {
	flowOf := func(ctx context.Context, run string) (*flow.Flow, error) {
		p, err := w.programForReading(ctx, run)
		if err != nil {
			return nil, err
		}
		return p.Flow, nil
	}
	return otel.Tree(ctx, w.store, run, flowOf, contents)
}

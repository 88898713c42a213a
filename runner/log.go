package runner

import (
	"context"
	"log/slog"
	"time"
)

// logEnd logs the end of an execution, with what is needed to find the run and to sum up costs: one line for each
// run, and for each pause. It contains no text of a person, model or tool.
func (x *Execution) logEnd() {
	ctx, log, s := context.Background(), x.local.o.Logger, x.m.run.Start
	if !log.Enabled(ctx, slog.LevelInfo) || s == nil {
		return
	}
	r := x.result
	attrs := []slog.Attr{
		slog.String("run", x.ID), slog.String("flow", s.Flow), slog.String("status", r.Status.String()),
		slog.Int64("events", x.m.run.Events()), slog.Duration("took", time.Since(x.startedAt)),
	}
	if s.Session != "" {
		attrs = append(attrs, slog.String("session", s.Session), slog.Int("round", s.Round))
	}
	if s.Parent != "" {
		attrs = append(attrs, slog.String("parent", s.Parent))
	}
	if u := r.Usage; u.Calls > 0 {
		attrs = append(attrs, slog.Int("calls", u.Calls), slog.Int("input", u.Input), slog.Int("output", u.Output), slog.Int64("cost_micros", u.CostMicros))
	}
	if len(r.Interrupts) > 0 {
		attrs = append(attrs, slog.String("waits", r.Interrupts[0].ID))
	}
	if r.Error != nil {
		attrs = append(attrs, slog.String("code", r.Error.Code), slog.String("node", r.Error.Node))
	}
	if x.err != nil {
		attrs = append(attrs, slog.Any("error", x.err))
	}
	log.LogAttrs(ctx, slog.LevelInfo, "execution ended", attrs...)
}

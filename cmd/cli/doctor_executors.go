package cli

import (
	"context"
	"errors"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
)

// checkExecutors says how each executor isolates code, and what is missing. The
// cloud is not called; what is configured of it is a finding of the
// configuration.
func (p *cli) checkExecutors(ctx context.Context, cfg *config.Config) (list []checkResult) {
	for _, e := range app.Executors(cfg, p.sandboxes) {
		about := "executor " + e.Name()
		switch e := e.(type) {
		case *python.Executor:
			for _, f := range e.Examine(ctx) {
				list = append(list, checkResult{about + ", " + f.Subject, severity(cfg, f.State), f.Detail, f.Remedy})
			}
		default:
			if e.Name() == config.ExecutorE2B {
				continue
			}
			list = append(list, probeExecutor(ctx, cfg, about, e))
		}
	}
	return list
}

// severity returns what it means that code cannot be isolated: something will fail
// where the configuration asks for it, and else it is worth knowing.
func severity(cfg *config.Config, state string) string {
	if state == python.StateBad && !cfg.Executors.Chosen {
		return python.StateNote
	}
	return state
}

func probeExecutor(ctx context.Context, cfg *config.Config, about string, e sandbox.Executor) checkResult {
	err := e.Probe(ctx)
	if err == nil {
		return checkResult{About: about, State: "ok", Detail: "in a child process with limits of memory, time and steps"}
	}
	f := checkResult{About: about, State: severity(cfg, python.StateBad), Detail: err.Error()}
	if s, ok := errors.AsType[*sandbox.Error](err); ok {
		f.Remedy = s.Hint
	}
	return f
}

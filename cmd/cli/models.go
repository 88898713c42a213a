package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/stops"
	"github.com/weir-run/weir/store"
)

func (p *cli) modelsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "models",
		Short: "Stop calls of models in every process, and allow them again",
		Long: `Stop calls of models, and allow them again. While a model is stopped, calls of it wait in
every process that uses the database: within a second, no call begins. Calls in flight
complete. Nothing fails and nothing is lost: the waiting calls are made when the model is allowed
again. The timeouts of nodes and of flows continue meanwhile.

MODELS is a PROVIDER, or PROVIDER/MODEL for the models whose name begins with it. Without it, all
models are stopped.`,
		Example: `  weir models stop --reason "the invoice of this month"
  weir models stop openai/gpt-5
  weir models stopped
  weir models allow openai/gpt-5`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.stopModelsCommand(), p.allowModelsCommand(), p.listModelStopsCommand())
	return c
}

// modelsArg returns the models that a command was given.
func modelsArg(args []string) (string, error) {
	if len(args) == 0 {
		return stops.All, nil
	}
	if err := stops.Check(args[0]); err != nil {
		return "", usagef("%v", err)
	}
	return args[0], nil
}

func (p *cli) stopModelsCommand() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "stop [MODELS]",
		Short: "Stop calls of models, which then wait in every process",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			models, err := modelsArg(args)
			if err != nil {
				return err
			}
			return p.withModelStops(c.Context(), app.DatabaseOptions{}, func(ctx context.Context, s *stops.Set) error {
				if err := s.Stop(ctx, models, p.userName(), reason); err != nil {
					return err
				}
				p.notef("%s; allow them with: weir models allow%s", (&llm.Stop{Models: models}).String(), argument(args))
				return nil
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "the `TEXT` that those who wait are shown")
	return c
}

func argument(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return " " + app.Printable(args[0])
}

func (p *cli) allowModelsCommand() *cobra.Command {
	all := false
	c := &cobra.Command{
		Use:               "allow [MODELS]",
		Short:             "Allow calls of stopped models again",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeStoppedModels,
		RunE: func(c *cobra.Command, args []string) error {
			models, err := modelsArg(args)
			if err != nil {
				return err
			}
			if all && len(args) > 0 {
				return usagef("expected MODELS or --all, and not both")
			}
			return p.withModelStops(c.Context(), app.DatabaseOptions{}, func(ctx context.Context, s *stops.Set) error {
				if all {
					return s.AllowAll(ctx)
				}
				err := s.Allow(ctx, models)
				if errors.Is(err, store.ErrNotFound) {
					return usagef("%s is not stopped in these words; see `weir models stopped`", models)
				}
				return err
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "end every stop")
	return c
}

func (p *cli) listModelStopsCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "stopped",
		Short: "List the models that are stopped",
		Args:  exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withModelStops(c.Context(), app.DatabaseOptions{ReadOnly: true}, func(ctx context.Context, s *stops.Set) error {
				list, err := s.List(ctx)
				if err == nil {
					p.printModelStops(list, asJSON)
				}
				return err
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return c
}

func (p *cli) printModelStops(list []llm.Stop, asJSON bool) {
	if asJSON {
		writeJSON(p.out, append([]llm.Stop{}, list...))
		return
	}
	if len(list) == 0 {
		p.notef("no model is stopped")
		return
	}
	now, t := time.Now(), p.table("MODELS BY SINCE REASON", "SINCE")
	for i := range list {
		s := &list[i]
		t.row(app.Printable(s.Models), app.Printable(s.By), ago(now.Sub(s.At)), app.Printable(s.Reason))
	}
	t.print()
}

// withModelStops opens the database alone: no provider or tool is needed.
func (p *cli) withModelStops(ctx context.Context, o app.DatabaseOptions, do func(ctx context.Context, s *stops.Set) error) error {
	o.Sync = p.syncMode()
	var err error
	if o.Storage, err = p.storageOf(p.database()); err != nil {
		return err
	}
	db, err := app.OpenDatabase(ctx, p.database(), o)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, stops.New(db)), db.Close())
}

func (p *cli) completeStoppedModels(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		_ = p.withModelStops(c.Context(), app.DatabaseOptions{ReadOnly: true}, func(ctx context.Context, s *stops.Set) error {
			list, err := s.List(ctx)
			for i := range list {
				names = append(names, list[i].Models)
			}
			return err
		})
	}
	return names, noFiles
}

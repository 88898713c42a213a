package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/audit"
)

func (p *cli) exportCommand() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "export RUN",
		Short: "Write a run to one self-contained file",
		Long: `Write a run to one self-contained file of JSON lines: its child runs, the runs whose past
it shares, the rounds of its session up to this one, their flows, all commits, and the
heads of their chains. "weir import" adds the file to another database, and "weir verify"
checks it.

The file contains everything that the run received and sent. Erasing the run does not change the
file. Secrets that nodes used are not in it.`,
		Example: `  weir export 01kafw -o run.weir
  weir export 01kafw -o - | gzip > run.weir.gz`,
		Args:              exactArgs("RUN"),
		ValidArgsFunction: p.completeRuns,
		RunE:              func(c *cobra.Command, args []string) error { return p.export(c.Context(), args[0], to) },
	}
	c.Flags().StringVarP(&to, "output", "o", "", "the `FILE` to write, - for stdout")
	return c
}

func (p *cli) export(ctx context.Context, prefix, to string) error {
	if to == "" {
		return usagef("-o: expected a file to write, or - for stdout")
	}
	s, err := p.openStore(ctx, false)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // it only read
	run, err := onlyRun(ctx, s, prefix)
	if err != nil {
		return err
	}
	if to == "-" {
		return audit.WriteExport(ctx, s, run, p.out)
	}
	// It has its name once it is whole.
	f, err := os.CreateTemp(filepath.Dir(to), ".weir-export-*")
	if err != nil {
		return usagef("-o: %w", err)
	}
	err = audit.WriteExport(ctx, s, run, f)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	p.notef("exported run %s to %s", run, to)
	return nil
}

// openStore opens the database for reading if there is one, and nothing besides it;
// untrusted also where another program changed it.
func (p *cli) openStore(ctx context.Context, untrusted bool) (*app.Database, error) {
	if err := p.mustExist(); err != nil {
		return nil, err
	}
	storage, err := p.storageOf(p.database())
	if err != nil {
		return nil, err
	}
	d, err := app.OpenDatabase(ctx, p.database(), app.DatabaseOptions{ReadOnly: true, Untrusted: untrusted, Storage: storage})
	if err != nil {
		return nil, err
	}
	if d.Note != "" {
		p.notef("note: %s: %s", p.databaseName(), d.Note)
	}
	return d, nil
}

func (p *cli) importCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Add exported runs to the database",
		Long: `Add the runs of a file that "weir export" wrote to the database; - is stdin. The file is
verified first, and is added completely or not at all. A run that exists already must be
equal to the one in the file. Imported runs have the same ids and heads as the originals,
and can be shown, forked, resumed and verified.`,
		Example: `  weir import run.weir
  weir --db copy.db import run.weir --json`,
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return p.importFile(c.Context(), args[0]) },
	}
	c.Flags().BoolVar(&p.json, "json", false, "print one JSON object")
	return c
}

// readExport reads an export; - is stdin.
func (p *cli) readExport(path string) (*audit.Export, error) {
	defer p.interrupts.atOnce()()
	in := p.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, usagef("%w", err)
		}
		defer f.Close() //nolint:errcheck // opened for reading
		in = f
	}
	e, err := audit.ReadExport(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

func (p *cli) importFile(ctx context.Context, path string) error {
	e, err := p.readExport(path)
	if err != nil {
		return err
	}
	storage, err := p.storageOf(p.database())
	if err != nil {
		return err
	}
	s, err := app.OpenDatabase(ctx, p.database(), app.DatabaseOptions{Sync: p.syncMode(), Storage: storage})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // what was kept is kept
	got, err := audit.Import(ctx, s, e)
	if err != nil {
		return fmt.Errorf("import %s: %w", path, err)
	}
	if p.json {
		writeJSON(p.out, got)
		return nil
	}
	fmt.Fprintf(p.out, "imported %s with %s; run %s is here\n", count(got.Runs, "run"), count(got.Commits, "commit"), got.Run)
	if got.Existing > 0 {
		fmt.Fprintf(p.out, "%s had been there, and %s the same\n", count(got.Existing, "run"), map[bool]string{true: "is", false: "are"}[got.Existing == 1])
	}
	return nil
}

// isFile reports whether an argument names a file of an export and no run.
func isFile(arg string) bool {
	if arg == "-" {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && info.Mode().IsRegular()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/store/sqlite"
)

func (p *program) exportCommand() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "export RUN",
		Short: "Write a run as one self-contained file, to be imported or verified elsewhere",
		Long: `Write a run as one self-contained file of JSON lines: its tree of child runs, the
runs whose past it shares, of a session the rounds up to its own, their flows, all
they recorded, and the heads of their chains. "weir import" brings it into another
database, "weir verify" checks it as it is.

The file holds what the run was given and said, and it is not reached when the run
is erased; secrets that nodes used are not in it.`,
		Example: `  weir export 01kafw -o run.weir
  weir export 01kafw -o - | gzip > run.weir.gz`,
		Args:              exactArgs("RUN"),
		ValidArgsFunction: p.completeRuns,
		RunE:              func(c *cobra.Command, args []string) error { return p.export(c.Context(), args[0], to) },
	}
	c.Flags().StringVarP(&to, "output", "o", "", "the `FILE` to write, - for stdout")
	return c
}

func (p *program) export(ctx context.Context, prefix, to string) error {
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
	p.say("exported run %s to %s", run, to)
	return nil
}

// openStore opens the database for reading where there is one, and nothing beside it;
// untrusted also where another program changed it.
func (p *program) openStore(ctx context.Context, untrusted bool) (*sqlite.Store, error) {
	if err := p.mustExist(); err != nil {
		return nil, err
	}
	s, err := sqlite.OpenForReading(ctx, p.database(), sqlite.Options{Untrusted: untrusted})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", p.database(), err)
	}
	p.sayReading(s)
	return s, nil
}

// sayReading says on stderr how a database was opened that cannot be written.
func (p *program) sayReading(s *sqlite.Store) {
	if note := s.Note(); note != "" {
		p.say("note: %s: %s", p.database(), note)
	}
}

func (p *program) importCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Bring runs that were exported into the database, as they were",
		Long: `Bring the runs of a file that "weir export" wrote into the database; - is stdin.
The file is verified first, and all of it is kept or nothing. A run that is there
already must be the same as in the file. Imported runs can be shown, forked, resumed
and verified as where they are from, and have the same heads.`,
		Example: `  weir import run.weir
  weir --db copy.db import run.weir --json`,
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return p.importFile(c.Context(), args[0]) },
	}
	c.Flags().BoolVar(&p.json, "json", false, "print one JSON object")
	return c
}

// readExport reads an export; - is stdin.
func (p *program) readExport(path string) (*audit.Export, error) {
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

func (p *program) importFile(ctx context.Context, path string) error {
	e, err := p.readExport(path)
	if err != nil {
		return err
	}
	s, err := sqlite.Open(ctx, p.database(), sqlite.Options{})
	if err != nil {
		return fmt.Errorf("open %s: %w", p.database(), err)
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
	if got.Same > 0 {
		fmt.Fprintf(p.out, "%s had been there, and %s the same\n", count(got.Same, "run"), map[bool]string{true: "is", false: "are"}[got.Same == 1])
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

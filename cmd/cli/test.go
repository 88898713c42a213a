package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/flowtest"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
)

// testOptions are the flags of `weir test`.
type testOptions struct {
	run      string
	junit    string
	update   bool
	parallel int
}

func (p *cli) testCommand() *cobra.Command {
	o := &testOptions{}
	c := &cobra.Command{
		Use:   "test [PATH...]",
		Short: "Run tests of flows",
		Long: `Run tests of flows. A test file, NAME.test.yaml, defines the inputs of a flow, the answers
of models, tools and people, mocks of nodes, and the expected results. PATH is such a file,
or a folder with all test files below it (also FOLDER/...); the default is the current
folder.

No model, server or person is asked. Runs are stored in memory, and waits, delays and
retries take no time.

Exit codes: 0 all passed   1 a test failed   2 a file is not valid, or wrong usage.`,
		Example: `  weir test
  weir test flows/review.test.yaml -k 'rejects'
  weir test ./... --junit results.xml
  weir test --update`,
		ValidArgsFunction: p.completeTests,
		RunE: func(c *cobra.Command, args []string) error {
			return p.test(c.Context(), args, o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.run, "run", "k", "", "run only tests whose \"FILE: NAME\" matches the regular expression `PATTERN`")
	f.StringVar(&o.junit, "junit", "", "also write the results as JUnit XML to `FILE`; - is stdout")
	f.BoolVar(&o.update, "update", false, "write the golden files that differ")
	f.IntVar(&o.parallel, "parallel", 0, "run at most `N` tests at once (default: the number of processors)")
	f.BoolVar(&p.json, "json", false, "print one JSON object on stdout")
	_ = c.RegisterFlagCompletionFunc("run", p.completeTestNames)
	return c
}

// test runs tests and reports on them.
func (p *cli) test(ctx context.Context, paths []string, o *testOptions) error {
	if o.parallel < 0 {
		return usagef("--parallel %d: expected a number from 1", o.parallel)
	}
	var selected *regexp.Regexp
	if o.run != "" {
		var err error
		if selected, err = regexp.Compile(o.run); err != nil {
			return usagef("--run: %w", err)
		}
	}
	cfg, err := p.config()
	if err != nil {
		return err
	}
	client, err := app.HTTPClient(cfg)
	if err != nil {
		return err
	}
	fo := p.testsOf(cfg, client)
	fo.Run, fo.Update, fo.Parallel = selected, o.update, o.parallel
	if len(paths) == 0 {
		paths = []string{"."}
	}
	files, err := flowtest.Find(paths...)
	if err != nil {
		return &usageError{Err: err}
	}
	shown := p.out
	if o.junit == "-" {
		shown = p.err
	}
	teller := &testPrinter{w: shown, style: p.styleFor(shown), all: p.verbose || len(files) == 1}
	if !p.json {
		fo.Report = teller.file
	}
	r := flowtest.Run(ctx, files, fo)
	if err := p.writeJUnit(o.junit, &r); err != nil {
		return err
	}
	if p.json {
		writeJSON(p.out, testReportOf(&r))
	} else {
		teller.summary(&r)
	}
	return testsExit(ctx, &r, o)
}

// testsOf are the options of tests under a configuration.
func (p *cli) testsOf(cfg *config.Config, client node.HTTPDoer) flowtest.Options {
	return flowtest.Options{
		Models: llm.NewCatalogue(cfg.Models...), FlowFolders: cfg.Flows.Folders, HTTP: client, Executors: app.Executors(cfg, p.sandboxes),
	}
}

// testsExit returns what the command ends with.
func testsExit(ctx context.Context, r *flowtest.Report, o *testOptions) error {
	if s, ok := errors.AsType[*errSignal](context.Cause(ctx)); ok {
		return &exitError{s.code()}
	}
	switch {
	case r.Invalid > 0:
		return &exitError{exitUsage}
	case r.Failed > 0 || r.Stopped > 0:
		return &exitError{exitFailed}
	case r.Passed+r.Skipped == 0 && o.run != "":
		return usagef("no test matches --run %s", o.run)
	}
	return nil
}

func (p *cli) writeJUnit(path string, r *flowtest.Report) error {
	switch path {
	case "":
		return nil
	case "-":
		return r.JUnit(p.out)
	}
	f, err := os.Create(path)
	if err != nil {
		return usagef("--junit: %w", err)
	}
	if err := errors.Join(r.JUnit(f), f.Close()); err != nil {
		return fmt.Errorf("--junit %s: %w", path, err)
	}
	return nil
}

func (p *cli) completeTests(*cobra.Command, []string, string) (completions, cobra.ShellCompDirective) {
	return completions{"test.yaml", "test.yml", "test.json"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeTestNames offers the names of the tests on the command line.
func (p *cli) completeTestNames(_ *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	if len(args) == 0 {
		args = []string{"."}
	}
	files, err := flowtest.Find(args...)
	if err != nil {
		return nil, noFiles
	}
	var out completions
	for _, file := range files {
		f, err := flowtest.Load(file, flowtest.Options{})
		if err != nil {
			continue
		}
		for _, t := range f.Tests {
			out = append(out, cobra.CompletionWithDesc(regexp.QuoteMeta(t.Name), file))
		}
	}
	return out, noFiles
}

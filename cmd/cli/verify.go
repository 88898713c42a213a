package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/store"
)

// verifyOptions are the flags of `weir verify`.
type verifyOptions struct {
	all  bool
	head string
	// proves says that there is a head that was kept elsewhere.
	proves bool
}

func (p *cli) verifyCommand() *cobra.Command {
	o := &verifyOptions{}
	c := &cobra.Command{
		Use:   "verify RUN | FILE | --all",
		Short: "Check that the record was not changed",
		Long: `Check that the record of a run, or of all runs, is as it was written. The commits of a run
are chained by their digests. Anything that was changed, removed, moved or added in events,
messages or values is reported with its place.

Without --head, this proves that the record is consistent. It does not detect a
person with write access who computed the chain again, or who removed the last commits of
a run and everything that refers to them. Each verification prints a head; store it where
those who can write the database cannot. With --head, everything up to that commit is
proven to be as it was when the head was printed:
  --head HASH   of a run: the head of its chain after some commit; of --all: the digest
                of all heads, which changes with every commit
  --head FILE   of --all: the output of an earlier "weir verify --all --json"; each run in
                it must have had that head, and may have continued since

A FILE that "weir export" wrote is verified against the heads in it; - is stdin.

Erased data stays in the chain as digests that reveal nothing about it. Weir does not sign
with a key; a head that is kept elsewhere replaces a signature.

Exit codes: 0 no findings, 1 findings, 2 an error.`,
		Example: `  weir verify 01kafw
  weir verify 01kafw --head 3f0c5a...
  weir verify run.weir
  weir verify --all --json > heads.json
  weir verify --all --head heads.json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := p.verify(c.Context(), args, o); err != nil {
				return diffError(err)
			}
			return nil
		},
		ValidArgsFunction: p.completeRuns,
	}
	f := c.Flags()
	f.BoolVar(&o.all, "all", false, "verify the whole record")
	f.StringVar(&o.head, "head", "", "a `HEAD` that was printed earlier, or a file of heads")
	f.BoolVar(&p.json, "json", false, "print one JSON object")
	return c
}

func (p *cli) verify(ctx context.Context, args []string, o *verifyOptions) error {
	switch {
	case len(args) > 1:
		return usagef("did not expect %q; see `weir verify --help`", args[1])
	case len(args) == 0 && !o.all:
		return usagef("expected RUN, FILE or --all; see `weir verify --help`")
	case len(args) == 1 && o.all:
		return usagef("--all and a run exclude each other")
	}
	v := audit.Options{}
	if err := parseKeptHead(&v, o); err != nil {
		return err
	}
	p.showProgress(&v)
	out, err := p.verifyWhere(ctx, args, o, &v)
	if err != nil {
		return err
	}
	if p.json {
		writeJSON(p.out, out)
	} else {
		p.printVerified(&v, out, o.proves)
	}
	if !out.OK {
		return &exitError{exitFailed}
	}
	return nil
}

// verifyWhere verifies a file of an export, or in the database.
func (p *cli) verifyWhere(ctx context.Context, args []string, o *verifyOptions, v *audit.Options) (*audit.Report, error) {
	if !o.all && isFile(args[0]) {
		e, err := p.readExport(args[0])
		if err != nil {
			return nil, err
		}
		o.proves = v.Head != nil
		if v.Head != nil {
			v.Heads, v.Head = []audit.KeptHead{{Run: e.Run(), Head: *v.Head}}, nil
		}
		v.Heads = append(e.Heads(), v.Heads...)
		return e.Verify(ctx, *v)
	}
	s, err := p.openStore(ctx, true)
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // it only read
	o.proves = v.Head != nil || v.Heads != nil
	if !o.all {
		if v.Run, err = onlyRun(ctx, s, args[0]); err != nil {
			return nil, err
		}
	}
	return audit.Verify(ctx, s, *v)
}

// verifySteps is the number of runs between two reports of progress.
const verifySteps = 100

// showProgress prints the progress of a verification on a terminal.
func (p *cli) showProgress(v *audit.Options) {
	if p.json || !isTerminal(p.err) {
		return
	}
	v.Progress = func(done, all int) {
		switch {
		case done == all:
			p.screen().draw(nil)
		case done%verifySteps == 0:
			p.screen().draw([]string{fmt.Sprintf("verified %d of %s", done, count(all, "run"))})
		}
	}
}

// onlyRun finds the run whose id begins with prefix.
func onlyRun(ctx context.Context, s store.Store, prefix string) (string, error) {
	ids, err := s.FindRunIDs(ctx, prefix)
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", fmt.Errorf("no run begins with %q (one that was erased is verified with --all): %w", prefix, store.ErrNotFound)
	case len(ids) > 1 && ids[0] != prefix:
		return "", usagef("%d runs begin with %q: %s, %s, ...", len(ids), prefix, ids[0], ids[1])
	}
	return ids[0], nil
}

// parseKeptHead reads --head.
func parseKeptHead(v *audit.Options, o *verifyOptions) error {
	if o.head == "" {
		return nil
	}
	var h store.Hash
	wrong := h.UnmarshalText([]byte(o.head))
	if wrong == nil {
		v.Head = &h
		return nil
	}
	data, err := os.ReadFile(o.head)
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("--head: %q is no file, and %w", o.head, wrong)
	}
	if err != nil {
		return usagef("--head: %w", err)
	}
	var kept struct {
		Runs []audit.KeptHead `json:"runs"`
	}
	if err := json.Unmarshal(data, &kept); err != nil || len(kept.Runs) == 0 {
		return usagef("--head: %s is not what `weir verify --all --json` printed (%v)", o.head, err)
	}
	if !o.all {
		return usagef("--head: a file of heads needs --all; for one run give the head itself")
	}
	v.Heads = kept.Runs
	return nil
}

// printVerified shows people what a verification came to.
func (p *cli) printVerified(v *audit.Options, out *audit.Report, proves bool) {
	st := p.styleFor(p.out)
	line := func(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }
	if len(out.Findings) > 0 {
		t := p.table("RUN FOUND WHAT")
		for _, f := range out.Findings {
			t.row(f.Run, st.bad.Render(f.What), app.Printable(f.Message))
		}
		t.print()
	}
	if out.Erased > 0 {
		line("erased: %s of %s, %s", count(out.ErasedCommits, "commit"), count(out.Erased, "run"), passOrFail(st, out.OK, "chain intact", "chain broken"))
	}
	if out.Unchained > 0 {
		line("%s from before the chain began: what they hold is not verified", count(out.Unchained, "commit"))
	}
	if v.Run == "" {
		line("%s: %s", count(len(out.Runs), "run"), passOrFail(st, out.OK, "intact", "not as written: "+count(len(out.Findings), "finding")))
		line("digest of all heads %s", out.Digest)
	} else {
		r := out.Runs[len(out.Runs)-1]
		line("run %s: %s, %s: %s", r.Run, count(r.Commits, "commit"), count(r.Events, "event"),
			passOrFail(st, out.OK, "intact", "not as written: "+count(len(out.Findings), "finding")))
		line("head %s", r.Head)
		if v.Head != nil && r.At > 0 {
			line("unchanged up to commit %d, where the head was stored", r.At)
		}
	}
	if !proves && out.OK {
		line("%s", st.dim.Render("This proves that the record is consistent. Somebody with write access to the database could\n"+
			"have recomputed it, or removed its end: store the head elsewhere, and pass it with\n--head next time."))
	}
}

func passOrFail(st style, ok bool, good, bad string) string {
	if ok {
		return st.good.Render(good)
	}
	return st.bad.Render(bad)
}

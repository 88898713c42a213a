package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/store"
)

// finding is one thing the doctor has looked at.
type finding struct {
	About string `json:"about"`
	// State is "ok", "note" (worth knowing) or "bad" (something will fail).
	State  string `json:"state"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy"`
}

func (p *program) doctorCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the database, the configuration, the model providers and the sandboxes",
		Long: `Check the database, the configuration, the model providers and the isolation of code, and
say how to correct problems. The command changes nothing and calls no server. It looks
for keys and never prints them. It runs an empty piece of code in a sandbox.
Exit code 1 if something will fail.`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return p.doctor(c.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return c
}

func (p *program) doctor(ctx context.Context, asJSON bool) error {
	b := thisBuild()
	list := []finding{{"weir", "ok", fmt.Sprintf("%s, %s, %s/%s", b.Version, b.Go, b.OS, b.Arch), ""}}
	cfg, err := p.config()
	switch {
	case err != nil:
		list = append(list, finding{"configuration", "bad", err.Error(), "correct the file"})
	case len(cfg.Files) == 0:
		list = append(list, finding{"configuration", "ok", "none; looked for " + strings.Join(p.configOptions().Candidates(), ", "), ""})
	default:
		list = append(list, finding{"configuration", "ok", strings.Join(cfg.Files, ", "), ""})
	}
	if err == nil {
		list = append(list, p.examineDatabase(ctx))
		for _, f := range cfg.Findings() {
			list = append(list, finding(f))
		}
		list = append(list, p.examineExecutors(ctx, cfg)...)
	}
	if asJSON {
		writeJSON(p.out, list)
	} else {
		p.printFindings(list)
	}
	if slices.ContainsFunc(list, func(f finding) bool { return f.State == "bad" }) {
		return &exit{exitFailed}
	}
	return nil
}

func (p *program) examineDatabase(ctx context.Context) finding {
	f := finding{About: "database", State: "ok", Detail: p.database()}
	info, err := os.Stat(p.database())
	if err != nil {
		f.Detail += ": not there yet; the first run makes it"
		return f
	}
	desk, err := p.look(ctx)
	if err != nil {
		f.State, f.Detail, f.Remedy = "bad", err.Error(), hint(err)
		return f
	}
	defer desk.close() //nolint:errcheck // it only read
	runs, err := desk.Runs(ctx, store.Filter{Limit: 1})
	if err != nil {
		f.State, f.Detail, f.Remedy = "bad", err.Error(), hint(err)
		return f
	}
	f.Detail = fmt.Sprintf("%s, %.1f MB", p.database(), float64(info.Size())/1e6)
	if len(runs) > 0 {
		f.Detail += ", last run " + runs[0].ID + " (" + runs[0].Head.Status.String() + ")"
	}
	return f
}

func (p *program) printFindings(list []finding) {
	st := p.styleOf(p.out)
	t := p.table("")
	for _, f := range list {
		mark := st.good.Render("ok")
		switch f.State {
		case "note":
			mark = st.ask.Render("note")
		case "bad":
			mark = st.bad.Render("bad")
		}
		t.row(mark, f.About, f.Detail)
		if f.Remedy != "" {
			t.row("", "", st.dim.Render("→ "+f.Remedy))
		}
	}
	t.print()
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// checkResult is the result of one check.
type checkResult struct {
	About string `json:"about"`
	// State is "ok", "note" (worth knowing) or "bad" (something will fail).
	State  string `json:"state"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy"`
}

func (p *cli) doctorCommand() *cobra.Command {
	var asJSON, offline bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the database, the configuration, the configured servers and the sandboxes",
		Long: `Check the database, the configuration, the configured servers and the isolation of code,
and print how to correct problems. Exit code 1 if something will fail.

The command asks model providers for their list of models, starts or calls MCP servers for
their tools, and sends a HEAD request to the hosts of HTTP tools. It calls no model and no
tool. With --offline it asks no server and starts none. It runs an empty piece of code in a
sandbox, reads keys and never prints them, and changes nothing.`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return p.doctor(c.Context(), asJSON, offline) },
	}
	c.Flags().BoolVar(&offline, "offline", false, "ask no server")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return c
}

func (p *cli) doctor(ctx context.Context, asJSON, offline bool) error {
	b := app.ThisBuild()
	list := []checkResult{{"weir", "ok", fmt.Sprintf("%s, %s, %s/%s", b.Version, b.Go, b.OS, b.Arch), ""}}
	cfg, err := p.config()
	switch {
	case err != nil:
		list = append(list, checkResult{"configuration", "bad", err.Error(), "correct the file"})
	case len(cfg.Files) == 0:
		list = append(list, checkResult{"configuration", "ok", "none; looked for " + strings.Join(p.configOptions().Candidates(), ", "), ""})
	default:
		list = append(list, checkResult{"configuration", "ok", strings.Join(cfg.Files, ", "), ""})
	}
	if err == nil {
		if store.IsURL(p.database()) {
			list = append(list, p.checkDatabaseServer(ctx, offline)...)
		} else {
			list = append(list, p.checkDatabase(ctx))
		}
		list = append(list, p.checkSync(cmp.Or(p.syncMode(), cfg.Sync))...)
		list = append(list, p.checkStorage(&cfg.Storage)...)
		list = append(list, p.checkStuck(ctx, offline)...)
		for _, f := range cfg.Findings() {
			list = append(list, checkResult(f))
		}
		checked := app.CheckTools
		if !offline {
			checked = func(cfg *config.Config) []config.Finding { return app.CheckServers(ctx, cfg) }
		}
		for _, f := range checked(cfg) {
			list = append(list, checkResult(f))
		}
		list = append(list, p.checkExecutors(ctx, cfg)...)
	}
	if asJSON {
		writeJSON(p.out, list)
	} else {
		p.printFindings(list)
	}
	if slices.ContainsFunc(list, func(f checkResult) bool { return f.State == "bad" }) {
		return &exitError{exitFailed}
	}
	return nil
}

func (p *cli) checkDatabase(ctx context.Context) checkResult {
	f := checkResult{About: "database", State: "ok", Detail: p.database()}
	info, err := os.Stat(p.database())
	if err != nil {
		f.Detail += ": does not exist yet; the first run creates it"
		return f
	}
	a, err := p.openReadOnly(ctx)
	if err != nil {
		f.State, f.Detail, f.Remedy = "bad", err.Error(), hint(err)
		return f
	}
	defer a.close() //nolint:errcheck // it only read
	runs, err := a.Runs(ctx, store.Filter{Limit: 1})
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

// checkSync checks when commits reach the disk; "" is the default, about which there is
// nothing to say.
func (p *cli) checkSync(mode string) []checkResult {
	f := checkResult{About: "database: sync", State: "ok", Detail: mode}
	sync, err := sqlite.ParseSync(mode)
	switch {
	case mode == "":
		return nil
	case err != nil:
		f.State, f.Remedy = "bad", "set it to full or normal"
	case store.IsURL(p.database()):
		f.State, f.Remedy = "bad", "remove it: it is a setting of files, and commands refuse it for a PostgreSQL server, which has synchronous_commit"
	case sync == sqlite.SyncNormal:
		f.State = "note"
		f.Detail += ": a power cut or a crash of the system loses the last commits, and the effects of these run again without a question"
		f.Remedy = "set it to full where that matters"
	}
	return []checkResult{f}
}

// checkStorage checks whether the configured form of contents is one that the database has.
func (p *cli) checkStorage(s *config.Storage) []checkResult {
	if s.IsZero() || store.IsURL(p.database()) {
		return nil
	}
	return []checkResult{{
		"database: storage", "bad", "compression and encryption are settings of PostgreSQL databases, and commands refuse them for a file",
		"remove the setting, and keep the file on an encrypted file system",
	}}
}

// checkDatabaseServer checks the settings of a server and the rights of the user.
func (p *cli) checkDatabaseServer(ctx context.Context, offline bool) []checkResult {
	f := checkResult{About: "database", State: "ok", Detail: p.databaseName()}
	if offline {
		f.Detail += ": not asked"
		return []checkResult{f}
	}
	storage, err := p.storageOf(p.database())
	if err != nil {
		f.State, f.Detail, f.Remedy = "bad", err.Error(), hint(err)
		return []checkResult{f}
	}
	d, err := app.OpenDatabase(ctx, p.database(), app.DatabaseOptions{ReadOnly: true, Storage: storage})
	if errors.Is(err, store.ErrNotFound) {
		f.Detail += ": has no tables of Weir yet; the first run makes them"
		return []checkResult{f}
	}
	if err != nil {
		f.State, f.Detail, f.Remedy = "bad", err.Error(), hint(err)
		return []checkResult{f}
	}
	defer d.Close() //nolint:errcheck // it only read
	found, err := d.Settings(ctx)
	if err != nil {
		f.State, f.Detail, f.Remedy = "bad", err.Error(), hint(err)
		return []checkResult{f}
	}
	if d.Note != "" {
		f.State, f.Detail = "note", f.Detail+": "+d.Note
	}
	list := []checkResult{f}
	for _, x := range found {
		r := checkResult{"database: " + x.Name, "ok", x.Value, x.Problem}
		if x.Problem != "" {
			r.State = map[bool]string{true: "note", false: "bad"}[x.Warning]
		}
		list = append(list, r)
	}
	return list
}

func (p *cli) printFindings(list []checkResult) {
	st := p.styleFor(p.out)
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

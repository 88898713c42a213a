package cli

import (
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/store"
)

// cli is one use of the command: where it reads and writes, and the flags
// that all commands share.
type cli struct {
	terminal
	env func(string) (string, bool)
	// interrupts receives the signals of the process; nil in tests.
	interrupts *interruptHandler
	input      inputLines // of in
	stderr     *screen    // made by the first use of screen

	// sandboxes is how the program starts itself again for code in sandboxes; the
	// zero value cannot.
	sandboxes sandbox.SelfCommand
	options   Options // of the binary

	db         string
	sync       string
	configFile string
	verbose    bool
	json       bool // the command was asked for one object on stdout
	started    bool // the command line was understood
}

// root returns the tree of commands.
func (p *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Run LLM workflows written as graphs, and journal everything they do",
		Long: `Weir runs LLM workflows that are written as graphs. It selects the messages that each
model call sees, and journals every call, its cost and its result.

Exit codes of run, answer, resume, retry, skip and complete:
  0 completed   1 failed   2 invalid flow or usage   3 paused for input   4 cancelled
  130 and 143: stopped by Ctrl-C or SIGTERM; "weir resume" continues the run.

Runs are stored in .weir/weir.db, or in the database of --db or WEIR_DB. Model providers,
limits and tools are configured in .weir/config.yaml, or in the file of --config or
WEIR_CONFIG; see "weir doctor".`,
		SilenceUsage:       true,
		SilenceErrors:      true,
		DisableSuggestions: true, // mistyped makes them
	}
	root.SetFlagErrorFunc(suggestFlag)
	root.PersistentFlags().StringVar(&p.db, "db", "", "database: the `PATH` of a file, or postgres://USER@HOST/NAME (default: $WEIR_DB, else .weir/weir.db)")
	root.PersistentFlags().StringVar(&p.sync, "sync", "", "when commits of a file reach the disk: `full` or normal, with which a power cut loses the last ones (default: $WEIR_SYNC, else the configuration, else full)")
	root.PersistentFlags().StringVar(&p.configFile, "config", "", "read only this configuration `FILE` (default: $WEIR_CONFIG)")
	root.PersistentFlags().BoolVarP(&p.verbose, "verbose", "v", false, "log internal events to stderr")
	group := func(title string, cmds ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
		for _, c := range cmds {
			c.GroupID = title
			root.AddCommand(c)
		}
	}
	group("Flows", p.initCommand(), p.runCommand(), p.testCommand(), p.validateCommand(), p.graphCommand(), p.nodesCommand(), p.schemaCommand(), p.evalCommand())
	group("Runs", append(p.forceCommands(),
		p.runsCommand(), p.showCommand(), p.answerCommand(), p.resumeCommand(), p.cancelCommand(), p.forkCommand(), p.rerunCommand(), p.diffCommand(), p.trajectoryCommand())...)
	group("Sessions", p.chatCommand(), p.sendCommand(), p.sessionsCommand(), p.memoryCommand())
	group("The record", p.verifyCommand(), p.exportCommand(), p.importCommand(), p.storeCommand())
	group("Models, tools and code", p.modelsCommand(), p.toolsCommand(), p.codeCommand())
	group("Servers", p.serveCommand(), p.mcpCommand(), p.workerCommand(), p.usersCommand(), p.tokensCommand(), p.auditCommand())
	group("This program", p.doctorCommand(), p.versionCommand(), p.licensesCommand())
	root.SetHelpCommandGroupID("This program")
	root.SetCompletionCommandGroupID("This program")
	root.InitDefaultCompletionCmd("completion")
	if c, _, err := root.Find([]string{"completion"}); err == nil && c != root {
		c.Args = exactArgs()
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	p.trackStart(root)
	disableFileCompletion(root)
	return root
}

// trackStart has every command say that the command line was understood.
func (p *cli) trackStart(c *cobra.Command) {
	for _, sub := range c.Commands() {
		p.trackStart(sub)
	}
	if do := c.RunE; do != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			p.started = true
			return do(c, args)
		}
	}
}

// database returns the path or the URL of the database, by flag, environment or default.
func (p *cli) database() string {
	if p.db != "" {
		return p.db
	}
	if path, ok := p.env("WEIR_DB"); ok && path != "" {
		return path
	}
	return filepath.Join(".weir", "weir.db")
}

// syncMode is when commits reach the disk, by flag or environment; "" leaves it to the
// configuration.
func (p *cli) syncMode() string {
	if p.sync != "" {
		return p.sync
	}
	mode, _ := p.env("WEIR_SYNC")
	return mode
}

// databaseName is database for messages: without a password.
func (p *cli) databaseName() string { return store.RedactURL(p.database()) }

// logger writes to stderr: warnings, and everything with --verbose.
func (p *cli) logger() *slog.Logger {
	level := slog.LevelWarn
	if p.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(p.screen(), &slog.HandlerOptions{Level: level}))
}

// commandLine returns how to call this program about the same database, for hints: a line for
// a shell, in which all words are quoted that need it.
func (p *cli) commandLine(args ...string) string {
	if p.db != "" {
		args = append(args, "--db", store.RedactURL(p.db))
	}
	if p.configFile != "" {
		args = append(args, "--config", p.configFile)
	}
	return engine.CommandLine(args...)
}

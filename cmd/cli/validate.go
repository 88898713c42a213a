package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// validation is what --json prints of one file.
type validation struct {
	File     string    `json:"file"`
	Valid    bool      `json:"valid"`
	Flow     string    `json:"flow"`
	Problems []problem `json:"problems"`
}

type problem struct {
	// File is that of the flow, or of one it uses.
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

func (p *cli) validateCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check flow files and list all problems",
		Long: `Check flow files without running anything. All problems are listed at once on stderr, each
with its place. Files of flows that nodes run are checked too. If the configuration offers tools, the
tools that a flow names and their arguments are compared with it; tools of MCP servers as they
were accepted. Settings are compared with what the models that a flow names take. Exit code 2 if a file is not a valid flow.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("expected a flow file; see `weir validate --help`")
			}
			return nil
		},
		ValidArgsFunction: p.completeFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			return p.validate(args, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON array on stdout, with one object per file")
	return c
}

func (p *cli) validate(files []string, asJSON bool) error {
	cat, err := app.Catalogue()
	if err != nil {
		return err
	}
	cfg, err := p.config()
	if err != nil {
		return err
	}
	tools, err := app.NewToolbox(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = tools.Close() }() // nothing was started
	verdicts := make([]validation, 0, len(files))
	valid := true
	for _, file := range files {
		f, err := flow.Load(file, cat, cfg.Flows.Folders...)
		if err == nil {
			err = app.CheckFlow(cfg, tools, f, cat)
		}
		v := validation{File: file, Valid: err == nil, Problems: []problem{}}
		if err == nil {
			v.Flow = f.Name
		} else {
			valid = false
			v.Problems = problemsOf(file, err)
		}
		verdicts = append(verdicts, v)
		switch {
		case asJSON:
		case err != nil:
			fmt.Fprintln(p.err, err)
		default:
			line := count(countNodes(&f.Graph), "node")
			if n := len(f.Dependencies()) - 1; n > 0 {
				line += ", uses " + count(n, "flow")
			}
			fmt.Fprintf(p.out, "%s: valid: %s, %s\n", file, f.Name, line)
		}
	}
	if asJSON {
		writeJSON(p.out, verdicts)
	}
	if !valid {
		return &exitError{exitUsage}
	}
	return nil
}

func problemsOf(file string, err error) []problem {
	invalid, ok := errors.AsType[*flow.Invalid](err)
	if !ok {
		return []problem{{File: file, Code: engine.CodeUnreadable, Message: err.Error()}}
	}
	out := make([]problem, 0, len(invalid.Problems))
	for _, x := range invalid.Problems {
		out = append(out, problem{File: x.Pos.File, Line: x.Pos.Line, Column: x.Pos.Column, Code: x.Code, Message: x.Message, Hint: x.Hint})
	}
	return out
}

// countNodes counts the nodes of a graph and of the bodies in it.
func countNodes(g *flow.Graph) int {
	n := len(g.Nodes)
	for _, x := range g.Nodes {
		if x.Body != nil {
			n += countNodes(x.Body)
		}
	}
	return n
}

func (p *cli) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of flow files, for editors",
		Example: `  weir schema > flow.schema.json
  # and in a flow file: # yaml-language-server: $schema=flow.schema.json`,
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			cat, err := app.Catalogue()
			if err != nil {
				return err
			}
			s, err := flow.Schema(cat)
			if err != nil {
				return err
			}
			fmt.Fprintln(p.out, string(s))
			return nil
		},
	}
}

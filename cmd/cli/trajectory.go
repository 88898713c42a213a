package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/draw"
)

type trajectoryOptions struct {
	round          int
	sub            string
	format, output string
	active         bool
	agents, json   bool
	limit          rowLimit
}

func (p *cli) trajectoryCommand() *cobra.Command {
	o := &trajectoryOptions{}
	c := &cobra.Command{
		Use:   "trajectory SESSION",
		Short: "Show or draw the trajectory of a session: what an agent did and why",
		Long: `Show the trajectory of a session: what was asked in each round, the answers, tool calls
and nodes that followed, the conclusions, and the data that was found and made. SESSION
is the id, or the beginning of the id, of a session or run. A run without a session is
round 1 of a session with its id.

A sub-agent, which is an agent node or a child run, has its own trajectory: --agents
lists sub-agents, --sub shows one.`,
		Example: `  weir trajectory 01kafw
  weir trajectory 01kafw --round 2 --active
  weir trajectory 01kafw --output trajectory.svg
  weir trajectory 01kafw --sub 1 --format mermaid`,
		Args:              exactArgs("SESSION"),
		ValidArgsFunction: p.completeTrajectories,
	}
	f := c.Flags()
	f.IntVar(&o.round, "round", 0, "only this round, a `NUMBER` from 1")
	f.StringVar(&o.sub, "sub", "", "the sub-agent with this `NUMBER` or name")
	f.StringVar(&o.format, "format", "", "`FORMAT`: "+strings.Join(trajectoryFormats(), ", ")+" (default: by the extension of --output, else text)")
	f.StringVarP(&o.output, "output", "o", "", "write to this `FILE`, - for stdout")
	f.BoolVar(&o.active, "active", false, "only the active branches")
	f.BoolVar(&o.agents, "agents", false, "list the agents that have trajectories")
	f.BoolVar(&o.json, "json", false, "the same as --format json; with --agents print one JSON array")
	o.limit.addTo(f, "nodes, the newest, in the text")
	_ = c.RegisterFlagCompletionFunc("round", p.completeRounds)
	_ = c.RegisterFlagCompletionFunc("sub", p.completeSubs)
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(trajectoryFormats(), noFiles))
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.round < 0 || o.round == 0 && c.Flags().Changed("round") {
			return usagef("--round: rounds are numbered from 1")
		}
		if err := cmp.Or(o.complete(), o.limit.check()); err != nil {
			return err
		}
		if c.Flags().Changed("limit") && (o.agents || o.format != "text") {
			return usagef("--limit is for the text: the other formats and --agents list everything")
		}
		if !c.Flags().Changed("limit") && o.output != "" && o.output != "-" {
			o.limit = 0 // a file has everything
		}
		return p.trajectory(c.Context(), args[0], o)
	}
	return c
}

func trajectoryFormats() []string { return append([]string{"text"}, draw.Formats()...) }

// complete finds the format, and what the flags exclude.
func (o *trajectoryOptions) complete() error {
	if o.agents && (o.sub != "" || o.round > 0 || o.active || o.output != "" || o.format != "") {
		return usagef("--agents excludes all flags except --json: it lists all agents of the session")
	}
	if o.json && o.format != "" && o.format != "json" {
		return usagef("--json and --format %s exclude each other", o.format)
	}
	if o.json && !o.agents {
		o.format = "json"
	}
	if o.format == "" && o.output != "" && o.output != "-" {
		ending := strings.ToLower(filepath.Ext(o.output))
		o.format = map[string]string{
			".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".mermaid": "mermaid", ".json": "json", ".txt": "text",
		}[ending]
		if o.format == "" {
			return usagef("--output %s: expected a name that ends with .svg, .dot, .mmd, .json or .txt, or --format", o.output)
		}
	}
	o.format = cmp.Or(o.format, "text")
	if !slices.Contains(trajectoryFormats(), o.format) {
		return usagef("--format: there is no %q; there are %s", o.format, strings.Join(trajectoryFormats(), ", "))
	}
	return nil
}

func (p *cli) trajectory(ctx context.Context, prefix string, o *trajectoryOptions) error {
	a, err := p.openReadOnly(ctx)
	if err != nil {
		return err
	}
	defer a.close() //nolint:errcheck // it only read
	id, err := a.findTrajectory(ctx, prefix)
	if err != nil {
		return err
	}
	agents, err := a.Agents(ctx, id)
	if err != nil {
		return err
	}
	if len(agents) == 0 {
		return usagef("nothing has happened in %s yet; see %s", id, p.commandLine("sessions", "show", id))
	}
	if o.agents {
		return p.printAgents(agents, o.json)
	}
	agent, err := agentOf(agents, o.sub)
	if err != nil {
		return err
	}
	g, err := a.Trajectory(ctx, id, agent.Sub)
	if err != nil {
		return err
	}
	if o.active {
		g = g.Active()
	}
	if o.round > 0 {
		if g, err = roundOf(g, o.round); err != nil {
			return err
		}
	}
	return p.printTrajectory(g, agents, agent, o)
}

// findTrajectory returns the id of the session, or of the run, that begins with
// prefix.
func (a *application) findTrajectory(ctx context.Context, prefix string) (string, error) {
	id, err := a.FindSession(ctx, prefix)
	if !errors.Is(err, store.ErrNotFound) {
		return id, err
	}
	id, err = a.find(ctx, prefix)
	if errors.Is(err, store.ErrNotFound) || prefix == "" {
		return "", sessionNotFound(fmt.Errorf("no session and no run begins with %q: %w", prefix, store.ErrNotFound))
	}
	return id, err
}

// agentOf returns the agent that --sub names: by its number, its path, or the last
// part of that.
func agentOf(agents []trajectory.Agent, sub string) (trajectory.Agent, error) {
	if number, err := strconv.Atoi(cmp.Or(sub, "0")); err == nil {
		for _, a := range agents {
			if a.Sub == number {
				return a, nil
			}
		}
	}
	var found []trajectory.Agent
	for _, a := range agents {
		if a.Sub > 0 && (a.Name == sub || strings.HasSuffix(a.Name, "/"+sub) || strings.HasSuffix(a.Name, ">"+sub)) {
			found = append(found, a)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return trajectory.Agent{}, usagef("--sub: %q is %s; give the number", sub, listAgents(found))
	case len(agents) == 1 && agents[0].Sub == 0:
		return trajectory.Agent{}, usagef("--sub: there is no sub-agent in this session, only the main agent: leave --sub out")
	}
	return trajectory.Agent{}, usagef("--sub: there is no sub-agent %q; there are %s", sub, listAgents(agents))
}

// listAgents is "0 (main), 1 research, 2 review>lawyer".
func listAgents(agents []trajectory.Agent) string {
	out := make([]string, len(agents))
	for i, a := range agents {
		out[i] = strings.TrimSpace(fmt.Sprintf("%d %s", a.Sub, app.Printable(agentName(a))))
	}
	return strings.Join(out, ", ")
}

func agentName(a trajectory.Agent) string {
	if a.Sub == 0 {
		return "(main)"
	}
	return a.Name
}

// roundOf returns one round of a graph.
func roundOf(g *trajectory.Graph, round int) (*trajectory.Graph, error) {
	var have []int
	for _, m := range g.Rounds {
		have = append(have, m.Round)
	}
	if !slices.Contains(have, round) {
		return nil, usagef("--round %d: the rounds of this agent are %s", round, ranges(have))
	}
	return g.OnlyRound(round)
}

// ranges writes numbers in order as "1-3, 7".
func ranges(numbers []int) string {
	var out []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if j > i {
			out = append(out, fmt.Sprintf("%d-%d", numbers[i], numbers[j]))
		} else {
			out = append(out, strconv.Itoa(numbers[i]))
		}
		i = j + 1
	}
	return strings.Join(out, ", ")
}

// agentRow is an agent as --agents --json prints it.
type agentRow struct {
	Sub    int    `json:"sub"`
	Name   string `json:"name"` // its path in the flow, "" of the main agent
	Rounds []int  `json:"rounds"`
}

func (p *cli) printAgents(agents []trajectory.Agent, asJSON bool) error {
	if asJSON {
		rows := make([]agentRow, 0, len(agents))
		for _, a := range agents {
			rows = append(rows, agentRow(a))
		}
		writeJSON(p.out, rows)
		return nil
	}
	t := p.table("SUB NAME ROUNDS")
	for _, a := range agents {
		t.row(strconv.Itoa(a.Sub), app.Printable(agentName(a)), ranges(a.Rounds))
	}
	t.print()
	return nil
}

// printTrajectory writes a graph in the format to where that is wanted.
func (p *cli) printTrajectory(g *trajectory.Graph, agents []trajectory.Agent, agent trajectory.Agent, o *trajectoryOptions) error {
	to := o.output
	if o.format == "text" && (to == "" || to == "-") {
		p.printOutline(p.out, g, agent, o)
		if len(agents) > 1 && agent.Sub == 0 {
			p.notef("sub-agents: %s; show one with: %s", listAgents(agents[1:]), p.commandLine("trajectory", g.Session, "--sub", strconv.Itoa(agents[1].Sub)))
		}
		return nil
	}
	var out []byte
	var err error
	if o.format == "text" {
		var b strings.Builder
		p.printOutline(&b, g, agent, o)
		out = []byte(b.String())
	} else if out, err = draw.Render(g, o.format); err != nil {
		return err
	}
	if to == "" || to == "-" {
		_, err = p.out.Write(out)
		return err
	}
	if err := os.WriteFile(to, out, 0o644); err != nil { //nolint:gosec // a drawing, as a person's umask has it
		return usagef("--output: %w", err)
	}
	p.notef("wrote %s", to)
	return nil
}

// completeTrajectories offers the newest sessions, and the newest runs where there are
// none.
func (p *cli) completeTrajectories(c *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	if out := p.sessionIDs(c); len(out) > 0 {
		return out, noFiles
	}
	return p.runIDs(c, store.Filter{}), noFiles
}

// agentsForCompletion returns those of the session on the command line, nil if it cannot be
// had.
func (p *cli) agentsForCompletion(c *cobra.Command, args []string) []trajectory.Agent {
	if len(args) == 0 {
		return nil
	}
	a, err := p.openReadOnly(contextOf(c))
	if err != nil {
		return nil
	}
	defer a.close() //nolint:errcheck // it only read
	id, err := a.findTrajectory(contextOf(c), args[0])
	if err != nil {
		return nil
	}
	agents, err := a.Agents(contextOf(c), id)
	if err != nil {
		return nil
	}
	return agents
}

// completeRounds offers the rounds of the main agent.
func (p *cli) completeRounds(c *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	var out completions
	for _, a := range p.agentsForCompletion(c, args) {
		for _, r := range a.Rounds {
			if a.Sub == 0 {
				out = append(out, strconv.Itoa(r))
			}
		}
	}
	return out, noFiles
}

// completeSubs offers the sub-agents.
func (p *cli) completeSubs(c *cobra.Command, args []string, _ string) (completions, cobra.ShellCompDirective) {
	var out completions
	for _, a := range p.agentsForCompletion(c, args) {
		if a.Sub > 0 {
			out = append(out, cobra.CompletionWithDesc(strconv.Itoa(a.Sub), a.Name))
		}
	}
	return out, noFiles
}

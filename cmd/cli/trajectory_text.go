package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/draw"
)

// Most that a line has of what was said and of a result, in characters.
const (
	maxMessageRunes = 120
	maxResultRunes  = 80
)

// printOutline lists a graph for people, a line a node. In a terminal the lines
// end where it ends. Of more lines than the limit it prints the last, which are the newest.
func (p *cli) printOutline(out io.Writer, g *trajectory.Graph, agent trajectory.Agent, o *trajectoryOptions) {
	st, colours := p.styleFor(out), p.typeStyles(out)
	who := ""
	if agent.Sub > 0 {
		who = fmt.Sprintf("  sub-agent %d  %s", agent.Sub, app.Printable(agent.Name))
	}
	fmt.Fprintf(out, "%s%s\n", st.bold.Render(g.Session), who)
	fmt.Fprintln(out, st.dim.Render(fmt.Sprintf("%s, %s, %s", count(len(g.Rounds), "round"), count(len(g.Nodes), "node"), count(len(g.Edges), "edge"))))
	width, round, wide := widthOf(out), 0, 0
	all := draw.Outline(g)
	lines := all
	if most := int(o.limit); most > 0 && len(all) > most {
		lines = all[len(all)-most:]
		args := []string{"trajectory", g.Session, "--limit", "0"}
		if agent.Sub > 0 {
			args = append(args, "--sub", strconv.Itoa(agent.Sub))
		}
		fmt.Fprintln(out)
		o.limit.note(out, len(lines), len(all), "node", p.commandLine(args...))
	}
	for i := range lines {
		wide = max(wide, len(shortID(lines[i].ID)))
	}
	for i := range lines {
		l := &lines[i]
		if l.Round != round {
			round = l.Round
			fmt.Fprintf(out, "\n%s\n", st.bold.Render(fmt.Sprintf("Round %d", round)))
		}
		line := outlineLine(l, wide, st, colours[l.ID.Type()])
		if width > 0 {
			line = lipgloss.NewStyle().MaxWidth(width).Render(line)
		}
		fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
	if used := lineMarks(lines); used != "" {
		fmt.Fprintf(out, "\n%s\n", st.dim.Render(used))
	}
}

// lineMarks explains what stands before lines, "" if nothing does.
func lineMarks(lines []draw.OutlineLine) string {
	var used []string
	for _, m := range []struct {
		says string
		of   func(draw.OutlineLine) bool
	}{
		{"* an active branch ends here", func(l draw.OutlineLine) bool { return l.Active }},
		{"! failed", func(l draw.OutlineLine) bool { return l.Failed }},
		{"~ not on an active branch", func(l draw.OutlineLine) bool { return l.Off }},
	} {
		if slices.ContainsFunc(lines, m.of) {
			used = append(used, m.says)
		}
	}
	return strings.Join(used, "   ")
}

// shortID returns what in an id names the node: query00000 of Query(query00000).
func shortID(id trajectory.ID) string {
	_, rest, _ := strings.Cut(string(id), "(")
	return strings.TrimSuffix(rest, ")")
}

// outlineLine returns one node: its mark, its id, and indented what it is and says.
func outlineLine(l *draw.OutlineLine, wide int, st style, colour lipgloss.Style) string {
	said := lipgloss.NewStyle()
	where, how := " ", " "
	switch {
	case l.Active:
		where = st.bold.Render("*")
	case l.Off:
		where, said = st.dim.Render("~"), st.dim
	}
	if l.Failed {
		how, said = st.bad.Render("!"), st.bad
	}
	id := shortID(l.ID)
	parts := []string{where + how + " " + colour.Render(id) + strings.Repeat(" ", wide-len(id)) + " " + strings.Repeat("  ", l.Depth)}
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if l.Kind != "" {
		add(colour.Render(shorten(l.Kind, 12)))
	}
	if l.Name != "" {
		add(st.bold.Render(shorten(l.Name, 60)))
	}
	var notes []string
	if l.Open {
		notes = append(notes, "continues")
	}
	if len(l.After) > 0 {
		notes = append(notes, "after "+firstNames(l.After))
	}
	if l.By != "" {
		notes = append(notes, l.By)
	}
	if len(l.Refers) > 0 {
		notes = append(notes, firstNames(l.Refers))
	}
	if len(notes) > 0 {
		add(st.dim.Render("(" + shorten(strings.Join(notes, "; "), 60) + ")"))
	}
	if last := len(parts) - 1; last > 0 && l.Said != "" {
		parts[last] += " " // apart from what it is
	}
	if l.Said != "" {
		add(said.Render(shorten(l.Said, maxMessageRunes)))
	}
	if l.Result != "" {
		style := st.dim
		if l.Failed {
			style = st.bad
		}
		add(style.Render("→ " + shorten(l.Result, maxResultRunes)))
	}
	return strings.Join(parts, " ")
}

// firstNames lists the first of many.
func firstNames(list []string) string {
	const most = 4
	if len(list) > most+1 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

// typeStyles returns the colours of node types, as drawings have them where a
// terminal has such.
func (p *cli) typeStyles(out io.Writer) map[trajectory.Type]lipgloss.Style {
	st := p.styleFor(out)
	if st.bad.Render("x") == "x" { // no colours here
		return nil
	}
	s := st.base
	return map[trajectory.Type]lipgloss.Style{
		trajectory.Query:     s.Bold(true).Foreground(lipgloss.BrightBlue),
		trajectory.State:     s.Bold(true).Foreground(lipgloss.Green),
		trajectory.Action:    s.Foreground(lipgloss.Yellow),
		trajectory.Knowledge: s.Foreground(lipgloss.Magenta),
		trajectory.Tool:      s.Foreground(lipgloss.BrightBlack),
		trajectory.Table:     s.Foreground(lipgloss.Cyan),
		trajectory.Column:    s.Foreground(lipgloss.Cyan),
		trajectory.File:      s.Foreground(lipgloss.BrightMagenta),
		trajectory.Script:    s.Foreground(lipgloss.BrightGreen),
		trajectory.Skill:     s.Foreground(lipgloss.BrightRed),
	}
}

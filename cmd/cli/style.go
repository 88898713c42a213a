package cli

import (
	"io"
	"os"

	"charm.land/lipgloss/v2"
)

// style is how a terminal marks things; plain where stderr is none. Every style derives from base, which the terminal's
// filter knows the program's colours by.
type style struct {
	base, bold, dim, ask, good, bad, busy lipgloss.Style
}

// style is that of stderr, where progress and questions go.
func (p *cli) style() style { return p.styleFor(p.err) }

func (p *cli) styleFor(w io.Writer) style {
	s := lipgloss.NewStyle()
	plain := style{s, s, s, s, s, s, s}
	if _, no := p.env("NO_COLOR"); no || !isTerminal(w) || os.Getenv("TERM") == "dumb" {
		return plain
	}
	if g, ok := w.(*terminalFilter); ok {
		s = g.mark.style()
	}
	return style{
		base: s,
		bold: s.Bold(true),
		dim:  s.Faint(true),
		ask:  s.Bold(true).Foreground(lipgloss.Yellow),
		good: s.Foreground(lipgloss.Green),
		bad:  s.Foreground(lipgloss.Red),
		busy: s.Foreground(lipgloss.Cyan),
	}
}

package cli

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
)

// plain returns a value for people: text as it is, everything else as JSON.
func plain(v engine.Value) string {
	if s, ok := v.(string); ok {
		return strings.TrimRight(s, "\n")
	}
	b, err := engine.AppendValue(nil, v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// dollars returns an amount of money, given in millionths of a US dollar.
func dollars(micros int64) string { return fmt.Sprintf("$%.4f", float64(micros)/1e6) }

// usageText returns what a model call, or several, took: tokens, and money where the
// price is known.
func usageText(u engine.Usage) string {
	s := fmt.Sprintf("%d tokens in, %d out", u.Input, u.Output)
	if u.CostMicros > 0 {
		s += ", " + dollars(u.CostMicros)
	}
	return s + estimated(u)
}

// estimated says of how much of a usage only an estimate is known.
func estimated(u engine.Usage) string {
	switch {
	case u.Estimated == 0:
		return ""
	case u.Estimated >= u.Calls:
		return " (estimated)"
	}
	return fmt.Sprintf(" (%d of %d calls estimated)", u.Estimated, u.Calls)
}

// approx marks a figure of a table of which a part is estimated.
func approx(u engine.Usage, figure string) string {
	if u.Estimated == 0 || figure == "-" {
		return figure
	}
	return "~" + figure
}

// shorten is s on one line, of at most n columns: a Chinese character takes two.
func shorten(s string, n int) string {
	s = oneLine(s)
	if lipgloss.Width(s) <= n {
		return s
	}
	return lipgloss.NewStyle().MaxWidth(max(n-1, 1)).Render(s) + "…"
}

// oneLine is s on one line.
func oneLine(s string) string { return strings.Join(strings.Fields(app.Printable(s)), " ") }

func indent(s, by string) string {
	return by + strings.ReplaceAll(s, "\n", "\n"+by)
}

package draw

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// style returns the style sheet: neutral colours, those of the types, and both again for the dark scheme.
func style(g *trajectory.Graph) string {
	var light, dark strings.Builder
	types, _ := typesIn(g)
	for _, t := range types {
		l, d := typeColours(t)
		const rule = "  .%[1]s .bar, .%[1]s .tint, .%[1]s .swatch, .%[1]s .word, .%[1]s > .tag { fill: %[2]s; }" +
			" .%[1]s .card, .%[1]s > .edge { stroke: %[2]s; }\n"
		fmt.Fprintf(&light, rule, typeClass(t), l)
		fmt.Fprintf(&dark, rule, typeClass(t), d)
	}
	return "<style>\n" + sheet + light.String() + marksSheet + "@media (prefers-color-scheme: dark) {\n" +
		darkSheet + dark.String() + darkMarksSheet + "}\n</style>\n" + arrowHeads()
}

const sheet = `  text { font-family: ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: #1f2937; }
  .page { fill: #ffffff; }
  .panel { fill: #f6f8fb; stroke: #e2e8f0; }
  .heading { font-size: 19px; font-weight: 650; }
  .subtitle { font-size: 13px; fill: #64748b; }
  .round { font-size: 12px; font-weight: 650; fill: #64748b; }
  .legend { font-size: 12px; fill: #334155; }
  .card { fill: #ffffff; stroke-opacity: .5; } .mark { fill: #ffffff; stroke: #64748b; }
  .frame { fill: #ffffff; fill-opacity: .6; stroke: #cbd5e1; }
  .tint { fill-opacity: .05; }
  .head, .said, .text, .note, .result, .wrong { font-size: 11.5px; }
  .name { font-size: 11.5px; font-weight: 650; }
  .word { font-weight: 650; }
  .text { fill: #334155; }
  .note, .result, .sign { fill: #64748b; }
  .note { font-style: italic; }
  .edge { fill: #ffffff; stroke: #94a3b8; stroke-opacity: .45; }
  .tag { font-size: 9.5px; font-weight: 600; fill: #64748b; }
  .relation { font-size: 9.5px; fill: #64748b; paint-order: stroke; stroke: #f6f8fb; stroke-width: 3px; }
  .line { fill: none; stroke: #94a3b8; stroke-width: 1.5; }
  .tip { fill: #94a3b8; }
  .has_conclusion { stroke: #10b981; } .tip-has_conclusion { fill: #10b981; }
  .generates { stroke: #d97706; } .tip-generates { fill: #d97706; }
  .refers_to { stroke-dasharray: 2 4; stroke-linecap: round; }
  .far { stroke-opacity: .5; }
  .by { font-size: 9.5px; font-style: italic; fill: #64748b; }
  .continues_to { stroke: #6366f1; stroke-dasharray: 7 4; } .tip-continues_to { fill: #6366f1; }
`

// marksSheet follows the colours of types, which it overrides.
const marksSheet = `  .t-query .card, .t-state .card { stroke-opacity: 1; stroke-width: 1.5; }
  .t-query .tint, .t-state .tint { fill-opacity: .13; }
  .failed .card, .failed .mark { stroke: #dc2626; stroke-opacity: 1; stroke-width: 1.5; fill: #fef2f2; }
  .failed .bar { fill: #dc2626; } .failed .tint { fill-opacity: 0; } .failed .stands, .wrong { fill: #b91c1c; } .stands { font-weight: 650; }
  .open .card { stroke-dasharray: 7 3; } .open .stands { fill: #64748b; }
  .off .card, .off .mark { stroke-dasharray: 4 3; stroke-opacity: .8; } .off .tint { fill-opacity: 0; } .off .bar { fill-opacity: .35; }
  .off text { opacity: .65; }
  .active .card { stroke-opacity: 1; stroke-width: 3; }
  .flag { fill: #0f172a; } .flagged { font-size: 9.5px; font-weight: 700; text-anchor: middle; fill: #ffffff; }
`

const darkSheet = `  text { fill: #e2e8f0; }
  .page { fill: #0b1120; }
  .panel { fill: #111a2e; stroke: #22304a; }
  .subtitle, .round, .relation, .note, .result, .sign, .tag, .by { fill: #94a3b8; } .relation { stroke: #111a2e; }
  .legend, .text { fill: #cbd5e1; }
  .card, .edge, .mark { fill: #0f172a; } .frame { fill: #0f172a; stroke: #2b3a55; }
  .tint { fill-opacity: .09; }
  .line { stroke: #64748b; } .tip { fill: #64748b; }
  .has_conclusion { stroke: #34d399; } .tip-has_conclusion { fill: #34d399; }
  .generates { stroke: #f59e0b; } .tip-generates { fill: #f59e0b; }
  .continues_to { stroke: #818cf8; } .tip-continues_to { fill: #818cf8; }
`

const darkMarksSheet = `  .t-query .tint, .t-state .tint { fill-opacity: .2; } .failed .tint, .off .tint { fill-opacity: 0; }
  .failed .card, .failed .mark { fill: #2a1218; stroke: #f87171; } .failed .bar, .failed .stands, .wrong { fill: #f87171; } .open .stands { fill: #94a3b8; }
  .flag { fill: #e2e8f0; } .flagged { fill: #0b1120; }
`

// arrowHeads returns the arrow heads, one for each style of line.
func arrowHeads() string {
	var b strings.Builder
	b.WriteString("<defs>\n")
	for _, class := range []string{"triggers", "has_conclusion", "generates", "refers_to", "continues_to", "other"} {
		fmt.Fprintf(&b, `  <marker id="tip-%[1]s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">`+
			`<path class="tip tip-%[1]s" d="M0 0.5 8 4 0 7.5z"/></marker>`+"\n", class)
	}
	b.WriteString("</defs>\n")
	return b.String()
}

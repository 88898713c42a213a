package draw_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/draw"
)

// all returns the graphs of all airline conversations, of all shapes, and a hostile
// one.
func all(t *testing.T) map[string]*trajectory.Graph {
	t.Helper()
	from := conversations(t)
	graphs := shapes(t, from)
	graphs["hostile"] = everything(t)
	for id, messages := range from {
		graphs[id] = session(t, id, messages)
	}
	return graphs
}

func TestAllConversationsAreDrawn(t *testing.T) {
	t.Parallel()
	graphs := all(t)
	for name, test := range map[string]func(*testing.T, map[string]*trajectory.Graph){
		"each node in a picture that a window shows": drawnWhole,
		"each node in a line of the outline":         outlined,
		"Graphviz reads the DOT":                     readByGraphviz,
		"Mermaid reads the Mermaid":                  readByMermaid,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, graphs)
		})
	}
}

// drawnWhole looks for each edge in the tooltips of lines and of tags.
func drawnWhole(t *testing.T, graphs map[string]*trajectory.Graph) {
	t.Helper()
	has := func(list string, id trajectory.ID) bool {
		return strings.Contains(list, string(id)) || strings.HasSuffix(list, " more")
	}
	for name, g := range graphs {
		p := parse(t, draw.SVG(g))
		p.holds(t, g)
		if p.width > 1600 {
			t.Errorf("%s is %.0f wide", name, p.width)
		}
		titles := strings.Split(strings.Join(p.titles, "\n"), "\n")
		for _, e := range g.Edges {
			relation := string(e.Relationship) + ": "
			if e.Relationship != trajectory.ContinuesTo && !slices.ContainsFunc(titles, func(s string) bool { // that is of panels
				from, to, _ := strings.Cut(strings.TrimPrefix(s, relation), " to ")
				line := strings.HasPrefix(s, relation) && has(from, e.Source) && has(to, e.Target)
				return line || s == relation+"to "+string(e.Target) || s == relation+"from "+string(e.Source)
			}) {
				t.Errorf("%s: %s %s %s is nowhere", name, e.Source, e.Relationship, e.Target)
			}
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

func outlined(t *testing.T, graphs map[string]*trajectory.Graph) {
	t.Helper()
	for name, g := range graphs {
		lines := draw.Outline(g)
		if len(lines) != len(g.Nodes) {
			t.Fatalf("%s: %d lines for %d nodes", name, len(lines), len(g.Nodes))
		}
		for _, l := range lines {
			if text := l.Kind + l.Name + l.By + l.Said + l.Result; strings.ContainsAny(text, "\n\r\t\x1b\x00") {
				t.Errorf("%s: %s is not on one line: %q", name, l.ID, text)
			}
		}
	}
}

func readByGraphviz(t *testing.T, graphs map[string]*trajectory.Graph) {
	t.Helper()
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("Graphviz is not installed (Debian: apt-get install graphviz)")
	}
	for name, g := range graphs {
		cmd := exec.CommandContext(t.Context(), dot, "-Tplain")
		cmd.Stdin = bytes.NewReader(draw.DOT(g))
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil || said.Len() > 0 {
			t.Errorf("%s: %v\n%.2000s", name, err, said.String())
			continue
		}
		nodes, edges := bytes.Count(out, []byte("\nnode ")), bytes.Count(out, []byte("\nedge "))
		if nodes != len(g.Nodes) || edges != len(g.Edges) {
			t.Errorf("%s: Graphviz sees %d nodes and %d edges, want %d and %d", name, nodes, edges, len(g.Nodes), len(g.Edges))
		}
	}
}

// mermaidPage has Mermaid read and draw what stands in it, and says what came of
// it.
const mermaidPage = `<!doctype html><meta charset="utf-8"><script src="%s"></script>%s<pre id="said">nothing</pre>
<script type="module">
mermaid.initialize({startOnLoad: false, securityLevel: "strict", maxTextSize: 1e7, maxEdges: 10000})
const said = {}
for (const s of document.querySelectorAll("textarea")) {
  try {
    const text = s.value
    await mermaid.parse(text)
    const { svg } = await mermaid.render("m" + Object.keys(said).length, text)
    const d = new DOMParser().parseFromString(svg, "text/html")
    said[s.id] = {nodes: d.querySelectorAll("g.node").length, edges: d.querySelectorAll("path.flowchart-link").length,
      scripts: d.querySelectorAll("script, b").length}
  } catch (e) { said[s.id] = {error: String(e)} }
}
document.getElementById("said").textContent = JSON.stringify(said)
</script>`

// readByMermaid needs Chromium and Mermaid's own code:
// WEIR_MERMAID is the path of mermaid.min.js of the npm package mermaid.
func readByMermaid(t *testing.T, graphs map[string]*trajectory.Graph) {
	t.Helper()
	code := os.Getenv("WEIR_MERMAID")
	chromium, err := exec.LookPath("chromium")
	if code == "" || err != nil {
		t.Skip("needs Chromium (Debian: apt-get install chromium) and WEIR_MERMAID, the path of mermaid.min.js (npm install mermaid: node_modules/mermaid/dist)")
	}
	var texts strings.Builder
	for name, g := range graphs {
		fmt.Fprintf(&texts, "<textarea hidden id=%q>\n%s</textarea>\n", name, html.EscapeString(string(draw.Mermaid(g))))
	}
	page := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(page, fmt.Appendf(nil, mermaidPage, "file://"+code, texts.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), chromium, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=3600000", "--dump-dom", "file://"+page).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(out), `<pre id="said">`)
	said, _, _ := strings.Cut(rest, "</pre>")
	var results map[string]struct {
		Nodes, Edges, Scripts int
		Error                 string
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(said)), &results); err != nil {
		t.Fatalf("the page says %.300q: %v", said, err)
	}
	for name, g := range graphs {
		r, ok := results[name]
		if !ok || r.Error != "" || r.Nodes != len(g.Nodes) || r.Edges != len(g.Edges) || r.Scripts > 0 {
			t.Errorf("%s: Mermaid says %+v, want %d nodes and %d edges", name, r, len(g.Nodes), len(g.Edges))
		}
	}
}

package runner

import (
	"path/filepath"
	"slices"

	"github.com/weir-run/weir/flow"
)

// folder returns the folder of the files that nodes of the flow, or of its sub-flows, name: the given one, otherwise that
// of the flow's file; "" if no node names files.
func (p *Program) folder(given string) string {
	if !p.files {
		return ""
	}
	if given == "" {
		given = filepath.Dir(p.Flow.File) // "." for a flow without a file
	}
	at, err := filepath.Abs(given)
	if err != nil {
		return given
	}
	return at
}

// folderOf returns the folder of a sub-flow's files relative to the folder of this one; "" if it is unknown.
func (p *Program) folderOf(folder, fingerprint string) string {
	if folder == "" {
		return ""
	}
	for _, u := range p.Flow.Uses {
		if u.Flow.Fingerprint() == fingerprint {
			return filepath.Join(folder, filepath.Dir(u.Ref))
		}
	}
	return folder // it is recursive
}

// namesFiles reports whether a node of the graph has the setting files or reads a file.
func namesFiles(g *flow.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n *flow.Node) bool {
		return n.With["files"] != nil || n.Type == "readFile" || n.Body != nil && namesFiles(n.Body)
	})
}

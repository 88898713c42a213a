package runner

import (
	"path/filepath"
	"slices"

	"github.com/weir-run/weir/flow"
)

// folder is where the files are that nodes of the flow, or of flows that it uses,
// name: the folder that is given, else that of the flow's file; "" where no node
// names files.
func (p *Program) folder(given string) string {
	if !p.files {
		return ""
	}
	if given == "" {
		given = filepath.Dir(p.Flow.File) // "." for a flow that is in no file
	}
	at, err := filepath.Abs(given)
	if err != nil {
		return given
	}
	return at
}

// folderOf is where the files are of a flow that this one uses, seen from the
// folder of this one; "" where that is not known.
func (p *Program) folderOf(folder, fingerprint string) string {
	if folder == "" {
		return ""
	}
	for _, u := range p.Flow.Uses {
		if u.Flow.Fingerprint() == fingerprint {
			return filepath.Join(folder, filepath.Dir(u.Ref))
		}
	}
	return folder // it uses itself
}

// namesFiles reports whether a node of the graph has the setting files.
func namesFiles(g *flow.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n *flow.Node) bool {
		return n.With["files"] != nil || n.Body != nil && namesFiles(n.Body)
	})
}

package runner

import (
	"path/filepath"
	"slices"

	"github.com/weir-run/weir/flow"
)

// folder is where the files are that nodes of the flow name: the folder that is
// given, else that of the flow's file; "" where no node names files, or where
// the place of the flow's file is not known.
func (p *Program) folder(given string) string {
	if !namesFiles(&p.Flow.Graph) {
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

// namesFiles reports whether a node of the graph has the setting files.
func namesFiles(g *flow.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n *flow.Node) bool {
		return n.With["files"] != nil || n.Body != nil && namesFiles(n.Body)
	})
}

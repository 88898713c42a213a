package flow

import "strings"

// NodeAt returns the node at the path of a run, such as "refine#2/draft", and the graph in which it is; the numbers of
// iterations are ignored. Both are nil if there is none.
func (g *Graph) NodeAt(path string) (*Node, *Graph) {
	for g != nil {
		id, rest, inner := strings.Cut(path, "/")
		id, _, _ = strings.Cut(id, "#")
		n := g.Node(id)
		switch {
		case n == nil:
			return nil, nil
		case !inner:
			return n, g
		}
		g, path = n.Body, rest
	}
	return nil, nil
}

// WithoutIterations returns the path of a run without the numbers of iterations: "refine/draft" of "refine#2/draft".
func WithoutIterations(path string) string {
	if !strings.Contains(path, "#") {
		return path
	}
	var out strings.Builder
	for i, part := range strings.Split(path, "/") {
		if i > 0 {
			out.WriteByte('/')
		}
		id, _, _ := strings.Cut(part, "#")
		out.WriteString(id)
	}
	return out.String()
}

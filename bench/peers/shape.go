package main

import "fmt"

// shape is a graph of nodes that add one to what comes in. Nodes are numbered
// in topological order; node 0 is the only source, the last one the only sink.
type shape struct {
	name  string
	nodes int
	// into lists the predecessors of each node.
	into [][]int
	// depth is how many nodes the longest path has: the value at the sink.
	depth int
	// runs is the number of concurrent runs; only durable shapes have several.
	runs int
}

// chain is n nodes one after another.
func chain(n int) shape {
	s := shape{name: fmt.Sprintf("chain of %d", n), nodes: n, into: make([][]int, n), depth: n}
	for i := 1; i < n; i++ {
		s.into[i] = []int{i - 1}
	}
	return s
}

// fan returns one node, n beside each other, and one that joins them.
func fan(n int) shape {
	s := shape{name: fmt.Sprintf("fan 1-%d-1", n), nodes: n + 2, into: make([][]int, n+2), depth: 3}
	for i := 1; i <= n; i++ {
		s.into[i] = []int{0}
		s.into[n+1] = append(s.into[n+1], i)
	}
	return s
}

// lattice is n rows of n nodes, each after the one above and the one before.
func lattice(n int) shape {
	s := shape{name: fmt.Sprintf("lattice %dx%d", n, n), nodes: n * n, into: make([][]int, n*n), depth: 2*n - 1}
	for i := range s.nodes {
		if i >= n {
			s.into[i] = append(s.into[i], i-n)
		}
		if i%n > 0 {
			s.into[i] = append(s.into[i], i-1)
		}
	}
	return s
}

// durable returns a chain whose every step is kept on disk, run by so many runs at
// once; a node is one step of one of them.
func durable(steps, runs int) shape {
	s := chain(steps)
	s.name = fmt.Sprintf("durable chain of %d, %d at once", steps, runs)
	s.runs = runs
	return s
}

// isChain reports whether no node has two neighbours on a side.
func (s shape) isChain() bool { return s.depth == s.nodes }

// id returns the name of a node.
func id(i int) string { return fmt.Sprintf("n%d", i) }

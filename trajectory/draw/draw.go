// Package draw draws trajectories as Mermaid, DOT and SVG. It computes the layout of
// the SVG itself, with a column for each round. Equal graphs give equal bytes.
//
// It must not know how a graph was recorded or where it is stored.
package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// Formats lists the formats of Render.
func Formats() []string { return []string{"json", "dot", "mermaid", "svg"} }

// Render returns the graph in one of the formats; json is the format of networkx.
func Render(g *trajectory.Graph, format string) ([]byte, error) {
	switch format {
	case "json":
		return g.NodeLink()
	case "dot":
		return DOT(g), nil
	case "mermaid":
		return Mermaid(g), nil
	case "svg":
		return SVG(g), nil
	}
	return nil, fmt.Errorf("unknown format %q: use one of %s", format, strings.Join(Formats(), ", "))
}

// round is the part of a graph in one round.
type round struct {
	number int
	nodes  []trajectory.Node
	edges  []trajectory.Edge // without bridges
}

// split divides a graph into its rounds with nodes, and the bridges between them.
func split(g *trajectory.Graph) (rounds []round, bridges []trajectory.Edge) {
	at := map[int]int{}
	home := map[trajectory.ID]int{}
	for _, n := range g.Nodes {
		i, ok := at[n.Round]
		if !ok {
			i = len(rounds)
			at[n.Round] = i
			rounds = append(rounds, round{number: n.Round})
		}
		home[n.ID] = i
		rounds[i].nodes = append(rounds[i].nodes, n)
	}
	for _, e := range g.Edges {
		from, ok1 := home[e.Source]
		to, ok2 := home[e.Target]
		switch {
		case !ok1 || !ok2:
		case e.Relationship == trajectory.ContinuesTo || from != to:
			bridges = append(bridges, e)
		default:
			rounds[from].edges = append(rounds[from].edges, e)
		}
	}
	return rounds, bridges
}

// typeColours has the colours of a type on a light and a dark background.
func typeColours(t trajectory.Type) (light, dark string) {
	switch t {
	case trajectory.Query:
		return "#2563eb", "#60a5fa"
	case trajectory.State:
		return "#047857", "#34d399"
	case trajectory.Action:
		return "#b45309", "#fbbf24"
	case trajectory.Knowledge:
		return "#7c3aed", "#a78bfa"
	case trajectory.Tool:
		return "#475569", "#94a3b8"
	case trajectory.Table:
		return "#0e7490", "#22d3ee"
	case trajectory.Column:
		return "#0f766e", "#2dd4bf"
	case trajectory.File:
		return "#be185d", "#f472b6"
	case trajectory.Script:
		return "#4d7c0f", "#a3e635"
	case trajectory.Skill:
		return "#be123c", "#fb7185"
	}
	return "#6b7280", "#9ca3af"
}

// typesIn lists the types in a graph, in order, with their counts.
func typesIn(g *trajectory.Graph) (types []trajectory.Type, counts map[trajectory.Type]int) {
	counts = map[trajectory.Type]int{}
	for _, n := range g.Nodes {
		counts[n.Type]++
	}
	types = slices.DeleteFunc(trajectory.Types(), func(t trajectory.Type) bool { return counts[t] == 0 })
	return types, counts
}

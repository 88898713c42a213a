package trajectory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-run/weir/convo"
)

// nodeLinkJSON is the format that networkx reads with node_link_graph. Versions before 3.4 read the edges from
// "links" and later ones from "edges", so both are written.
type nodeLinkJSON struct {
	Directed   bool            `json:"directed"`
	Multigraph bool            `json:"multigraph"`
	Graph      json.RawMessage `json:"graph"`
	Nodes      []Node          `json:"nodes"`
	Links      []Edge          `json:"links"`
	Edges      []Edge          `json:"edges"`
}

// metadataJSON is the metadata of a round's graph.
type metadataJSON struct {
	Key
	Agent    string          `json:"agent"`
	Initial  ID              `json:"initial_pt"`
	Current  []ID            `json:"current_pt"`
	First    map[Type]int    `json:"first"`
	Messages []convo.Message `json:"messages"`
}

// NodeLink returns the graph with its bridges as node-link JSON, a line for each node and edge. The graph's
// attributes are user, session, round, sub and rounds.
func (g *Graph) NodeLink() ([]byte, error) {
	return writeNodeLink(struct {
		Key
		Rounds []RoundMark `json:"rounds"`
	}{g.Key, g.Rounds}, g.Nodes, g.Edges)
}

// NodeLink returns the round's own nodes and edges as node-link JSON. The
// graph's attributes are user, session, round and sub.
func (r Record) NodeLink() ([]byte, error) { return writeNodeLink(r.Key, r.Nodes, r.Edges) }

// Meta returns the fields of a round that node-link JSON does not have, as a JSON object: initial_pt, current_pt,
// first, messages, agent and the key.
func (r Record) Meta() ([]byte, error) {
	w := newWriter()
	w.field("", "user", r.User)
	w.field(",", "session", r.Session)
	w.field(",", "round", r.Round)
	w.field(",", "sub", r.Sub)
	w.field(",", "agent", r.Agent)
	w.field(",\n", "initial_pt", r.Initial)
	w.field(",\n", "current_pt", clone(r.Current))
	first := r.First
	if first == nil {
		first = map[Type]int{}
	}
	w.field(",\n", "first", first)
	list(w, "messages", r.Messages)
	return w.end()
}

func writeNodeLink(attributes any, nodes []Node, edges []Edge) ([]byte, error) {
	w := newWriter()
	w.field("", "directed", true)
	w.field(",", "multigraph", false)
	w.field(",", "graph", attributes)
	list(w, "nodes", nodes)
	list(w, "links", edges)
	list(w, "edges", edges)
	return w.end()
}

// writer writes an object whose lists have a line for each element.
type writer struct {
	b   bytes.Buffer
	enc *json.Encoder
	err error
}

func newWriter() *writer {
	w := &writer{}
	w.enc = json.NewEncoder(&w.b)
	w.enc.SetEscapeHTML(false)
	w.b.WriteByte('{')
	return w
}

func (w *writer) value(v any) {
	if err := w.enc.Encode(v); err != nil && w.err == nil {
		w.err = err
	}
	w.b.Truncate(len(bytes.TrimRight(w.b.Bytes(), "\n")))
}

func (w *writer) field(before, name string, v any) {
	w.b.WriteString(before)
	w.value(name)
	w.b.WriteByte(':')
	w.value(v)
}

func list[T any](w *writer, name string, elements []T) {
	w.b.WriteString(",\n")
	w.value(name)
	w.b.WriteString(":[")
	for i, e := range elements {
		if i > 0 {
			w.b.WriteByte(',')
		}
		w.b.WriteByte('\n')
		w.value(e)
	}
	w.b.WriteByte(']')
}

func (w *writer) end() ([]byte, error) {
	w.b.WriteString("}\n")
	if w.err != nil {
		return nil, fmt.Errorf("write trajectory: %w", w.err)
	}
	return w.b.Bytes(), nil
}

// ReadRecord reads the output of Record.NodeLink and Record.Meta, also if networkx has rewritten the graph. Invalid
// input is an ErrRecord.
func ReadRecord(graph, metadata []byte) (Record, error) {
	var l nodeLinkJSON
	if err := json.Unmarshal(graph, &l); err != nil {
		return Record{}, fmt.Errorf("the graph %w: %w", ErrRecord, err)
	}
	var m metadataJSON
	if err := json.Unmarshal(metadata, &m); err != nil {
		return Record{}, fmt.Errorf("the metadata %w: %w", ErrRecord, err)
	}
	var k Key
	if err := json.Unmarshal(l.Graph, &k); err != nil {
		return Record{}, fmt.Errorf("the graph's attributes: it %w: %w", ErrRecord, err)
	}
	if k != m.Key {
		return Record{}, fmt.Errorf("the graph of %s %w beside the metadata of %s", k, ErrRecord, m.Key)
	}
	edges, err := l.edges()
	if err != nil {
		return Record{}, fmt.Errorf("%s %w: %w", k, ErrRecord, err)
	}
	r := Record{
		Key: k, Agent: m.Agent, Nodes: l.Nodes, Edges: edges, Initial: m.Initial, Current: Distinct(m.Current), First: m.First, Messages: m.Messages,
	}
	for i := range r.Nodes {
		r.Nodes[i].setDefaults()
	}
	if err := r.Check(); err != nil {
		return Record{}, err
	}
	return r.Clone(), nil
}

// edges may have either name; if both are present, they must be equal.
func (l nodeLinkJSON) edges() ([]Edge, error) {
	switch {
	case !l.Directed || l.Multigraph:
		return nil, errors.New("the graph is not directed, or has several edges between two nodes")
	case l.Links == nil:
		return l.Edges, nil
	case l.Edges != nil && !slices.Equal(l.Links, l.Edges):
		return nil, errors.New(`"links" and "edges" differ: remove the outdated one`)
	}
	return l.Links, nil
}

// setDefaults completes a node that was read as a recorder would.
func (n *Node) setDefaults() {
	if n.Attributes == nil {
		n.Attributes = Attributes{}
	}
	if n.History == nil {
		n.History = History{}
	}
	for v, c := range n.History {
		if c.Old == nil {
			c.Old = Attributes{}
			n.History[v] = c
		}
	}
	n.Version = max(n.Version, 1)
	n.Created = n.Created.UTC()
}

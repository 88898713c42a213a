package trajectory

// index finds again what is in a record.
type index struct {
	nodes    map[ID]int         // into Record.Nodes
	edges    map[[2]ID]Relation // by source and target
	into     map[ID][]ID        // sources by target
	left     map[ID]bool        // the nodes that an edge leaves
	messages map[string]int     // by id, into Record.Messages
	data     map[datum]ID       // the first of each type of data and name
	next     map[Type]int       // numbers of the nodes to come
}

// datum tells a piece of data from the others of a round.
type datum struct {
	of   Type
	name string
}

func newIndex(r *Record) *index {
	x := &index{
		nodes: map[ID]int{}, edges: map[[2]ID]Relation{}, into: map[ID][]ID{}, left: map[ID]bool{},
		messages: map[string]int{}, data: map[datum]ID{}, next: r.Next(),
	}
	for i, n := range r.Nodes {
		x.node(n, i)
	}
	for _, e := range r.Edges {
		x.edge(e)
	}
	for i, m := range r.Messages {
		x.messages[m.ID] = i
	}
	return x
}

func (x *index) node(n Node, at int) {
	x.nodes[n.ID] = at
	d := datum{n.Type, n.Name}
	if _, known := x.data[d]; n.Type.Data() && n.Name != "" && !known {
		x.data[d] = n.ID
	}
}

func (x *index) edge(e Edge) {
	x.edges[[2]ID{e.Source, e.Target}] = e.Relationship
	x.into[e.Target] = append(x.into[e.Target], e.Source)
	x.left[e.Source] = true
}

// reaches reports whether a path leads from one node to another, by going back
// from the other.
func (x *index) reaches(from, to ID) bool {
	if from == to {
		return true
	}
	if !x.left[from] { // as a tool that many calls refer to
		return false
	}
	seen := map[ID]bool{}
	todo := []ID{to}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if id == from {
			return true
		}
		if !seen[id] {
			seen[id] = true
			todo = append(todo, x.into[id]...)
		}
	}
	return false
}

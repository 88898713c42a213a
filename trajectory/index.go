package trajectory

// recordIndex indexes a record.
type recordIndex struct {
	nodes       map[ID]int         // into Record.Nodes
	edges       map[[2]ID]Relation // by source and target
	sources     map[ID][]ID        // sources by target
	hasOutgoing map[ID]bool        // nodes with outgoing edges
	messages    map[string]int     // by id, into Record.Messages
	data        map[dataKey]ID     // the first node of each data type and name
	nextNumber  map[Type]int       // numbers of the next nodes
}

// dataKey identifies a piece of data within a round.
type dataKey struct {
	of   Type
	name string
}

func newIndex(r *Record) *recordIndex {
	x := &recordIndex{
		nodes: map[ID]int{}, edges: map[[2]ID]Relation{}, sources: map[ID][]ID{}, hasOutgoing: map[ID]bool{},
		messages: map[string]int{}, data: map[dataKey]ID{}, nextNumber: r.NextNumbers(),
	}
	for i, n := range r.Nodes {
		x.addNode(n, i)
	}
	for _, e := range r.Edges {
		x.addEdge(e)
	}
	for i, m := range r.Messages {
		x.messages[m.ID] = i
	}
	return x
}

func (x *recordIndex) addNode(n Node, at int) {
	x.nodes[n.ID] = at
	d := dataKey{n.Type, n.Name}
	if _, known := x.data[d]; n.Type.IsData() && n.Name != "" && !known {
		x.data[d] = n.ID
	}
}

func (x *recordIndex) addEdge(e Edge) {
	x.edges[[2]ID{e.Source, e.Target}] = e.Relationship
	x.sources[e.Target] = append(x.sources[e.Target], e.Source)
	x.hasOutgoing[e.Source] = true
}

// reaches reports whether there is a path between two nodes, searching back from the target.
func (x *recordIndex) reaches(from, to ID) bool {
	if from == to {
		return true
	}
	if !x.hasOutgoing[from] { // such as a tool to which many calls refer
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
			todo = append(todo, x.sources[id]...)
		}
	}
	return false
}

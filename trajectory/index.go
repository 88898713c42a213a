package trajectory

// recordIndex finds what is in a record.
type recordIndex struct {
	nodes      map[ID]int         // into Record.Nodes and links
	links      []nodeLinks        // of each node
	edges      map[[2]ID]Relation // by source and target
	messages   map[string]int     // by id, into Record.Messages
	data       map[dataKey]ID     // the first node of each data type and name
	nextNumber map[Type]int       // numbers of the next nodes
	pointers   map[ID]bool        // the active branch pointers
	visited    int                // nodes that searches for paths have visited
}

// nodeLinks are the edges of a node. The rank of an edge's source is less than that of its
// target, so a search for a path visits only nodes whose rank lies between its ends.
type nodeLinks struct {
	in, out []int32 // sources and targets
	rank    int32
}

// dataKey identifies a piece of data within a round.
type dataKey struct {
	of   Type
	name string
}

func newIndex(r *Record) *recordIndex {
	x := &recordIndex{
		nodes: map[ID]int{}, edges: map[[2]ID]Relation{},
		messages: map[string]int{}, data: map[dataKey]ID{}, nextNumber: r.NextNumbers(), pointers: map[ID]bool{},
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
	for _, id := range r.Current {
		x.pointers[id] = true
	}
	return x
}

func (x *recordIndex) addNode(n Node, at int) {
	x.nodes[n.ID] = at
	x.links = append(x.links, nodeLinks{})
	d := dataKey{n.Type, n.Name}
	if _, known := x.data[d]; n.Type.IsData() && n.Name != "" && !known {
		x.data[d] = n.ID
	}
}

// addEdge adds an edge between two nodes of the record.
func (x *recordIndex) addEdge(e Edge) {
	x.edges[[2]ID{e.Source, e.Target}] = e.Relationship
	from, ok1 := x.nodes[e.Source]
	to, ok2 := x.nodes[e.Target]
	if !ok1 || !ok2 {
		return
	}
	x.links[from].out = append(x.links[from].out, int32(to))
	x.links[to].in = append(x.links[to].in, int32(from))
	x.raise(int32(from), int32(to))
}

// raise gives the target of a new edge, and what follows from it, a rank above that of the
// source. In a cycle, which no record may have, it stops at the largest possible rank.
func (x *recordIndex) raise(from, to int32) {
	most := int32(len(x.links))
	todo := [][2]int32{{from, to}}
	for len(todo) > 0 {
		e := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		rank := x.links[e[0]].rank + 1
		if at := &x.links[e[1]]; at.rank < rank && rank <= most {
			at.rank = rank
			for _, next := range at.out {
				todo = append(todo, [2]int32{e[1], next})
			}
		}
	}
}

// reaches reports whether a path leads from one node to another. It searches forward from
// the one and back from the other in turn, and ends when either search has ended: a tool
// that many calls refer to leads nowhere, and a new step has few successors.
func (x *recordIndex) reaches(from, to ID) bool {
	if from == to {
		return true
	}
	a, ok1 := x.nodes[from]
	b, ok2 := x.nodes[to]
	if !ok1 || !ok2 || x.links[a].rank >= x.links[b].rank {
		return false
	}
	forward, back := newPathSearch(int32(a)), newPathSearch(int32(b))
	for {
		at, ok := forward.next()
		if !ok {
			return false
		}
		if back.seen[at] {
			return true
		}
		for _, i := range x.links[at].out {
			forward.add(i, x.links[i].rank <= x.links[b].rank)
		}
		if at, ok = back.next(); !ok {
			return false
		}
		if forward.seen[at] {
			return true
		}
		for _, i := range x.links[at].in {
			back.add(i, x.links[i].rank >= x.links[a].rank)
		}
		x.visited += 2
	}
}

// pathSearch is a search from one end of a path.
type pathSearch struct {
	seen map[int32]bool
	todo []int32
}

func newPathSearch(at int32) *pathSearch {
	return &pathSearch{seen: map[int32]bool{at: true}, todo: []int32{at}}
}

// next returns a node to visit, and false if there is none.
func (s *pathSearch) next() (int32, bool) {
	if len(s.todo) == 0 {
		return 0, false
	}
	at := s.todo[len(s.todo)-1]
	s.todo = s.todo[:len(s.todo)-1]
	return at, true
}

// add adds a node to visit if it can be part of a path.
func (s *pathSearch) add(at int32, possible bool) {
	if possible && !s.seen[at] {
		s.seen[at] = true
		s.todo = append(s.todo, at)
	}
}

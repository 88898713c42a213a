package trajectory

// Operation is one explicit operation of a flow's node on the trajectory of its run; one of the four fields is set.
type Operation struct {
	Add   *NewNode  `json:"add,omitempty"`
	Link  *Edge     `json:"link,omitempty"`
	Edit  *NodeEdit `json:"edit,omitempty"`
	Point []ID      `json:"point,omitempty"`
}

// NodeEdit is the edit of a node.
type NodeEdit struct {
	ID ID `json:"id"`
	Edit
}

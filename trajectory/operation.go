package trajectory

// Operation is one thing that a node of a flow does to the trajectory of its run by
// hand; one of the four is set.
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

package trajectory

// Operation is one thing that a node of a flow does to the trajectory of its run by
// hand; one of the four is set.
type Operation struct {
	Add   *New     `json:"add,omitempty"`
	Link  *Edge    `json:"link,omitempty"`
	Edit  *Editing `json:"edit,omitempty"`
	Point []ID     `json:"point,omitempty"`
}

// Editing is the edit of a node.
type Editing struct {
	ID ID `json:"id"`
	Edit
}

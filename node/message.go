package node

// MessageID is the id under which a context keeps what came from an output
// port ("ask.text", "talk#2/ask.text"). Every node that says something for a
// port uses it, so that one message said by two nodes is known to be one.
func (c *Ctx) MessageID(origin string) string { return origin }

package node

// MessageID is the id under which a context keeps what came from an output
// port ("ask.text", "talk#2/ask.text"). Every node that says something for a
// port uses it, so that one message said by two nodes is known to be one. In a
// round of a session it begins with the round's number and place ("12.40/ask.text"),
// so that no other round, nor one of a fork, says the same; in a child run it begins
// with the run's id, so that ids are unique in a tree of runs.
func (c *Ctx) MessageID(origin string) string { return c.info.Prefix + origin }

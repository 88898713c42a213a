package node

// MessageID returns the id of a message from an output port ("ask.text",
// "talk#2/ask.text"). All nodes that add a port's message use it, so that a message added
// twice is recognised. In a round of a session the id has the round's number and position
// as its prefix ("12.40/ask.text"), so that other rounds and forks have other ids; in a
// child run the prefix is the run's id, so that ids are unique in a tree of runs.
func (c *Ctx) MessageID(origin string) string { return c.info.Prefix + origin }

package node

import "strconv"

// MessageID is the id under which a context keeps what came from an output
// port ("ask.text", "talk#2/ask.text"). Every node that says something for a
// port uses it, so that one message said by two nodes is known to be one. In a
// round of a session it begins with the round's number ("12/ask.text"), so that
// the next round says its own.
func (c *Ctx) MessageID(origin string) string {
	if c.info.Round == 0 {
		return origin
	}
	return strconv.Itoa(c.info.Round) + "/" + origin
}

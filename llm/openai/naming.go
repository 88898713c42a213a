package openai

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/weir-run/weir/convo"
)

// maxCallID is the longest call_id that the Responses API takes, in bytes.
const maxCallID = 64

// naming gives each call of a history an id of its own. Models do use an id
// again some turns later, and other vendors' ids may be too long; a result
// belongs to the newest call of its id.
type naming struct {
	sent map[string]string // the name of the newest call of an id
	used map[string]bool
}

func newNaming() *naming { return &naming{sent: map[string]string{}, used: map[string]bool{}} }

// call names a call that is being sent.
func (n *naming) call(id string) string {
	as := id
	if len(as) > maxCallID {
		sum := sha256.Sum256([]byte(id))
		as = "call_" + hex.EncodeToString(sum[:16])
	}
	for again := 2; n.used[as]; again++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", id, again))
		as = "call_" + hex.EncodeToString(sum[:16])
	}
	n.used[as], n.sent[id] = true, as
	return as
}

// hold takes the ids of calls that the vendor has, under the ids that it gave.
func (n *naming) hold(calls []convo.Call) {
	for _, c := range calls {
		n.used[c.ID] = true
	}
}

// result names the call that a result answers.
func (n *naming) result(id string) string { return cmp.Or(n.sent[id], id) }

// keeps says that all calls would keep their ids, and then takes them.
func (n *naming) keeps(calls []convo.Call) bool {
	own := map[string]bool{}
	for _, c := range calls {
		if n.used[c.ID] || own[c.ID] || len(c.ID) > maxCallID {
			return false
		}
		own[c.ID] = true
	}
	for _, c := range calls {
		n.call(c.ID)
	}
	return true
}

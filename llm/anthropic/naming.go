package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
)

var idPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// naming gives each call of a history an id of its own that the API takes.
// Models do use an id again some turns later, and other vendors' ids may hold
// other letters; a result belongs to the newest call of its id. The same
// history is always named the same.
type naming struct {
	used map[string]bool
}

// call names a call that is being sent.
func (n *naming) call(id string) string {
	as := id
	for again := 1; !idPattern.MatchString(as) || n.used[as]; again++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", id, again))
		as = "toolu_" + hex.EncodeToString(sum[:12])
	}
	n.used[as] = true
	return as
}

var foreignLetters = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// toolName is the name of a call of another vendor's model as this API takes it.
func toolName(name string) string {
	name = foreignLetters.ReplaceAllString(name, "_")
	if name == "" {
		return "_"
	}
	return name[:min(len(name), 64)]
}

package follow

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/scrub"
	"github.com/weir-run/weir/trajectory"
)

// How much of what led to a piece of data is told to whoever describes it.
const (
	maxSubject   = 8 << 10 // bytes in all
	maxAttribute = 1 << 10
	maxBefore    = 12 // nodes
)

// DescriptionInput is what is known of a piece of data, as text for a model that describes
// it: the data, the Actions that it came of, and what these followed from, back to
// the query. Texts under names that say that they are secret, in these or in secrets, are
// hidden. ok is false where it is described by now, or there is no such data.
func (f *Follower) DescriptionInput(d DataRef, secrets ...any) (text string, ok bool) {
	f.mu.Lock()
	r := f.recorderOf(d.Sub)
	f.mu.Unlock()
	if r == nil {
		return "", false
	}
	n, err := r.Node(d.ID)
	if err != nil || n.Description != "" {
		return "", false
	}
	steps := r.Ancestors(d.ID, maxBefore)
	known := []any{n.Attributes}
	for _, s := range steps {
		known = append(known, s.Attributes)
	}
	var hidden scrub.Set
	for _, secret := range scrub.TextsUnderSecretNames(append(known, secrets...)...) {
		hidden.Add(secret, "[hidden]")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The data: %s %q.\n", n.Type, hidden.Scrub(n.Name))
	b.WriteString(convo.Fence(attributeLines(n, &hidden), "data"))
	b.WriteString("\n\nWhat led to it, the latest first:\n")
	for _, before := range steps {
		if b.Len() > maxSubject {
			break
		}
		b.WriteString(convo.Fence(fmt.Sprintf("%s %s\n%s", before.Type, hidden.Scrub(before.Name), attributeLines(before, &hidden)), "step"))
		b.WriteByte('\n')
	}
	return b.String(), true
}

// stepAttributes are the attributes of steps that say what they did.
func stepAttributes() []string {
	return []string{
		trajectory.AttrKind, trajectory.AttrText, trajectory.AttrToolName, trajectory.AttrArguments, trajectory.AttrResult, "type", "outputs", "code",
	}
}

// attributeLines are a node's attributes as lines, those of data all, those of steps
// that say what was done.
func attributeLines(n trajectory.Node, hidden *scrub.Set) string {
	var b strings.Builder
	write := func(name string) {
		v, ok := n.Attributes[name]
		if !ok {
			return
		}
		text := hidden.Scrub(node.TextOf(v))
		if len(text) > maxAttribute {
			text = strings.ToValidUTF8(text[:maxAttribute], "") + "…"
		}
		fmt.Fprintf(&b, "%s: %s\n", name, text)
	}
	if !n.Type.IsData() {
		for _, name := range stepAttributes() {
			write(name)
		}
		return b.String()
	}
	for _, name := range sorted(n.Attributes) {
		write(name)
	}
	return b.String()
}

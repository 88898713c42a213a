package follow

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/scrub"
	"github.com/weir-run/weir/trajectory"
)

// Limits of the description of a piece of data's origin.
const (
	maxSubject   = 8 << 10 // bytes in all
	maxAttribute = 1 << 10
	maxBefore    = 12 // nodes
)

// DescriptionInput returns a text from which a model can describe a piece of data: the data, the Actions that
// produced it, and their ancestors up to the query. Texts under secret names are hidden: generally known ones and
// those in secrets. ok is false if the data is described already or does not exist.
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
	known := []any{map[string]any(n.Attributes)}
	for _, s := range steps {
		known = append(known, map[string]any(s.Attributes))
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

// stepAttributes returns the attributes that describe what a step did.
func stepAttributes() []string {
	return []string{
		trajectory.AttrKind, trajectory.AttrText, trajectory.AttrToolName, trajectory.AttrArguments, trajectory.AttrResult, "type", "outputs", "code",
	}
}

// attributeLines formats a node's attributes, one a line: all of a data node, stepAttributes of a step.
func attributeLines(n trajectory.Node, hidden *scrub.Set) string {
	var b strings.Builder
	write := func(name string) {
		v, ok := n.Attributes[name]
		if !ok {
			return
		}
		fmt.Fprintf(&b, "%s: %s\n", name, excerpt.Bytes(hidden.Scrub(node.TextOf(v)), maxAttribute))
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

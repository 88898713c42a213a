package weir

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// idless compares what two runs hold without the ids of their child runs, which
// follow from the run's own: the same node of another run has another child.
type idless struct{ a, b *regexp.Regexp }

func idlessOf(a, b *runner.View) idless { return idless{childrenOf(a), childrenOf(b)} }

// childrenOf matches the ids of all runs below a run, and below those whose past
// it shares.
func childrenOf(v *runner.View) *regexp.Regexp {
	var trees []string
	for _, l := range lineage(v) {
		tree, _, _ := strings.Cut(l.Run, ".")
		trees = append(trees, regexp.QuoteMeta(tree))
	}
	return regexp.MustCompile(`\b(?:` + strings.Join(trees, "|") + `)\.[a-z2-7]{12}\b`)
}

// child stands for the id of a child run. It has no quotes: it is put into JSON.
const child = "\u27e8child run\u27e9"

func (i idless) texts(a, b string) bool {
	return a == b || i.a.ReplaceAllLiteralString(a, child) == i.b.ReplaceAllLiteralString(b, child)
}

func (i idless) values(a, b engine.Value) bool {
	return reflect.DeepEqual(a, b) || reflect.DeepEqual(without(i.a, a), without(i.b, b))
}

func (i idless) events(a, b engine.Event) bool {
	return a == b || a.Kind() == b.Kind() && reflect.DeepEqual(without(i.a, essence(a)), without(i.b, essence(b)))
}

// messages compares two messages but for their ids and metadata.
func (i idless) messages(a, b convo.Message) bool {
	a.Metadata, b.Metadata = nil, nil
	a.ID, b.ID = "", "" // those of a child's messages hold its run's id
	if i.texts(a.Text, b.Text) {
		a.Text, b.Text = "", ""
	}
	return a.Equal(b)
}

// without is a value in which no id of a child run stands, a copy where it had one.
func without(ids *regexp.Regexp, v any) any {
	switch v := v.(type) {
	case string:
		return ids.ReplaceAllLiteralString(v, child)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = without(ids, x)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[ids.ReplaceAllLiteralString(k, child)] = without(ids, x)
		}
		return out
	}
	return v
}

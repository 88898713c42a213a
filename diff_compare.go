package weir

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// comparison compares what two runs hold without the ids of their child runs, which
// follow from the run's own: the same node of another run has another child.
type comparison struct{ a, b *regexp.Regexp }

func newComparison(a, b *runner.RunView) comparison {
	return comparison{childIDPattern(a), childIDPattern(b)}
}

// childIDPattern matches the ids of all runs below a run, and below those whose past
// it shares.
func childIDPattern(v *runner.RunView) *regexp.Regexp {
	var trees []string
	for _, l := range ancestors(v) {
		tree, _, _ := strings.Cut(l.Run, ".")
		trees = append(trees, regexp.QuoteMeta(tree))
	}
	return regexp.MustCompile(`\b(?:` + strings.Join(trees, "|") + `)\.[a-z2-7]{12}\b`)
}

// childIDPlaceholder stands for the id of a child run. It has no quotes: it is put into JSON.
const childIDPlaceholder = "\u27e8child run\u27e9"

func (i comparison) equalTexts(a, b string) bool {
	return a == b || i.a.ReplaceAllLiteralString(a, childIDPlaceholder) == i.b.ReplaceAllLiteralString(b, childIDPlaceholder)
}

func (i comparison) equalValues(a, b engine.Value) bool {
	return reflect.DeepEqual(a, b) || reflect.DeepEqual(replaceIDs(i.a, a), replaceIDs(i.b, b))
}

func (i comparison) equalEvents(a, b engine.Event) bool {
	return a == b || a.Kind() == b.Kind() && reflect.DeepEqual(replaceIDs(i.a, comparedFields(a)), replaceIDs(i.b, comparedFields(b)))
}

// equalMessages compares two messages but for their ids and metadata.
func (i comparison) equalMessages(a, b convo.Message) bool {
	a.Metadata, b.Metadata = nil, nil
	a.ID, b.ID = "", "" // those of a child's messages hold its run's id
	if i.equalTexts(a.Text, b.Text) {
		a.Text, b.Text = "", ""
	}
	return a.Equal(b)
}

// replaceIDs is a value in which no id of a child run stands, a copy where it had one.
func replaceIDs(ids *regexp.Regexp, v any) any {
	switch v := v.(type) {
	case string:
		return ids.ReplaceAllLiteralString(v, childIDPlaceholder)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = replaceIDs(ids, x)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[ids.ReplaceAllLiteralString(k, childIDPlaceholder)] = replaceIDs(ids, x)
		}
		return out
	}
	return v
}

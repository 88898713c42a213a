package history

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// comparison compares two runs and ignores the ids of their child runs, which are derived
// from the run's id and therefore always differ.
type comparison struct{ a, b *regexp.Regexp }

func newComparison(a, b *runner.RunView) comparison {
	return comparison{childIDPattern(a), childIDPattern(b)}
}

// childIDPattern matches the ids of the child runs of a run, and of the runs whose past it
// shares.
func childIDPattern(v *runner.RunView) *regexp.Regexp {
	var trees []string
	for _, l := range ancestors(v) {
		tree, _, _ := strings.Cut(l.Run, ".")
		trees = append(trees, regexp.QuoteMeta(tree))
	}
	return regexp.MustCompile(`\b(?:` + strings.Join(trees, "|") + `)\.[a-z2-7]{12}\b`)
}

// childIDPlaceholder replaces the ids of child runs. It has no quotes because it is
// inserted into JSON.
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

// equalMessages compares two messages and ignores their ids and metadata.
func (i comparison) equalMessages(a, b convo.Message) bool {
	a.Metadata, b.Metadata = nil, nil
	a.ID, b.ID = "", "" // the ids of a child's messages contain its run id
	if i.equalTexts(a.Text, b.Text) {
		a.Text, b.Text = "", ""
	}
	return a.Equal(b)
}

// replaceIDs returns a value with the ids of child runs replaced. It copies what it
// changes.
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

package weirkit

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
)

// WorkRow is a row of a chain of work in a form in which the Go API and the SQL view
// can be compared.
type WorkRow struct {
	Node, Type, Status, Code string
	Attempt                  int
	Before, After            any
}

// PlainState returns a state as plain JSON values.
func PlainState(t *testing.T, s engine.State) any {
	t.Helper()
	m := map[string]any{}
	for _, k := range s.Keys() {
		m[k], _ = s.Get(k)
	}
	b, err := engine.EncodeValue(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	return PlainJSON(t, string(b))
}

// PlainJSON decodes JSON text, without the marks of encoded values.
func PlainJSON(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	return WithoutMarks(v)
}

// WithoutMarks replaces each object {"$": {...}}, the encoding of an object of the
// user, with the object inside.
func WithoutMarks(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = WithoutMarks(v[i])
		}
	case map[string]any:
		if inner, ok := v["$"].(map[string]any); ok && len(v) == 1 {
			return WithoutMarks(inner)
		}
		for k := range v {
			v[k] = WithoutMarks(v[k])
		}
	}
	return v
}

// ChainRows returns the rows of Weir.Chain, in order, and how many steps they have. The
// state before each row must equal the state that Inspect returns at that event.
func ChainRows(t *testing.T, w *weir.Weir, run string) (rows []WorkRow, steps int) {
	t.Helper()
	var all []history.Work
	for x, err := range w.Chain(t.Context(), run) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b history.Work) int { return a.Seq - b.Seq })
	for _, x := range all {
		r := WorkRow{Node: x.Node, Type: x.Type, Status: x.Status, Code: x.Code, Attempt: x.Attempt, Before: PlainState(t, x.Before)}
		steps += len(x.Steps)
		if x.Last > 0 {
			r.After = PlainState(t, x.After)
		}
		rows = append(rows, r)
		if strings.Contains(x.Node, "#") {
			continue // the state may be a lane's
		}
		v, err := w.Inspect(t.Context(), run, x.First)
		if err != nil {
			t.Fatal(err)
		}
		if got := PlainState(t, v.Run.State()); !reflect.DeepEqual(got, r.Before) {
			t.Errorf("run %s, %s: before it Inspect has %v, and the chain %v", run, x.Node, got, r.Before)
		}
	}
	return rows, steps
}

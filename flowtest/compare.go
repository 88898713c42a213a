package flowtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// actual is a value of a run; there is false if it is missing.
type actual struct {
	v       any
	present bool
}

// Failure is one difference from the expectations of a test.
type Failure struct {
	// Pos is the position of the expectation in the test file; without a line if there is none.
	Pos flow.Pos
	// Where names the value that differs: "outputs.reply"; "" is the test as a whole.
	Where string
	// Message describes the difference on one line.
	Message string
	// Diff shows the difference if one line does not suffice; otherwise it is nil.
	Diff []Line
}

// Line is a line of a difference.
type Line struct {
	// Mark is '-' for an expected line, '+' for an actual line, ' ' for both.
	Mark byte
	Text string
}

// compare lists the differences of a value from an expectation.
func compare(where string, want *flow.FileValue, got actual) []Failure {
	switch {
	case isMatcher(want):
		return match(where, want, got)
	case !got.present:
		return fail(want, where, "expected %s, and there is nothing", brief(want.Value()))
	case want.IsObject():
		return compareObject(where, want, got.v)
	case want.IsList():
		return compareList(where, want.Items(), want, got.v, compare)
	}
	if equal(want.Value(), got.v) {
		return nil
	}
	return []Failure{differs(want.Pos(), where, want.Value(), got.v)}
}

func fail(want *flow.FileValue, where, format string, args ...any) []Failure {
	return []Failure{{Pos: want.Pos(), Where: where, Message: fmt.Sprintf(format, args...)}}
}

func compareObject(where string, want *flow.FileValue, got any) []Failure {
	o, ok := got.(map[string]any)
	if !ok {
		return fail(want, where, "expected an object, got %s", brief(got))
	}
	out := compareKeys(where, want, o)
	for _, k := range sortedKeys(o) {
		if want.Get(k) == nil {
			out = append(out, fail(want, join(where, k), "not expected, got %s", brief(o[k]))...)
		}
	}
	return out
}

// compareKeys compares the expected keys; others are ignored.
func compareKeys(where string, want *flow.FileValue, got map[string]any) []Failure {
	var out []Failure
	for _, e := range want.Entries() {
		v, there := got[e.Key]
		out = append(out, compare(join(where, e.Key), e.Value, actual{v, there})...)
	}
	return out
}

// comparer compares one element.
type comparer func(where string, want *flow.FileValue, got actual) []Failure

// compareList compares lists element by element. If their lengths differ, it shows the missing and the additional
// elements.
func compareList(where string, want []*flow.FileValue, at *flow.FileValue, got any, element comparer) []Failure {
	list, ok := got.([]any)
	if !ok {
		return fail(at, where, "expected a list, got %s", brief(got))
	}
	if len(want) == len(list) {
		var out []Failure
		for i, w := range want {
			out = append(out, element(fmt.Sprintf("%s[%d]", where, i), w, actual{list[i], true})...)
		}
		return out
	}
	f := Failure{
		Pos: at.Pos(), Where: where,
		Message: fmt.Sprintf("expected %s, got %s", elements(len(want)), elements(len(list))),
		Diff:    alignLists(want, list, element),
	}
	return []Failure{f}
}

// alignLists aligns the equal elements of two lists.
func alignLists(want []*flow.FileValue, got []any, element comparer) []Line {
	var out []Line
	align(len(want), len(got),
		func(i, j int) bool { return len(element("", want[i], actual{got[j], true})) == 0 },
		func(mark byte, i, j int) {
			if mark == '-' {
				out = append(out, Line{mark, line(want[i].Value())})
				return
			}
			out = append(out, Line{mark, line(got[j])})
		})
	return out
}

// subsequence checks that each expected element occurs, in that order, with any elements between.
func subsequence(where string, want *flow.FileValue, got any, element comparer) []Failure {
	list, ok := got.([]any)
	if !ok {
		return fail(want, where, "expected a list, got %s", brief(got))
	}
	j := 0
	for i, w := range want.Items() {
		from := j
		for j < len(list) && len(element("", w, actual{list[j], true})) > 0 {
			j++
		}
		if j == len(list) {
			after := "there is no such element"
			if from > 0 {
				after = fmt.Sprintf("there is no such element after the first %d", from)
			}
			f := Failure{Pos: w.Pos(), Where: fmt.Sprintf("%s[%d]", where, i), Message: fmt.Sprintf("expected %s; %s", brief(w.Value()), after)}
			for _, g := range list {
				f.Diff = append(f.Diff, Line{' ', line(g)})
			}
			return []Failure{f}
		}
		j++
	}
	return nil
}

// differs returns the failure for two different values.
func differs(pos flow.Pos, where string, want, got any) Failure {
	f := Failure{Pos: pos, Where: where}
	w, ok := want.(string)
	g, ok2 := got.(string)
	if ok && ok2 && (strings.Contains(w, "\n") || strings.Contains(g, "\n") || len(w) > 70 || len(g) > 70) {
		f.Message = "the texts differ " + firstDifference(w, g)
		f.Diff = diffTexts(w, g)
		return f
	}
	f.Message = fmt.Sprintf("expected %s, got %s", brief(want), brief(got))
	if engine.KindOf(want) != engine.KindOf(got) {
		f.Message = fmt.Sprintf("expected %s (%s), got %s (%s)", brief(want), engine.KindOf(want), brief(got), engine.KindOf(got))
	}
	return f
}

// equal compares plain values; 1 equals 1.0.
func equal(a, b any) bool {
	switch x := a.(type) {
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equal)
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			if w, there := y[k]; !there || !equal(v, w) {
				return false
			}
		}
		return true
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	return a == b
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func join(where, key string) string {
	if where == "" {
		return key
	}
	return where + "." + key
}

func elements(n int) string {
	if n == 1 {
		return "1 element"
	}
	return fmt.Sprintf("%d elements", n)
}

// String returns "file:line:column: where: message", with the difference below.
func (f *Failure) String() string {
	var b strings.Builder
	if f.Pos.Line > 0 {
		b.WriteString(f.Pos.String() + ": ")
	}
	if f.Where != "" {
		b.WriteString(f.Where + ": ")
	}
	b.WriteString(strings.ReplaceAll(f.Message, "\n", "\n    "))
	for _, l := range f.Diff {
		fmt.Fprintf(&b, "\n  %c %s", l.Mark, l.Text)
	}
	return b.String()
}

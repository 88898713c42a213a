package flowtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/excerpt"
)

// reader reads a test file and collects its problems.
type reader struct {
	problems []flow.Problem
}

func (r *reader) report(pos flow.Pos, code, msg, hint string) {
	r.problems = append(r.problems, flow.Problem{Pos: pos, Code: code, Message: msg, Hint: hint})
}

// reportAt reports an invalid value.
func (r *reader) reportAt(d *flow.FileValue, format string, args ...any) {
	r.report(d.Pos(), flow.CodeBadValue, fmt.Sprintf(format, args...), "")
}

// invalid returns the error with all distinct problems in order of place; nil if there are none.
func (r *reader) invalid() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b flow.Problem) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Column, b.Pos.Column), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	return &flow.Invalid{Problems: slices.Compact(r.problems)}
}

// object reports whether d is an object, and reports unknown keys.
func (r *reader) object(d *flow.FileValue, what string, keys ...string) bool {
	if !d.IsObject() {
		r.reportAt(d, "%s must be an object; got %s", what, show(d))
		return false
	}
	for _, e := range d.Entries() {
		if !slices.Contains(keys, e.Key) {
			r.report(e.Pos, flow.CodeUnknownKey,
				fmt.Sprintf("%s has no key %q; expected one of %s", what, e.Key, strings.Join(keys, ", ")), didYouMean(e.Key, keys))
		}
	}
	return true
}

// text reads a text; "" if d is nil.
func (r *reader) text(d *flow.FileValue, what string) string {
	if d == nil {
		return ""
	}
	s, ok := d.Text()
	if !ok {
		r.reportAt(d, "%s must be a text; got %s", what, show(d))
	}
	return s
}

// flag reads a bool; false if d is nil.
func (r *reader) flag(d *flow.FileValue, what string) bool {
	if d == nil {
		return false
	}
	b, ok := d.Value().(bool)
	if !ok {
		r.reportAt(d, "%s must be true or false; got %s", what, show(d))
	}
	return b
}

// count reads a whole number of at least 0; 0 if d is nil.
func (r *reader) count(d *flow.FileValue, what string) int {
	if d == nil {
		return 0
	}
	n, ok := d.Value().(int64)
	if !ok || n < 0 || n > 1_000_000_000 {
		r.reportAt(d, "%s must be a whole number from 0; got %s", what, show(d))
		return 0
	}
	return int(n)
}

// duration reads a duration: text in Go's format, or whole seconds.
func (r *reader) duration(d *flow.FileValue, what string) time.Duration {
	if d == nil {
		return 0
	}
	const most = 10 * 365 * 24 * time.Hour
	switch v := d.Value().(type) {
	case int64:
		if v >= 0 && v <= int64(most/time.Second) {
			return time.Duration(v) * time.Second
		}
	case string:
		if t, err := time.ParseDuration(v); err == nil && t >= 0 && t <= most {
			return t
		}
	}
	r.report(d.Pos(), flow.CodeBadDuration, fmt.Sprintf("%s must be a duration; got %s", what, show(d)),
		"write 30s, 5m or 1h30m, or whole seconds")
	return 0
}

// texts reads a text or a list of texts.
func (r *reader) texts(d *flow.FileValue, what string) []string {
	switch {
	case d == nil:
		return nil
	case !d.IsList():
		return []string{r.text(d, what)}
	}
	var out []string
	for _, e := range d.Items() {
		out = append(out, r.text(e, "an element of "+what))
	}
	return out
}

// show names a value in a message.
func show(d *flow.FileValue) string {
	s, ok := d.Text()
	switch {
	case !ok:
		return d.Kind()
	case d.IsText():
		return fmt.Sprintf("%q", excerpt.Chars(s, 60))
	}
	return excerpt.Chars(s, 60)
}

// didYouMean returns a hint that suggests a similar candidate.
func didYouMean(got string, candidates []string) string {
	if best := flow.NearestName(got, candidates); best != "" {
		return "did you mean " + best + "?"
	}
	return ""
}

// testKeys are the keys of a test over those of the file's defaults. A null in the test removes a default.
type testKeys struct{ test, defaults *flow.FileValue }

// get returns the value of a key.
func (l testKeys) get(key string) *flow.FileValue {
	d := l.test.Get(key)
	if d == nil {
		d = l.defaults.Get(key)
	}
	if d != nil && d.IsNull() {
		return nil
	}
	return d
}

// entry is an entry of an object that may be in the test and in the defaults.
type entry struct {
	flow.Entry
	inTest bool // from the test itself
}

// entries returns the entries of the object of a key, from both layers; those of the test override the defaults.
func (l testKeys) entries(r *reader, key, what string) []entry {
	var out []entry
	own, base := r.members(l.test.Get(key), key, what), l.defaults.Get(key)
	if d := l.test.Get(key); d != nil && d.IsNull() {
		base = nil
	}
	for _, e := range r.members(base, key, what) {
		if !slices.ContainsFunc(own, func(o flow.Entry) bool { return o.Key == e.Key }) {
			out = append(out, entry{e, false})
		}
	}
	for _, e := range own {
		out = append(out, entry{e, true})
	}
	return out
}

// members returns the entries of an object; another kind of value is reported.
func (r *reader) members(d *flow.FileValue, key, what string) []flow.Entry {
	if d == nil || d.IsNull() {
		return nil
	}
	if !d.IsObject() {
		r.reportAt(d, "%s must be an object of %s; got %s", key, what, show(d))
		return nil
	}
	return d.Entries()
}

// values converts entries to plain data.
func (r *reader) values(list []entry) map[string]any {
	if list == nil {
		return nil
	}
	out := make(map[string]any, len(list))
	for _, e := range list {
		out[e.Key] = e.Value.Value()
	}
	return out
}

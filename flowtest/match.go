package flowtest

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/node"
)

// Matchers returns the keys of an object that describes conditions on a value instead of the value.
func Matchers() []string {
	return []string{
		"$above", "$absent", "$all", "$any", "$approx", "$below", "$contains", "$each", "$endsWith", "$equals",
		"$json", "$length", "$matches", "$max", "$min", "$not", "$oneOf", "$schema", "$startsWith", "$subset", "$within",
	}
}

// isMatcher reports whether d is an object of matchers.
func isMatcher(d *flow.FileValue) bool {
	return slices.ContainsFunc(d.Entries(), func(e flow.Entry) bool { return strings.HasPrefix(e.Key, "$") })
}

// checkExpected reports unknown and invalid matchers.
func (r *reader) checkExpected(d *flow.FileValue) {
	matcher := isMatcher(d)
	for _, e := range d.Entries() {
		switch {
		case !matcher:
			r.checkExpected(e.Value)
		case !slices.Contains(Matchers(), e.Key):
			hint := didYouMean(e.Key, Matchers())
			if hint == "" {
				hint = "there are " + strings.Join(Matchers(), ", ") + "; a value that has such a key is written $equals: {...}"
			}
			r.report(e.Pos, flow.CodeUnknownKey, fmt.Sprintf("there is no matcher %s", e.Key), hint)
		default:
			r.checkMatcher(d, e.Key, e.Value)
		}
	}
	for _, e := range d.Items() {
		r.checkExpected(e)
	}
}

// checkMatcher checks the argument of one matcher.
func (r *reader) checkMatcher(of *flow.FileValue, name string, d *flow.FileValue) {
	switch name {
	case "$above", "$below", "$max", "$min", "$approx", "$within":
		if _, ok := number(d.Value()); !ok {
			r.reportAt(d, "%s must be a number; got %s", name, show(d))
		}
		if name == "$within" && of.Get("$approx") == nil {
			r.reportAt(d, "$within stands beside $approx")
		}
	case "$matches":
		if _, err := regexp.Compile(r.text(d, name)); err != nil {
			r.reportAt(d, "%s is not a regular expression: %v", show(d), err)
		}
	case "$startsWith", "$endsWith":
		r.text(d, name)
	case "$absent":
		r.flag(d, name)
	case "$any":
		if s, ok := d.Value().(string); d.Value() != true && (!ok || !slices.Contains(kinds(), s)) {
			r.reportAt(d, "$any must be true, or one of %s; got %s", strings.Join(kinds(), ", "), show(d))
		}
	case "$all", "$oneOf":
		if !d.IsList() {
			r.reportAt(d, "%s must be a list of what is expected; got %s", name, show(d))
		}
		r.checkExpected(d)
	case "$subset":
		if !d.IsList() && !d.IsObject() {
			r.reportAt(d, "$subset must be an object or a list; got %s", show(d))
		}
		r.checkExpected(d)
	case "$schema":
		s, ok := d.Value().(map[string]any)
		if !ok {
			r.reportAt(d, "$schema must be a JSON Schema, an object; got %s", show(d))
		} else if _, err := node.CompileSchema(s); err != nil {
			r.reportAt(d, "%v", err)
		}
	case "$equals":
	default: // $contains, $each, $json, $length, $not
		r.checkExpected(d)
	}
}

func kinds() []string { return []string{"text", "number", "bool", "list", "object"} }

// match lists the matchers that a value does not satisfy.
func match(where string, want *flow.FileValue, got actual) []Failure {
	var out []Failure
	for _, e := range want.Entries() {
		if e.Key == "$absent" {
			if absent, _ := e.Value.Value().(bool); absent == got.present {
				out = append(out, Failure{Pos: e.Pos, Where: where, Message: absence(absent, got)})
			}
			continue
		}
		if !got.present {
			return append(out, fail(want, where, "expected a value, and there is nothing")...)
		}
		out = append(out, matchOne(where, want, e, got.v)...)
	}
	return out
}

func absence(absent bool, got actual) string {
	if absent {
		return "expected nothing, got " + brief(got.v)
	}
	return "expected a value, and there is nothing"
}

// matchOne applies one matcher.
func matchOne(where string, want *flow.FileValue, e flow.Entry, got any) []Failure {
	d := e.Value
	switch e.Key {
	case "$above", "$below", "$max", "$min", "$approx":
		return matchNumber(where, want, e, got)
	case "$contains", "$matches", "$startsWith", "$endsWith":
		return matchText(where, e, got)
	case "$any":
		if s, _ := d.Value().(string); s != "" && !strings.HasSuffix(engine.KindOf(got), " "+s) {
			return fail(d, where, "expected a value of kind %s, got %s", s, brief(got))
		}
	case "$equals":
		if !equal(d.Value(), got) {
			return []Failure{differs(d.Pos(), where, d.Value(), got)}
		}
	case "$not":
		if len(compare("", d, actual{got, true})) == 0 {
			return fail(d, where, "expected anything but %s, got %s", brief(d.Value()), brief(got))
		}
	case "$schema":
		if s, err := node.CompileSchema(d.Value().(map[string]any)); err != nil {
			return fail(d, where, "%v", err)
		} else if err := s.Check(got); err != nil {
			return fail(d, where, "%s does not fit the schema: %v", brief(got), err)
		}
	case "$json":
		v, err := parseJSON(got)
		if err != nil {
			return fail(d, where, "expected JSON, got %s: %v", brief(got), err)
		}
		return compare(where, d, actual{v, true})
	case "$length":
		n, ok := lengthOf(got)
		if !ok {
			return fail(d, where, "expected something that has a length, got %s", brief(got))
		}
		return compare(where+".length", d, actual{n, true})
	default:
		return matchMany(where, e, got)
	}
	return nil
}

func parseJSON(v any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("it is %s", engine.KindOf(v))
	}
	if !json.Valid([]byte(s)) {
		return nil, fmt.Errorf("it is a text that is not JSON")
	}
	return engine.ParseValue([]byte(s))
}

// lengthOf returns the number of characters of a text, or of elements of another value.
func lengthOf(v any) (int64, bool) {
	switch t := v.(type) {
	case string:
		return int64(utf8.RuneCountInString(t)), true
	case []any:
		return int64(len(t)), true
	case map[string]any:
		return int64(len(t)), true
	}
	return 0, false
}

// matchMany applies the matchers of lists and of several expectations.
func matchMany(where string, e flow.Entry, got any) []Failure {
	d := e.Value
	var out []Failure
	switch e.Key {
	case "$all":
		for _, w := range d.Items() {
			out = append(out, compare(where, w, actual{got, true})...)
		}
	case "$oneOf":
		for _, w := range d.Items() {
			if len(compare(where, w, actual{got, true})) == 0 {
				return nil
			}
		}
		return fail(d, where, "expected one of %s, got %s", brief(d.Value()), brief(got))
	case "$each":
		list, ok := got.([]any)
		if !ok {
			return fail(d, where, "expected a list, got %s", brief(got))
		}
		for i, g := range list {
			out = append(out, compare(fmt.Sprintf("%s[%d]", where, i), d, actual{g, true})...)
		}
	case "$subset":
		return matchSubset(where, d, got)
	}
	return out
}

func matchSubset(where string, d *flow.FileValue, got any) []Failure {
	if d.IsList() {
		return subsequence(where, d, got, compare)
	}
	o, ok := got.(map[string]any)
	if !ok {
		return fail(d, where, "expected an object, got %s", brief(got))
	}
	return compareKeys(where, d, o)
}

// matchText applies the matchers of texts; $contains also searches lists.
func matchText(where string, e flow.Entry, got any) []Failure {
	if list, ok := got.([]any); ok && e.Key == "$contains" {
		for _, g := range list {
			if len(compare("", e.Value, actual{g, true})) == 0 {
				return nil
			}
		}
		return fail(e.Value, where, "expected a list that contains %s, got %s", brief(e.Value.Value()), brief(got))
	}
	want, _ := e.Value.Text()
	s, ok := got.(string)
	if !ok {
		return fail(e.Value, where, "expected a text that %s %q, got %s (%s)", e.Key[1:], want, brief(got), engine.KindOf(got))
	}
	verb := "contains"
	switch e.Key {
	case "$contains":
		ok = strings.Contains(s, want)
	case "$startsWith":
		ok, verb = strings.HasPrefix(s, want), "starts with"
	case "$endsWith":
		ok, verb = strings.HasSuffix(s, want), "ends with"
	case "$matches":
		ok, verb = regexp.MustCompile(want).MatchString(s), "matches"
	}
	if ok {
		return nil
	}
	f := Failure{Pos: e.Value.Pos(), Where: where, Message: fmt.Sprintf("expected a text that %s %q, got %s", verb, want, brief(s))}
	if utf8.RuneCountInString(s) > maxBrief || strings.Contains(s, "\n") {
		f.Message = fmt.Sprintf("expected a text that %s %q, got", verb, want)
		for l := range strings.SplitSeq(s, "\n") {
			f.Diff = append(f.Diff, Line{'+', excerpt.Chars(l, maxLine)})
		}
	}
	return []Failure{f}
}

// matchNumber applies the matchers of numbers.
func matchNumber(where string, want *flow.FileValue, e flow.Entry, got any) []Failure {
	w, _ := number(e.Value.Value())
	g, ok := number(got)
	if !ok {
		return fail(e.Value, where, "expected a number, got %s", brief(got))
	}
	how := ""
	switch e.Key {
	case "$above":
		ok, how = g > w, "above"
	case "$below":
		ok, how = g < w, "below"
	case "$min":
		ok, how = g >= w, "of at least"
	case "$max":
		ok, how = g <= w, "of at most"
	case "$approx":
		within := math.Abs(w) * 1e-6
		if d := want.Get("$within"); d != nil {
			within, _ = number(d.Value())
		}
		ok, how = math.Abs(g-w) <= within, fmt.Sprintf("within %v of", within)
	}
	if ok {
		return nil
	}
	return fail(e.Value, where, "expected a number %s %s, got %s", how, brief(e.Value.Value()), brief(got))
}

// Package redact replaces private texts inside values by placeholders, and placeholders by
// the texts.
//
// It must not know nodes, runs or where a map of placeholders is kept.
package redact

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Finder says which texts are private.
type Finder struct {
	// Kinds are some of Kinds.
	Kinds    []string
	Patterns []Pattern
	Words    []Word
}

// Pattern finds the texts that an expression matches.
type Pattern struct {
	Kind string // see IsKind
	Expr *regexp.Regexp
}

// Word finds a text, in any case, where no letter or digit is next to it.
type Word struct {
	Kind string // see IsKind
	Text string
}

// Redaction replaces texts and counts them. It is not safe for concurrent use.
type Redaction struct {
	texts        map[string]string // by placeholder
	placeholders map[string]string // by kind and text
	last         map[string]int    // the last number of a kind
	found        map[string]int
	unknown      []string
	reserved     string // the texts of the value, whose own placeholders are not given away
	placeholder  *regexp.Regexp
}

// IsKind reports whether a text can be the kind of a placeholder: 1 to 40 capital letters,
// digits and underscores, beginning with a letter.
func IsKind(s string) bool {
	ok := s != "" && len(s) <= 40 && s[0] >= 'A' && s[0] <= 'Z'
	for i := range len(s) {
		ok = ok && (s[i] >= 'A' && s[i] <= 'Z' || s[i] >= '0' && s[i] <= '9' || s[i] == '_')
	}
	return ok
}

// New returns a redaction that continues a map of placeholders to texts, nil for none.
func New(known map[string]string) *Redaction {
	r := &Redaction{
		texts: maps.Clone(known), placeholders: make(map[string]string), last: make(map[string]int), found: make(map[string]int),
		placeholder: regexp.MustCompile(`\[([A-Z][A-Z0-9_]*)_([0-9]+)\]`),
	}
	if r.texts == nil {
		r.texts = make(map[string]string)
	}
	for p, text := range r.texts {
		if m := r.placeholder.FindStringSubmatch(p); m != nil {
			r.placeholders[m[1]+"\x00"+text] = p
		}
	}
	return r
}

// Map returns the placeholders with their texts. It must not be changed.
func (r *Redaction) Map() map[string]string { return r.texts }

// Count returns the number of replaced texts, and Found that of each kind.
func (r *Redaction) Count() int {
	n := 0
	for _, k := range r.found {
		n += k
	}
	return n
}

// Found returns the number of replaced texts of each kind.
func (r *Redaction) Found() map[string]int { return r.found }

// Unknown returns the placeholders that Restore did not know, each once, in the order of
// their first use.
func (r *Redaction) Unknown() []string { return r.unknown }

// Redact returns a copy of a JSON-like value in which every text has placeholders in place
// of what the finder finds, names of members included.
func (r *Redaction) Redact(v any, f Finder) any {
	var all strings.Builder
	walk(v, func(s string) string { all.WriteString(s + "\n"); return s })
	r.reserved = all.String()
	list := f.prepare()
	return walk(v, func(s string) string { return r.redactText(s, list) })
}

// Restore returns a copy of a value in which the placeholders of the map are replaced by
// their texts.
func (r *Redaction) Restore(v any) any {
	return walk(v, func(s string) string {
		return r.placeholder.ReplaceAllStringFunc(s, func(p string) string {
			text, ok := r.texts[p]
			if !ok {
				if !slices.Contains(r.unknown, p) {
					r.unknown = append(r.unknown, p)
				}
				return p
			}
			r.found[r.placeholder.FindStringSubmatch(p)[1]]++
			return text
		})
	})
}

// walk copies a value, with each text replaced by what the function returns. Members are
// visited in alphabetical order.
func walk(v any, text func(string) string) any {
	switch t := v.(type) {
	case string:
		return text(t)
	case []any:
		out := make([]any, len(t))
		for i := range t {
			out[i] = walk(t[i], text)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(t))
		for _, name := range slices.Sorted(maps.Keys(t)) {
			out[text(name)] = walk(t[name], text)
		}
		return out
	}
	return v
}

// span is a text that was found, by its bytes.
type span struct {
	from, to int
	kind     string
}

func (r *Redaction) redactText(s string, list []detector) string {
	spans := r.find(s, list)
	if len(spans) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, p := range spans {
		b.WriteString(s[at:p.from])
		b.WriteString(r.placeholderOf(p.kind, s[p.from:p.to]))
		at = p.to
	}
	b.WriteString(s[at:])
	return b.String()
}

// placeholderOf returns the placeholder of a text. One that the value itself contains is
// given to no text, because it could not be told from that.
func (r *Redaction) placeholderOf(kind, text string) string {
	r.found[kind]++
	key := kind + "\x00" + text
	if p, ok := r.placeholders[key]; ok {
		return p
	}
	for {
		r.last[kind]++
		p := fmt.Sprintf("[%s_%d]", kind, r.last[kind])
		if _, used := r.texts[p]; used || strings.Contains(r.reserved, p) {
			continue
		}
		r.texts[p], r.placeholders[key] = text, p
		return p
	}
}

// prepare returns the detectors of what the finder finds.
func (f Finder) prepare() []detector {
	var list []detector
	for _, kind := range f.Kinds {
		list = append(list, newDetector(kind))
	}
	for _, p := range f.Patterns {
		list = append(list, detector{p.Kind, p.Expr, whole})
	}
	for _, w := range f.Words {
		list = append(list, detector{w.Kind, regexp.MustCompile("(?i)" + regexp.QuoteMeta(w.Text)), func(s string, from, to int) (int, int) {
			if !isAlone(s, from, to) {
				return 0, 0
			}
			return from, to
		}})
	}
	return list
}

// find returns the private texts of s in order, without overlaps. A text that
// touches a placeholder is left out.
func (r *Redaction) find(s string, list []detector) []span {
	kept := r.placeholder.FindAllStringIndex(s, -1)
	var out []span
	for _, d := range list {
		for _, at := range d.expr.FindAllStringIndex(s, -1) {
			from, to := d.check(s, at[0], at[1])
			touches := slices.ContainsFunc(kept, func(k []int) bool { return from < k[1] && k[0] < to })
			if from < to && !touches {
				out = append(out, span{from, to, d.kind})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	return merge(out)
}

// merge joins spans that overlap to one of the kind of the first, so that no part of a found
// text stays.
func merge(spans []span) []span {
	var out []span
	for _, p := range spans {
		if n := len(out); n > 0 && p.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, p.to)
			continue
		}
		out = append(out, p)
	}
	return out
}

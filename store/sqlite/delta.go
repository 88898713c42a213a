package sqlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"

	"github.com/weir-run/weir/engine"
)

// The commits of a run look alike, and so do those of the rounds of a session: the
// same events for the same nodes, with other numbers in them. A commit that looks
// like an earlier one is kept as what differs from it:
//
//	[[from, to, ...], leaf, value, leaf, value, ...]
//
// Leaves are the texts, numbers, booleans and nulls of the earlier commit's
// JSON, counted from 0. A text that is from, or begins with from and then "/"
// or ":", begins with to instead, and a whole number that is from is to (the
// first pair that fits); so the number of an iteration, which is in every path,
// is written once. If from is a text and to a number, to stands for from with
// that number in place of the digits it ends in. Leaves listed have the value
// given. All else is equal. The view journal does the same in SQL.

// scalarSpan is the place of a leaf in a JSON text.
type scalarSpan struct{ start, end int }

// tokenizedText is a JSON text cut into leaves.
type tokenizedText struct {
	text    []byte
	scalars []scalarSpan
	shape   uint64 // hash of what is not a leaf
}

// tokenize cuts a JSON text that has no space between its tokens.
func tokenize(text []byte, seed maphash.Seed) tokenizedText {
	o := tokenizedText{text: text}
	var h maphash.Hash
	h.SetSeed(seed)
	from := 0
	for i := 0; i < len(text); {
		var end int
		switch text[i] {
		case '{', '}', '[', ']', ',', ':':
			i++
			continue
		case '"':
			if end = stringEnd(text, i); end < len(text) && text[end] == ':' {
				i = end // a key
				continue
			}
		default:
			end = scalarEnd(text, i)
		}
		_, _ = h.Write(text[from:i])
		_ = h.WriteByte(scalarKind(text[i]))
		o.scalars = append(o.scalars, scalarSpan{i, end})
		i, from = end, end
	}
	_, _ = h.Write(text[from:])
	o.shape = h.Sum64()
	return o
}

// scalarKind keeps texts and numbers apart, since pairs rewrite only texts.
func scalarKind(c byte) byte {
	switch c {
	case '"':
		return 1
	case 't', 'f', 'n':
		return 2
	}
	return 3
}

func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return i
}

func scalarEnd(b []byte, i int) int {
	for i < len(b) && b[i] != ',' && b[i] != ']' && b[i] != '}' {
		i++
	}
	return i
}

func (o *tokenizedText) scalar(i int) []byte { return o.text[o.scalars[i].start:o.scalars[i].end] }

// rewrite rewrites the beginnings of texts, or whole numbers. Texts are without
// their quotes.
type rewrite struct {
	from, to []byte
	number   bool
}

// applies reports whether the pair rewrites a raw leaf.
func (p *rewrite) applies(raw []byte) bool {
	if p.number || raw[0] != '"' {
		return p.number && bytes.Equal(raw, p.from)
	}
	n := len(p.from) + 1
	return len(raw) > n && bytes.Equal(raw[1:n], p.from) &&
		(raw[n] == '/' || raw[n] == ':' || n == len(raw)-1)
}

func (p *rewrite) append(b []byte) []byte {
	if p.number {
		return append(append(append(b, p.from...), ','), p.to...)
	}
	b = append(append(append(b, '"'), p.from...), `",`...)
	stem := len(trimDigits(p.from))
	if digits := p.to[min(stem, len(p.to)):]; bytes.HasPrefix(p.to, p.from[:stem]) && wholeNumber(digits) {
		return append(b, digits...)
	}
	return append(append(append(b, '"'), p.to...), '"')
}

// trimDigits returns a text without the digits it ends in.
func trimDigits(b []byte) []byte { return bytes.TrimRight(b, "0123456789") }

// appendDiff appends the differences of o from base, which has the same shape.
func appendDiff(b []byte, base, o *tokenizedText) []byte {
	pairs := findRewrites(base, o)
	b = append(b, '[', '[')
	for i, p := range pairs {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.append(b)
	}
	b = append(b, ']')
	var buf []byte
	for i := range o.scalars {
		buf = appendRewritten(buf[:0], base.scalar(i), pairs)
		if is := o.scalar(i); !bytes.Equal(buf, is) {
			b = append(strconv.AppendInt(append(b, ','), int64(i), 10), ',')
			b = append(b, is...)
		}
	}
	return append(b, ']')
}

func appendRewritten(b, raw []byte, pairs []rewrite) []byte {
	for _, p := range pairs {
		switch {
		case !p.applies(raw):
		case p.number:
			return append(b, p.to...)
		default:
			b = append(append(b, '"'), p.to...)
			return append(b, raw[1+len(p.from):]...)
		}
	}
	return append(b, raw...)
}

// findRewrites proposes pairs that rewrite more than one leaf; longer ones first,
// since a pair for an inner iteration says more than one for the outer.
func findRewrites(base, o *tokenizedText) []rewrite {
	var pairs []rewrite
	var uses []int
	for i := range base.scalars {
		was, is := base.scalar(i), o.scalar(i)
		if bytes.Equal(was, is) {
			continue
		}
		p, ok := proposeRewrite(was, is)
		if !ok {
			continue
		}
		known := slices.IndexFunc(pairs, func(q rewrite) bool { return q.number == p.number && bytes.Equal(q.from, p.from) })
		if known < 0 {
			pairs, uses = append(pairs, p), append(uses, 1)
		} else if bytes.Equal(pairs[known].to, p.to) {
			uses[known]++
		}
	}
	out := pairs[:0]
	for i, p := range pairs {
		if uses[i] > 1 {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b rewrite) int { return len(b.from) - len(a.from) })
	return out
}

// proposeRewrite removes the common ending of two texts, back to a "/" or ":".
func proposeRewrite(was, is []byte) (rewrite, bool) {
	if was[0] != '"' {
		return rewrite{was, is, true}, wholeNumber(was) && wholeNumber(is)
	}
	if len(was) < 2 || len(is) < 2 || is[0] != '"' { // a text became something else
		return rewrite{}, false
	}
	was, is = was[1:len(was)-1], is[1:len(is)-1]
	n := 0
	for n < len(was) && n < len(is) && was[len(was)-1-n] == is[len(is)-1-n] {
		n++
	}
	from, to := len(was)-n, len(is)-n
	for from < len(was) && was[from] != '/' && was[from] != ':' {
		from, to = from+1, to+1
	}
	p := rewrite{was[:from], is[:to], false}
	ok := from > 0 && to > 0 && from <= 256 && to <= 256 &&
		bytes.IndexByte(p.from, '\\') < 0 && bytes.IndexByte(p.to, '\\') < 0
	return p, ok
}

// wholeNumber reports whether raw is a number that SQL too reads and writes
// just so.
func wholeNumber(raw []byte) bool {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == string(raw)
}

var errDiff = errors.New("the differences do not fit their base")

// applyDiff returns the text that differs from base by diff.
func applyDiff(base *tokenizedText, diff []byte) ([]byte, error) {
	if !json.Valid(diff) {
		return nil, fmt.Errorf("%w: not JSON", errDiff)
	}
	parts := slices.Collect(engine.Elements(diff))
	if len(parts)%2 == 0 {
		return nil, fmt.Errorf("%w: %d parts", errDiff, len(parts))
	}
	pairs, err := readRewrites(parts[0])
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(base.text)+len(diff))
	at, next := 0, parts[1:]
	for i, l := range base.scalars {
		b = append(b, base.text[at:l.start]...)
		at = l.end
		if len(next) > 0 && string(next[0]) == strconv.Itoa(i) {
			b = append(b, next[1]...)
			next = next[2:]
			continue
		}
		b = appendRewritten(b, base.scalar(i), pairs)
	}
	if len(next) > 0 {
		return nil, fmt.Errorf("%w: no leaf %s", errDiff, next[0])
	}
	return append(b, base.text[at:]...), nil
}

func readRewrites(raw []byte) ([]rewrite, error) {
	texts := slices.Collect(engine.Elements(raw))
	if len(texts)%2 != 0 {
		return nil, fmt.Errorf("%w: %d texts in pairs", errDiff, len(texts))
	}
	var pairs []rewrite
	for i := 0; i < len(texts); i += 2 {
		from, to := texts[i], texts[i+1]
		switch {
		case from[0] == '"' && to[0] == '"':
			pairs = append(pairs, rewrite{from[1 : len(from)-1], to[1 : len(to)-1], false})
		case from[0] == '"' && wholeNumber(to):
			from = from[1 : len(from)-1]
			pairs = append(pairs, rewrite{from, append(bytes.Clone(trimDigits(from)), to...), false})
		case wholeNumber(from) && wholeNumber(to):
			pairs = append(pairs, rewrite{from, to, true})
		default:
			return nil, fmt.Errorf("%w: a pair is neither texts nor whole numbers", errDiff)
		}
	}
	return pairs, nil
}

// deltaBases finds an earlier commit of the same run or session that resembles a commit. Its
// size is limited: forgetting an entry costs disk space and nothing else.
type deltaBases struct {
	seed  maphash.Seed
	bases []deltaBase // newest first
}

type deltaBase struct {
	id int64 // of the commit's row
	tokenizedText
}

const (
	maxDeltaBases    = 16
	maxDeltaBaseText = 16 << 10 // bytes
)

// encodeDelta returns text as a delta of an earlier commit if that is shorter. Otherwise base
// is 0 and the text is remembered.
func (l *deltaBases) encodeDelta(id int64, text []byte) (out []byte, base int64) {
	if len(text) > maxDeltaBaseText {
		return text, 0
	}
	o := tokenize(text, l.seed)
	i := slices.IndexFunc(l.bases, func(b deltaBase) bool {
		return b.shape == o.shape && len(b.scalars) == len(o.scalars)
	})
	if i >= 0 {
		b := l.bases[i]
		diff := appendDiff(make([]byte, 0, 256), &b.tokenizedText, &o)
		// Two shapes may share a hash; what cannot be read back is not written.
		back, err := applyDiff(&b.tokenizedText, diff)
		if err == nil && bytes.Equal(back, text) && len(diff) < len(text)*3/4 {
			copy(l.bases[1:i+1], l.bases[:i])
			l.bases[0] = b
			return diff, b.id
		}
		l.bases = slices.Delete(l.bases, i, i+1)
	}
	o.text = bytes.Clone(text)
	if len(l.bases) == maxDeltaBases {
		l.bases = l.bases[:maxDeltaBases-1]
	}
	l.bases = slices.Insert(l.bases, 0, deltaBase{id, o})
	return text, 0
}

package token

import "unicode/utf8"

// LongestToken is the length in bytes of the longest token of the encodings: a text of n
// bytes has at least n/LongestToken tokens.
const LongestToken = 128

// Head returns the beginning of text with at most n tokens. It ends at the end of a token
// and of a rune, so it may be a few bytes shorter than the longest such text. A text that
// fits is returned whole.
func (e *Encoding) Head(text string, n int) string {
	if len(text) <= n {
		return text // a token has at least one byte
	}
	ids := e.appendUpTo(nil, text, n+1)
	if len(ids) <= n {
		return text
	}
	for keep := max(n, 0); keep > 0; keep = nextKeep(keep, n) {
		end := 0
		for _, id := range ids[:keep] {
			end += len(e.vocabulary.text(uint32(id)))
		}
		for end > 0 && !utf8.RuneStart(text[end]) {
			keep--
			end -= len(e.vocabulary.text(uint32(ids[keep])))
		}
		// The removed text may have influenced how the rest is split, so the rest is
		// counted again.
		if e.Count(text[:end]) <= n {
			return text[:end]
		}
	}
	return ""
}

// Tail returns the end of text with at most n tokens, cut as Head cuts.
func (e *Encoding) Tail(text string, n int) string {
	if len(text) <= n {
		return text
	}
	ids := e.Append(nil, text)
	if len(ids) <= n {
		return text
	}
	for keep := max(n, 0); keep > 0; keep = nextKeep(keep, n) {
		start := len(text)
		for _, id := range ids[len(ids)-keep:] {
			start -= len(e.vocabulary.text(uint32(id)))
		}
		for start < len(text) && !utf8.RuneStart(text[start]) {
			start += len(e.vocabulary.text(uint32(ids[len(ids)-keep])))
			keep--
		}
		if e.Count(text[start:]) <= n {
			return text[start:]
		}
	}
	return ""
}

// nextKeep returns the next number of tokens to try after keep of n were too many: it
// decreases by 1, 2, 4 and so on, to limit the number of tries.
func nextKeep(keep, n int) int { return keep - max(1, n-keep) }

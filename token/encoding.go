package token

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// The names of the encodings.
const (
	// O200k is the encoding of gpt-4o and all later OpenAI models.
	O200k = "o200k_base"
	// Cl100k is the encoding of gpt-4, gpt-3.5-turbo and the embedding models.
	Cl100k = "cl100k_base"
)

// ErrUnknownEncoding means that the encoding does not exist.
var ErrUnknownEncoding = errors.New("no such encoding")

// Encoding converts text to the token ids of one OpenAI encoding, the same ids as the
// reference tiktoken. The spelling of a special token in a text (<|endoftext|>) is ordinary
// text, as it is for the vendor. Text that is not valid UTF-8 is encoded byte by byte, so
// that Decode returns it unchanged.
//
// An Encoding is immutable and safe for concurrent use. The time is linear in the length of
// the text, except for a logarithm in one unbroken piece.
type Encoding struct {
	name       string
	split      splitter
	vocabulary *vocabulary
	classes    *classes
	scratch    sync.Pool // of *merger
}

// The vocabularies are read on first use, once in a process: about 1 ms and 0.3 MB each.
var (
	o200k  = sync.OnceValues(func() (*Encoding, error) { return load(O200k, o200kFile, splitO200k) })    //nolint:gochecknoglobals // an immutable table
	cl100k = sync.OnceValues(func() (*Encoding, error) { return load(Cl100k, cl100kFile, splitCl100k) }) //nolint:gochecknoglobals // an immutable table
)

// Get returns the encoding of that name, O200k or Cl100k. The first call for a name reads
// its vocabulary. Another name is ErrUnknownEncoding.
func Get(name string) (*Encoding, error) {
	switch name {
	case O200k:
		return o200k()
	case Cl100k:
		return cl100k()
	default:
		return nil, fmt.Errorf("encoding %q: %w", name, ErrUnknownEncoding)
	}
}

func load(name, file string, split splitter) (*Encoding, error) {
	words, err := parseVocabulary(file)
	if err != nil {
		return nil, fmt.Errorf("read the vocabulary of %s: %w", name, err)
	}
	e := &Encoding{name: name, split: split, vocabulary: words, classes: runeClasses()}
	e.scratch.New = func() any { return newMerger(words) }
	return e, nil
}

// Name returns the encoding's name.
func (e *Encoding) Name() string { return e.name }

// Count returns the number of tokens of text. It allocates only for text with pieces longer
// than any before.
func (e *Encoding) Count(text string) int {
	n := 0
	var m *merger
	for i := 0; i < len(text); {
		end := e.split(e.classes, text, i)
		piece := text[i:end]
		i = end
		if len(piece) == 1 || e.vocabulary.find(piece) != none {
			n++
			continue
		}
		if m == nil {
			m = e.merger()
		}
		n += m.merge(piece)
	}
	if m != nil {
		e.scratch.Put(m)
	}
	return n
}

// Append adds the token ids of text to dst and returns it.
func (e *Encoding) Append(dst []int, text string) []int {
	return e.appendUpTo(dst, text, len(text))
}

// appendUpTo adds the ids of whole pieces until there are at least limit.
func (e *Encoding) appendUpTo(dst []int, text string, limit int) []int {
	m := e.merger()
	defer e.scratch.Put(m)
	start := len(dst)
	for i := 0; i < len(text) && len(dst)-start < limit; {
		end := e.split(e.classes, text, i)
		piece := text[i:end]
		i = end
		if id := e.vocabulary.find(piece); id != none {
			dst = append(dst, int(id))
			continue
		}
		m.merge(piece)
		dst = m.appendIDs(dst, piece)
	}
	return dst
}

// Decode returns the text of ids. An id that the encoding does not have, such as a special
// token, is an error.
func (e *Encoding) Decode(ids []int) (string, error) {
	var b strings.Builder
	for _, id := range ids {
		if id < 0 || id >= e.vocabulary.len() {
			return "", fmt.Errorf("decode %s: no token has id %d", e.name, id)
		}
		b.WriteString(e.vocabulary.text(uint32(id)))
	}
	return b.String(), nil
}

func (e *Encoding) merger() *merger { return e.scratch.Get().(*merger) }

package token

import (
	_ "embed" // the vocabulary files
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// none is the id of what is not a token.
const none = math.MaxUint32

// The vocabularies that OpenAI publishes, in the form that parseVocabulary reads.

//go:generate go test -count=1 -run ^TestVocabularyFilesMatchThePublishedOnes . -update

//go:embed o200k_base.vocabulary
var o200kFile string

//go:embed cl100k_base.vocabulary
var cl100kFile string

// vocabulary is a set of tokens: byte strings with the ids 0, 1, 2 and so on,
// which are their ranks too: of two possible merges that of lower id is made.
// It is searched where it is in the program: nothing is built but the tables of short tokens.
type vocabulary struct {
	lengths string      // a byte for each token
	samples string      // where every strideth token begins, three bytes each
	starts  string      // of the buckets among the slots, and the end of the last
	slots   string      // of the buckets, one after the other: an id in the low idBits bits, and above it a tag
	bytes   string      // all tokens in the order of their ids, end to end
	shift   int         // of a hash, to the number of its bucket
	most    int         // length of the longest, in bytes
	pairs   []uint32    // ids of all tokens of two bytes
	single  [256]uint32 // and of one
}

const (
	// idBits is the size of an id: 18 bits are enough for the 199,998 tokens of o200k_base.
	idBits = 18
	// wordSize is the size of a number in the file, in bytes: a slot has an id and a tag of six bits.
	wordSize = 3
	// stride is the number of tokens from one whose place is in the file to the next.
	stride = 8
	// headSize is the size of the three numbers with which the file begins.
	headSize = 3 * wordSize
)

// word returns number i of a part of the file, the least significant byte first.
func word(part string, i int) uint32 {
	b := part[i*wordSize : i*wordSize+wordSize]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
}

// parseVocabulary divides a vocabulary file into its parts, and copies none: the number of tokens, the number of bits of a bucket, and the
// length of the longest token; the lengths; the samples; the starts of the buckets; the slots; and the bytes of the tokens. packVocabulary in the
// tests writes it.
func parseVocabulary(file string) (*vocabulary, error) {
	if len(file) < headSize {
		return nil, fmt.Errorf("it has %d bytes", len(file))
	}
	count, bucketBits := int(word(file, 0)), int(word(file, 1))
	if count > 1<<idBits || bucketBits > idBits {
		return nil, fmt.Errorf("%d tokens in 1<<%d buckets; at most %d tokens are supported", count, bucketBits, 1<<idBits)
	}
	v := &vocabulary{shift: 64 - bucketBits, most: int(word(file, 2)), pairs: make([]uint32, 1<<16)}
	rest := file[headSize:]
	for _, part := range []struct {
		of   *string
		size int
	}{
		{&v.lengths, count},
		{&v.samples, (count + stride - 1) / stride * wordSize},
		{&v.starts, (1<<bucketBits + 1) * wordSize},
		{&v.slots, count * wordSize},
	} {
		if part.size > len(rest) {
			return nil, fmt.Errorf("it has %d bytes, too few for %d tokens", len(file), count)
		}
		*part.of, rest = rest[:part.size], rest[part.size:]
	}
	v.bytes = rest
	if count == 0 || v.start(uint32(count-1))+int(v.lengths[count-1]) != len(v.bytes) {
		return nil, fmt.Errorf("it has %d bytes for the tokens, another number than they have together", len(v.bytes))
	}
	return v, v.index()
}

// index fills the tables of short tokens.
func (v *vocabulary) index() error {
	for i := range v.pairs {
		v.pairs[i] = none
	}
	v.eachOfLength(2, func(id uint32, text string) { v.pairs[int(text[0])<<8|int(text[1])] = id })
	known := 0
	v.eachOfLength(1, func(id uint32, text string) { v.single[text[0]], known = id, known+1 })
	if known != len(v.single) {
		return errors.New("a byte is no token")
	}
	return nil
}

func (v *vocabulary) eachOfLength(n byte, do func(id uint32, text string)) {
	for id := 0; ; id++ {
		next := strings.IndexByte(v.lengths[id:], n)
		if next < 0 {
			return
		}
		id += next
		do(uint32(id), v.text(uint32(id)))
	}
}

func (v *vocabulary) len() int { return len(v.lengths) }

// start returns where the token id begins.
func (v *vocabulary) start(id uint32) int {
	sample := int(id) / stride
	at := int(word(v.samples, sample))
	for _, n := range []byte(v.lengths[sample*stride : id]) {
		at += int(n)
	}
	return at
}

// text of the token id, which must be one.
func (v *vocabulary) text(id uint32) string {
	at := v.start(id)
	return v.bytes[at : at+int(v.lengths[id])]
}

// find returns the id of the token text, or none.
func (v *vocabulary) find(text string) uint32 {
	if len(text) == 2 {
		return v.pairs[int(text[0])<<8|int(text[1])]
	}
	if len(text) > v.most {
		return none
	}
	h := hash(text)
	bucket, tag := int(h>>v.shift), tagOf(h)
	for i, end := int(word(v.starts, bucket)), int(word(v.starts, bucket+1)); i < end; i++ {
		s := word(v.slots, i)
		if id := s & (1<<idBits - 1); s>>idBits == tag && int(v.lengths[id]) == len(text) && v.text(id) == text {
			return id
		}
	}
	return none
}

// tagOf returns the tag of a hash, which has bits that the bucket does not depend on.
func tagOf(h uint64) uint32 { return uint32(h) & (1<<(8*wordSize-idBits) - 1) }

// hash must not change: the files depend on it.
func hash(text string) uint64 {
	h := uint64(len(text))
	for len(text) >= 8 {
		b := text[:8]
		h = mix(h ^ (uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56))
		text = text[8:]
	}
	last := uint64(0)
	for i := range len(text) {
		last |= uint64(text[i]) << (8 * i)
	}
	return mix(h ^ last)
}

// mix spreads the bits of a number: the product with an odd constant, whose bits are those of the golden ratio, folded.
func mix(x uint64) uint64 {
	high, low := bits.Mul64(x^0xbf58476d1ce4e5b9, 0x9e3779b97f4a7c15)
	return high ^ low
}

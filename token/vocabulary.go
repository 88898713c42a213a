package token

import (
	_ "embed" // the vocabulary files
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
)

// none is the id of what is not a token.
const none = math.MaxUint32

// The vocabularies that OpenAI publishes, in the form that parseVocabulary reads. The published
// form, a line for each token with its bytes in base64 and its rank, is more than twice as long.

//go:generate go test -count=1 -run ^TestVocabularyFilesMatchThePublishedOnes . -update

//go:embed o200k_base.vocabulary
var o200kFile string

//go:embed cl100k_base.vocabulary
var cl100kFile string

// vocabulary is a set of tokens: byte strings with the ids 0, 1, 2 and so on,
// which are their ranks too: of two possible merges that of lower id is made.
type vocabulary struct {
	seed   maphash.Seed
	bytes  string      // all tokens in the order of their ids, end to end
	ends   []uint32    // where each ends
	slots  []slot      // a hash table with open addressing
	pairs  []uint32    // ids of all tokens of two bytes
	single [256]uint32 // and of one
	most   int         // length of the longest, in bytes
}

// slot of a vocabulary's table: an id in the low idBits bits, and above it a tag, a part of the
// hash of the token; 0 is empty. With tag and id in 8 bytes, the table of o200k_base takes 4 MB and
// a quarter more time to build.
type slot uint32

// idBits is the size of an id: 18 bits are enough for the 199,998 tokens of o200k_base.
const idBits = 18

func (s slot) id() uint32  { return uint32(s) & (1<<idBits - 1) }
func (s slot) tag() uint32 { return uint32(s) >> idBits }

// parseVocabulary reads a vocabulary file: the number of tokens in four bytes, the least
// significant first; a byte for each token, which is its length; then the bytes of all tokens,
// both in the order of their ranks. The vocabulary keeps the bytes of file and copies none.
func parseVocabulary(file string) (*vocabulary, error) {
	if len(file) < 4 {
		return nil, fmt.Errorf("it has %d bytes", len(file))
	}
	count := int(binary.LittleEndian.Uint32([]byte(file[:4])))
	if file = file[4:]; count > len(file) || count > 1<<idBits {
		return nil, fmt.Errorf("%d tokens in %d bytes; at most %d tokens are supported", count, len(file), 1<<idBits)
	}
	lengths := file[:count]
	v := &vocabulary{seed: maphash.MakeSeed(), bytes: file[count:], ends: make([]uint32, count)}
	end := 0
	for id := range count {
		n := int(lengths[id])
		end += n
		v.ends[id] = uint32(end)
		v.most = max(v.most, n)
	}
	if end != len(v.bytes) {
		return nil, fmt.Errorf("the tokens have %d bytes together, and the file has %d for them", end, len(v.bytes))
	}
	return v, v.index()
}

// index fills the tables from bytes and ends.
func (v *vocabulary) index() error {
	v.slots = make([]slot, 1<<bits.Len(uint(2*v.len())))
	v.pairs = make([]uint32, 1<<16)
	for i := range v.pairs {
		v.pairs[i] = none
	}
	start := uint32(0)
	for id, end := range v.ends {
		text := v.bytes[start:end]
		start = end
		tag, i := v.hash(text)
		for v.slots[i] != 0 {
			i = (i + 1) & (len(v.slots) - 1)
		}
		v.slots[i] = slot(tag<<idBits | uint32(id))
		if len(text) == 2 {
			v.pairs[int(text[0])<<8|int(text[1])] = uint32(id)
		}
	}
	for b := range 256 {
		if v.single[b] = v.find(string([]byte{byte(b)})); v.single[b] == none {
			return fmt.Errorf("byte %d is no token", b)
		}
	}
	return nil
}

func (v *vocabulary) len() int { return len(v.ends) }

// text of the token id, which must be one.
func (v *vocabulary) text(id uint32) string {
	start := uint32(0)
	if id > 0 {
		start = v.ends[id-1]
	}
	return v.bytes[start:v.ends[id]]
}

// hash gives a tag other than 0 of 32-idBits bits, and the slot to look at first.
func (v *vocabulary) hash(text string) (tag uint32, first int) {
	h := maphash.String(v.seed, text)
	return uint32(h>>(32+idBits)) | 1, int(h) & (len(v.slots) - 1)
}

// find returns the id of the token text, or none.
func (v *vocabulary) find(text string) uint32 {
	if len(text) == 2 {
		return v.pairs[int(text[0])<<8|int(text[1])]
	}
	if len(text) > v.most {
		return none
	}
	tag, i := v.hash(text)
	for {
		s := v.slots[i]
		if s == 0 {
			return none
		}
		if s.tag() == tag && v.text(s.id()) == text {
			return s.id()
		}
		i = (i + 1) & (len(v.slots) - 1)
	}
}

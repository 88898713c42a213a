package token

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"strconv"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// none is the id of what is not a token.
const none = math.MaxUint32

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

// slot of a vocabulary's table; a tag of 0 is empty.
type slot struct{ tag, id uint32 }

// readVocabulary reads what the vendor published: a line a token, its bytes in
// base64 and its rank.
func readVocabulary(name string) (*vocabulary, error) {
	data, err := assets.Assets.ReadFile(name + ".tiktoken")
	if err != nil {
		return nil, err
	}
	lines := bytes.Count(data, []byte("\n")) + 1
	v := &vocabulary{seed: maphash.MakeSeed(), ends: make([]uint32, 0, lines)}
	all := make([]byte, 0, len(data)/2)
	for n := 1; len(data) > 0; n++ {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte("\n"))
		if len(line) == 0 {
			continue
		}
		text, rank, _ := bytes.Cut(line, []byte(" "))
		id, err := strconv.Atoi(string(rank))
		if err != nil || id != len(v.ends) {
			return nil, fmt.Errorf("line %d: rank %q, want %d", n, rank, len(v.ends))
		}
		before := len(all)
		if all, err = base64.StdEncoding.AppendDecode(all, text); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		v.ends = append(v.ends, uint32(len(all)))
		v.most = max(v.most, len(all)-before)
	}
	v.bytes = string(all)
	return v, v.index()
}

// index fills the tables from bytes and ends.
func (v *vocabulary) index() error {
	v.slots = make([]slot, 1<<bits.Len(uint(2*v.len())))
	v.pairs = make([]uint32, 1<<16)
	for i := range v.pairs {
		v.pairs[i] = none
	}
	for id := range uint32(v.len()) {
		text := v.text(id)
		tag, i := v.hash(text)
		for v.slots[i].tag != 0 {
			i = (i + 1) & (len(v.slots) - 1)
		}
		v.slots[i] = slot{tag, id}
		if len(text) == 2 {
			v.pairs[int(text[0])<<8|int(text[1])] = id
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

// hash gives a tag other than 0, and the slot to look at first.
func (v *vocabulary) hash(text string) (tag uint32, first int) {
	h := maphash.String(v.seed, text)
	return uint32(h>>32) | 1, int(h) & (len(v.slots) - 1)
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
		if s.tag == 0 {
			return none
		}
		if s.tag == tag && v.text(s.id) == text {
			return s.id
		}
		i = (i + 1) & (len(v.slots) - 1)
	}
}

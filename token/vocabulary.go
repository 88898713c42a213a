package token

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"math/bits"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// none is the id of what is not a token.
const none = math.MaxUint32

// vocabulary is a set of tokens: byte strings with the ids 0, 1, 2 and so on,
// which are their ranks too: of two possible merges that of lower id is made.
type vocabulary struct {
	seed   maphash.Seed
	bytes  []byte      // all tokens in the order of their ids, end to end
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
	f, err := assets.Assets.Open(name + ".tiktoken")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // a file in memory
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// No line is shorter than "AA== 0", and few are much longer.
	v := &vocabulary{seed: maphash.MakeSeed(), ends: make([]uint32, 0, info.Size()/16), bytes: make([]byte, 0, info.Size()*2/5)}
	lines := bufio.NewReaderSize(f, 64<<10)
	digits := newBase64Table()
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		if line = bytes.TrimSuffix(line, []byte("\n")); len(line) > 0 {
			if problem := v.add(line, digits); problem != nil {
				return nil, fmt.Errorf("line %d: %w", n, problem)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return v, v.index()
}

// add reads one line, whose rank must be the next.
func (v *vocabulary) add(line []byte, digits *base64Table) error {
	text, rank, _ := bytes.Cut(line, []byte(" "))
	before := len(v.bytes)
	var err error
	if v.bytes, err = digits.append(v.bytes, text); err != nil {
		return err
	}
	if id, ok := rankOf(rank); !ok || id != len(v.ends) {
		return fmt.Errorf("rank %q, want %d", rank, len(v.ends))
	}
	v.ends = append(v.ends, uint32(len(v.bytes)))
	v.most = max(v.most, len(v.bytes)-before)
	return nil
}

// base64Table is what each byte stands for in base64; notBase64 for those that are
// no digit of it.
type base64Table [256]byte

const notBase64 = 0xFF

func newBase64Table() *base64Table {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	t := new(base64Table)
	for i := range t {
		t[i] = notBase64
	}
	for i := range len(digits) {
		t[digits[i]] = byte(i)
	}
	return t
}

// append decodes text, which is one of very many short ones: encoding/base64 takes
// several times as long for these.
func (t *base64Table) append(dst, text []byte) ([]byte, error) {
	pad := 0
	if n := len(text); n >= 4 && text[n-1] == '=' {
		pad = 1
		if text[n-2] == '=' {
			pad = 2
		}
	}
	wrong := len(text)%4 != 0
	for i := 0; i+4 <= len(text); i += 4 {
		a, b, c, d := t[text[i]], t[text[i+1]], t[text[i+2]], t[text[i+3]]
		if i+4 == len(text) && pad > 0 {
			d = 0
			if pad == 2 {
				c = 0
			}
		}
		wrong = wrong || a|b|c|d >= 64
		dst = append(dst, a<<2|b>>4, b<<4|c>>2, c<<6|d)
	}
	if wrong {
		return dst, fmt.Errorf("%q is not base64", text)
	}
	return dst[:len(dst)-pad], nil
}

// rankOf reads decimal digits.
func rankOf(digits []byte) (n int, ok bool) {
	for _, c := range digits {
		if c < '0' || c > '9' || n > math.MaxInt32 {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, len(digits) > 0
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
		for v.slots[i].tag != 0 {
			i = (i + 1) & (len(v.slots) - 1)
		}
		v.slots[i] = slot{tag, uint32(id)}
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

// text of the token id, which must be one; not to be changed.
func (v *vocabulary) text(id uint32) []byte {
	start := uint32(0)
	if id > 0 {
		start = v.ends[id-1]
	}
	return v.bytes[start:v.ends[id]]
}

// hash gives a tag other than 0, and the slot to look at first.
func (v *vocabulary) hash(text []byte) (tag uint32, first int) {
	return v.place(maphash.Bytes(v.seed, text))
}

func (v *vocabulary) place(h uint64) (tag uint32, first int) {
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
	tag, i := v.place(maphash.String(v.seed, text))
	for {
		s := v.slots[i]
		if s.tag == 0 {
			return none
		}
		if s.tag == tag && string(v.text(s.id)) == text {
			return s.id
		}
		i = (i + 1) & (len(v.slots) - 1)
	}
}

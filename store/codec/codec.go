// Package codec encodes contents before a store writes them, and decodes what it reads: it compresses, and encrypts
// with a data key of each user that a master key from the configuration wraps.
//
// It must not know tables, users' records or where keys are kept: a store passes data keys and keeps them wrapped.
package codec

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Magic begins everything that a Codec has encoded. JSON never begins so. The last byte is the version of the format.
const Magic = "\x01weir\x00\x00\x01"

// textMagic begins encoded text. The escape of stored text never makes it: there, \x01 precedes two hexadecimal digits.
const textMagic = "\x01z"

// Flags of an encoded value, in the byte behind Magic.
const (
	flagCompressed = 1 << iota
	flagEncrypted
)

const (
	flagsAt   = len(Magic)
	headerEnd = flagsAt + 1
	numberEnd = headerEnd + 8
	nonceEnd  = numberEnd + nonceSize
	nonceSize = 12
)

// Contents shorter than minCompressed bytes are not compressed. Larger contents than maxPlain are not accepted.
const (
	minCompressed = 128
	maxPlain      = 1 << 30
)

var (
	// ErrDamaged: encoded contents were changed, or are not of the key that they name.
	ErrDamaged = errors.New("encoded contents are damaged")
	// ErrMissingKey: a key is needed that is not configured, or that was destroyed when its user was erased.
	ErrMissingKey = errors.New("contents are encrypted with a key that is not there")
)

// Options say what a Codec does; the zero value writes contents as they are.
type Options struct {
	// Compress has contents of 128 bytes and more compressed where that saves an eighth.
	Compress bool
	// Key wraps new data keys and has contents encrypted; nil: they are not.
	Key *MasterKey
	// Previous are master keys that wrapped data keys before. They are for reading.
	Previous []MasterKey
}

// Codec encodes and decodes contents. It is safe for concurrent use. Whatever its options are, it decodes what any
// other has encoded if it has the keys. The zero value encodes nothing.
type Codec struct {
	options Options
	writers sync.Pool // *flate.Writer
}

// New returns a codec.
func New(o Options) *Codec { return &Codec{options: o} }

// Encrypts reports whether contents are encrypted.
func (c *Codec) Encrypts() bool { return c.options.Key != nil }

// HasKeys reports whether the codec has a master key, be it for reading only.
func (c *Codec) HasKeys() bool { return c.options.Key != nil || len(c.options.Previous) > 0 }

// IsEncoded reports whether a codec has encoded contents.
func IsEncoded(data []byte) bool { return len(data) > flagsAt && string(data[:len(Magic)]) == Magic }

// Encode returns contents in their stored form: as they are if the codec neither compresses nor encrypts them. A nil
// key leaves out encryption. nil stays nil.
func (c *Codec) Encode(key *DataKey, plain []byte) []byte {
	if plain == nil {
		return nil
	}
	body, flags := plain, byte(0)
	if c.options.Compress && len(plain) >= minCompressed {
		if small := c.compress(plain); len(small) < len(plain)-len(plain)/8 {
			body, flags = small, flagCompressed
		}
	}
	if key == nil && flags == 0 && !IsEncoded(plain) { // contents that look encoded are marked
		return plain
	}
	if key == nil {
		return append(append([]byte(Magic), flags), body...)
	}
	out := make([]byte, nonceEnd, nonceEnd+len(body)+key.aead.Overhead())
	copy(out, Magic)
	out[flagsAt] = flags | flagEncrypted
	binary.BigEndian.PutUint64(out[headerEnd:], uint64(key.Number))
	_, _ = rand.Read(out[numberEnd:nonceEnd]) // never fails
	return key.aead.Seal(out, out[numberEnd:nonceEnd], body, out[:numberEnd])
}

// Decode returns the contents of a stored form. find returns the data key with a number; it is called for encrypted
// contents. Errors are ErrDamaged, ErrMissingKey and those of find.
func (c *Codec) Decode(find func(number int64) (*DataKey, error), data []byte) ([]byte, error) {
	if !IsEncoded(data) {
		return data, nil
	}
	flags, body := data[flagsAt], data[headerEnd:]
	if flags&^(flagCompressed|flagEncrypted) != 0 {
		return nil, fmt.Errorf("%w: the flags are %#x", ErrDamaged, flags)
	}
	if flags&flagEncrypted != 0 {
		if len(data) < nonceEnd {
			return nil, fmt.Errorf("%w: %d bytes", ErrDamaged, len(data))
		}
		key, err := find(int64(binary.BigEndian.Uint64(data[headerEnd:])))
		if err != nil {
			return nil, err
		}
		if body, err = key.aead.Open(nil, data[numberEnd:nonceEnd], data[nonceEnd:], data[:numberEnd]); err != nil {
			return nil, fmt.Errorf("%w: they do not fit data key %d", ErrDamaged, key.Number)
		}
		if body == nil {
			body = []byte{}
		}
	}
	if flags&flagCompressed != 0 {
		return decompress(body)
	}
	return body, nil
}

// EncodeText is Encode for a column of text, which is only encrypted, never compressed alone. plain is the form in
// which the column has the text otherwise.
func (c *Codec) EncodeText(key *DataKey, plain string) string {
	if key == nil {
		return plain
	}
	return textMagic + base64.RawStdEncoding.EncodeToString(c.Encode(key, []byte(plain)))
}

// IsEncodedText reports whether a text is the result of EncodeText with a key.
func IsEncodedText(s string) bool { return strings.HasPrefix(s, textMagic) }

// DecodeText is the inverse of EncodeText.
func (c *Codec) DecodeText(find func(number int64) (*DataKey, error), s string) (string, error) {
	if !IsEncodedText(s) {
		return s, nil
	}
	data, err := base64.RawStdEncoding.DecodeString(s[len(textMagic):])
	if err != nil || !IsEncoded(data) {
		return "", fmt.Errorf("%w: a text", ErrDamaged)
	}
	data, err = c.Decode(find, data)
	return string(data), err
}

// compress returns the length of the contents and what flate makes of them.
func (c *Codec) compress(plain []byte) []byte {
	b := bytes.NewBuffer(binary.AppendUvarint(make([]byte, 0, len(plain)/2+16), uint64(len(plain))))
	w, ok := c.writers.Get().(*flate.Writer)
	if !ok {
		w, _ = flate.NewWriter(b, flate.BestSpeed) // the level is valid
	}
	w.Reset(b)
	_, _ = w.Write(plain) // a buffer takes everything
	_ = w.Close()
	c.writers.Put(w)
	return b.Bytes()
}

func decompress(data []byte) ([]byte, error) {
	n, at := binary.Uvarint(data)
	if at <= 0 || n > maxPlain {
		return nil, fmt.Errorf("%w: the length is not valid", ErrDamaged)
	}
	r := flate.NewReader(bytes.NewReader(data[at:]))
	var out bytes.Buffer // grows as it is filled: the length may be wrong
	got, err := io.Copy(&out, io.LimitReader(r, int64(n)+1))
	if err != nil || uint64(got) != n {
		return nil, fmt.Errorf("%w: they do not decompress to %d bytes", ErrDamaged, n)
	}
	return out.Bytes(), nil
}

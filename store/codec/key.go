package codec

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// KeySize is the length of master keys and data keys, in bytes: AES-256 is used in GCM mode.
const KeySize = 32

// MasterKey wraps data keys. It comes from the configuration and is never stored. Whatever prints or logs one shows its
// id alone.
type MasterKey struct {
	id   string
	aead cipher.AEAD
}

// ParseMasterKey reads a key of 32 bytes in base64 or hexadecimal digits, as `openssl rand -base64 32` makes one. The
// error does not show it.
func ParseMasterKey(text string) (MasterKey, error) {
	text = strings.TrimSpace(text)
	secret, err := hex.DecodeString(text)
	if err != nil || len(secret) != KeySize {
		text = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(text), "=")
		secret, err = base64.RawStdEncoding.DecodeString(text)
	}
	if err != nil || len(secret) != KeySize {
		return MasterKey{}, errors.New("a master key has 32 bytes in base64 or hexadecimal digits; make one with: openssl rand -base64 32")
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("weir master key"))
	return MasterKey{id: hex.EncodeToString(mac.Sum(nil)[:8]), aead: newAEAD(secret)}, nil
}

// ID identifies the key and does not reveal it: 16 hexadecimal digits.
func (k MasterKey) ID() string { return k.id }

// String says which key it is.
func (k MasterKey) String() string { return "master key " + k.id }

// GoString is String.
func (k MasterKey) GoString() string { return k.String() }

// Format is String, for every verb.
func (k MasterKey) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// MarshalText is String.
func (k MasterKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// LogValue is String.
func (k MasterKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// DataKey encrypts the contents of one user.
type DataKey struct {
	// Number identifies the key in the database. No two keys ever have the same.
	Number int64

	aead cipher.AEAD
}

// WrappedKey is a data key as a database keeps it.
type WrappedKey struct {
	// Master is the id of the master key.
	Master string
	// Data is the nonce and the encrypted key.
	Data []byte
}

func newAEAD(secret []byte) cipher.AEAD {
	block, err := aes.NewCipher(secret)
	if err != nil {
		panic(err) // the length is KeySize
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // the block size is that of AES
	}
	return aead
}

// NewKey makes the data key of a user, "" for contents of no user. The codec must have a Key.
func (c *Codec) NewKey(user string) WrappedKey {
	secret := make([]byte, KeySize)
	_, _ = rand.Read(secret) // never fails
	return c.options.Key.wrap(user, secret)
}

func (k *MasterKey) wrap(user string, secret []byte) WrappedKey {
	nonce := make([]byte, nonceSize, nonceSize+KeySize+k.aead.Overhead())
	_, _ = rand.Read(nonce)
	return WrappedKey{Master: k.id, Data: k.aead.Seal(nonce, nonce, secret, wrapContext(user))}
}

// wrapContext binds a wrapped key to its user.
func wrapContext(user string) []byte { return []byte("weir data key of " + user) }

// Unwrap returns the data key with a number. The error is ErrMissingKey if its master key is not configured, and
// ErrDamaged if it is not the key of the user.
func (c *Codec) Unwrap(number int64, user string, w WrappedKey) (*DataKey, error) {
	secret, err := c.secretOf(user, w)
	if err != nil {
		return nil, err
	}
	return &DataKey{Number: number, aead: newAEAD(secret)}, nil
}

func (c *Codec) secretOf(user string, w WrappedKey) ([]byte, error) {
	k := c.master(w.Master)
	if k == nil {
		return nil, c.MissingMaster([]string{w.Master})
	}
	if len(w.Data) < nonceSize {
		return nil, fmt.Errorf("%w: a data key has %d bytes", ErrDamaged, len(w.Data))
	}
	secret, err := k.aead.Open(nil, w.Data[:nonceSize], w.Data[nonceSize:], wrapContext(user))
	if err != nil || len(secret) != KeySize {
		return nil, fmt.Errorf("%w: a data key does not fit %s", ErrDamaged, k)
	}
	return secret, nil
}

// Rewrap wraps a data key with the codec's Key, which it must have. The data key stays the same, so contents need not
// be written again.
func (c *Codec) Rewrap(user string, w WrappedKey) (WrappedKey, error) {
	secret, err := c.secretOf(user, w)
	if err != nil {
		return WrappedKey{}, err
	}
	return c.options.Key.wrap(user, secret), nil
}

func (c *Codec) master(id string) *MasterKey {
	if k := c.options.Key; k != nil && k.id == id {
		return k
	}
	for i := range c.options.Previous {
		if c.options.Previous[i].id == id {
			return &c.options.Previous[i]
		}
	}
	return nil
}

// Current is the id of the master key that wraps new data keys, "" for none.
func (c *Codec) Current() string {
	if c.options.Key == nil {
		return ""
	}
	return c.options.Key.id
}

// MissingMaster returns an ErrMissingKey that names those of the ids whose master key the codec lacks and says what to do,
// nil if it has all.
func (c *Codec) MissingMaster(ids []string) error {
	var lacks, has []string
	for _, id := range ids {
		if c.master(id) == nil {
			lacks = append(lacks, id)
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	if c.options.Key != nil {
		has = append(has, c.options.Key.id)
	}
	for i := range c.options.Previous {
		has = append(has, c.options.Previous[i].id)
	}
	configured := "no key is configured"
	if len(has) > 0 {
		configured = "configured is " + strings.Join(has, ", ")
	}
	return fmt.Errorf("%w: it is wrapped by master key %s, and %s; set storage.encryption.key to that key, or list it under storage.encryption.previous", ErrMissingKey,
		strings.Join(lacks, ", "), configured)
}

package store

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/weir-run/weir/engine"
)

// The commits of a run are chained, so that none can be changed, removed, moved or inserted later without detection:
//
//	payload  the events of a commit as AppendPayload writes them, whole
//	digest   SHA-256(salt || payload), the salt HMAC(secret, run, seq)
//	head     SHA-256(head before || seq, first, at || digest)
//	tag      the first 4 bytes of SHA-256(tag before || seq, first, at || digest)
//
// A store keeps the tag of each commit. Tags locate the broken link of a chain: each link is checked by the tags on
// both of its sides. That detects corruption and accidental changes, of which one in four thousand million would
// pass; someone who can write the database can also write tags. Heads are never stored: they are computed from the
// payloads, and a head that was copied elsewhere proves all commits up to it.
//
// The secret belongs to a tree of runs, or to a session. It is deleted when the tree is erased. The remaining digests
// then reveal nothing about the payloads, and the heads can still be computed from them.

// Hash is a digest or a head of a chain. Its text is 64 hexadecimal digits.
type Hash [sha256.Size]byte

// String returns 64 hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(b []byte) error {
	if len(b) != 2*len(h) {
		return fmt.Errorf("a hash has %d hexadecimal digits, and this has %d characters", 2*len(h), len(b))
	}
	if _, err := hex.Decode(h[:], b); err != nil {
		return fmt.Errorf("%q is not a hash: %w", b, err)
	}
	return nil
}

// Tag is the stored part of a chain's link.
type Tag int32

// Header is the part of a commit that the chain covers besides its events.
type Header struct {
	Seq, First, At int64
}

// HeaderOf returns the header of a commit.
func HeaderOf(c *engine.Commit) Header { return Header{c.Seq, c.First, c.At} }

const headerBytes = 24

func (h Header) bytes() [headerBytes]byte {
	var b [headerBytes]byte
	binary.BigEndian.PutUint64(b[0:], uint64(h.Seq))
	binary.BigEndian.PutUint64(b[8:], uint64(h.First))
	binary.BigEndian.PutUint64(b[16:], uint64(h.At))
	return b
}

// Next returns the head after a commit with that header and digest.
func (h Hash) Next(hd Header, digest Hash) Hash {
	var b [2*sha256.Size + headerBytes]byte
	copy(b[:], h[:])
	head := hd.bytes()
	copy(b[sha256.Size:], head[:])
	copy(b[sha256.Size+headerBytes:], digest[:])
	return sha256.Sum256(b[:])
}

const tagBytes = 4

// Next returns the tag of a commit with that header and digest that follows a commit with this tag.
func (t Tag) Next(hd Header, digest Hash) Tag {
	var b [tagBytes + headerBytes + sha256.Size]byte
	binary.BigEndian.PutUint32(b[:], uint32(t))
	head := hd.bytes()
	copy(b[tagBytes:], head[:])
	copy(b[tagBytes+headerBytes:], digest[:])
	return tagOf(sha256.Sum256(b[:]))
}

func tagOf(h Hash) Tag { return Tag(binary.BigEndian.Uint32(h[:tagBytes])) }

// OriginHash identifies a run in its chain without revealing its id to anyone without the secret.
func OriginHash(secret []byte, run string) Hash { return keyedHash(secret, 'r', run, 0) }

// FirstHead returns the head that precedes a run's own commits. base is the head of the last commit that it shares
// with another run, the zero Hash for none.
func FirstHead(base, origin Hash) Hash { return base.Next(Header{}, origin) }

// FirstTag returns the tag that precedes a run's own commits; base is that of the last commit that it shares with
// another run, 0 for none.
func FirstTag(base Tag, origin Hash) Tag { return base.Next(Header{}, origin) }

// RowHash identifies the data about a run outside of its journal, without revealing it to anyone without the secret.
func RowHash(secret []byte, run string, facts []any) (Hash, error) {
	data, err := json.Marshal(facts)
	if err != nil {
		return Hash{}, fmt.Errorf("row of run %s: %w", run, err)
	}
	return CommitDigest(rowSecret(secret), run, 0, data), nil
}

// rowSecret derives a secret that no commit's digest uses.
func rowSecret(secret []byte) []byte {
	k := keyedHash(secret, 'w', "", 0)
	return k[:]
}

func keyedHash(secret []byte, what byte, run string, seq int64) (out Hash) {
	m := hmac.New(sha256.New, secret)
	var n [9]byte
	n[0] = what
	binary.BigEndian.PutUint64(n[1:], uint64(seq))
	_, _ = m.Write(n[:]) // a hash never fails
	_, _ = m.Write([]byte(run))
	m.Sum(out[:0])
	return out
}

// CommitDigest returns the digest of a commit's payload in a run's chain.
func CommitDigest(secret []byte, run string, seq int64, payload []byte) (out Hash) {
	salt := keyedHash(secret, 'c', run, seq)
	h := sha256.New()
	_, _ = h.Write(salt[:]) // a hash never fails
	_, _ = h.Write(payload)
	h.Sum(out[:0])
	return out
}

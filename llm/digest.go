package llm

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// Digest returns the SHA-256 of the canonical form as a JSON string. If the request extends
// an earlier one of its context, only the new part is encoded. Errors are those of
// Canonical.
func (r *Request) Digest() (sum [sha256.Size]byte, err error) {
	head, tail, err := r.canonicalEnds()
	if err != nil {
		return sum, err
	}
	d := r.digests.take(r.digestKey)
	if d == nil || !d.isPrefixOf(head, r.Messages) {
		d = newDigest(head)
	}
	if err := d.extend(r.Messages); err != nil {
		return sum, err
	}
	if sum, err = d.sumWith(tail); err == nil {
		r.digests.put(r.digestKey, d)
	}
	return sum, err
}

// canonicalEnds returns the canonical form before the first message and after the last.
func (r *Request) canonicalEnds() (head, tail string, err error) {
	none := *r
	none.Messages = nil
	b, err := none.Canonical()
	if err != nil {
		return "", "", err
	}
	// Not inside a text, where the quotes would be escaped.
	const messages = `"messages":[`
	i := bytes.Index(b, []byte(messages+"]"))
	if i < 0 {
		return "", "", fmt.Errorf("canonical form of a request: it has no %s]", messages)
	}
	i += len(messages)
	return string(b[:i]), string(b[i:]), nil
}

// requestDigest is the digest of the common prefix of a context's requests.
type requestDigest struct {
	head     string
	messages []convo.Message // the messages that state covers
	state    hash.Hash
	buf      []byte
}

func newDigest(head string) *requestDigest {
	d := &requestDigest{head: head, state: sha256.New()}
	d.write(d.state, head, '"')
	return d
}

// isPrefixOf reports whether the digested messages are a prefix of a request.
func (d *requestDigest) isPrefixOf(head string, ms []convo.Message) bool {
	if d.head != head || len(d.messages) > len(ms) {
		return false
	}
	for i := range d.messages {
		if !sameSent(d.messages[i], ms[i]) {
			return false
		}
	}
	return true
}

// sameSent reports whether the canonical forms of two messages are equal. It may return
// false for equal ones.
func sameSent(a, b convo.Message) bool {
	a.ID, a.Reasoning, a.Pinned, a.Priority, a.Metadata = b.ID, b.Reasoning, b.Pinned, b.Priority, nil
	b.Metadata = nil
	return a.Equal(b)
}

// extend adds the new messages of a request.
func (d *requestDigest) extend(ms []convo.Message) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for i := len(d.messages); i < len(ms); i++ {
		m, err := canonicalOf(&ms[i])
		if err != nil {
			return fmt.Errorf("canonical form of a request: native blocks of message %d: %w", i+1, err)
		}
		b.Reset()
		if i > 0 {
			b.WriteByte(',')
		}
		if err := e.Encode(m); err != nil {
			return fmt.Errorf("canonical form of a request: %w", err)
		}
		d.write(d.state, string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))))
		d.messages = append(d.messages, ms[i]) // a copy, because the request's list belongs to the caller
	}
	return nil
}

// sumWith returns the digest of the request that ends this way.
func (d *requestDigest) sumWith(tail string) (sum [sha256.Size]byte, err error) {
	c, ok := d.state.(hash.Cloner)
	if !ok {
		return sum, fmt.Errorf("digest of a request: %T cannot be cloned", d.state)
	}
	h, err := c.Clone()
	if err != nil {
		return sum, fmt.Errorf("digest of a request: %w", err)
	}
	d.write(h, tail)
	_, _ = h.Write([]byte{'"'}) // a hash never fails
	h.Sum(sum[:0])
	return sum, nil
}

// write adds a part of the JSON string to the digest, after verbatim bytes.
func (d *requestDigest) write(h hash.Hash, s string, before ...byte) {
	d.buf = engine.AppendString(d.buf[:0], s)
	_, _ = h.Write(before) // a hash never fails
	_, _ = h.Write(d.buf[1 : len(d.buf)-1])
}

// maxDigests is the number of contexts with cached digests.
const maxDigests = 64

// digestCache has the digests of the last requests of contexts. Evicted ones are
// recomputed.
type digestCache struct {
	mu        sync.Mutex
	byContext map[digestKey]*requestDigest
}

// digestKey identifies a context.
type digestKey struct{ scope, context string }

// take removes and returns a digest, so that only its taker uses it.
func (s *digestCache) take(of digestKey) *requestDigest {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.byContext[of]
	delete(s.byContext, of)
	return d
}

func (s *digestCache) put(of digestKey, d *requestDigest) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byContext == nil || len(s.byContext) >= maxDigests {
		s.byContext = make(map[digestKey]*requestDigest)
	}
	s.byContext[of] = d
}

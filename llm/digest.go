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

// Digest is the SHA-256 of the canonical form as a JSON string. Of a request
// that goes on where an earlier one of its context ended, only what is new is
// encoded. Errors are those of Canonical.
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

// canonicalEnds is the canonical form before the first message and after the last.
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

// requestDigest is that of the requests of one context as far as they are the same.
type requestDigest struct {
	head     string
	messages []convo.Message // that are in state
	state    hash.Hash
	buf      []byte
}

func newDigest(head string) *requestDigest {
	d := &requestDigest{head: head, state: sha256.New()}
	d.write(d.state, head, '"')
	return d
}

// isPrefixOf reports whether a request begins with what is digested.
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

// sameSent reports whether the canonical forms of two messages are the same, at
// least where it says that they are.
func sameSent(a, b convo.Message) bool {
	a.ID, a.Reasoning, a.Pinned, a.Priority, a.Metadata = b.ID, b.Reasoning, b.Pinned, b.Priority, nil
	b.Metadata = nil
	return a.Equal(b)
}

// extend digests the messages of a request that begins so.
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
		d.messages = append(d.messages, ms[i]) // a list of its own: that of the request is its maker's
	}
	return nil
}

// sumWith is the digest of the request that ends so.
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

// write digests a part of the JSON string, after what is to stand as it is.
func (d *requestDigest) write(h hash.Hash, s string, before ...byte) {
	d.buf = engine.AppendString(d.buf[:0], s)
	_, _ = h.Write(before) // a hash never fails
	_, _ = h.Write(d.buf[1 : len(d.buf)-1])
}

// maxDigests is of how many contexts digests are kept.
const maxDigests = 64

// digestCache are those of the last requests of contexts. What is forgotten is made
// anew.
type digestCache struct {
	mu        sync.Mutex
	byContext map[digestKey]*requestDigest
}

// digestKey names a context.
type digestKey struct{ scope, context string }

// take hands one out; its taker alone may use it.
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

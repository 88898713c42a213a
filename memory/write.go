package memory

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Write is a request to remember something. Stores call Normalized on it.
type Write struct {
	Scope Scope
	Kind  Kind
	// Key is the subject. If an item with this key exists, the write adds a version
	// to it. See NormalKey.
	Key  string
	Text string
	Tags []string
	// At is the time of an episode; zero is Now. For other kinds it is always Now.
	At     time.Time
	Now    time.Time
	Source Source
	// Call is the idempotency key. A write with a known key changes nothing and
	// returns the result of the first, even if the item has been forgotten since.
	// "" is no key.
	Call string
	// ID is the id of the item if it is new; "" lets Normalized choose.
	ID string
	// MaxItems is the maximum number of items of the scope; 0 is no bound.
	MaxItems int
}

// WriteResult is the result of a write.
type WriteResult struct {
	ID string
	// Version is 1 for a new item.
	Version int
	// Known means that an item with the same content existed and nothing was written.
	Known bool
}

// Normalized returns the write as stores keep it: tags and key in normal form, times
// in whole milliseconds, with an ID. An invalid write gives an ErrInvalid that names
// the problem and what to do.
func (w Write) Normalized() (Write, error) {
	if err := w.Scope.Check(); err != nil {
		return w, err
	}
	if !slices.Contains(Kinds(), w.Kind) {
		return w, invalid("kind %q: expected fact, episode or procedure", w.Kind)
	}
	if w.Key = NormalKey(w.Key); w.Key != "" && w.Kind == Episode {
		return w, invalid("an episode has no key: it happened, and nothing replaces it")
	}
	switch {
	case strings.TrimSpace(w.Text) == "":
		return w, invalid("there is no text to remember")
	case len(w.Text) > MaxText:
		return w, invalid("the text has %d bytes; at most %d are remembered: say it shorter, or in several items", len(w.Text), MaxText)
	case !utf8.ValidString(w.Text):
		return w, invalid("the text is not UTF-8")
	case len(w.Key) > MaxKey:
		return w, invalid("the key has %d bytes; at most %d", len(w.Key), MaxKey)
	}
	var err error
	if w.Tags, err = normalTags(w.Tags); err != nil {
		return w, err
	}
	if w.Now.IsZero() {
		return w, invalid("the write has no time")
	}
	w.Now = time.UnixMilli(w.Now.UnixMilli())
	if w.At = time.UnixMilli(w.At.UnixMilli()); w.At.Year() <= 1 || w.Kind != Episode {
		w.At = w.Now
	}
	if w.At.Year() > 9999 {
		return w, invalid("an episode of the year %d", w.At.Year())
	}
	if w.ID == "" {
		w.ID = NewID(w.Call)
	}
	return w, nil
}

// Item returns the item that a normalized write creates, with a version number.
func (w Write) Item(version int) Item {
	return Item{
		ID: w.ID, Scope: w.Scope, Kind: w.Kind, Key: w.Key, Created: w.Now,
		Version: Version{Number: version, Text: w.Text, Tags: w.Tags, At: w.At, Written: w.Now, Source: w.Source},
	}
}

// SameContent reports whether an item has the content of a normalized write.
func (w Write) SameContent(i *Item) bool {
	return i.Kind == w.Kind && i.Key == w.Key && i.Text == w.Text &&
		(w.Key == "" || slices.Equal(i.Tags, w.Tags)) && (w.Kind != Episode || i.At.Equal(w.At))
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// Check returns an ErrInvalid that names what is wrong with a scope, or nil.
func (s Scope) Check() error {
	if s.Namespace == "" {
		return invalid("a memory without a namespace")
	}
	if (s.User == "") == (s.Session == "") {
		return invalid("a memory is that of a user, or of a session without one")
	}
	for _, n := range []struct{ what, name string }{{"namespace", s.Namespace}, {"user", s.User}, {"session", s.Session}} {
		switch {
		case len(n.name) > MaxName:
			return invalid("the name of the %s has %d bytes; at most %d", n.what, len(n.name), MaxName)
		case !utf8.ValidString(n.name):
			return invalid("the name of the %s is not UTF-8", n.what)
		case strings.IndexFunc(n.name, unicode.IsControl) >= 0:
			return invalid("the name of the %s holds control characters", n.what)
		}
	}
	return nil
}

// NormalKey returns the normal form of a key: case folded, Unicode normalized, words
// separated by one space. Keys with equal normal forms are equal.
func NormalKey(key string) string {
	key = cases.Fold().String(norm.NFKC.String(strings.ToValidUTF8(key, " ")))
	key = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, key)
	return strings.Join(strings.Fields(key), " ")
}

// normalTags removes empty and repeated tags.
func normalTags(tags []string) ([]string, error) {
	var out []string
	for _, t := range tags {
		t = strings.Join(strings.Fields(strings.ToValidUTF8(t, " ")), " ")
		if t == "" || slices.Contains(out, t) {
			continue
		}
		if len(t) > MaxTag {
			return nil, invalid("the tag %.20q… has %d bytes; at most %d", t, len(t), MaxTag)
		}
		out = append(out, t)
	}
	if len(out) > MaxTags {
		return nil, invalid("%d tags; at most %d", len(out), MaxTags)
	}
	return out, nil
}

// NewID returns the id of a new item: derived from the call that creates it, or random
// without a call.
func NewID(call string) string {
	var sum [sha256.Size]byte
	if call == "" {
		_, _ = rand.Read(sum[:]) // never fails
	} else {
		sum = sha256.Sum256([]byte("recall/id\x00" + call))
	}
	return "m" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

// CallDigest returns the digest under which stores keep a call. A stored call must not
// reveal the id of a run that is erased later.
func CallDigest(call string) [16]byte {
	sum := sha256.Sum256([]byte("recall/call\x00" + call))
	return [16]byte(sum[:16])
}

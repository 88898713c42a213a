package recall

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

// Write is something to remember. Make it with its fields and hand it to a store,
// which calls Checked.
type Write struct {
	Scope Scope
	Kind  Kind
	// Key is what it is about; under one that is there already it becomes the next
	// version. See NormalKey.
	Key  string
	Text string
	Tags []string
	// At is when an episode happened; zero is Now. For others it is always Now.
	At     time.Time
	Now    time.Time
	Source Source
	// Call is the idempotency key of the write: a write under a known one changes
	// nothing and returns what came of the first, also where that was forgotten
	// since. "" is known to nobody.
	Call string
	// ID is what the item is called if it is a new one; "" lets Checked choose.
	ID string
	// MaxItems is how many items the scope may hold; 0 is no bound.
	MaxItems int
}

// WriteResult is what came of a write.
type WriteResult struct {
	ID string
	// Version is 1 for a new item.
	Version int
	// Known: it was remembered in the same words, so that nothing was written.
	Known bool
}

// Normalized returns the write as stores keep it: names and key in their normal
// form, times in whole milliseconds, with an ID. ErrInvalid says what about it
// cannot be used, and what to do.
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

// Item is the item that a checked write makes, as the version of a number.
func (w Write) Item(version int) Item {
	return Item{
		ID: w.ID, Scope: w.Scope, Kind: w.Kind, Key: w.Key, Created: w.Now,
		Version: Version{Number: version, Text: w.Text, Tags: w.Tags, At: w.At, Written: w.Now, Source: w.Source},
	}
}

// SameContent reports whether an item says already what a checked write says.
func (w Write) SameContent(i *Item) bool {
	return i.Kind == w.Kind && i.Key == w.Key && i.Text == w.Text &&
		(w.Key == "" || slices.Equal(i.Tags, w.Tags)) && (w.Kind != Episode || i.At.Equal(w.At))
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// Check returns an ErrInvalid that says what is wrong with a scope.
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

// NormalKey is a key without case, in one spelling, its words apart by one space:
// keys of one normal form are the same.
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

// normalTags leaves out what is empty or there twice.
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

// NewID is the id of an item: it follows from the call that makes it, or from
// chance where there is none.
func NewID(call string) string {
	var sum [sha256.Size]byte
	if call == "" {
		_, _ = rand.Read(sum[:]) // it never fails
	} else {
		sum = sha256.Sum256([]byte("recall/id\x00" + call))
	}
	return "m" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

// CallDigest is what stores keep of a call, so that no trace of a run that is
// erased is left in it.
func CallDigest(call string) [16]byte {
	sum := sha256.Sum256([]byte("recall/call\x00" + call))
	return [16]byte(sum[:16])
}

package openai

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/livetext"
	"github.com/weir-run/weir/store"
)

const kindProgress = "openai.progress" // what readers may have of a response in the background, by message

// progress is what readers may have of the text of a response, as kept before it is sent.
type progress struct {
	Bytes    int    `json:"bytes"`
	Digest   string `json:"digest"`   // of these bytes
	Complete int    `json:"complete"` // bytes of complete calls: these are in the journal
	Next     int    `json:"next"`     // the number after the last piece
	// Breaks are where text was void, in order.
	Breaks []textBreak `json:"breaks,omitempty"`
}

// textBreak says that text from a byte on was sent under numbers and is void: its call was made again.
type textBreak struct {
	At   int `json:"at"`
	From int `json:"from"` // the first of the numbers
	To   int `json:"to"`   // the number after the last of them
}

// firstPiece is the number of the first piece of text.
const firstPiece = 4

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// textStream sends the text of a response in pieces. Each reader gets the same pieces under the same numbers, whenever and in
// whichever process it reads, because the pieces follow from the text. Only text whose call is made again, as after the end of the
// process, may differ from what a reader has: what readers may have is kept before it is sent. If the text then differs, its pieces
// get numbers that no reader has seen, and a reader that continues after a void piece gets an error.
type textStream struct {
	s        *responseStream
	progress *progressStore // nil for a response whose progress is not kept
	p        progress
	verified bool   // the text begins with what p has
	sent     string // all that was sent or skipped
	jumps    int    // how many breaks were passed
}

func (t *textStream) load() (err error) {
	if t.progress != nil {
		t.p, _, err = t.progress.read()
	}
	return err
}

// advance sends the pieces that the text has by now.
func (t *textStream) advance(now livetext.Spoken, whole bool) error {
	if !strings.HasPrefix(now.Text, t.sent) && (whole || !strings.HasPrefix(t.sent, now.Text)) {
		return livetext.ErrRetracted
	}
	for {
		t.verify(&now, whole)
		end := t.end(&now, whole)
		if end == len(t.sent) {
			return nil
		}
		if kept, err := t.keep(&now, end); err != nil {
			return err
		} else if !kept { // another reader was faster
			continue
		}
		return t.sendUntil(&now, end, whole)
	}
}

// end returns where the last piece that may be sent ends.
func (t *textStream) end(now *livetext.Spoken, whole bool) int {
	limit := len(now.Text)
	if !t.verified {
		limit = t.p.Complete
	}
	end := len(t.sent)
	for end < limit {
		n := livetext.Piece(now, end, whole)
		if n == 0 || end+n > limit {
			break
		}
		end += n
	}
	return end
}

func (t *textStream) sendUntil(now *livetext.Spoken, end int, whole bool) error {
	if err := t.s.begin(); err != nil {
		return err
	}
	for from := len(t.sent); from < end; {
		n := livetext.Piece(now, from, whole)
		if err := t.jump(from); err != nil {
			return err
		}
		if err := t.s.delta(now.Text[from : from+n]); err != nil {
			return err
		}
		from += n
		t.sent = now.Text[:from]
	}
	return nil
}

// jump passes the breaks at a byte.
func (t *textStream) jump(at int) error {
	for t.jumps < len(t.p.Breaks) && t.p.Breaks[t.jumps].At <= at {
		b := t.p.Breaks[t.jumps]
		t.jumps++
		if b.At < at { // it was found after the text was sent
			return livetext.ErrRetracted
		}
		if t.s.after >= b.From && t.s.after < b.To {
			return errVoid
		}
		t.s.number = b.To
	}
	return nil
}

// verify compares the text with what readers may have, once there is as much of it.
func (t *textStream) verify(now *livetext.Spoken, whole bool) {
	if t.verified || len(now.Text) < t.p.Bytes && !whole {
		return
	}
	t.verified = true
	if len(now.Text) >= t.p.Bytes && (t.p.Bytes == 0 || digestOf(now.Text[:t.p.Bytes]) == t.p.Digest) {
		return
	}
	at := min(t.p.Complete, len(now.Text))
	t.p.Breaks = append(t.p.Breaks, textBreak{at, t.numberAt(now, at), t.p.Next})
	t.p.Bytes, t.p.Digest = at, digestOf(now.Text[:at])
}

// numberAt returns the number of the piece that begins at a byte.
func (t *textStream) numberAt(now *livetext.Spoken, at int) int {
	number, breaks := firstPiece, t.p.Breaks
	for from := 0; ; number++ {
		for len(breaks) > 0 && breaks[0].At <= from {
			number, breaks = breaks[0].To, breaks[1:]
		}
		if from >= at {
			return number
		}
		from += livetext.Piece(now, from, true)
	}
}

// keep records that readers may have the text until a byte. It returns false if what is recorded is not what was read, which then
// is read again.
func (t *textStream) keep(now *livetext.Spoken, end int) (bool, error) {
	if t.progress == nil || t.progress.x == nil || end <= t.p.Bytes {
		return true, nil
	}
	next := t.p
	next.Bytes, next.Digest, next.Complete = end, digestOf(now.Text[:end]), min(now.Complete(), end)
	next.Next = t.numberAt(now, end)
	changed, err := t.progress.write(next)
	if err != nil {
		return false, err
	}
	if changed {
		t.verified = false
		return false, t.load()
	}
	t.p = next
	return true, nil
}

// progressStore keeps the progress of one response.
type progressStore struct {
	c       *server.Caller
	rec     *responseRecord
	x       *exchange // of the round; nil if it has ended
	version int64
}

func (s *progressStore) read() (p progress, found bool, err error) {
	d, err := s.c.App().Store.Document(s.c.Context(), kindProgress, s.rec.Message)
	if errors.Is(err, store.ErrNotFound) {
		s.version = 0
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	s.version = d.Version
	var l link
	if err := json.Unmarshal(d.Body, &l); err != nil {
		return p, false, err
	}
	return p, true, json.Unmarshal(l.Data, &p)
}

// write keeps the progress, unless another reader has since it was read.
func (s *progressStore) write(p progress) (changed bool, err error) {
	data, err := json.Marshal(p)
	if err != nil {
		return false, err
	}
	body, err := json.Marshal(link{s.x.session, data})
	if err != nil {
		return false, err
	}
	d, err := s.c.App().Store.PutDocument(context.WithoutCancel(s.c.Context()), store.Document{
		Kind: kindProgress, ID: s.rec.Message, User: s.x.c.User(), Run: s.x.reply.Run(), Version: s.version, Body: body,
	})
	if errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	s.version = d.Version
	return false, err
}

// Package livetext selects from the items of a round the text that is its answer, while the
// round executes.
//
// It must not know the protocol in which the text is sent.
package livetext

import (
	"errors"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// ErrRetracted means that text which was returned before is void: its call failed or is made
// again, or its node was cancelled.
var ErrRetracted = errors.New("text that was sent is void")

// Reader reads the items of one round. It returns the texts of agents and of the last nodes
// that speak, one after another; texts of other nodes are no answer.
type Reader struct {
	speakers map[string]bool // by path
	key      string          // of the effect whose text is being returned
	sent     strings.Builder // everything that was returned
	start    int             // where the text of key begins in sent
	lost     bool            // text of key may be missing
	waiting  []*pending      // effects that speak while another does, in order
}

// pending is the text of an effect that waits until an earlier one has completed.
type pending struct {
	key  string
	text strings.Builder
}

// NewReader returns a reader for rounds of a flow.
func NewReader(f *flow.Flow) *Reader { return &Reader{speakers: Speakers(f)} }

// Next returns the text that an item adds to the answer, "" for none. After an error nothing
// more may be returned.
func (r *Reader) Next(it *weir.Item) (string, error) {
	if it.PathPrefix != "" { // a child run speaks to its parent
		return "", nil
	}
	if failed, ok := it.Event.(*engine.RunFailed); ok && failed.Repeat != nil {
		return "", r.restart()
	}
	if it.Event != nil {
		return r.event(it), nil
	}
	if it.Gap {
		r.lost = r.key != ""
		return "", nil
	}
	key := it.Path + " " + it.Effect
	if it.Retracted {
		return "", r.retract(key)
	}
	if it.Chunk == nil || !r.speakers[it.Path] || it.Chunk.Text == "" || !isAnswer(it.Effect) {
		return "", nil
	}
	return r.chunk(it, key)
}

func (r *Reader) chunk(it *weir.Item, key string) (string, error) {
	switch {
	case r.key == "" || r.key == key:
	case it.Snapshot:
		r.pendingOf(key).text.Reset()
		fallthrough
	default:
		r.pendingOf(key).text.WriteString(it.Chunk.Text)
		return "", nil
	}
	if r.key == "" {
		r.begin(key)
	}
	if !it.Snapshot {
		if r.lost { // a snapshot of all follows, or the end of the effect
			return "", nil
		}
		return r.add(it.Chunk.Text), nil
	}
	r.lost = false
	rest, ok := strings.CutPrefix(it.Chunk.Text, r.current())
	if !ok {
		return "", ErrRetracted
	}
	return r.add(rest), nil
}

// begin starts the text of an effect. add puts a blank line before it.
func (r *Reader) begin(key string) { r.key, r.start = key, -1 }

// current returns what was returned of the effect.
func (r *Reader) current() string {
	if r.start < 0 {
		return ""
	}
	return r.sent.String()[r.start:]
}

func (r *Reader) add(text string) string {
	if text == "" {
		return ""
	}
	if r.start < 0 {
		if r.sent.Len() > 0 {
			r.sent.WriteString("\n\n")
			text, r.start = "\n\n"+text, r.sent.Len()
			r.sent.WriteString(text[2:])
			return text
		}
		r.start = 0
	}
	r.sent.WriteString(text)
	return text
}

func (r *Reader) pendingOf(key string) *pending {
	for _, p := range r.waiting {
		if p.key == key {
			return p
		}
	}
	p := &pending{key: key}
	r.waiting = append(r.waiting, p)
	return p
}

// retract voids the text of an effect.
func (r *Reader) retract(key string) error {
	if key == r.key {
		if r.current() != "" {
			return ErrRetracted
		}
		r.key = ""
	}
	for i, p := range r.waiting {
		if p.key == key {
			r.waiting = append(r.waiting[:i], r.waiting[i+1:]...)
			return nil
		}
	}
	return nil
}

// restart voids all text: the round is repeated.
func (r *Reader) restart() error {
	r.key, r.lost, r.waiting = "", false, nil
	if r.sent.Len() > 0 {
		return ErrRetracted
	}
	return nil
}

// event returns the text of an effect that spoke at the same time as the one that ends here.
func (r *Reader) event(it *weir.Item) string {
	if r.key == "" || !ends(it, r.key) {
		return ""
	}
	r.key, r.lost = "", false
	if len(r.waiting) == 0 {
		return ""
	}
	next := r.waiting[0]
	r.waiting = r.waiting[1:]
	r.begin(next.key)
	return r.add(next.text.String())
}

// End returns what is missing of an answer whose text is known from the record.
func (r *Reader) End(text string) (string, error) {
	sent := r.sent.String()
	if text == "" || strings.HasSuffix(sent, text) {
		return "", nil
	}
	if r.key != "" { // the end of the last effect was not seen
		rest, ok := strings.CutPrefix(text, r.current())
		if !ok && r.lost {
			return "", ErrRetracted
		}
		if ok {
			return r.add(rest), nil
		}
	}
	r.begin("")
	return r.add(text), nil
}

// Sent is everything that was returned.
func (r *Reader) Sent() string { return r.sent.String() }

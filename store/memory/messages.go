package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// contexts indexes the messages in a run's own commits. It is built on first use, so that appending does not pay for
// it.
type contexts struct {
	indexed        int // number of indexed commits
	byID           map[string]*ownMessages
	sessionContext *ownMessages // the context that continues the run's session
}

// ownMessages are the messages that were added to a context after its origin.
type ownMessages struct {
	base int // position of the first message
	list []convo.Message
	seqs []int64 // for each message, the commit that appended it
	from contextOrigin
}

// contextOrigin is the history that a context continues; at most one group of fields is set.
type contextOrigin struct {
	lane     string // a context of the same run
	base     bool   // the context of the same name in the base of this run
	run, ctx string // a context of another run
	session  string // the history of a session
}

// end returns the position after the last message.
func (o *ownMessages) end() int { return o.base + len(o.list) }

// Messages implements store.Journal.
func (s *Store) Messages(ctx context.Context, id, contextID string, from, to int) ([]convo.Message, error) {
	out := []convo.Message{}
	parts, err := s.stretches(ctx, id, contextID, from, to)
	for _, p := range slices.Backward(parts) {
		out = append(out, p.messages...)
	}
	return out, err
}

// FindMessage implements store.Journal.
func (s *Store) FindMessage(ctx context.Context, id, contextID, messageID string, n int) (int, error) {
	parts, err := s.stretches(ctx, id, contextID, 0, n)
	for _, p := range parts {
		for i, m := range slices.Backward(p.messages) {
			if m.ID == messageID {
				return p.from + i, nil
			}
		}
	}
	return -1, err
}

// stretch is a range of positions whose messages one context has.
type stretch struct {
	from     int
	messages []convo.Message
}

// contextAt is a context as of one of its run's commits.
type contextAt struct {
	run     *run
	context string
	upto    int64
}

// stretches lists the stretches of a context for positions from up to to, the last one first.
func (s *Store) stretches(ctx context.Context, id, contextID string, from, to int) ([]stretch, error) {
	r, err := s.run(ctx, id)
	if err != nil {
		return nil, err
	}
	var out []stretch
	at, inside := contextAt{r, contextID, maxNumber}, true
	for from < to {
		own, seen, err := at.ownMessages()
		if err != nil {
			return nil, fmt.Errorf("messages of run %s: %w", id, err)
		}
		if own == nil {
			return out, nil
		}
		if lo, hi := max(from, own.base), min(to, seen); lo < hi {
			out = append(out, stretch{lo, own.list[lo-own.base : hi-own.base]})
		}
		to = min(to, own.base, seen)
		switch o := own.from; {
		case o.session != "":
			more, err := s.sessionStretches(ctx, o.session, max(from, 0), to)
			return append(out, more...), err
		case o.run != "":
			if r, err = s.run(ctx, o.run); err != nil {
				return nil, err
			}
			at, inside = contextAt{r, o.ctx, maxNumber}, false
		case o.base:
			at = contextAt{at.run.base, at.context, min(at.upto, at.run.row.Base.Seq)}
		case o.lane != "" && !inside:
			at.context = o.lane
		default:
			return out, nil
		}
	}
	return out, nil
}

const maxNumber = int64(1) << 62

// ownMessages returns an immutable view of the messages that the run itself added to the context, and the end of
// their visible part. If it added none, the context is its base's.
func (p contextAt) ownMessages() (own *ownMessages, seen int, err error) {
	r := p.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.contexts.index(r); err != nil {
		return nil, 0, err
	}
	if r.row.Base == nil || p.upto > r.row.Base.Seq {
		if c := r.contexts.byID[p.context]; c != nil {
			n := sort.Search(len(c.seqs), func(i int) bool { return c.seqs[i] > p.upto })
			return new(*c), c.base + n, nil
		}
	}
	if r.base == nil {
		return nil, 0, nil
	}
	return &ownMessages{base: int(maxNumber), from: contextOrigin{base: true}}, int(maxNumber), nil
}

func (c *contexts) index(r *run) error {
	if c.byID == nil {
		c.byID = map[string]*ownMessages{}
	}
	for ; c.indexed < len(r.commits); c.indexed++ {
		commit := &r.commits[c.indexed]
		for _, e := range commit.Events {
			for i, changes := 0, engine.ContextChanges(e); i < len(changes); i++ {
				if err := c.add(r, commit.Seq, &changes[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *contexts) add(r *run, seq int64, ch *engine.ContextChange) error {
	body, err := changeOf(ch)
	if err != nil {
		return err
	}
	own := c.byID[ch.ID]
	if own == nil {
		own = &ownMessages{base: ch.At, from: originOf(r, ch)}
		if own.from.base {
			if len(body.Append) == 0 {
				return nil // still the base's
			}
			if own.base, err = r.inheritedLength(ch.ID); err != nil {
				return err
			}
		}
		c.byID[ch.ID] = own
		if own.from.session != "" {
			c.sessionContext = own
		}
	}
	own.list = append(own.list, body.Append...)
	for range body.Append {
		own.seqs = append(own.seqs, seq)
	}
	return nil
}

func originOf(r *run, ch *engine.ContextChange) contextOrigin {
	switch {
	case ch.Session != "":
		return contextOrigin{session: ch.Session}
	case ch.Run != "":
		return contextOrigin{run: ch.Run, ctx: ch.Parent}
	case ch.Parent != "":
		return contextOrigin{lane: ch.Parent}
	}
	return contextOrigin{base: !ch.Create && r.base != nil}
}

// inheritedLength returns the length of a context in the run's base, at the commit on which the run is based.
func (r *run) inheritedLength(contextID string) (int, error) {
	at := contextAt{r.base, contextID, r.row.Base.Seq}
	for {
		own, seen, err := at.ownMessages()
		if err != nil || own == nil {
			return 0, err
		}
		if !own.from.base || seen < int(maxNumber) {
			return seen, nil
		}
		at = contextAt{at.run.base, contextID, min(at.upto, at.run.row.Base.Seq)}
	}
}

func changeOf(ch *engine.ContextChange) (convo.Change, error) {
	switch b := ch.Body.(type) {
	case *convo.Change:
		return *b, nil
	case convo.Change:
		return b, nil
	case json.RawMessage:
		var d convo.Change
		if err := json.Unmarshal(b, &d); err != nil {
			return d, fmt.Errorf("change to context %s: %w", ch.ID, err)
		}
		return d, nil
	}
	return convo.Change{}, nil
}

// checkSources refuses a change whose context continues messages that do not exist.
func (s *Store) checkSources(ctx context.Context, r *run, c *engine.Commit) error {
	for _, e := range c.Events {
		for i, changes := 0, engine.ContextChanges(e); i < len(changes); i++ {
			ch := &changes[i]
			if ch.Session != "" && ch.Session != r.row.Session {
				return fmt.Errorf("context %s: the run is no round of session %s", ch.ID, ch.Session)
			}
			if ch.Run == "" || ch.At == 0 {
				continue
			}
			n, err := s.length(ctx, ch.Run, ch.Parent)
			if err == nil && n < ch.At {
				err = store.ErrNotFound
			}
			if err != nil {
				return fmt.Errorf("context %s: %d messages of context %s in run %s: %w", ch.ID, ch.At, ch.Parent, ch.Run, err)
			}
		}
	}
	return nil
}

// length returns the position after the last message of a run's context.
func (s *Store) length(ctx context.Context, id, contextID string) (int, error) {
	r, err := s.run(ctx, id)
	if err != nil {
		return 0, err
	}
	at := contextAt{r, contextID, maxNumber}
	own, seen, err := at.ownMessages()
	if err == nil && own != nil && own.from.base && seen == int(maxNumber) {
		seen, err = r.inheritedLength(contextID)
	}
	return seen, err
}

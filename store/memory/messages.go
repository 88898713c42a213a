package memory

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// contexts indexes the messages in a run's commits. It is built when somebody
// asks, so that appending does not pay for it.
type contexts struct {
	done int // commits indexed
	byID map[string]*ownMessages
}

// ownMessages are the messages a context added to what it was forked from.
type ownMessages struct {
	base int // position of the first
	list []convo.Message
}

// Messages returns the messages of a context at positions from up to to, to
// not included, as they were appended. A context forked from another begins at
// the position it was forked at; what lies before is its parent's and not
// returned. A context that is not there has none.
func (s *Store) Messages(ctx context.Context, id, contextID string, from, to int) ([]convo.Message, error) {
	own, err := s.own(ctx, id, contextID)
	if err != nil || own == nil {
		return []convo.Message{}, err
	}
	n := own.base + len(own.list)
	from, to = min(max(from, own.base), n), min(max(to, own.base), n)
	out := make([]convo.Message, max(to-from, 0))
	copy(out, own.list[from-own.base:])
	return out, nil
}

// FindMessage returns the highest position below n at which a context has a
// message with that id of its own, -1 where there is none.
func (s *Store) FindMessage(ctx context.Context, id, contextID, messageID string, n int) (int, error) {
	own, err := s.own(ctx, id, contextID)
	if err != nil || own == nil {
		return -1, err
	}
	for i := min(n-own.base, len(own.list)) - 1; i >= 0; i-- {
		if own.list[i].ID == messageID {
			return own.base + i, nil
		}
	}
	return -1, nil
}

// own returns a view of a context's messages that does not change any more.
func (s *Store) own(ctx context.Context, id, contextID string) (*ownMessages, error) {
	r, err := s.run(ctx, id)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.contexts.index(r.commits); err != nil {
		return nil, fmt.Errorf("messages of run %s: %w", id, err)
	}
	own := r.contexts.byID[contextID]
	if own == nil {
		return nil, nil
	}
	return &ownMessages{own.base, own.list}, nil
}

func (c *contexts) index(commits []engine.Commit) error {
	if c.byID == nil {
		c.byID = map[string]*ownMessages{}
	}
	for ; c.done < len(commits); c.done++ {
		for _, e := range commits[c.done].Events {
			for i, changes := 0, engine.ContextChanges(e); i < len(changes); i++ {
				if err := c.add(&changes[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *contexts) add(ch *engine.ContextChange) error {
	own := c.byID[ch.ID]
	if own == nil {
		own = &ownMessages{base: ch.At}
		c.byID[ch.ID] = own
	}
	switch b := ch.Body.(type) {
	case *convo.Change:
		own.list = append(own.list, b.Append...)
	case convo.Change:
		own.list = append(own.list, b.Append...)
	case json.RawMessage:
		var d convo.Change
		if err := json.Unmarshal(b, &d); err != nil {
			return fmt.Errorf("change to context %s: %w", ch.ID, err)
		}
		own.list = append(own.list, d.Append...)
	}
	return nil
}

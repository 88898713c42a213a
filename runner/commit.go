package runner

import (
	"context"
	"sync"

	"github.com/weir-run/weir/store"
)

// committer combines the commits of many runs into one call of Append: while one call is in progress, further commits
// queue and form the next one.
type committer struct {
	journal store.Journal
	direct  bool

	mu      sync.Mutex
	queue   []store.Append
	buffers sync.Pool // of *[1]store.Append
	acks    []chan error
	writing bool
}

func newCommitter(s store.Store) *committer {
	return &committer{journal: s, direct: s.Capabilities().Instant}
}

// buffer returns space for a commit of one run, which a run that waits does not keep.
func (c *committer) buffer() *[1]store.Append {
	if one, ok := c.buffers.Get().(*[1]store.Append); ok {
		return one
	}
	return new([1]store.Append)
}

// free takes the space back.
func (c *committer) free(one *[1]store.Append) {
	one[0] = store.Append{}
	c.buffers.Put(one)
}

// commit returns when the given commit is durable, or refused; the caller may then reuse the list. If no other
// goroutine is writing, the caller writes all that queue up meanwhile.
func (c *committer) commit(one []store.Append, ack chan error) error {
	if c.direct {
		return c.journal.Append(context.Background(), one)[0]
	}
	c.mu.Lock()
	c.queue = append(c.queue, one[0])
	c.acks = append(c.acks, ack)
	lead := !c.writing
	c.writing = true
	c.mu.Unlock()
	if lead {
		c.writeQueued()
	}
	return <-ack
}

// writeQueued writes the queued commits; later ones are left to a goroutine, so that the caller's own run is not
// delayed.
func (c *committer) writeQueued() {
	c.mu.Lock()
	batch, acks := c.queue, c.acks
	c.queue, c.acks = nil, nil
	c.mu.Unlock()
	errs := c.journal.Append(context.Background(), batch)
	for i, ack := range acks {
		ack <- errs[i]
	}
	c.mu.Lock()
	more := len(c.queue) > 0
	c.writing = more
	c.mu.Unlock()
	if more {
		go c.writeQueued()
	}
}

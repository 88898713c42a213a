package convo

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Source is where a restored history reads its messages from, in a store.
type Source interface {
	// Load returns the messages of a context at positions from up to to, which
	// is not included: exactly that many, each version at its own position.
	Load(contextID string, from, to int) ([]Message, error)
}

// Finder is what a Source should also be able to do: without it, to learn
// whether an id is known can mean to load everything.
type Finder interface {
	// FindMessage returns the position of the newest version of the message
	// with that id among the first n positions, -1 where there is none.
	FindMessage(contextID, messageID string, n int) (int, error)
}

// pageSize is how many messages are loaded at once.
const pageSize = 256

// Restore returns c, which has no history yet, with one of n positions that
// src is asked for when they are read. Versions says that an id may occur more
// than once among them, as History.Versions said of the history that was kept.
// A kind that is not given is main.
func Restore(c Context, n int, versions bool, src Source) Context {
	c.History = History{}
	if n > 0 {
		p := &lazyPages{src: src, context: c.ID, n: n}
		p.cache = make([]atomic.Pointer[[]Message], (n+pageSize-1)/pageSize)
		p.missing.Store(int64(len(p.cache)))
		c.History = History{base: p, n: n, versions: versions}
	}
	if c.Kind == "" {
		c.Kind = Main
	}
	return c
}

// lazyPages are the messages of a restored history, loaded when they are read and
// kept. A nil pages is empty.
type lazyPages struct {
	src     Source
	context string
	n       int
	mu      sync.Mutex // held while loading, so that nothing is loaded twice
	cache   []atomic.Pointer[[]Message]
	missing atomic.Int64                   // pages not loaded
	ids     atomic.Pointer[map[string]int] // newest position by id, once all is loaded
	err     atomic.Pointer[error]
}

func (p *lazyPages) len() int {
	if p == nil {
		return 0
	}
	return p.n
}

func (p *lazyPages) lastError() error {
	if p == nil || p.err.Load() == nil {
		return nil
	}
	return *p.err.Load()
}

// messageAt returns the message at position i < n. It must not be changed.
func (p *lazyPages) messageAt(i int) (Message, error) {
	pg := p.cache[i/pageSize].Load()
	if pg == nil {
		if err := p.load(i, i+1); err != nil {
			return Message{}, err
		}
		pg = p.cache[i/pageSize].Load()
	}
	return (*pg)[i%pageSize], nil
}

// load makes the positions from up to to present.
func (p *lazyPages) load(from, to int) error {
	to = min(to, p.len())
	if from >= to {
		return nil
	}
	first, last := from/pageSize, (to-1)/pageSize
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := first; i <= last; i++ {
		if p.cache[i].Load() != nil {
			continue
		}
		end := i + 1
		for end <= last && p.cache[end].Load() == nil {
			end++
		}
		if err := p.fetch(i, end); err != nil {
			p.err.Store(&err)
			return err
		}
		i = end
	}
	return nil
}

// fetch loads the pages from first up to end, which is not included.
func (p *lazyPages) fetch(first, end int) error {
	from, to := first*pageSize, min(end*pageSize, p.n)
	ms, err := p.src.Load(p.context, from, to)
	if err != nil {
		return fmt.Errorf("load messages %d to %d of context %s: %w", from, to, p.context, err)
	}
	if len(ms) != to-from {
		return fmt.Errorf("load messages %d to %d of context %s: the store gave %d", from, to, p.context, len(ms))
	}
	for i := first; i < end; i++ {
		n := min(pageSize, len(ms))
		pg := make([]Message, n)
		for j := range pg {
			pg[j] = ms[j].clone()
		}
		ms = ms[n:]
		p.cache[i].Store(&pg)
		p.missing.Add(-1)
	}
	return nil
}

// index is the newest position by id, nil unless all pages are loaded.
func (p *lazyPages) index() map[string]int {
	if ids := p.ids.Load(); ids != nil {
		return *ids
	}
	if p.missing.Load() > 0 {
		return nil
	}
	ids := make(map[string]int, p.n)
	for i := range p.n {
		ids[(*p.cache[i/pageSize].Load())[i%pageSize].ID] = i
	}
	p.ids.Store(&ids)
	return ids
}

// find returns the newest message with that id and its position, or -1. Where
// not all is loaded and the source cannot find, it looks page by page from the
// end.
func (p *lazyPages) find(id string) (Message, int, error) {
	if p == nil || id == "" {
		return Message{}, -1, nil
	}
	if ids := p.index(); ids != nil {
		pos, known := ids[id]
		if !known {
			return Message{}, -1, nil
		}
		m, err := p.messageAt(pos)
		return m, pos, err
	}
	if f, ok := p.src.(Finder); ok {
		pos, err := f.FindMessage(p.context, id, p.n)
		if err != nil {
			return Message{}, -1, fmt.Errorf("find message %s of context %s: %w", id, p.context, err)
		}
		if pos < 0 || pos >= p.n {
			return Message{}, -1, nil
		}
		m, err := p.messageAt(pos)
		return m, pos, err
	}
	for i := p.n - 1; i >= 0; i-- {
		m, err := p.messageAt(i)
		if err != nil {
			return Message{}, -1, err
		}
		if m.ID == id {
			return m, i, nil
		}
	}
	return Message{}, -1, nil
}

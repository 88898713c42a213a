package convo

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Source reads the messages of a restored history from a store.
type Source interface {
	// Load returns the messages of a context at positions from up to but not including to:
	// exactly that many, each version at its own position.
	Load(contextID string, from, to int) ([]Message, error)
}

// Finder is an optional method of a Source. Without it, checking whether an id is known can
// require loading everything.
type Finder interface {
	// FindMessage returns the position of the newest version of the message with that id
	// among the first n positions, -1 if there is none.
	FindMessage(contextID, messageID string, n int) (int, error)
}

// pageSize is the number of messages that are loaded at once.
const pageSize = 256

// Restore returns c, which must not have a history yet, with a history of n positions that
// are loaded from src on demand. Versions says that an id may occur more than once among
// them, as History.Versions reported for the stored history. The default kind is main.
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

// lazyPages are the messages of a restored history, which are loaded on demand and kept. A
// nil lazyPages is empty.
type lazyPages struct {
	src     Source
	context string
	n       int
	mu      sync.Mutex // held while loading, so that no page is loaded twice
	cache   []atomic.Pointer[[]Message]
	missing atomic.Int64                   // number of pages not loaded
	ids     atomic.Pointer[map[string]int] // newest position by id, set after all pages are loaded
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

// load loads the positions from up to to.
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

// fetch loads the pages from first up to but not including end.
func (p *lazyPages) fetch(first, end int) error {
	from, to := first*pageSize, min(end*pageSize, p.n)
	ms, err := p.src.Load(p.context, from, to)
	if err != nil {
		return fmt.Errorf("load messages %d to %d of context %s: %w", from, to, p.context, err)
	}
	if len(ms) != to-from {
		return fmt.Errorf("load messages %d to %d of context %s: the store returned %d", from, to, p.context, len(ms))
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

// index returns the newest position by id, nil unless all pages are loaded.
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

// find returns the newest message with that id and its position, or -1. If not all pages
// are loaded and the source is no Finder, it searches page by page from the end.
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

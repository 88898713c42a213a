package runner

import (
	"context"
	"sync"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// Item is one thing seen of a run: an event of its journal, or a piece of live
// output that is in no journal.
type Item struct {
	// Run is the run below the watched one that the item is of, "" for the watched
	// run itself; only Tree yields others.
	Run string
	// Number is the event's number in the run, from 1; 0 for live output.
	Number int64
	// At is Unix time in milliseconds.
	At    int64
	Event engine.Event
	// Path and Chunk are set for live output.
	Path    string
	Attempt int
	Chunk   *llm.Chunk
	// Snapshot says that Chunk is all that a call of the node has put out so far; it
	// replaces what was seen of it.
	Snapshot bool
	// Gap says that live output was lost here, because the reader was too slow. No
	// event is lost; snapshots of what is being streamed follow.
	Gap bool
}

// hubSize is how many items a reader may lag behind before it has to read the
// journal again and loses live output.
const hubSize = 4096

// hub hands items to readers. Publishing never waits for a reader.
type hub struct {
	mu     sync.Mutex
	ring   []Item
	next   uint64
	wake   chan struct{} // closed to wake readers; nil while none waits
	closed bool
	used   bool // somebody reads
	tree   bool // and what is below the run as well
	// early: what comes before the first reader does is kept for it, if it is not
	// more than that.
	early []Item
	last  int64 // number of the last event that is durable; 0 is not known
	live  liveText
}

// arrival is what a reader begins with.
type arrival struct {
	pos   uint64
	early []Item // what was kept for the first reader
	last  int64  // events up to this number are in the journal, later ones come
	live  []Item // snapshots of what is being streamed
}

// maxEarly bounds what is kept for a reader that may come.
const maxEarly = 512

// watches has what is published of runs below kept for readers too.
func (h *hub) watches() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tree = true
}

// watched reports whether anybody reads what is published of runs below.
func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tree
}

// expect has what is published from now on kept for the first reader.
func (h *hub) expect() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.early = make([]Item, 0, 16)
}

func (h *hub) publish(items ...Item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range items {
		if it := &items[i]; it.Chunk != nil && it.Run == "" {
			if h.live == nil {
				h.live = make(liveText)
			}
			h.live.add(it)
		}
	}
	if !h.used {
		if h.early != nil && len(h.early)+len(items) <= maxEarly {
			h.early = append(h.early, items...)
		} else {
			h.early = nil // they are in the journal
		}
		return
	}
	if h.ring == nil {
		h.ring = make([]Item, hubSize)
	}
	for _, it := range items {
		h.ring[h.next%hubSize] = it
		h.next++
	}
	h.rouse()
}

// active reports whether anybody reads.
func (h *hub) active() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.used || h.early != nil
}

func (h *hub) rouse() {
	if h.wake != nil {
		close(h.wake)
		h.wake = nil
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.rouse()
}

// join returns where a new reader starts.
func (h *hub) join(at int64) arrival {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = true
	a := arrival{pos: h.next, early: h.early, last: h.last, live: h.live.snapshots(at)}
	h.early = nil
	return a
}

// read returns the items from pos on, waiting for one. lagged says that some
// were lost; ended that there will be no more.
func (h *hub) read(ctx context.Context, pos uint64, buf []Item) (items []Item, next uint64, lagged, ended bool) {
	for {
		h.mu.Lock()
		if h.next > pos {
			if h.next-pos > hubSize {
				pos, lagged = h.next-hubSize, true
			}
			for ; pos < h.next && len(buf) < cap(buf); pos++ {
				buf = append(buf, h.ring[pos%hubSize])
			}
			h.mu.Unlock()
			return buf, pos, lagged, false
		}
		if h.closed {
			h.mu.Unlock()
			return nil, pos, false, true
		}
		if h.wake == nil {
			h.wake = make(chan struct{})
		}
		wake := h.wake
		h.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, pos, false, true
		}
	}
}

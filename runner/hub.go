package runner

import (
	"context"
	"crypto/rand"
	"maps"
	"sync"

	"github.com/weir-run/weir/engine"
)

// hubSize is the number of items that a reader may lag behind before it must read the journal again and loses live
// output.
const hubSize = 4096

// maxBuffered is the maximum number of items that are stored for the first reader.
const maxBuffered = 512

// hub passes the items of a run, and of its child runs that this process executes, to readers. Publishing never waits
// for a reader.
type hub struct {
	root       string // id of the run
	start      int64  // number of its last event before position 0
	children   []runPosition
	mu         sync.Mutex // guards the following fields
	lastSeq    int64      // number of the last commit
	fence      int64      // that under which the run is executed; 0 while its lease is pending
	id         string     // names the hub in cursors; "" before the first read
	ring       []Item
	first      uint64 // position of the oldest stored item
	next       uint64
	wake       chan struct{} // closed to wake readers; nil if none waits
	closed     bool
	buffering  bool // items are stored: there is a reader, or will be
	skipped    bool // some were published before that
	lastEvents map[string]int64
	live       liveText
}

// subscription is the start of a reader.
type subscription struct {
	hub        string
	pos        uint64
	lastEvents map[string]int64 // by run: events up to this number are in the journal, later ones are published
	live       []Item           // snapshots of current live output
}

// initialize sets the run of the hub, the number of events in its journal, and the children that it waits for.
func (h *hub) initialize(run string, events int64, children []engine.OpenChild) {
	h.root, h.start = run, events
	h.lastEvents = map[string]int64{run: events}
	for _, c := range children {
		h.children = append(h.children, runPosition{run: c.Start.Run, pathPrefix: engine.BelowChild(c.ID, ""), parent: run, last: lastUnknown})
	}
}

// startBuffering stores the items that are published from now on for the first reader.
func (h *hub) startBuffering() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buffering = true
}

// publishLive publishes live output.
func (h *hub) publishLive(it Item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.live == nil {
		h.live = make(liveText)
	}
	for _, v := range h.live.add(&it) {
		h.push(v)
	}
	h.push(it)
	h.wakeReaders()
}

// publishCommit publishes the events of a commit of a run.
func (h *hub) publishCommit(run string, c *engine.Commit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastEvents[run] = c.First + int64(len(c.Events)) - 1
	if run == h.root {
		h.lastSeq = c.Seq
	}
	if !h.buffering && len(h.live) == 0 {
		h.skipped = true
		return
	}
	for i, e := range c.Events {
		if len(h.live) > 0 {
			for _, v := range h.live.applyEvent(run, e, c.At) {
				h.push(v)
			}
		}
		h.push(Item{Run: run, Number: c.First + int64(i), At: c.At, Event: e, seq: c.Seq})
	}
	h.wakeReaders()
}

// attach records that a child run is executed here from its event number n on.
func (h *hub) attach(run string, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastEvents[run] = n
	h.push(Item{Run: run, Number: n, attached: true})
	h.wakeReaders()
}

// detach records that a child run is no longer executed here.
func (h *hub) detach(run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.lastEvents, run)
}

// push appends an item; h.mu is held.
func (h *hub) push(it Item) {
	if !h.buffering {
		h.skipped = true
		return
	}
	if n := uint64(len(h.ring)); h.next-h.first == n {
		switch {
		case n == 0 || n < maxBuffered || n < hubSize && h.id != "":
			h.grow(max(n*2, 16))
		case h.id == "": // no reader has come, and there are too many items
			h.buffering, h.skipped, h.ring, h.first = false, true, nil, h.next
			return
		default:
			h.first++
		}
	}
	h.ring[h.next%uint64(len(h.ring))] = it
	h.next++
}

// grow makes room for n items, a power of two.
func (h *hub) grow(n uint64) {
	ring := make([]Item, n)
	for pos := h.first; pos < h.next; pos++ {
		ring[pos%n] = h.ring[pos%uint64(len(h.ring))]
	}
	h.ring = ring
}

// setFence sets the fence under which the run is executed.
func (h *hub) setFence(fence int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fence = fence
}

func (h *hub) wakeReaders() {
	if h.wake != nil {
		close(h.wake)
		h.wake = nil
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.wakeReaders()
}

// subscribe returns the start of a reader that has seen nothing, or has lost its position: the first item, if all are
// stored and the reader is new, otherwise the end.
func (h *hub) subscribe(at int64, fromStart bool) subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := fromStart && h.buffering && !h.skipped && h.first == 0
	h.markRead()
	if all {
		return subscription{hub: h.id, pos: 0, lastEvents: map[string]int64{h.root: h.start}}
	}
	return subscription{hub: h.id, pos: h.next, lastEvents: maps.Clone(h.lastEvents), live: h.live.snapshots(at)}
}

// markRead records that there is a reader; h.mu is held.
func (h *hub) markRead() {
	if !h.buffering {
		h.buffering, h.first = true, h.next
	}
	if h.id == "" {
		h.id = rand.Text()
	}
}

// has reports whether a reader can continue at a position of the hub with that name.
func (h *hub) has(id string, pos uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return id != "" && id == h.id && h.first <= pos && pos <= h.next
}

// lastPublished returns the number of the run's last published event.
func (h *hub) lastPublished() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lastEvents[h.root]
}

// read returns the items from pos on, and waits for one if there is none. lagged means that some were lost, ended
// that there will be no more.
func (h *hub) read(ctx context.Context, pos uint64, buf []Item) (items []Item, lagged, ended bool) {
	for {
		h.mu.Lock()
		if h.next > pos {
			if pos < h.first {
				h.mu.Unlock()
				return nil, true, false
			}
			for ; pos < h.next && len(buf) < cap(buf); pos++ {
				buf = append(buf, h.ring[pos%uint64(len(h.ring))])
			}
			h.mu.Unlock()
			return buf, false, false
		}
		if h.closed {
			h.mu.Unlock()
			return nil, false, true
		}
		if h.wake == nil {
			h.wake = make(chan struct{})
		}
		wake := h.wake
		h.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, false, true
		}
	}
}

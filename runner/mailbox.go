package runner

import (
	"sync"

	"github.com/weir-run/weir/engine"
)

// mail is a message to an execution's goroutine. Exactly one of attempt and
// command is set.
type mail struct {
	attempt *attempt
	// ended: the attempt's function returned err after micros.
	ended  bool
	err    error
	micros int64
	// stop: the attempt's time to stop by itself is over (1), then to stop at
	// all (2).
	stop int
	// events are to be made durable for the attempt, which waits for ack.
	events []engine.Event
	// command makes an event from what the run is now; ack says whether it is
	// durable.
	command func(r *engine.Run) (engine.Event, error)
	ack     chan error
}

// mailbox never blocks a sender.
type mailbox struct {
	mu     sync.Mutex
	queue  []mail
	notify chan struct{} // of size 1
}

func newMailbox() *mailbox { return &mailbox{notify: make(chan struct{}, 1)} }

func (b *mailbox) put(m mail) {
	b.mu.Lock()
	b.queue = append(b.queue, m)
	b.mu.Unlock()
	b.ring()
}

func (b *mailbox) ring() {
	select {
	case b.notify <- struct{}{}:
	default:
	}
}

// take empties the box into spare's room.
func (b *mailbox) take(spare []mail) []mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.queue
	b.queue = spare[:0]
	return out
}

package runner

import (
	"sync"

	"github.com/weir-run/weir/engine"
)

// mail is a message to an execution's driver. At most one of attempt and
// command is set; with neither it is a look at the clock.
type mail struct {
	attempt *attempt
	// ended: the attempt's function returned err after micros.
	ended  bool
	err    error
	micros int64
	// stop is one of the levels of Execution.stop.
	stop int
	// events are to be made durable for the attempt, which waits for ack.
	events []engine.Event
	// command makes an event from what the run is now; ack says whether it is
	// durable.
	command func(r *engine.Run) (engine.Event, error)
	ack     chan error
	// post is the message of the run's inbox that the command carries out, nil for
	// none.
	post *delivery
}

// mailbox never blocks a sender. Whoever takes its mail drives the execution;
// there is never more than one such driver, and none while the box is empty.
type mailbox struct {
	mu     sync.Mutex
	queue  []mail
	driven bool
}

// newMailbox returns a box whose maker is its first driver.
func newMailbox() *mailbox { return &mailbox{driven: true} }

// put adds mail. Where nobody drives, lead is true and the caller must have the
// execution driven.
func (b *mailbox) put(ms ...mail) (lead bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, ms...)
	lead = !b.driven
	b.driven = true
	return lead
}

// take empties the box into spare's room.
func (b *mailbox) take(spare []mail) []mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.queue
	b.queue = spare[:0]
	return out
}

// waits reports whether there is mail.
func (b *mailbox) waits() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue) > 0
}

// rest ends the driver's turn, unless there is mail.
func (b *mailbox) rest() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 {
		return false
	}
	b.driven = false
	return true
}

package runner

import (
	"sync"

	"github.com/weir-run/weir/engine"
)

// driverMessage is a message to an execution's driver. At most one of attempt and
// command is set; with neither it is a look at the clock.
type driverMessage struct {
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
	// delivery is the message of the run's inbox that the command carries out, nil for
	// none.
	delivery *delivery
}

// driverQueue never blocks a sender. Whoever takes its mail drives the execution;
// there is never more than one such driver, and none while the box is empty.
type driverQueue struct {
	mu     sync.Mutex
	queue  []driverMessage
	driven bool
}

// newDriverQueue returns a box whose maker is its first driver.
func newDriverQueue() *driverQueue { return &driverQueue{driven: true} }

// put adds mail. Where nobody drives, lead is true and the caller must have the
// execution driven.
func (b *driverQueue) put(ms ...driverMessage) (lead bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, ms...)
	lead = !b.driven
	b.driven = true
	return lead
}

// takeAll empties the box into spare's room.
func (b *driverQueue) takeAll(spare []driverMessage) []driverMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.queue
	b.queue = spare[:0]
	return out
}

// hasMessages reports whether there is mail.
func (b *driverQueue) hasMessages() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue) > 0
}

// releaseDriver ends the driver's turn, unless there is mail.
func (b *driverQueue) releaseDriver() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 {
		return false
	}
	b.driven = false
	return true
}

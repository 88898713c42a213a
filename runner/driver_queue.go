package runner

import (
	"sync"

	"github.com/weir-run/weir/engine"
)

// driverMessage is a message to an execution's driver. At most one of attempt and command is set; without either the
// driver only checks the clock.
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
	// command creates an event from the current state of the run; ack reports whether it is durable.
	command func(r *engine.Run) (engine.Event, error)
	ack     chan error
	// delivery is the message of the run's inbox that the command carries out, nil for
	// none.
	delivery *delivery
}

// driverQueue is the queue of messages to the driver of an execution. It never blocks a sender. The goroutine that
// processes the messages is the driver; there is never more than one, and none while the queue is empty.
type driverQueue struct {
	mu     sync.Mutex
	queue  []driverMessage
	driven bool
}

// newDriverQueue returns a queue with its creator as the first driver.
func newDriverQueue() *driverQueue { return &driverQueue{driven: true} }

// put adds messages. If there is no driver, lead is true and the caller must have the execution driven.
func (b *driverQueue) put(ms ...driverMessage) (lead bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, ms...)
	lead = !b.driven
	b.driven = true
	return lead
}

// takeAll empties the queue and returns its messages; spare is used for new ones.
func (b *driverQueue) takeAll(spare []driverMessage) []driverMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.queue
	b.queue = spare[:0]
	return out
}

// hasMessages reports whether there are messages.
func (b *driverQueue) hasMessages() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue) > 0
}

// releaseDriver ends the role of the driver, unless there are messages.
func (b *driverQueue) releaseDriver() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 {
		return false
	}
	b.driven = false
	return true
}

package node

import (
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
)

// Stopwatch measures how long a node has worked, without waits for people, timers or a
// process, and summed over its attempts. It belongs to the node's goroutine, and a node has
// one.
type Stopwatch struct {
	c       *Ctx
	elapsed int64     // microseconds, at the last reading
	read    time.Time // time of the last reading in this entry
}

// Stopwatch starts a stopwatch.
func (c *Ctx) Stopwatch() *Stopwatch { return &Stopwatch{c: c, read: time.Now()} }

// Elapsed returns the working time of the node so far. Each reading is an effect, so that a
// re-entered attempt reads the same values.
func (s *Stopwatch) Elapsed() (time.Duration, error) {
	v, err := s.c.Do(Effect{Name: "clock", ReadOnly: true, Do: func(goContext, string) (Outcome, error) {
		return Outcome{Value: s.elapsed + time.Since(s.read).Microseconds()}, nil
	}})
	if err != nil {
		return 0, err
	}
	worked, ok := v.(int64)
	if !ok {
		return 0, &engine.Error{Code: engine.CodeValue, Permanent: true, Message: fmt.Sprintf("a clock reads %T", v)}
	}
	s.elapsed, s.read = worked, time.Now()
	return time.Duration(worked) * time.Microsecond, nil
}

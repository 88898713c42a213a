package node

import (
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
)

// Stopwatch measures how long a node has worked. What it waited for people,
// timers or a process to drive the run is left out, and what several attempts
// worked is added up. It belongs to the node's goroutine, and a node has one.
type Stopwatch struct {
	c       *Ctx
	elapsed int64     // microseconds, at the newest reading
	read    time.Time // when that was, in this entry
}

// Stopwatch begins to measure.
func (c *Ctx) Stopwatch() *Stopwatch { return &Stopwatch{c: c, read: time.Now()} }

// Elapsed is how long the node has worked so far. Each reading is an effect, so
// that an attempt which is entered again is told the same.
func (s *Stopwatch) Elapsed() (time.Duration, error) {
	v, err := s.c.Do(Effect{Name: "clock", Do: func(goContext, string) (Outcome, error) {
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

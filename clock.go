package weir

import (
	"time"

	"github.com/weir-run/weir/runner"
)

// Waits returns what the runs that this process executes wait for; ok is false while one of them does anything else. It
// is for tests of flows: without Options.Skip, ok is always false.
func (w *Weir) Waits() (waits runner.Waits, ok bool) { return w.local.Waits() }

// MoveClock moves the clock of the runs that this process executes forward to a time, and fires the timers that are due
// then. A paused run fires its timer when it is resumed. It is for tests of flows: without Options.Skip it is an error.
func (w *Weir) MoveClock(at time.Time) error { return w.local.MoveClock(at) }

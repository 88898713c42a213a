package sqlite

import (
	"context"
	"errors"
	"strconv"
	"time"

	"modernc.org/sqlite"
)

// Writers of several processes take turns by trying: SQLite has no queue of those that wait. Its own wait sleeps longer
// from try to try, up to 100 ms. A writer that commits one transaction after another leaves the file free for
// microseconds, which such a sleeper misses for seconds. So a write that waits tries every few milliseconds instead, as
// often after a long wait as after a short one.

// busyPoll is the wait of SQLite's own for one try: sleeps of 1, 2 and 5 ms.
const busyPoll = 8 * time.Millisecond

// pollWhenBusy makes the writer's connection wait briefly; writes try again in waitForTurn.
func (s *Store) pollWhenBusy(ctx context.Context, most time.Duration) error {
	s.busy = most
	return s.pragmas(ctx, busyTimeout(min(busyPoll, most)))
}

func busyTimeout(d time.Duration) string {
	return "busy_timeout = " + strconv.FormatInt(d.Milliseconds(), 10)
}

// waitForTurn calls a function that takes the lock of writers until another connection does not have it, for at most
// Options.BusyTimeout.
func (s *Store) waitForTurn(ctx context.Context, try func() error) error {
	var since time.Time // read only if it has to wait
	for {
		err := try()
		if !isBusy(err) || ctx.Err() != nil {
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) >= s.busy {
			return err
		}
	}
}

// waitingAtOnce calls a function in which SQLite itself waits for as long as Options.BusyTimeout says.
func (s *Store) waitingAtOnce(ctx context.Context, do func() error) error {
	if err := s.pragmas(ctx, busyTimeout(s.busy)); err != nil {
		return err
	}
	return errors.Join(do(), s.pragmas(context.WithoutCancel(ctx), busyTimeout(min(busyPoll, s.busy))))
}

// isBusy reports whether another connection has the lock.
func isBusy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == codeBusy
}

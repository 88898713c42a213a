package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Owned is a store.ErrOwned with the owner of the run.
type Owned struct {
	Run   string
	Owner string    // as stored
	Until time.Time // the end of the lease, unless it is renewed
}

// Error names the process.
func (e *Owned) Error() string {
	return fmt.Sprintf("another process, %s, drives run %s", OwnerName(e.Owner), e.Run)
}

// Unwrap returns store.ErrOwned.
func (e *Owned) Unwrap() error { return store.ErrOwned }

// Hint says what to do.
func (e *Owned) Hint() string {
	return fmt.Sprintf("wait for it to end, watch it with `%s`, or stop it with `%s`; where that process has died, try again after %s",
		engine.CommandLine("show", e.Run), engine.CommandLine("cancel", e.Run), e.Until.Local().Format("15:04:05"))
}

// OwnerName describes the owner of a run: "4711 on HOST".
func OwnerName(owner string) string {
	host, rest, ok := strings.Cut(owner, ":")
	pid, _, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 {
		return owner
	}
	host, _, _ = strings.Cut(host, "+") // without the boot and the namespace
	return pid + " on " + host
}

// ownedError returns the error for a run that another process owns.
func (l *Local) ownedError(ctx context.Context, id string, err error) error {
	if !errors.Is(err, store.ErrOwned) {
		return fmt.Errorf("run %s: %w", id, err)
	}
	r, e := l.store.Run(ctx, id)
	if e != nil || r.Owner == "" {
		return fmt.Errorf("run %s: %w", id, err)
	}
	return &Owned{Run: id, Owner: r.Owner, Until: r.Until}
}

// OwnerDead reports whether the owner of a run is a process of this machine that no longer exists.
func OwnerDead(owner string) bool { return ownerDead(owner) }

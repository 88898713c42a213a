package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// MaxCrashes is the number of processes that may end while they execute a run, without a commit between, before it is
// no longer continued automatically.
const MaxCrashes = 3

// ErrPoisoned: several processes have ended while they executed the run.
var ErrPoisoned = errors.New("the run is set aside: processes ended while they executed it")

// Poisoned is an ErrPoisoned with the run.
type Poisoned struct {
	Run     string
	Crashes int
}

// Error names the run.
func (e *Poisoned) Error() string {
	return fmt.Sprintf("run %s is set aside (poisoned): %d processes in a row ended while they executed it", e.Run, e.Crashes)
}

// Unwrap returns ErrPoisoned and ErrStatus.
func (e *Poisoned) Unwrap() []error { return []error{ErrPoisoned, ErrStatus} }

// Hint says what to do.
func (e *Poisoned) Hint() string {
	return fmt.Sprintf("`%s` continues it anyway, `%s` ends it",
		engine.CommandLine("resume", e.Run), engine.CommandLine("cancel", e.Run))
}

// ErrStopped: the process closed while it executed the run.
var ErrStopped = errors.New("the process stopped executing the run")

// Stopped is an ErrStopped with the run. Nothing that was acknowledged is lost.
type Stopped struct{ Run string }

// Error says how to continue the run.
func (e *Stopped) Error() string {
	return fmt.Sprintf("run %s was stopped before its end because its process is closing; continue it with `%s`",
		e.Run, engine.CommandLine("resume", e.Run))
}

// Unwrap returns ErrStopped.
func (e *Stopped) Unwrap() error { return ErrStopped }

// Missing lists what a process lacks to continue a run.
type Missing struct {
	Run string
	// The names of what is missing: node types, tools, providers, secrets.
	What []string
}

// Error lists what is missing.
func (e *Missing) Error() string {
	return "run " + e.Run + " cannot be continued here: " + strings.Join(e.What, "; ")
}

// Unwrap returns ErrDependenciesChanged.
func (e *Missing) Unwrap() error { return ErrDependenciesChanged }

// Hint says what to do.
func (e *Missing) Hint() string {
	return fmt.Sprintf("provide what is missing, or use a program that has it; `%s` continues under the present versions, and with --flow FILE under another flow; `%s` ends the run; it can be shown and exported as it is",
		engine.CommandLine("fork", e.Run, "--from", "NODE"), engine.CommandLine("cancel", e.Run))
}

// Blocked is an unfinished run that this process does not continue.
type Blocked struct {
	Run, Session string
	// Poisoned: several processes ended while they executed the run.
	Poisoned bool
	// Missing is what this process lacks, if that is the reason.
	Missing []string
	// Err is the reason.
	Err error
}

// Recover is Resume without a request of a person: for a run whose processes have crashed too often it returns a
// *Poisoned error.
func (l *Local) Recover(ctx context.Context, p *Program, id string) (*Execution, error) {
	if x := l.Held(id); x != nil {
		return l.Resume(ctx, p, id)
	}
	row, err := l.store.Run(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	u := store.Unfinished{Run: id, Status: row.Head.Status, Activity: row.Head.Activity, Owner: row.Owner, Expired: row.Expired, Crashes: row.Crashes}
	if l.crashesOf(&u, ownerDead(row.Owner)) >= MaxCrashes {
		return nil, l.quarantine(ctx, &u)
	}
	return l.Resume(ctx, p, id)
}

// crashesOf returns the run's count of crashes after this process acquired it.
func (l *Local) crashesOf(u *store.Unfinished, gone bool) int {
	left := u.Owner != "" && u.Owner != l.owner && (gone || u.Expired)
	if left && u.Status == engine.Running && u.Activity == engine.Executing {
		return u.Crashes + 1
	}
	return u.Crashes
}

// quarantine makes the count of a poisoned run durable and releases the run.
func (l *Local) quarantine(ctx context.Context, u *store.Unfinished) error {
	if u.Owner == "" {
		return &Poisoned{u.Run, u.Crashes}
	}
	lease, err := l.acquire(ctx, u.Run)
	if err != nil {
		return l.ownedError(ctx, u.Run, err)
	}
	if err := l.store.Release(ctx, lease); err != nil {
		return fmt.Errorf("set run %s aside: %w", u.Run, err)
	}
	return &Poisoned{u.Run, lease.Crashes}
}

// acquire acquires the lease of a run, at once if its owner is a process of this machine that is known to be dead:
// such a process can no longer commit. Once started, it does not end with ctx: a store that stops waiting may
// have written the lease.
func (l *Local) acquire(ctx context.Context, id string) (store.Lease, error) {
	if err := ctx.Err(); err != nil {
		return store.Lease{}, err
	}
	ctx = context.WithoutCancel(ctx)
	lease, err := l.store.Acquire(ctx, id, l.owner, l.o.Lease)
	if !errors.Is(err, store.ErrOwned) {
		return lease, err
	}
	r, e := l.store.Run(ctx, id)
	if e != nil || !ownerDead(r.Owner) {
		return lease, err
	}
	return l.store.Seize(ctx, id, r.Owner, l.owner, l.o.Lease)
}

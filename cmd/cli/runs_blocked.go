package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// blockedRow is a run as `weir runs --blocked --json` prints it.
type blockedRow struct {
	app.RunRow
	Session  string   `json:"session"`  // "" for a run that is no round
	Poisoned bool     `json:"poisoned"` // processes ended while they executed it
	Crashes  int      `json:"crashes"`
	Missing  []string `json:"missing"` // what this program lacks to continue it
	Why      string   `json:"why"`
	Next     string   `json:"next"` // what to do
}

// blockedPage is how many runs are looked at in one query.
const blockedPage = 100

// blocked lists runs that have not ended, that no process executes, and that this
// program cannot continue or does not continue automatically.
func (a *application) blocked(ctx context.Context, f store.Filter) ([]blockedRow, error) {
	most := f.Limit
	f.Status, f.Roots, f.Limit = []engine.Status{engine.Pending, engine.Running, engine.Paused}, false, blockedPage
	out := []blockedRow{}
	for {
		list, err := a.Runs(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range list {
			row, err := a.blockedRun(ctx, &list[i])
			if err != nil {
				return nil, err
			}
			if row != nil {
				out = append(out, *row)
			}
			if len(out) == most {
				return out, nil
			}
		}
		if len(list) < blockedPage {
			return out, nil
		}
		f.Before = list[len(list)-1].ID
	}
}

// blockedRun says why a run is blocked, nil if it is not.
func (a *application) blockedRun(ctx context.Context, r *store.Run) (*blockedRow, error) {
	if r.Head.Status != engine.Paused && !app.IsInterrupted(r) {
		return nil, nil // a process executes it
	}
	row := &blockedRow{RunRow: app.RunRowOf(r), Session: r.Session, Crashes: r.Crashes, Missing: []string{}}
	missing, err := a.Missing(ctx, r.ID)
	if err != nil {
		if errors.Is(err, store.ErrClosed) || ctx.Err() != nil {
			return nil, err
		}
		missing = []string{err.Error()} // the record itself does not let it continue
	}
	row.Missing = append(row.Missing, missing...)
	above, err := a.poisonedAbove(ctx, r)
	if err != nil {
		return nil, err
	}
	switch {
	case r.Crashes >= runner.MaxCrashes:
		row.Poisoned = true
		row.Why = (&runner.Poisoned{Run: r.ID, Crashes: r.Crashes}).Error()
		row.Next = (&runner.Poisoned{Run: r.ID}).Hint()
	case above != "":
		row.Why = fmt.Sprintf("run %s, which it belongs to, is set aside (poisoned)", above)
		row.Next = (&runner.Poisoned{Run: above}).Hint()
	case len(missing) > 0:
		row.Why = strings.Join(missing, "; ")
		row.Next = (&runner.Missing{Run: r.ID}).Hint()
	default:
		return nil, nil
	}
	return row, nil
}

// poisonedAbove returns the nearest run above a child run that is set aside, "" for none.
func (a *application) poisonedAbove(ctx context.Context, r *store.Run) (string, error) {
	for parent := r.Parent; parent != ""; {
		p, err := a.Store.Run(ctx, parent)
		if errors.Is(err, store.ErrNotFound) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if p.Crashes >= runner.MaxCrashes && !p.Head.Status.Ended() {
			return p.ID, nil
		}
		parent = p.Parent
	}
	return "", nil
}

func (p *cli) printBlocked(list []blockedRow, asJSON bool) {
	if asJSON {
		writeJSON(p.out, list)
		return
	}
	if len(list) == 0 {
		p.notef("no run is blocked")
		return
	}
	now := time.Now()
	t := p.table("RUN STATUS FLOW STARTED WHY", "STARTED", "FLOW")
	for i := range list {
		t.row(list[i].Run, list[i].Status, app.Printable(list[i].Flow), ago(now.Sub(list[i].Created)), app.Printable(list[i].Why))
	}
	t.print()
	seen := map[string]bool{}
	for i := range list {
		if next := list[i].Next; !seen[next] {
			seen[next] = true
			p.notef("%s: %s", list[i].Run, next)
		}
	}
}

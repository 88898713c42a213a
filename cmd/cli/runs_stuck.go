package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/store"
)

// stuckRow is a run, or a session with a message, as `weir runs --stuck --json` prints it.
type stuckRow struct {
	Run     string    `json:"run"` // "" for a session without a round
	Flow    string    `json:"flow"`
	User    string    `json:"user"`
	Session string    `json:"session"`           // "" for a run that is no round
	Message string    `json:"message,omitempty"` // that waits in the queue of the session
	Status  string    `json:"status"`
	Runner  string    `json:"runner"` // "" is the local one
	Reason  string    `json:"reason"` // a code
	Why     string    `json:"why"`
	Next    string    `json:"next"`  // what to do
	Since   time.Time `json:"since"` // nothing has happened since
	Owner   string    `json:"owner"` // the process that executed it last and did not release it
	Crashes int       `json:"crashes"`
}

// stuck lists stuck runs, the oldest first.
func (a *application) stuck(ctx context.Context, o *runsOptions) ([]stuckRow, error) {
	list, err := a.StuckRuns(ctx, weir.StuckOptions{For: o.idle})
	if err != nil {
		return nil, err
	}
	out := []stuckRow{}
	for i := range list {
		r := &list[i]
		if o.flow != "" && r.Flow != o.flow || o.user != "" && r.User != o.user {
			continue
		}
		if len(out) == o.limit {
			break
		}
		out = append(out, stuckRow{
			Run: r.Run, Flow: r.Flow, User: r.User, Session: r.Session, Message: r.Message, Status: r.Status.String(), Runner: r.Runner,
			Reason: r.Reason, Why: r.Detail, Next: r.Next, Since: r.Since.UTC(), Owner: r.Owner, Crashes: r.Crashes,
		})
	}
	return out, nil
}

func (p *cli) printStuck(list []stuckRow, asJSON bool) {
	if asJSON {
		writeJSON(p.out, list)
		return
	}
	if len(list) == 0 {
		p.notef("no run is stuck")
		return
	}
	now := time.Now()
	t := p.table("RUN STATUS FLOW SINCE REASON WHY", "SINCE", "FLOW")
	for i := range list {
		r := &list[i]
		t.row(r.name(), r.Status, app.Printable(r.Flow), ago(now.Sub(r.Since)), r.Reason, app.Printable(r.Why))
	}
	t.print()
	for i := range list {
		p.notef("%s: %s", list[i].name(), app.Printable(list[i].Next))
	}
}

// name is the run, or the session that has none.
func (r *stuckRow) name() string { return cmp.Or(r.Run, "session "+r.Session) }

// checkStuck reports whether runs of the database are stuck.
func (p *cli) checkStuck(ctx context.Context, offline bool) []checkResult {
	f := checkResult{About: "runs", State: "ok", Detail: "none is stuck"}
	open := p.openWithRunner
	if offline {
		open = p.openReadOnly
	}
	a, err := open(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		f.State, f.Detail, f.Remedy = "bad", err.Error(), hint(err)
		return []checkResult{f}
	}
	defer a.close() //nolint:errcheck // it only read
	list, err := a.StuckRuns(ctx, weir.StuckOptions{For: time.Minute})
	if err != nil {
		f.State, f.Detail, f.Remedy = "bad", err.Error(), hint(err)
		return []checkResult{f}
	}
	all := len(list)
	list = slices.DeleteFunc(list, func(r weir.StuckRun) bool { return r.Reason == weir.StuckRunnerNotReached })
	switch unknown := all - len(list); {
	case len(list) > 0:
		f.State = "note"
		f.Detail = stuckCount(list) + " that nothing advances, such as " + cmp.Or(list[0].Run, "session "+list[0].Session) + ": " + list[0].Detail
		f.Remedy = "`" + p.commandLine("runs", "--stuck") + "` lists them and says what to do"
	case unknown > 0:
		f.Detail += "; not asked about " + count(unknown, "run") + " of another runner"
	}
	return []checkResult{f}
}

// stuckCount is how many runs and sessions a list has.
func stuckCount(list []weir.StuckRun) string {
	sessions := 0
	for i := range list {
		if list[i].Run == "" {
			sessions++
		}
	}
	switch runs := len(list) - sessions; {
	case sessions == 0:
		return count(runs, "run")
	case runs == 0:
		return count(sessions, "session")
	default:
		return count(runs, "run") + " and " + count(sessions, "session")
	}
}

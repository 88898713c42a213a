package store

import (
	"github.com/weir-run/weir/engine"
)

// JournalFacts are the facts in the commits of a run that a store also keeps elsewhere.
type JournalFacts struct {
	// Started and Forked are the run's own first event; one of them is set.
	Started *engine.RunStarted
	Forked  *engine.RunForked
	// User is the user of the run; for a fork, that of the run with which it shares its past.
	User string
	// Ended is the final status after the last commit, Pending if it is not final; Error is the failure that ended
	// the run.
	Ended engine.Status
	Error *engine.Error
	// Session are the changes that the run made to the state of its session when it
	// completed, and SessionAt is the time of that commit in Unix milliseconds.
	Session   []engine.SessionChange
	SessionAt int64
	// Changes are the changes of contexts, in order.
	Changes []CommittedChange
}

// CommittedChange is a change of a context with the commit that made it.
type CommittedChange struct {
	Seq int64
	engine.ContextChange
	Messages int // number of appended messages
}

// Add reads the events of the next commit, made at a time in Unix milliseconds.
func (f *JournalFacts) Add(seq, at int64, events []engine.Event) {
	for _, e := range events {
		switch e := e.(type) {
		case *engine.RunStarted:
			f.Started, f.User = e, e.User
		case *engine.RunForked:
			f.Forked = e
			f.Ended, f.Error = engine.Pending, nil
		case *engine.RunCompleted:
			f.Ended, f.Session, f.SessionAt = engine.Completed, e.Session, at
		case *engine.RunFailed:
			f.Ended, f.Error = engine.Failed, e.Error
		case *engine.RunCancelled:
			f.Ended = engine.Cancelled
		case *engine.NodeOverridden:
			f.Ended, f.Error = engine.Pending, nil
		}
		for _, ch := range engine.ContextChanges(e) {
			c := CommittedChange{Seq: seq, ContextChange: ch}
			if body, err := ContextChangeOf(ch.Body); err == nil && body != nil {
				c.Messages = len(body.Append)
			}
			c.Body = nil // it is not needed, and may be large
			f.Changes = append(f.Changes, c)
		}
	}
}

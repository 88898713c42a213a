// Package rowaudit compares what a database keeps of a run beside its journal with what the journal says: the run's row, the
// changes of the state of its session, and its contexts. Databases read the rows. It must not know databases or how they store a row.
package rowaudit

import (
	"bytes"
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// Run is the audit of one run.
type Run struct {
	Chain store.Chain
	Facts *store.JournalFacts
	Found []store.Finding
}

// AddFinding adds a finding about the run. what is one of the kinds of store.Finding.
func (a *Run) AddFinding(what, format string, args ...any) {
	a.Found = append(a.Found, store.Finding{Run: a.Chain.Run, What: what, Message: fmt.Sprintf(format, args...)})
}

// CompareRow compares the run's row with its first event and its last.
func (a *Run) CompareRow(r *store.Run) {
	if a.Facts.Started != nil || a.Facts.Forked != nil {
		a.compareColumn("user", r.User, a.Facts.User)
	}
	switch {
	case a.Facts.Forked != nil:
		a.compareFork(r, a.Facts.Forked)
	case a.Facts.Started != nil:
		a.compareStart(r, a.Facts.Started)
	}
	if is, said := r.Head.Status, a.Facts.Ended; is != said && (is.Ended() || said.Ended()) {
		what := "that it has not ended"
		if said.Ended() {
			what = said.String()
		}
		a.AddFinding(store.FoundChanged, "the run's status is %s, and its journal says %s", is, what)
	}
	if is, said := ErrorText(r.Head.Error), ErrorText(a.Facts.Error); is != said && a.Facts.Ended.Ended() {
		a.AddFinding(store.FoundChanged, "the run's error is %s, and its journal says %s", is, said)
	}
}

func (a *Run) compareStart(r *store.Run, s *engine.RunStarted) {
	a.compareColumn("flow", r.Flow, s.Flow)
	a.compareColumn("fingerprint", r.Fingerprint, s.Fingerprint)
	a.compareColumn("parent", r.Parent, s.Parent)
	a.compareColumn("origin", r.Origin, s.Origin)
	a.compareColumn("session", r.Session, s.Session)
	a.compareColumn("round", fmt.Sprint(r.Round), fmt.Sprint(s.Round))
	if r.Base != nil {
		a.AddFinding(store.FoundChanged, "the run has run %s as its base, and its journal says that it has none", r.Base.Run)
	}
}

func (a *Run) compareFork(r *store.Run, f *engine.RunForked) {
	a.compareColumn("flow", r.Flow, f.Flow)
	a.compareColumn("fingerprint", r.Fingerprint, f.Fingerprint)
	a.compareColumn("origin", r.Origin, f.Origin)
	a.compareColumn("session", r.Session, "")
	a.compareColumn("parent", r.Parent, "")
	if r.Base == nil {
		a.AddFinding(store.FoundChanged, "the run has no base, and its journal says that it was forked from %s", f.From)
	} else if r.Base.Seq == 0 { // the chain proves any other
		a.compareColumn("base", r.Base.Run, f.From)
	}
}

// compareColumn reports a column that differs from the journal.
func (a *Run) compareColumn(column, is, said string) {
	if is != said {
		a.AddFinding(store.FoundChanged, "the run's %s is %q, and its journal says %q", column, is, said)
	}
}

// ErrorText returns the event that a row has of the error of a run, "none" without one.
func ErrorText(e *engine.Error) string {
	if e == nil {
		return "none"
	}
	text, err := engine.EncodeEvents(nil, []engine.Event{&engine.RunFailed{Error: e}})
	if err != nil {
		return e.Error()
	}
	return string(text)
}

// StateChange is a stored change by the run of the state of its session.
type StateChange struct {
	Key, Reducer, Sender string
	Round, At            int64
	// Value is the value as JSON, nil if the key was deleted.
	Value []byte
}

// CompareStateChanges compares the changes that the run made to the state of its session, in their order, with its journal.
func (a *Run) CompareStateChanges(rows []StateChange) error {
	rest := a.Facts.Session
	if a.Facts.Started == nil || a.Facts.Started.Session == "" {
		rest = nil
	}
	for i := range rows {
		row := &rows[i]
		if len(rest) == 0 {
			a.AddFinding(store.FoundAdded, "the change of the session's state key %q is not in the journal", row.Key)
			continue
		}
		said := StateChange{Key: rest[0].Key, Reducer: rest[0].Reducer, Round: int64(a.Facts.Started.Round), At: a.Facts.SessionAt}
		if !rest[0].Delete {
			var err error
			if said.Value, err = engine.EncodeValue(nil, rest[0].Value); err != nil {
				return err
			}
		}
		rest = rest[1:]
		if !row.equals(&said) {
			a.AddFinding(store.FoundChanged, "the change of the session's state key %q is not what the journal says", row.Key)
		}
	}
	for i := range rest {
		a.AddFinding(store.FoundMissing, "the change of the session's state key %q is missing", rest[i].Key)
	}
	return nil
}

func (c *StateChange) equals(d *StateChange) bool {
	return c.Key == d.Key && c.Reducer == d.Reducer && c.Sender == d.Sender && c.Round == d.Round && c.At == d.At &&
		(c.Value == nil) == (d.Value == nil) && bytes.Equal(c.Value, d.Value)
}

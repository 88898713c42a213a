package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-run/weir/engine"
)

// ArchivedRun is a run in an export: its row and its secret. Its own commits are exported with it, those that it
// shares with its base.
type ArchivedRun struct {
	ID          string    `json:"run"`
	Number      int64     `json:"number"` // runs are in this order
	Flow        string    `json:"flow"`
	Fingerprint string    `json:"fingerprint"`
	User        string    `json:"user,omitempty"`
	Parent      string    `json:"parent,omitempty"`
	Origin      string    `json:"origin,omitempty"`
	Created     time.Time `json:"created"`
	Base        *Base     `json:"base,omitempty"`
	// Session is the id of the session of which the run is a round, Round its number.
	Session string `json:"session,omitempty"`
	Round   int    `json:"round,omitempty"`
	// Secret is the chain secret of its tree of runs, or of its session.
	Secret []byte `json:"secret"`
	// Unchained is the number of commits from before chains existed.
	Unchained int64 `json:"unchained,omitempty"`
	// Status is the status in listings, and Head the rest of the listing's row, as events.
	Status  string `json:"status"`
	Due     int64  `json:"due,omitempty"`
	Waiting string `json:"waiting,omitempty"`
	Usage   string `json:"usage,omitempty"`
	Failure string `json:"failure,omitempty"`
}

// ArchivedSession is a session in an export: one to which exported rounds belong, or from which such a one was forked.
type ArchivedSession struct {
	ID      string    `json:"session"`
	User    string    `json:"user"`
	Flow    string    `json:"flow"`
	Thread  string    `json:"thread"`
	Created time.Time `json:"created"`
	// Parent is the session that it was forked from, with its first At messages.
	Parent       string `json:"parent,omitempty"`
	ParentLength int    `json:"at,omitempty"`
	// ParentRound is how many rounds the parent had when the session was forked; nil if it had those that it has when the
	// session is restored. Exports do not have it: the parent has no later rounds in them.
	ParentRound *int `json:"-"`
	// Carryover is the carryover of its last round, nil if unknown.
	Carryover []byte `json:"main,omitempty"`
	// State are the changes of the session's state that no round of it made, in order: what
	// it began with and what was set by hand.
	State []ArchivedState `json:"state,omitempty"`
}

// ArchivedState is a change of a session's state that no round of the session made.
type ArchivedState struct {
	// Round is the number of the last round before the change.
	Round   int       `json:"round,omitempty"`
	Key     string    `json:"key"`
	Value   string    `json:"value,omitempty"` // as JSON; "" if the change removes the value
	Reducer string    `json:"reducer,omitempty"`
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at"`
}

// ErasedChain is the chain of a run that was erased: what remains of it.
type ErasedChain struct {
	// Origin starts the chain and identifies it in every store.
	Origin Hash
	// BaseRun is the run to which the first BaseSeq commits, with BaseEvents events, belong; "" if there is none, or if
	// it was erased: BaseOrigin is the origin of its chain then.
	BaseRun             string
	BaseOrigin          Hash
	BaseSeq, BaseEvents int64
	// Unchained is the number of the last commit from before chains existed.
	Unchained int64
	Links     []ChainLink
}

// ErrUnchained: a store cannot keep the chain of a run that has commits without a link.
var ErrUnchained = errors.New("the chain has commits from before chains existed, or commits that cannot be read")

// RunToRestore is a run to restore, with its own commits.
type RunToRestore struct {
	ArchivedRun
	Commits []engine.Commit
}

// ErasedChains returns what a store keeps of erased runs, each after the one that it continues.
func ErasedChains(ctx context.Context, s ChainStore) ([]ErasedChain, error) {
	chains, err := s.Chains(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(chains, func(a, b Chain) int { return cmp.Compare(a.Number, b.Number) })
	byNumber := make(map[int64]*Chain, len(chains))
	var out []ErasedChain
	for i := range chains {
		c := &chains[i]
		byNumber[c.Number] = c
		if c.Run != "" {
			continue
		}
		e := ErasedChain{Origin: c.Origin, BaseSeq: c.BaseSeq, BaseEvents: c.BaseEvents, Unchained: c.Unchained}
		if b := byNumber[c.Base]; b != nil {
			if e.BaseRun = b.Run; b.Run == "" {
				e.BaseOrigin = b.Origin
			}
		}
		for l, err := range s.Links(ctx, *c) {
			if err != nil {
				return nil, err
			}
			e.Links = append(e.Links, l)
		}
		out = append(out, e)
	}
	return out, nil
}

package audit

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/weir-run/weir/store"
)

// CopyResult says what a copy brought.
type CopyResult struct {
	Runs    int   `json:"runs"`
	Commits int64 `json:"commits"`
	// Existing is how many runs were there already as they are in the source.
	Existing int `json:"same"`
	// Memories, Values, Tokens, Learned and Trajectories are how many items of long-term memory, values of users, access
	// tokens, learned programs and rounds of trajectories were copied.
	Memories     int `json:"memories"`
	Values       int `json:"values"`
	Tokens       int `json:"tokens"`
	Learned      int `json:"learned"`
	Trajectories int `json:"trajectories"`
	// Documents is how many documents of a server were copied. Held of them are webhooks and triggers, which are paused in
	// the copy.
	Documents int `json:"documents"`
	Held      int `json:"held"`
	// Cached is how many other entries of the cache, Sessions how many sessions without a round, and Erased how many chains
	// of erased runs were copied.
	Cached   int `json:"cached"`
	Sessions int `json:"sessions"`
	Erased   int `json:"erased"`
	// Left says what the source has beside that; it is not copied.
	Left []string `json:"left"`
	// Surplus says what the copy has and the source lacks, which stays: things that were made in the copy, or deleted at
	// the source after an earlier copy.
	Surplus []string `json:"surplus"`
}

// ErrNotIdle: a store cannot be copied because runs of it execute or messages wait in it.
var ErrNotIdle = errors.New("the database is in use")

// ErrDiverged: the target has a run of the source with another history, or with less of it.
var ErrDiverged = errors.New("the copy differs from the source; copy into an empty database")

// Copy brings all runs of a store, with their sessions, and what it keeps beside them into another. It verifies the
// source first and the copy afterwards: each run must have the head that it has in the source.
// Nothing of the source changes. A copy that was interrupted continues when it is called
// again. It refuses a source that is in use, ErrNotIdle, because messages that wait are not
// copied.
func Copy(ctx context.Context, from, to store.Store, progress func(done, all int)) (CopyResult, error) {
	out := CopyResult{Left: []string{}, Surplus: []string{}}
	source := store.Complete(from)
	if err := checkIdle(ctx, source); err != nil {
		return out, err
	}
	before, err := Verify(ctx, from, Options{})
	if err != nil {
		return out, err
	}
	if !before.OK {
		return out, fmt.Errorf("%w: the source is not as it was written: %s", store.ErrCorrupt, before.Findings[0].Message)
	}
	c := copier{ctx: ctx, from: source, to: store.Complete(to), flows: map[string]bool{}, out: &out}
	if c.there, err = runsOf(ctx, c.to); err != nil {
		return out, err
	}
	had, err := sessionsOf(ctx, c.to)
	if err != nil {
		return out, err
	}
	heads, err := c.copyRuns(before.Runs, progress)
	if err != nil {
		return out, err
	}
	if err := c.copyBeside(had); err != nil {
		return out, err
	}
	if err := c.copySessionStates(); err != nil {
		return out, err
	}
	after, err := Verify(ctx, to, Options{Heads: heads})
	if err == nil && !after.OK {
		err = fmt.Errorf("%w: run %s: %s", ErrDiverged, after.Findings[0].Run, after.Findings[0].Message)
	}
	if err == nil {
		c.surplusRuns(before, after)
		var left []string
		left, err = leftOut(ctx, source)
		out.Left = append(out.Left, left...)
	}
	return out, err
}

// How a run came to be in the copy.
const (
	wasThere = iota + 1
	wasCopied
)

func runsOf(ctx context.Context, s *store.Full) (map[string]int, error) {
	list, err := s.Chains(ctx)
	out := make(map[string]int, len(list))
	for _, c := range list {
		out[c.Run] = wasThere
	}
	return out, err
}

// checkIdle fails with ErrNotIdle where runs execute or messages wait.
func checkIdle(ctx context.Context, s *store.Full) error {
	runs, err := s.Runs(ctx, store.Filter{Limit: math.MaxInt32})
	if err != nil {
		return err
	}
	for i := range runs {
		if runs[i].Owner != "" && !runs[i].Expired {
			return fmt.Errorf("%w: run %s has an owner; stop the process %s first", ErrNotIdle, runs[i].ID, runs[i].Owner)
		}
		if runs[i].Head.Status.Ended() {
			continue
		}
		posts, err := s.Inbox(ctx, runs[i].ID)
		if err != nil {
			return err
		}
		if len(posts) > 0 {
			return fmt.Errorf("%w: messages wait in the inbox of run %s; continue it with `weir resume %s` first", ErrNotIdle, runs[i].ID, runs[i].ID)
		}
	}
	if s.Capabilities().Sessions == nil {
		return nil
	}
	waiting, err := s.PendingSessions(ctx, "", 1)
	if err == nil && len(waiting) > 0 {
		err = fmt.Errorf("%w: messages wait in session %s; answer them with `weir chat --session %s` first", ErrNotIdle, waiting[0], waiting[0])
	}
	return err
}

// leftOut lists what a source has that is not copied and whose number is known. It leaves out copies of what is there in
// another form: leases, checkpoints, marks of transactions and space to free.
func leftOut(ctx context.Context, s *store.Full) ([]string, error) {
	if s.Capabilities().Documents == nil {
		return nil, nil
	}
	list, err := s.Notices(ctx, math.MaxInt32)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("%d notices of runs that no webhook has received", len(list))}, nil
}

// sessionsOf lists the sessions of a store.
func sessionsOf(ctx context.Context, s *store.Full) (map[string]bool, error) {
	out := map[string]bool{}
	if s.Capabilities().Sessions == nil {
		return out, nil
	}
	list, err := s.Sessions(ctx, store.SessionFilter{Limit: math.MaxInt32})
	for i := range list {
		out[list[i].ID] = true
	}
	return out, err
}

package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// ImportResult says what an import brought.
type ImportResult struct {
	Run     string `json:"run"`
	Runs    int    `json:"runs"`
	Commits int64  `json:"commits"`
	// Existing is how many runs were there already as they are in the export.
	Existing int `json:"same"`
}

// Import brings the runs of an export into a store, as they were: they are shown,
// forked and verified there as where they are from, with the same heads. The export is
// verified first. A run of the same id that is there already must be the same,
// store.ErrExists if it is another, or has continued differently. All is kept or
// nothing.
func Import(ctx context.Context, st store.Store, e *Export) (ImportResult, error) {
	s := store.Complete(st)
	out := ImportResult{Run: e.Run()}
	v, err := e.Verify(ctx, Options{Heads: e.Heads()})
	if err != nil {
		return out, err
	}
	if !v.OK {
		return out, fmt.Errorf("%w: it differs from what was written: %s", ErrExport, v.Findings[0].Message)
	}
	var restoring []store.RunToRestore
	for i := range e.runs {
		r := &e.runs[i]
		same, err := isAlreadyStored(ctx, s, e, r)
		if err != nil {
			return out, err
		}
		if same {
			out.Existing++
			continue
		}
		x := store.RunToRestore{ArchivedRun: r.ArchivedRun}
		for _, c := range r.commits {
			events, err := store.DecodePayload(c.Events)
			if err != nil {
				return out, fmt.Errorf("%w: run %s, commit %d: %w", ErrExport, r.ID, c.Seq, err)
			}
			x.Commits = append(x.Commits, engine.Commit{Run: r.ID, Seq: c.Seq, First: c.First, At: c.At, Events: events})
		}
		out.Runs++
		out.Commits += int64(len(x.Commits))
		restoring = append(restoring, x)
	}
	for _, fingerprint := range sortedKeysOf(e.flows) {
		if err := s.PutFlow(ctx, fingerprint, []byte(e.flows[fingerprint])); err != nil {
			return out, err
		}
	}
	if len(restoring) > 0 {
		err = s.Restore(ctx, e.sessions, restoring)
	}
	return out, err
}

// isAlreadyStored reports whether a run of an export is in the store already: its chain there
// has the head that it has in the export.
func isAlreadyStored(ctx context.Context, s *store.Full, e *Export, r *exportRun) (bool, error) {
	all, err := s.Chains(ctx)
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(all, func(c store.Chain) bool { return c.Run == r.ID }) {
		return false, nil
	}
	i := slices.IndexFunc(e.end.Heads, func(k KeptHead) bool { return k.Run == r.ID })
	if i < 0 {
		return false, fmt.Errorf("%w: it has no head of run %s", ErrExport, r.ID)
	}
	v, err := Verify(ctx, s, Options{Run: r.ID, Head: &e.end.Heads[i].Head})
	if err != nil {
		return false, err
	}
	if !v.OK {
		return false, fmt.Errorf("run %s: %w, and is another than that of the export: %s", r.ID, store.ErrExists, v.Findings[0].Message)
	}
	return true, nil
}

func sortedKeysOf(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

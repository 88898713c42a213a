package audit

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory"
)

// copier copies a store. The source was verified as a whole before, and the copy is afterwards: it does not verify
// single runs, so that its time grows with the number of commits.
type copier struct {
	ctx      context.Context //nolint:containedctx // lives as long as one call
	from, to *store.Full
	there    map[string]int  // how runs came to be in the copy, by id
	flows    map[string]bool // documents that were copied
	out      *CopyResult
}

// copyRuns copies the runs that the copy lacks, and returns the heads of all. The newest is first: what it needs, such as
// the rounds before it, comes with it.
func (c *copier) copyRuns(runs []VerifiedRun, progress func(done, all int)) (heads []KeptHead, err error) {
	for i, r := range slices.Backward(runs) {
		if !r.Erased {
			heads = append(heads, KeptHead{Run: r.Run, Head: r.Head})
			switch c.there[r.Run] {
			case 0:
				if err := c.copyRun(r.Run); err != nil {
					return nil, fmt.Errorf("copy run %s: %w", r.Run, err)
				}
			case wasThere:
				c.out.Existing++
			}
		}
		if progress != nil {
			progress(len(runs)-i, len(runs))
		}
	}
	return heads, nil
}

// copyRun copies a run with what it needs and the copy lacks, in one transaction.
func (c *copier) copyRun(run string) error {
	rows, sessions, err := c.from.Archive(c.ctx, run)
	if err != nil {
		return err
	}
	var restoring []store.RunToRestore
	for i := range rows {
		if c.there[rows[i].ID] != 0 {
			continue
		}
		x := store.RunToRestore{ArchivedRun: rows[i]}
		if x.Commits, err = c.commits(rows[i].ID); err != nil {
			return err
		}
		if err = c.copyFlows(&x); err != nil {
			return err
		}
		restoring = append(restoring, x)
	}
	if err := c.to.Restore(c.ctx, sessions, restoring); err != nil {
		return err
	}
	for i := range restoring {
		c.there[restoring[i].ID] = wasCopied
		c.out.Runs++
		c.out.Commits += int64(len(restoring[i].Commits))
	}
	return nil
}

// commits reads the own commits of a run.
func (c *copier) commits(run string) (out []engine.Commit, err error) {
	chain, err := c.from.Chain(c.ctx, run)
	if err != nil {
		return nil, err
	}
	for l, err := range c.from.Links(c.ctx, chain) {
		if err == nil {
			err = l.Err
		}
		if err != nil {
			return nil, err
		}
		out = append(out, engine.Commit{Run: run, Seq: l.Seq, First: l.First, At: l.At, Events: l.Events})
	}
	return out, nil
}

// copyFlows copies the documents that a run names: its flow, those that this names, and descriptions of node types.
func (c *copier) copyFlows(x *store.RunToRestore) error {
	wanted := []string{x.Fingerprint}
	for i := range x.Commits {
		for _, e := range x.Commits[i].Events {
			switch e := e.(type) {
			case *engine.RunStarted:
				wanted = append(wanted, e.Specs, e.Fingerprint)
			case *engine.RunForked:
				wanted = append(wanted, e.Specs, e.Fingerprint)
			case *engine.ChangesAccepted:
				wanted = append(wanted, e.Specs)
			}
		}
	}
	names := regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	for i := 0; i < len(wanted); i++ {
		if wanted[i] == "" || c.flows[wanted[i]] {
			continue
		}
		c.flows[wanted[i]] = true
		normal, err := c.from.Flow(c.ctx, wanted[i])
		if errors.Is(err, store.ErrNotFound) {
			continue // a name that is no flow's, or one that was only built in Go
		}
		if err == nil {
			err = c.to.PutFlow(c.ctx, wanted[i], normal)
		}
		if err != nil {
			return err
		}
		wanted = append(wanted, names.FindAllString(string(normal), -1)...)
	}
	return nil
}

// copyBeside copies what both stores can keep beside runs. had are the sessions that the copy had before.
func (c *copier) copyBeside(had map[string]bool) error {
	from, to := c.from.Capabilities(), c.to.Capabilities()
	for _, x := range []struct {
		what string
		both bool
		copy func() error
	}{
		{"sessions", from.Sessions != nil && to.Sessions != nil, func() error { return c.copySessions(had) }},
		{"memory", from.Memory != nil && to.Memory != nil, c.copyMemory},
		{"values of users", from.UserState != nil && to.UserState != nil, c.copyUserState},
		{"documents of a server", from.Documents != nil && to.Documents != nil, c.copyDocuments}, // before tokens, which they bound
		{"access tokens", from.Access != nil && to.Access != nil, c.copyTokens},
		{"keys of a server", from.Access != nil && to.Access != nil, c.copyKeys},
		{"the cache", from.Cache != nil && to.Cache != nil, c.copyCache},
		{"chains of erased runs", from.Archive != nil && to.Archive != nil, c.copyErased},
		{"trajectories", from.Trajectories != nil && to.Trajectories != nil, c.copyTrajectories},
	} {
		if !x.both {
			continue
		}
		if err := x.copy(); err != nil {
			return fmt.Errorf("copy %s: %w", x.what, err)
		}
	}
	return nil
}

// copyMemory writes the versions of each item that the copy lacks.
func (c *copier) copyMemory() error {
	items, err := c.from.Memories(c.ctx, memory.Filter{})
	if err != nil {
		return err
	}
	there, err := c.to.Memories(c.ctx, memory.Filter{})
	if err != nil {
		return err
	}
	c.surplus("remembered items", idsOf(items, itemID), idsOf(there, itemID))
	for _, item := range slices.Backward(items) { // the oldest first
		versions, err := c.from.MemoryVersions(c.ctx, item.ID)
		if err != nil {
			return err
		}
		have, err := c.to.MemoryVersions(c.ctx, item.ID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if len(have) >= len(versions) {
			continue
		}
		for _, v := range versions[len(have):] {
			w := memory.Write{
				Scope: item.Scope, Kind: item.Kind, Key: item.Key, Text: v.Text, Tags: v.Tags, At: v.At, Now: v.Written, Source: v.Source, ID: item.ID,
			}
			if got, err := c.to.Remember(c.ctx, w); err != nil {
				return err
			} else if got.ID != item.ID {
				return fmt.Errorf("item %s is item %s in the copy: %w", item.ID, got.ID, ErrDiverged)
			}
		}
		c.out.Memories++
	}
	return nil
}

// copyTrajectories copies the rounds of trajectories that the copy lacks.
func (c *copier) copyTrajectories() error {
	from, to := c.from.Capabilities().Trajectories, c.to.Capabilities().Trajectories
	keys, err := from.Rounds(c.ctx, trajectory.Filter{})
	if err != nil {
		return err
	}
	list, err := to.Rounds(c.ctx, trajectory.Filter{})
	if err != nil {
		return err
	}
	have := map[trajectory.Key]bool{}
	for _, k := range list {
		have[k] = true
	}
	for _, k := range keys {
		if have[k] {
			continue
		}
		rows, err := from.Rows(c.ctx, k)
		if err == nil {
			err = to.Replace(c.ctx, rows)
		}
		if err != nil {
			return err
		}
		c.out.Trajectories++
	}
	return nil
}

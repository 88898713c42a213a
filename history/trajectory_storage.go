package history

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory"
)

// Recorders returns the recorders for runs that are being executed. They continue the
// numbering of earlier rounds, from the storage or else from the journal, and save rounds
// to the storage.
func (t *Trajectories) Recorders() *trajectory.RecorderPool {
	return trajectory.NewRecorderPool(&journalBackedStorage{Storage: t.storage, t: t}, nil)
}

// journalBackedStorage derives from the journal the rounds that another storage lacks, so
// that a round always continues the numbering of the earlier ones.
type journalBackedStorage struct {
	trajectory.Storage // nil keeps nothing
	t                  *Trajectories

	mu sync.Mutex
	// fromJournal are rounds made of the journal that Near has named, until they are loaded.
	fromJournal map[trajectory.Key]trajectory.Record // rounds that Adjacent derived, until Load reads them; guarded by mu
	// complete are rounds that this process has stored, by session: how many events their
	// runs had.
	complete map[string]storedRound // the last round that this process stored, by session; guarded by mu
}

// storedRound is a round that was stored when its run had this number of events.
type storedRound struct {
	round  int
	events int64
}

// maxCachedRounds bounds both maps.
const maxCachedRounds = 4096

// Save saves a round if there is a storage.
func (k *journalBackedStorage) Save(ctx context.Context, r trajectory.Record) error {
	if k.Storage == nil {
		return nil
	}
	if r.Sub != 0 || len(r.Nodes) == 0 {
		return k.Storage.Save(ctx, r)
	}
	run, err := k.t.store.Run(ctx, r.Nodes[0].By.Run)
	if err == nil {
		err = k.Storage.Save(ctx, r)
	}
	if err != nil || run.Session == "" {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.complete == nil || len(k.complete) > maxCachedRounds {
		k.complete = map[string]storedRound{}
	}
	k.complete[r.Session] = storedRound{r.Round, run.Events}
	return nil
}

// Adjacent returns the round before the key's, 0 if there is none. There is none after it.
func (k *journalBackedStorage) Adjacent(ctx context.Context, key trajectory.Key) (before, after int, err error) {
	if key.Round == 1 && k.Storage == nil {
		return 0, 0, nil
	}
	if k.Storage != nil {
		if err := k.repairPrevious(ctx, key); err != nil {
			return 0, 0, err
		}
		before, after, err = k.Storage.Adjacent(ctx, key)
		if err != nil || before == key.Round-1 {
			return before, after, err
		}
		main := key
		main.Sub = 0
		if last, _, err := k.Storage.Adjacent(ctx, main); err != nil || last == key.Round-1 {
			return before, after, err
		}
	}
	records, err := k.recordsFromJournal(ctx, key)
	if err != nil {
		return 0, 0, err
	}
	if k.Storage == nil {
		return k.keepLatest(key, records), 0, nil
	}
	if err = saveChanged(ctx, k.Storage, records); err == nil {
		before, _, err = k.Storage.Adjacent(ctx, key)
	}
	return before, after, err
}

// keepLatest keeps the latest round of an agent that has nodes, for Load.
func (k *journalBackedStorage) keepLatest(key trajectory.Key, records []trajectory.Record) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fromJournal == nil || len(k.fromJournal) > maxCachedRounds {
		k.fromJournal = map[trajectory.Key]trajectory.Record{}
	}
	for _, r := range slices.Backward(records) { // in order
		if r.Sub == key.Sub && len(r.Nodes) > 0 {
			k.fromJournal[r.Key] = r
			return r.Round
		}
	}
	return 0
}

// Load reads a round from the storage, or returns what Adjacent has derived.
func (k *journalBackedStorage) Load(ctx context.Context, key trajectory.Key) (trajectory.Record, error) {
	if k.Storage != nil {
		r, err := k.Storage.Load(ctx, key)
		if err == nil || !errors.Is(err, trajectory.ErrNotFound) {
			return r, err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if r, ok := k.fromJournal[key]; ok {
		delete(k.fromJournal, key)
		return r, nil
	}
	return trajectory.Record{}, fmt.Errorf("%s: %w", key, trajectory.ErrNotFound)
}

// recordsFromJournal derives the rounds of a session before that of the key.
func (k *journalBackedStorage) recordsFromJournal(ctx context.Context, key trajectory.Key) ([]trajectory.Record, error) {
	if _, err := k.t.store.Session(ctx, key.Session); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil
		}
		return nil, err
	}
	t := k.t.newBuilder()
	t.maxRounds = key.Round - 1
	if err := t.addSession(ctx, key.Session); err != nil {
		return nil, err
	}
	return t.records(), nil
}

// repairPrevious stores what is missing of the round before the key's: a process may die
// after a run has ended and before its round is stored.
func (k *journalBackedStorage) repairPrevious(ctx context.Context, key trajectory.Key) error {
	if key.Round == 1 || key.Sub != 0 {
		return nil
	}
	runs, err := k.t.store.Runs(ctx, store.Filter{Session: key.Session, Limit: 3})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(runs, func(r store.Run) bool { return r.Round == key.Round-1 })
	if i < 0 {
		return nil
	}
	k.mu.Lock()
	whole := k.complete[key.Session] == storedRound{key.Round - 1, runs[i].Events}
	k.mu.Unlock()
	if whole {
		return nil
	}
	t := k.t.newBuilder()
	t.changes = trajectory.NewRecorderPool(&earlierRounds{k.Storage, key.Round - 1}, nil)
	main := key
	main.Round, main.Sub = key.Round-1, 0
	if last, _, err := k.Storage.Adjacent(ctx, main); err != nil || last < key.Round-2 { // it is made with all before it
		return err
	}
	if err := t.addRound(ctx, &runs[i]); err != nil {
		return err
	}
	return saveChanged(ctx, k.Storage, t.records())
}

// earlierRounds is the part of a storage before a round.
type earlierRounds struct {
	trajectory.Storage
	before int
}

// Load reads an earlier round.
func (e *earlierRounds) Load(ctx context.Context, k trajectory.Key) (trajectory.Record, error) {
	if k.Round >= e.before {
		return trajectory.Record{}, trajectory.ErrNotFound
	}
	return e.Storage.Load(ctx, k)
}

// Adjacent returns the round before the key's, and none after.
func (e *earlierRounds) Adjacent(ctx context.Context, k trajectory.Key) (before, after int, err error) {
	before, _, err = e.Storage.Adjacent(ctx, k)
	return before, 0, err
}

// Save does nothing.
func (e *earlierRounds) Save(context.Context, trajectory.Record) error { return nil }

// saveChanged stores the records that the storage lacks or has differently.
func saveChanged(ctx context.Context, s trajectory.Storage, records []trajectory.Record) error {
	for _, r := range records {
		have, err := s.Load(ctx, r.Key)
		if err != nil && !errors.Is(err, trajectory.ErrNotFound) {
			return err
		}
		if err == nil {
			same, err := sameRound(have, r)
			if err != nil {
				return err
			}
			if same {
				continue
			}
		}
		if err := s.Save(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// sameRound reports whether two records have the same stored form.
func sameRound(a, b trajectory.Record) (bool, error) {
	x, err := a.NodeLink()
	y, err2 := b.NodeLink()
	u, err3 := a.Meta()
	v, err4 := b.Meta()
	return bytes.Equal(x, y) && bytes.Equal(u, v), errors.Join(err, err2, err3, err4)
}

// Keep stores the trajectory of a session or run as it follows from the journal: rounds
// that ended before there was a storage, and rounds that a process did not store because it
// died. A round that has not ended is stored when it continues. A session that gets
// another round is repaired without this call.
func (t *Trajectories) Keep(ctx context.Context, session string) error {
	if t.storage == nil {
		return errors.New("no trajectories are kept: Options.Trajectories has no storage")
	}
	b := t.newBuilder()
	b.completedOnly = true
	if err := b.addSession(ctx, session); err != nil {
		return err
	}
	if err := saveChanged(ctx, t.storage, b.records()); err != nil {
		return fmt.Errorf("keep the trajectory of %s: %w", session, err)
	}
	return nil
}

// DeleteUser deletes the stored trajectories of a user.
func (t *Trajectories) DeleteUser(ctx context.Context, user string) error {
	if t.storage == nil {
		return nil
	}
	_, err := t.storage.Delete(ctx, trajectory.Filter{User: &user})
	return err
}

// Delete deletes the stored trajectories of sessions and runs that were deleted.
func (t *Trajectories) Delete(ctx context.Context, gone []store.Tree) error {
	if t.storage == nil {
		return nil
	}
	for _, x := range gone {
		id := cmp.Or(x.Session, x.Run)
		if _, err := t.storage.Delete(ctx, trajectory.Filter{Session: &id}); err != nil {
			return fmt.Errorf("delete the trajectory of %s: %w", id, err)
		}
	}
	return nil
}

// DeleteUnused deletes the stored trajectories of sessions and runs that do not exist.
func (t *Trajectories) DeleteUnused(ctx context.Context) error {
	if t.storage == nil {
		return nil
	}
	keys, err := t.storage.List(ctx, trajectory.Filter{})
	if err != nil {
		return err
	}
	for i, k := range keys {
		if i > 0 && keys[i-1].Session == k.Session && keys[i-1].User == k.User {
			continue
		}
		_, ofSession := t.store.Session(ctx, k.Session)
		_, ofRun := t.store.Run(ctx, k.Session)
		if !errors.Is(ofSession, store.ErrNotFound) || !errors.Is(ofRun, store.ErrNotFound) {
			continue
		}
		if err := t.Delete(ctx, []store.Tree{{Session: k.Session}}); err != nil {
			return err
		}
	}
	return nil
}

package trajectory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// RecorderPool hands out recorders, one for each key in a process. Make one a process.
type RecorderPool struct {
	storage Storage
	now     func() time.Time

	mu   sync.Mutex
	open map[Key]*poolEntry // mu
}

// poolEntry is a recorder that somebody holds or loads.
type poolEntry struct {
	ready    chan struct{} // closed once recorder or err is there
	recorder *Recorder
	err      error
	holders  int // the book's mu
}

// NewRecorderPool makes a book. A nil storage keeps nothing once a recorder is
// released; a nil clock is the machine's.
func NewRecorderPool(s Storage, now func() time.Time) *RecorderPool {
	if now == nil {
		now = time.Now
	}
	return &RecorderPool{storage: s, now: now, open: map[Key]*poolEntry{}}
}

// Open returns the recorder of the key, the same one to all who hold it, and a
// function to release it with. The first to open it loads what is stored of
// the round, and of the round before it.
//
// The last to release it saves what changed, and it is gone from the book, also
// where saving fails: the error says so, and who wants to try again calls Save
// before. More calls of release do nothing.
//
// Opening a round ends the ones before it: they take no more nodes.
func (b *RecorderPool) Open(ctx context.Context, k Key) (*Recorder, func(context.Context) error, error) {
	if err := k.Check(); err != nil {
		return nil, nil, fmt.Errorf("open trajectory: %w", err)
	}
	for {
		e, first := b.acquire(k)
		if first {
			e.recorder, e.err = b.load(ctx, k)
			if e.err != nil {
				b.remove(k, e)
			}
			close(e.ready)
		}
		select {
		case <-e.ready:
		case <-ctx.Done():
			b.release(k, e)
			return nil, nil, fmt.Errorf("open trajectory of %s: %w", k, ctx.Err())
		}
		switch {
		case e.err == nil:
			return e.recorder, b.releaser(k, e), nil
		case first || ctx.Err() != nil || !canceled(e.err):
			return nil, nil, fmt.Errorf("open trajectory of %s: %w", k, e.err)
		}
		// Whoever was loading gave up; we did not.
	}
}

func canceled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// acquire takes a share in the entry of the key; first says that the caller must
// load it.
func (b *RecorderPool) acquire(k Key) (e *poolEntry, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e = b.open[k]
	if e == nil {
		e, first = &poolEntry{ready: make(chan struct{})}, true
		b.open[k] = e
	}
	e.holders++
	return e, first
}

// remove takes an entry that could not be loaded out of the book.
func (b *RecorderPool) remove(k Key, e *poolEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[k] == e {
		delete(b.open, k)
	}
}

// release gives a share back without saving; an entry that nobody holds is gone.
func (b *RecorderPool) release(k Key, e *poolEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.holders--; e.holders == 0 && b.open[k] == e {
		delete(b.open, k)
	}
}

// releaser returns the function that gives one share back, once.
func (b *RecorderPool) releaser(k Key, e *poolEntry) func(context.Context) error {
	var mu sync.Mutex
	done := false
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return nil
		}
		done = true
		// Others may come, change something and go while the last one saves.
		for !b.releaseUnlessLast(k, e) {
			if err := e.recorder.Save(ctx); err != nil {
				b.release(k, e)
				return err
			}
		}
		return nil
	}
}

// releaseUnlessLast gives a share back and reports true, unless it is the last one and there
// is something to save.
func (b *RecorderPool) releaseUnlessLast(k Key, e *poolEntry) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.holders == 1 && e.recorder.Unsaved() {
		return false
	}
	if e.holders--; e.holders == 0 && b.open[k] == e {
		delete(b.open, k)
	}
	return true
}

// OpenCount is how many recorders somebody holds.
func (b *RecorderPool) OpenCount() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open)
}

// load makes a recorder of what is stored.
func (b *RecorderPool) load(ctx context.Context, k Key) (*Recorder, error) {
	live, over, err := b.supersedeEarlier(ctx, k)
	if err != nil {
		return nil, err
	}
	stored, found, earlier, err := b.loadRounds(ctx, k, &over)
	if err != nil {
		return nil, err
	}
	if live != nil && (earlier == nil || live.Round >= earlier.Round) {
		earlier = live
	}
	if !found {
		stored = newRecord(k, earlier)
	}
	if earlier != nil {
		if _, err := JoinRounds(*earlier, stored); err != nil {
			return nil, err
		}
	}
	r := newRecorder(stored, earlier, b.storage, b.now)
	r.supersededBy = over
	return r, nil
}

// supersedeEarlier ends the rounds before k that are held and returns the latest of
// them with nodes, and whether a later round is held.
func (b *RecorderPool) supersedeEarlier(ctx context.Context, k Key) (latest *Record, over int, err error) {
	type held struct {
		round int
		*poolEntry
	}
	var before []held
	b.mu.Lock()
	for other, e := range b.open {
		round := other.Round
		other.Round = k.Round
		switch {
		case other != k || round == k.Round:
		case round < k.Round:
			before = append(before, held{round, e})
		case over == 0 || round < over:
			over = round
		}
	}
	b.mu.Unlock()
	slices.SortFunc(before, func(a, b held) int { return cmp.Compare(b.round, a.round) })
	for _, e := range before { // the latest first
		select {
		case <-e.ready:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
		if e.err != nil {
			continue
		}
		if e.recorder.supersede(k.Round); latest == nil {
			latest = e.recorder.recordUnlessEmpty()
		}
	}
	return latest, over, nil
}

// loadRounds loads round k and the latest with nodes before it. A stored later
// round is put into over.
func (b *RecorderPool) loadRounds(ctx context.Context, k Key, over *int) (own Record, found bool, earlier *Record, err error) {
	if b.storage == nil {
		return Record{}, false, nil, nil
	}
	before, after, err := b.storage.Adjacent(ctx, k)
	if err != nil {
		return Record{}, false, nil, err
	}
	if after > 0 && (*over == 0 || after < *over) {
		*over = after
	}
	own, found, err = b.loadIfStored(ctx, k)
	for at := k; err == nil && 0 < before && before < at.Round; before, _, err = b.storage.Adjacent(ctx, at) {
		at.Round = before
		var r Record
		if r, _, err = b.loadIfStored(ctx, at); err != nil || len(r.Nodes) > 0 {
			return own, found, &r, err
		}
	}
	return own, found, nil, err
}

// loadIfStored loads a round, if it is stored.
func (b *RecorderPool) loadIfStored(ctx context.Context, k Key) (r Record, found bool, err error) {
	r, err = b.storage.Load(ctx, k)
	if errors.Is(err, ErrNotFound) {
		return Record{}, false, nil
	}
	return r, err == nil, err
}

// Save stores the round, if anything changed since it was stored. Changes made
// meanwhile are stored by the next save.
func (r *Recorder) Save(ctx context.Context) error {
	r.saving.Lock()
	defer r.saving.Unlock()
	r.mu.Lock()
	revision, changed, record := r.revision, r.revision != r.saved, Record{}
	if changed {
		record = r.record.Clone()
	}
	r.mu.Unlock()
	if !changed {
		return nil
	}
	if r.storage != nil {
		if err := r.storage.Save(ctx, record); err != nil {
			return fmt.Errorf("save trajectory of %s: %w", r.key, err)
		}
	}
	r.mu.Lock()
	r.saved = revision
	r.mu.Unlock()
	return nil
}

// Discard takes what the recorder has for stored, so that none of it is saved: for who
// finds that another process goes on with the round.
func (r *Recorder) Discard() {
	r.saving.Lock()
	defer r.saving.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.saved = r.revision
}

// Unsaved reports whether something changed since the round was stored.
func (r *Recorder) Unsaved() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.revision != r.saved
}

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

// RecorderPool returns recorders, one for each key. A process needs one pool.
type RecorderPool struct {
	storage Storage
	now     func() time.Time

	mu   sync.Mutex
	open map[Key]*poolEntry // mu
}

// poolEntry is a recorder that is open or being loaded.
type poolEntry struct {
	ready    chan struct{} // closed when recorder or err is set
	recorder *Recorder
	err      error
	holders  int // guarded by the pool's mu
}

// NewRecorderPool creates a pool. With a nil storage, released recorders are not stored; a nil clock means the
// system's.
func NewRecorderPool(s Storage, now func() time.Time) *RecorderPool {
	if now == nil {
		now = time.Now
	}
	return &RecorderPool{storage: s, now: now, open: map[Key]*poolEntry{}}
}

// Open returns the recorder of the key, shared by all callers, and a function that releases it. The first Open loads
// the stored round and the previous one. The last release saves changes and removes the recorder from the pool, even
// if saving fails: a caller that can retry calls Save before releasing. Further calls of release have no effect.
// Opening a round ends the earlier ones: they accept no more nodes.
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
		// The loading caller was cancelled; this one was not.
	}
}

func canceled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// acquire adds a reference to the entry of the key; first means that the caller must load it.
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

// remove removes an entry that could not be loaded.
func (b *RecorderPool) remove(k Key, e *poolEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[k] == e {
		delete(b.open, k)
	}
}

// release drops a reference without saving; an entry without references is removed.
func (b *RecorderPool) release(k Key, e *poolEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.holders--; e.holders == 0 && b.open[k] == e {
		delete(b.open, k)
	}
}

// releaser returns the function that drops one reference, once.
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
		// Other callers may open, change and release the recorder while it is being saved.
		for !b.releaseUnlessLast(k, e) {
			if err := e.recorder.Save(ctx); err != nil {
				b.release(k, e)
				return err
			}
		}
		return nil
	}
}

// releaseUnlessLast drops a reference and reports true, unless it is the last one and there are changes to save.
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

// OpenCount returns the number of open recorders.
func (b *RecorderPool) OpenCount() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open)
}

// load creates a recorder from the stored round.
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

// supersedeEarlier ends the open rounds before k and returns the latest of them with nodes, and whether a later round
// is open.
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

// loadRounds loads round k and the latest earlier round with nodes. A stored later round is recorded in over.
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

// loadIfStored loads a round if it is stored.
func (b *RecorderPool) loadIfStored(ctx context.Context, k Key) (r Record, found bool, err error) {
	r, err = b.storage.Load(ctx, k)
	if errors.Is(err, ErrNotFound) {
		return Record{}, false, nil
	}
	return r, err == nil, err
}

// Save stores the round if it changed since it was last stored. Changes made during a save are stored by the next
// one.
func (r *Recorder) Save(ctx context.Context) error {
	r.saving.Lock()
	defer r.saving.Unlock()
	r.mu.Lock()
	revision, changed, record := r.revision, r.revision != r.saved, Record{}
	if changed {
		record = r.copyRecord()
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

// Discard marks the content of the recorder as stored, so that it is not saved. It is called when another process
// continues the round.
func (r *Recorder) Discard() {
	r.saving.Lock()
	defer r.saving.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.saved = r.revision
}

// Unsaved reports whether the round changed since it was stored.
func (r *Recorder) Unsaved() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.revision != r.saved
}

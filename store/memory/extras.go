package memory

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// SaveCheckpoint implements store.CheckpointStore.
func (s *Store) SaveCheckpoint(ctx context.Context, c store.Checkpoint) error {
	r, err := s.run(ctx, c.Run)
	if err != nil {
		return fmt.Errorf("save checkpoint: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.checkpoint == nil || c.Seq > r.checkpoint.Seq {
		c.Body = bytes.Clone(c.Body)
		r.checkpoint = &c
	}
	return nil
}

// Checkpoint implements store.CheckpointStore.
func (s *Store) Checkpoint(ctx context.Context, id string) (store.Checkpoint, error) {
	r, err := s.run(ctx, id)
	if err != nil {
		return store.Checkpoint{}, fmt.Errorf("checkpoint: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.checkpoint == nil {
		return store.Checkpoint{}, fmt.Errorf("checkpoint of run %s: %w", id, store.ErrNotFound)
	}
	return *r.checkpoint, nil
}

// PutFlow implements store.Flows.
func (s *Store) PutFlow(ctx context.Context, fingerprint string, normal []byte) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.flows[fingerprint]; !there {
		s.flows[fingerprint] = bytes.Clone(normal)
	}
	return nil
}

// Flow implements store.Flows.
func (s *Store) Flow(ctx context.Context, fingerprint string) ([]byte, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	normal, ok := s.flows[fingerprint]
	if !ok {
		return nil, fmt.Errorf("flow %s: %w", fingerprint, store.ErrNotFound)
	}
	return bytes.Clone(normal), nil
}

// Post implements store.Inbox.
func (s *Store) Post(ctx context.Context, p store.Post) error {
	if _, err := s.run(ctx, p.Run); err != nil {
		return fmt.Errorf("post: %w", err)
	}
	s.inboxMu.Lock()
	defer s.inboxMu.Unlock()
	s.lastID++
	p.ID = s.lastID
	s.inbox = append(s.inbox, p)
	return nil
}

// Inbox implements store.Inbox.
func (s *Store) Inbox(ctx context.Context, id string) ([]store.Post, error) {
	return s.postsTo(ctx, func(p *store.Post) bool { return p.Run == id })
}

// PostsForOwner implements store.Inbox.
func (s *Store) PostsForOwner(ctx context.Context, owner string) ([]store.Post, error) {
	return s.postsTo(ctx, func(p *store.Post) bool {
		r, err := s.run(ctx, p.Run)
		return err == nil && r.copy().Owner == owner
	})
}

func (s *Store) postsTo(ctx context.Context, wanted func(*store.Post) bool) ([]store.Post, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.inboxMu.Lock()
	inbox := slices.Clone(s.inbox)
	s.inboxMu.Unlock()
	out := []store.Post{}
	for i := range inbox {
		if wanted(&inbox[i]) {
			out = append(out, inbox[i])
		}
	}
	return out, nil
}

// RemovePosts implements store.Inbox.
func (s *Store) RemovePosts(ctx context.Context, ids []int64) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	s.removePosts(ids)
	return nil
}

func (s *Store) removePosts(ids []int64) {
	if len(ids) == 0 {
		return
	}
	s.inboxMu.Lock()
	defer s.inboxMu.Unlock()
	s.inbox = slices.DeleteFunc(s.inbox, func(p store.Post) bool { return slices.Contains(ids, p.ID) })
}

// CacheGet implements store.CacheStore.
func (s *Store) CacheGet(ctx context.Context, key string, now time.Time) (engine.Value, bool, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, false, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	c, ok := s.cache[key]
	if !ok || c.expiredAt(now) {
		return nil, false, nil
	}
	return engine.Copy(c.value), true, nil
}

// CachePut implements store.CacheStore.
func (s *Store) CachePut(ctx context.Context, key string, v engine.Value, expires time.Time) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache[key] = cacheEntry{engine.Copy(v), expires}
	return nil
}

// CacheDeleteExpired implements store.CacheStore.
func (s *Store) CacheDeleteExpired(ctx context.Context, now time.Time) (int64, error) {
	if err := s.checkOpen(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.cache)
	maps.DeleteFunc(s.cache, func(_ string, c cacheEntry) bool {
		return c.expiredAt(now)
	})
	return int64(before - len(s.cache)), nil
}

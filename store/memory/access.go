package memory

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/store"
)

// access is what a server knows of its clients. mu guards all fields.
type access struct {
	mu       sync.Mutex
	tokens   []*store.Token // oldest first
	keys     map[string][]byte
	requests map[string]*clientRequest
}

type clientRequest struct {
	store.ClientRequest
	expires time.Time
}

// PutToken implements store.AccessStore.
func (s *Store) PutToken(ctx context.Context, t store.Token) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	s.access.mu.Lock()
	defer s.access.mu.Unlock()
	for _, have := range s.access.tokens {
		if have.ID == t.ID || bytes.Equal(have.Hash, t.Hash) {
			return wrap("keep token "+t.ID, store.ErrExists)
		}
	}
	s.access.tokens = append(s.access.tokens, copyToken(&t))
	return nil
}

func copyToken(t *store.Token) *store.Token {
	c := *t
	c.Hash, c.Scopes = bytes.Clone(t.Hash), slices.Clone(t.Scopes)
	return &c
}

// TokenByHash implements store.AccessStore.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (store.Token, error) {
	if err := s.checkOpen(ctx); err != nil {
		return store.Token{}, err
	}
	s.access.mu.Lock()
	defer s.access.mu.Unlock()
	for _, t := range s.access.tokens {
		if bytes.Equal(t.Hash, hash) {
			return *copyToken(t), nil
		}
	}
	return store.Token{}, wrap("find token", store.ErrNotFound)
}

// Tokens implements store.AccessStore.
func (s *Store) Tokens(ctx context.Context, user string) ([]store.Token, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.access.mu.Lock()
	defer s.access.mu.Unlock()
	out := []store.Token{}
	for _, t := range s.access.tokens {
		if user == "" || t.User == user {
			out = append(out, *copyToken(t))
		}
	}
	return out, nil
}

// RevokeToken implements store.AccessStore.
func (s *Store) RevokeToken(ctx context.Context, id string, at time.Time) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	s.access.mu.Lock()
	defer s.access.mu.Unlock()
	for _, t := range s.access.tokens {
		if t.ID == id {
			if t.Revoked.IsZero() {
				t.Revoked = at
			}
			return nil
		}
	}
	return wrap("revoke token "+id, store.ErrNotFound)
}

// AccessKey implements store.AccessStore.
func (s *Store) AccessKey(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.access.mu.Lock()
	defer s.access.mu.Unlock()
	if s.access.keys == nil {
		s.access.keys = make(map[string][]byte)
	}
	if s.access.keys[name] == nil {
		s.access.keys[name] = bytes.Clone(fresh)
	}
	return bytes.Clone(s.access.keys[name]), nil
}

// AccessKeys implements store.AccessStore.
func (s *Store) AccessKeys(ctx context.Context) (map[string][]byte, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.access.mu.Lock()
	defer s.access.mu.Unlock()
	out := make(map[string][]byte, len(s.access.keys))
	for name, key := range s.access.keys { // order: into a map
		out[name] = bytes.Clone(key)
	}
	return out, nil
}

// BeginRequest implements store.AccessStore.
func (s *Store) BeginRequest(ctx context.Context, r store.ClientRequest, ttl time.Duration) (store.ClientRequest, error) {
	if err := s.checkOpen(ctx); err != nil {
		return r, err
	}
	now := s.clock()
	s.access.mu.Lock()
	defer s.access.mu.Unlock()
	maps.DeleteFunc(s.access.requests, func(_ string, have *clientRequest) bool { return !have.expires.After(now) })
	if have := s.access.requests[string(r.Key)]; have != nil {
		again := have.ClientRequest
		again.Repeated = true
		return again, nil
	}
	if s.access.requests == nil {
		s.access.requests = make(map[string]*clientRequest)
	}
	r.Key, r.Digest, r.Result, r.Repeated = bytes.Clone(r.Key), bytes.Clone(r.Digest), "", false
	s.access.requests[string(r.Key)] = &clientRequest{r, now.Add(ttl)}
	return r, nil
}

// FinishRequest implements store.AccessStore.
func (s *Store) FinishRequest(ctx context.Context, key []byte, result string) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	s.access.mu.Lock()
	defer s.access.mu.Unlock()
	if r := s.access.requests[string(key)]; r != nil {
		r.Result = result
	}
	return nil
}

// deleteAccess deletes the tokens, requests and documents of a user.
func (s *Store) deleteAccess(user string) {
	s.access.mu.Lock()
	defer s.access.mu.Unlock()
	s.access.tokens = slices.DeleteFunc(s.access.tokens, func(t *store.Token) bool { return t.User == user })
	maps.DeleteFunc(s.access.requests, func(_ string, r *clientRequest) bool { return r.User == user })
	s.deleteDocuments(user, func(string) bool { return false })
}

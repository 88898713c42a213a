// Package stops keeps which models a person has stopped: calls of them wait, in every process
// on the store, until they are allowed again.
//
// It must not know how calls wait.
package stops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
)

// kind is the kind of the documents.
const kind = "model-stop"

// body is the body of a document, whose id is what is stopped.
type body struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// All is what Stop and Allow take for every model.
const All = "*"

// age is the age at which what was read of the store is read again: a stop applies within it.
const age = 500 * time.Millisecond

// Set is the stops of a store. It is safe for concurrent use.
type Set struct {
	docs store.DocumentStore

	mu   sync.Mutex // guards the following fields, and is held while the store is read
	list []llm.Stop
	read time.Time
}

// New returns the stops of a store. One without documents has none, and refuses to keep any.
func New(docs store.DocumentStore) *Set { return &Set{docs: docs} }

// List lists the stops by the models that they name.
func (s *Set) List(ctx context.Context) ([]llm.Stop, error) {
	var list []llm.Stop
	for after := ""; ; {
		docs, err := s.docs.Documents(ctx, store.DocumentFilter{Kind: kind, After: after})
		if err != nil || len(docs) == 0 {
			return list, err
		}
		for i := range docs {
			var b body
			if err := json.Unmarshal(docs[i].Body, &b); err != nil {
				return nil, fmt.Errorf("the stop of models %q cannot be read: %w", docs[i].ID, err)
			}
			list = append(list, llm.Stop{Models: docs[i].ID, By: b.By, Reason: b.Reason, At: docs[i].Updated})
		}
		after = docs[len(docs)-1].ID
	}
}

// Check reports an error in what Stop or Allow is given as models.
func Check(models string) error {
	provider, model, named := strings.Cut(models, "/")
	if models != strings.TrimSpace(models) || provider == "" || len(models) > 200 || named && (model == "" || provider == All) {
		return fmt.Errorf("models %q: expected a PROVIDER, a PROVIDER/MODEL, or %s for all", models, All)
	}
	return nil
}

// Stop stops models: All, those of a "provider", or those that begin with "provider/model". Calls in
// flight end. Stopping them again replaces the reason.
func (s *Set) Stop(ctx context.Context, models, by, reason string) error {
	if err := Check(models); err != nil {
		return err
	}
	text, err := json.Marshal(body{by, reason})
	if err != nil {
		return err
	}
	defer s.forget()
	for {
		d, err := s.docs.Document(ctx, kind, models)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		// Of several processes each may change it first.
		_, err = s.docs.PutDocument(ctx, store.Document{Kind: kind, ID: models, Version: d.Version, Body: text})
		if !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrChanged) && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
}

// Allow lets calls of models be made again that Stop was given in the same words.
// store.ErrNotFound if they are not stopped.
func (s *Set) Allow(ctx context.Context, models string) error {
	defer s.forget()
	return s.docs.DeleteDocument(ctx, kind, models, 0)
}

// AllowAll ends every stop.
func (s *Set) AllowAll(ctx context.Context) error {
	list, err := s.List(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		if err := s.Allow(ctx, list[i].Models); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}

func (s *Set) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = time.Time{}
}

// Find returns the stop that calls of a model wait for, nil for none. It implements
// llm.Options.Stopped.
func (s *Set) Find(ctx context.Context, provider, model string) (*llm.Stop, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.read) >= age || s.read.IsZero() {
		list, err := s.List(ctx)
		if err != nil && !errors.Is(err, store.ErrUnsupported) {
			return nil, err
		}
		s.list, s.read = list, time.Now()
	}
	for i := range s.list {
		if covers(s.list[i].Models, provider, model) {
			return &s.list[i], nil
		}
	}
	return nil, nil
}

func covers(models, provider, model string) bool {
	return models == All || models == provider || strings.Contains(models, "/") && strings.HasPrefix(provider+"/"+model, models)
}

package server

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/weir-run/weir/store"
)

// tokenOriginKind are documents that say which token has made another one. The id is that of the token that was made.
const tokenOriginKind = "token_origin"

type tokenOrigin struct {
	Parent string `json:"parent"`
}

// TokenStore is the part of a store that has tokens, and documents about them.
type TokenStore interface {
	store.AccessStore
	store.DocumentStore
}

// RevokeToken revokes a token, and those that were made with it, directly or by others. The error is store.ErrNotFound if there is no such token.
func RevokeToken(ctx context.Context, s TokenStore, id string, at time.Time) error {
	if err := s.RevokeToken(ctx, id, at); err != nil {
		return err
	}
	made, err := madeTokens(ctx, s)
	if errors.Is(err, store.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	seen := map[string]bool{id: true}
	for todo := []string{id}; len(todo) > 0; todo = todo[1:] {
		for _, child := range made[todo[0]] {
			if seen[child] {
				continue
			}
			seen[child] = true
			todo = append(todo, child)
			if e := s.RevokeToken(ctx, child, at); e != nil && !errors.Is(e, store.ErrNotFound) {
				err = errors.Join(err, e)
			}
		}
	}
	return err
}

// madeTokens lists the tokens that each token has made.
func madeTokens(ctx context.Context, s store.DocumentStore) (map[string][]string, error) {
	const page = 500
	made := make(map[string][]string)
	for after := ""; ; {
		docs, err := s.Documents(ctx, store.DocumentFilter{Kind: tokenOriginKind, After: after, Limit: page})
		if err != nil {
			return nil, err
		}
		for i := range docs {
			var o tokenOrigin
			if err := json.Unmarshal(docs[i].Body, &o); err != nil {
				return nil, err
			}
			after = docs[i].ID
			made[o.Parent] = append(made[o.Parent], after)
		}
		if len(docs) < page {
			return made, nil
		}
	}
}

// recordOrigin records which token has made a token. If the one of the request was revoked meanwhile, the new one is revoked as well:
// a revocation first revokes the token, and then reads which ones it has made.
func (c *call) recordOrigin(made *store.Token) error {
	if c.who.token == "" {
		return nil
	}
	ctx := context.WithoutCancel(c)
	text, err := json.Marshal(tokenOrigin{c.who.token})
	if err == nil {
		_, err = c.app.Store.PutDocument(ctx, store.Document{Kind: tokenOriginKind, ID: made.ID, User: made.User, Body: text})
	}
	if errors.Is(err, store.ErrUnsupported) {
		return nil
	}
	list, e := c.app.Store.Tokens(ctx, c.who.user)
	if err = errors.Join(err, e); err != nil {
		return errors.Join(err, c.app.Store.RevokeToken(ctx, made.ID, time.Now()))
	}
	now := time.Now()
	if slices.ContainsFunc(list, func(t store.Token) bool { return t.ID == c.who.token && t.Valid(now) }) {
		return nil
	}
	return c.app.Store.RevokeToken(ctx, made.ID, now)
}

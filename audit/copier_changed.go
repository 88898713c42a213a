package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
)

// What is kept beside runs may have changed at the source since an earlier copy, or in the
// copy. Of two changes of a document or a value of a user, the later one stays. What only the
// copy has is reported: nothing says whether it was deleted at the source or made in the copy.

// idsOf lists what identifies each element of a list.
func idsOf[T any, K comparable](list []T, id func(*T) K) []K {
	out := make([]K, 0, len(list))
	for i := range list {
		out = append(out, id(&list[i]))
	}
	return out
}

func itemID(m *memory.Item) string { return m.ID }

// surplus reports how many things the copy has and the source lacks.
func (c *copier) surplus(what string, from, to []string) {
	have, n := make(map[string]bool, len(from)), 0
	for _, id := range from {
		have[id] = true
	}
	for _, id := range to {
		if id != "" && !have[id] { // erased runs have none
			n++
		}
	}
	if n > 0 {
		c.out.Surplus = append(c.out.Surplus, fmt.Sprintf("%d %s", n, what))
	}
}

// kept reports how many things stay as they are in the copy, because they were changed there later.
func (c *copier) kept(what string, n int) {
	if n > 0 {
		c.out.Surplus = append(c.out.Surplus, fmt.Sprintf("later changes of %d %s", n, what))
	}
}

// copyUserState sets the values that the copy lacks, and those that were changed since. Their
// versions begin at 1.
func (c *copier) copyUserState() error {
	values, err := c.from.UserStates(c.ctx, "")
	if err != nil {
		return err
	}
	there, err := c.to.UserStates(c.ctx, "")
	if err != nil {
		return err
	}
	id := func(v *store.UserValue) string { return fmt.Sprintf("%q %q %q", v.User, v.Flow, v.Key) }
	c.surplus("values of users", idsOf(values, id), idsOf(there, id))
	have := make(map[string]*store.UserValue, len(there))
	for i := range there {
		have[id(&there[i])] = &there[i]
	}
	kept := 0
	for i := range values {
		v := &values[i]
		if old := have[id(v)]; old != nil {
			if reflect.DeepEqual(old.Value, v.Value) && old.Reducer == v.Reducer {
				continue
			}
			if !v.At.After(old.At) {
				kept++
				continue
			}
		}
		change := engine.UserChange{Key: v.Key, Value: v.Value, Replace: true, Reducer: v.Reducer}
		err := c.to.EditUserState(c.ctx, store.UserStateEdit{
			Write: engine.UserStateWrite{User: v.User, Flow: v.Flow, Changes: []engine.UserChange{change}}, By: v.By, At: v.At,
		})
		if err != nil {
			return err
		}
		c.out.Values++
	}
	c.kept("values of users", kept)
	return nil
}

// copyDocuments copies the documents that the copy lacks, and those that were changed since.
// Their versions begin at 1. Those that have a server act by itself are held in the copy, and stay as they are once
// somebody has resumed them there.
func (c *copier) copyDocuments() error {
	kept := 0
	kinds, err := c.from.DocumentKinds(c.ctx)
	if err != nil {
		return err
	}
	there, err := c.to.DocumentKinds(c.ctx)
	if err != nil {
		return err
	}
	kinds = append(kinds, there...)
	slices.Sort(kinds)
	for _, kind := range slices.Compact(kinds) {
		n, err := c.copyDocumentsOf(kind)
		if err != nil {
			return err
		}
		kept += n
	}
	c.kept("documents of a server", kept)
	return nil
}

// copyDocumentsOf copies the documents of a kind, and returns how many were changed later in the
// copy.
func (c *copier) copyDocumentsOf(kind string) (kept int, err error) {
	docs, err := documentsOf(c.ctx, c.from, kind)
	if err != nil {
		return 0, err
	}
	there, err := documentsOf(c.ctx, c.to, kind)
	if err != nil {
		return 0, err
	}
	id := func(d *store.Document) string { return d.ID }
	c.surplus("documents of a server ("+kind+")", idsOf(docs, id), idsOf(there, id))
	have := make(map[string]*store.Document, len(there))
	for i := range there {
		have[there[i].ID] = &there[i]
	}
	for i := range docs {
		d, old := docs[i], have[docs[i].ID]
		d.Version = 0
		if slices.Contains(store.HeldKinds(), kind) {
			if old != nil && !isHeld(old) {
				continue
			}
			if err := hold(&d); err != nil {
				return 0, fmt.Errorf("%s %s: %w", kind, d.ID, err)
			}
		}
		switch {
		case old == nil:
		case bytes.Equal(old.Body, d.Body) && old.User == d.User && old.Run == d.Run:
			continue
		case !d.Updated.After(old.Updated):
			kept++
			continue
		default:
			d.Version = old.Version
		}
		if _, err := c.to.PutDocument(c.ctx, d); err != nil {
			return 0, fmt.Errorf("%s %s: %w", kind, d.ID, err)
		}
		c.out.Documents++
		if slices.Contains(store.HeldKinds(), kind) {
			c.out.Held++
		}
	}
	return kept, nil
}

// isHeld reports whether a document of store.HeldKinds waits until somebody resumes it.
func isHeld(d *store.Document) bool {
	var body struct {
		Paused bool `json:"paused"`
	}
	return json.Unmarshal(d.Body, &body) == nil && body.Paused
}

// hold makes a document of store.HeldKinds wait until somebody resumes it.
func hold(d *store.Document) error {
	body := map[string]json.RawMessage{}
	if err := json.Unmarshal(d.Body, &body); err != nil {
		return err
	}
	body["paused"] = json.RawMessage("true")
	text, err := json.Marshal(body)
	d.Body, d.Due = text, time.Time{}
	return err
}

// copyKeys copies the secrets of a server, from which those of webhooks and of requests follow.
func (c *copier) copyKeys() error {
	keys, err := c.from.AccessKeys(c.ctx)
	for name, key := range keys { // order: each is kept under its name
		if err == nil {
			_, err = c.to.AccessKey(c.ctx, name, key)
		}
	}
	return err
}

// documentsOf reads all documents of a kind.
func documentsOf(ctx context.Context, s *store.Full, kind string) (out []store.Document, err error) {
	const page = 500
	for f := (store.DocumentFilter{Kind: kind, Limit: page}); ; f.After = out[len(out)-1].ID {
		docs, err := s.Documents(ctx, f)
		if err != nil {
			return nil, err
		}
		if out = append(out, docs...); len(docs) < page {
			return out, nil
		}
	}
}

// copyTokens copies the access tokens that the copy lacks, and revokes there what was revoked.
func (c *copier) copyTokens() error {
	tokens, err := c.from.Tokens(c.ctx, "")
	if err != nil {
		return err
	}
	there, err := c.to.Tokens(c.ctx, "")
	if err != nil {
		return err
	}
	id := func(t *store.Token) string { return t.ID }
	c.surplus("access tokens", idsOf(tokens, id), idsOf(there, id))
	revoked := make(map[string]bool, len(there))
	for i := range there {
		revoked[there[i].ID] = !there[i].Revoked.IsZero()
	}
	for _, k := range tokens {
		done, known := revoked[k.ID]
		if known && (done || k.Revoked.IsZero()) {
			continue
		}
		if !known {
			err = c.to.PutToken(c.ctx, k)
		}
		if err == nil && !k.Revoked.IsZero() {
			err = c.to.RevokeToken(c.ctx, k.ID, k.Revoked)
		}
		if err != nil {
			return err
		}
		c.out.Tokens++
	}
	return nil
}

// copyCache copies the entries of the cache as they are at the source: results, learned code, and private maps of redactors.
func (c *copier) copyCache() error {
	list, err := c.from.CacheList(c.ctx, "", time.Now())
	if err != nil {
		return err
	}
	there, err := c.to.CacheList(c.ctx, "", time.Now())
	if err != nil {
		return err
	}
	learned := func(x *store.CacheEntry) string {
		if strings.HasPrefix(x.Key, store.LearnedCodePrefix) {
			return x.Key
		}
		return "" // results come and go
	}
	c.surplus("learned programs", idsOf(list, learned), idsOf(there, learned))
	have := make(map[string]*store.CacheEntry, len(there))
	for i := range there {
		have[there[i].Key] = &there[i]
	}
	for i := range list {
		x := &list[i]
		if old := have[x.Key]; old != nil && reflect.DeepEqual(old.Value, x.Value) {
			continue
		}
		if err := c.to.CachePut(c.ctx, x.Key, x.Value, x.Expires); err != nil {
			return err
		}
		if learned(x) != "" {
			c.out.Learned++
		} else {
			c.out.Cached++
		}
	}
	return nil
}

// copySessionStates brings what was set by hand in sessions that the copy had already. It fails with ErrDiverged where a
// session keeps other values than at the source after that.
func (c *copier) copySessionStates() error {
	if c.from.Capabilities().Sessions == nil {
		return nil
	}
	sessions, err := c.from.Sessions(c.ctx, store.SessionFilter{Limit: math.MaxInt32})
	if err != nil {
		return err
	}
	for i := range sessions {
		id := sessions[i].ID
		same, err := c.hasSameState(id)
		if err == nil && !same {
			if err = c.copySession(id); err == nil {
				same, err = c.hasSameState(id)
			}
		}
		if errors.Is(err, store.ErrNotFound) {
			continue // its rounds were erased
		}
		if err != nil {
			return err
		}
		if !same {
			return fmt.Errorf("%w: the state of session %s was changed by hand since an earlier copy", ErrDiverged, id)
		}
	}
	return nil
}

// hasSameState reports whether the copy has the values of a session.
func (c *copier) hasSameState(id string) (bool, error) {
	want, err := c.from.SessionState(c.ctx, id)
	if err != nil {
		return false, err
	}
	got, err := c.to.SessionState(c.ctx, id)
	return reflect.DeepEqual(got, want), err
}

// surplusRuns reports the runs that only the copy has.
func (c *copier) surplusRuns(before, after *Report) {
	id := func(r *VerifiedRun) string { return r.Run }
	c.surplus("runs", idsOf(before.Runs, id), idsOf(after.Runs, id))
}

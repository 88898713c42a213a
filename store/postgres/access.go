package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/store"
)

// PutToken implements store.AccessStore.
func (s *Store) PutToken(ctx context.Context, k store.Token) error {
	return s.write(ctx, "keep token "+k.ID, func(t *tx) error {
		n, err := t.exec(`INSERT INTO access_token (id, hash, user_id, name, scopes, created, expires) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT DO NOTHING`,
			text(k.ID), k.Hash, text(k.User), text(k.Name), text(strings.Join(k.Scopes, " ")), k.Created.UnixMilli(), nullTime(k.Expires))
		if err == nil && n == 0 {
			err = store.ErrExists
		}
		return err
	})
}

func nullTime(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(t.UnixMilli())
}

const selectToken = "SELECT id, hash, user_id, name, scopes, created, expires, revoked FROM access_token" //nolint:gosec // a query, no credential

// tokensWhere reads the tokens that a condition selects.
func (s *Store) tokensWhere(ctx context.Context, where string, arg any) ([]store.Token, error) {
	out := []store.Token{}
	err := s.query(ctx, func(row pgx.Row) error {
		var k store.Token
		var scopes string
		var created int64
		var expires, revoked *int64
		err := row.Scan(into(&k.ID), &k.Hash, into(&k.User), into(&k.Name), into(&scopes), &created, &expires, &revoked)
		k.Scopes, k.Created = strings.Fields(scopes), time.UnixMilli(created)
		if expires != nil {
			k.Expires = time.UnixMilli(*expires)
		}
		if revoked != nil {
			k.Revoked = time.UnixMilli(*revoked)
		}
		out = append(out, k)
		return err
	}, selectToken+" WHERE "+where+" ORDER BY num", arg)
	return out, err
}

// TokenByHash implements store.AccessStore.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (store.Token, error) {
	list, err := s.tokensWhere(ctx, "hash = $1", hash)
	if err == nil && len(list) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Token{}, s.wrap("find token", err)
	}
	return list[0], nil
}

// Tokens implements store.AccessStore.
func (s *Store) Tokens(ctx context.Context, user string) ([]store.Token, error) {
	list, err := s.tokensWhere(ctx, "($1 = '' OR user_id = $1)", text(user))
	if err != nil {
		return nil, s.wrap("list tokens", err)
	}
	return list, nil
}

// RevokeToken implements store.AccessStore.
func (s *Store) RevokeToken(ctx context.Context, id string, at time.Time) error {
	n, err := s.exec(ctx, "revoke token "+id, "UPDATE access_token SET revoked = coalesce(revoked, $1) WHERE id = $2", at.UnixMilli(), text(id))
	return requireRow("revoke token "+id, n, err)
}

// AccessKey implements store.AccessStore.
func (s *Store) AccessKey(ctx context.Context, name string, fresh []byte) (key []byte, err error) {
	err = s.write(ctx, "read access key", func(t *tx) error {
		owner, err := t.dataKey("")
		if err != nil {
			return err
		}
		t.queue("INSERT INTO access_key (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", text(name), s.encode(owner, fresh))
		return t.queryRow([]any{&key}, "SELECT value FROM access_key WHERE name = $1", text(name))
	})
	return key, err
}

// AccessKeys implements store.AccessStore.
func (s *Store) AccessKeys(ctx context.Context) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := s.query(ctx, func(row pgx.Row) error {
		var name string
		var key []byte
		err := row.Scan(into(&name), &key)
		out[name] = key
		return err
	}, "SELECT name, value FROM access_key")
	return out, s.wrap("list access keys", err)
}

// BeginRequest implements store.AccessStore.
func (s *Store) BeginRequest(ctx context.Context, r store.ClientRequest, ttl time.Duration) (store.ClientRequest, error) {
	r.Result, r.Repeated = "", false
	err := s.write(ctx, "begin request", func(t *tx) error {
		if err := t.flush(); err != nil { // t.now is read
			return err
		}
		t.queue("DELETE FROM access_request WHERE expires <= $1", t.now)
		n, err := t.exec("INSERT INTO access_request (key, user_id, digest, expires) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
			r.Key, text(r.User), r.Digest, t.now+ttl.Milliseconds())
		if err != nil || n > 0 {
			return err
		}
		have := store.ClientRequest{Key: r.Key, Repeated: true}
		err = t.queryRow([]any{into(&have.User), &have.Digest, into(&have.Result)}, "SELECT user_id, digest, result FROM access_request WHERE key = $1", r.Key)
		if errors.Is(err, pgx.ErrNoRows) { // another process deleted it because it had expired
			return errVanished
		}
		r = have
		return err
	})
	return r, err
}

// FinishRequest implements store.AccessStore.
func (s *Store) FinishRequest(ctx context.Context, key []byte, result string) error {
	_, err := s.exec(ctx, "finish request", "UPDATE access_request SET result = $1 WHERE key = $2", text(result), key)
	return err
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/store"
)

// PutToken implements store.AccessStore.
func (s *Store) PutToken(ctx context.Context, t store.Token) error {
	return s.write(ctx, "keep token "+t.ID, func(ctx context.Context) error {
		var taken bool
		err := s.conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM access_token WHERE id = ? OR hash = ?)", t.ID, t.Hash).Scan(&taken)
		if err == nil && taken {
			err = store.ErrExists
		}
		if err != nil {
			return err
		}
		_, err = s.conn.ExecContext(ctx, "INSERT INTO access_token (id, hash, user, name, scopes, created, expires) VALUES (?, ?, ?, ?, ?, ?, ?)",
			t.ID, t.Hash, t.User, t.Name, strings.Join(t.Scopes, " "), t.Created.UnixMilli(), nullTime(t.Expires))
		return err
	})
}

const selectToken = "SELECT id, hash, user, name, scopes, created, expires, revoked FROM access_token" //nolint:gosec // a query, no credential

func scanToken(row scanner) (t store.Token, err error) {
	var scopes string
	var created int64
	var expires, revoked sql.NullInt64
	err = row.Scan(&t.ID, &t.Hash, &t.User, &t.Name, &scopes, &created, &expires, &revoked)
	t.Scopes, t.Created = strings.Fields(scopes), time.UnixMilli(created)
	if expires.Valid {
		t.Expires = time.UnixMilli(expires.Int64)
	}
	if revoked.Valid {
		t.Revoked = time.UnixMilli(revoked.Int64)
	}
	return t, err
}

// TokenByHash implements store.AccessStore.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (store.Token, error) {
	t, err := scanToken(s.reader.QueryRowContext(ctx, selectToken+" WHERE hash = ?", hash))
	return t, s.wrap("find token", err)
}

// Tokens implements store.AccessStore.
func (s *Store) Tokens(ctx context.Context, user string) ([]store.Token, error) {
	out := []store.Token{}
	err := s.query(ctx, func(row scanner) error {
		t, err := scanToken(row)
		out = append(out, t)
		return err
	}, selectToken+" WHERE ?1 = '' OR user = ?1 ORDER BY num", user)
	if err != nil {
		return nil, s.wrap("list tokens", err)
	}
	return out, nil
}

// RevokeToken implements store.AccessStore.
func (s *Store) RevokeToken(ctx context.Context, id string, at time.Time) error {
	n, err := s.exec(ctx, "revoke token "+id, "UPDATE access_token SET revoked = coalesce(revoked, ?) WHERE id = ?", at.UnixMilli(), id)
	if err == nil && n == 0 {
		err = fmt.Errorf("revoke token %s: %w", id, store.ErrNotFound)
	}
	return err
}

// AccessKey implements store.AccessStore.
func (s *Store) AccessKey(ctx context.Context, name string, fresh []byte) (key []byte, err error) {
	err = s.write(ctx, "read access key", func(ctx context.Context) error {
		if _, err := s.conn.ExecContext(ctx, "INSERT INTO access_key (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", name, fresh); err != nil {
			return err
		}
		return s.conn.QueryRowContext(ctx, "SELECT value FROM access_key WHERE name = ?", name).Scan(&key)
	})
	return key, err
}

// AccessKeys implements store.AccessStore.
func (s *Store) AccessKeys(ctx context.Context) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := s.query(ctx, func(row scanner) error {
		var name string
		var key []byte
		err := row.Scan(&name, &key)
		out[name] = key
		return err
	}, "SELECT name, value FROM access_key")
	return out, s.wrap("list access keys", err)
}

// BeginRequest implements store.AccessStore.
func (s *Store) BeginRequest(ctx context.Context, r store.ClientRequest, ttl time.Duration) (store.ClientRequest, error) {
	r.Result, r.Repeated = "", false
	err := s.write(ctx, "begin request", func(ctx context.Context) error {
		now := s.clock()
		if _, err := s.conn.ExecContext(ctx, "DELETE FROM access_request WHERE expires <= ?", now.UnixMilli()); err != nil {
			return err
		}
		have := store.ClientRequest{Key: r.Key, Repeated: true}
		var result sql.NullString
		err := s.conn.QueryRowContext(ctx, "SELECT user, digest, result FROM access_request WHERE key = ?", r.Key).Scan(&have.User, &have.Digest, &result)
		if err == nil {
			have.Result = result.String
			r = have
			return nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		_, err = s.conn.ExecContext(ctx, "INSERT INTO access_request (key, user, digest, expires) VALUES (?, ?, ?, ?)",
			r.Key, r.User, r.Digest, now.Add(ttl).UnixMilli())
		return err
	})
	return r, err
}

// FinishRequest implements store.AccessStore.
func (s *Store) FinishRequest(ctx context.Context, key []byte, result string) error {
	_, err := s.exec(ctx, "finish request", "UPDATE access_request SET result = ? WHERE key = ?", result, key)
	return err
}

// deleteAccess deletes the tokens, requests and documents of the user.
func (x deleter) deleteAccess() error {
	if x.user == "" {
		return nil
	}
	for _, table := range []string{"access_token", "access_request", "document"} {
		res, err := x.conn.ExecContext(x.ctx, "DELETE FROM "+table+" WHERE user = ?", x.user) //nolint:gosec // a table of this list
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			continue
		}
		if err := (memoryWriter{x.ctx, x.conn}).markTraces(); err != nil {
			return err
		}
	}
	return nil
}

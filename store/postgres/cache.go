package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

const selectCached = "SELECT value FROM cache WHERE key = $1 AND (expires IS NULL OR expires > $2)"

// CacheGet returns the value of a key that has not expired.
func (s *Store) CacheGet(ctx context.Context, key string, now time.Time) (engine.Value, bool, error) {
	v, there, err := cached(reader{s, ctx}, key, now)
	return v, there, s.wrap("read cache", err)
}

func cached(q rowSource, key string, now time.Time) (engine.Value, bool, error) {
	var data []byte
	err := q.queryRow([]any{&data}, selectCached, text(key), now.UnixMilli())
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	v, err := engine.DecodeValue(data)
	return v, err == nil, err
}

// cacheUser returns the user to whom an entry belongs, "" for one that all users share.
func cacheUser(key string) string {
	rest, ok := strings.CutPrefix(key, store.CachePrefix)
	if !ok {
		rest, ok = strings.CutPrefix(key, store.LearnedCodePrefix)
	}
	name, _, found := strings.Cut(rest, "/")
	user, err := url.PathUnescape(name)
	if !ok || !found || err != nil {
		return ""
	}
	return user
}

const upsertCached = "INSERT INTO cache (key, value, expires) VALUES ($1, $2, $3) ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires"

// CachePut sets the value of a key until expires; zero is forever.
func (s *Store) CachePut(ctx context.Context, key string, v engine.Value, expires time.Time) error {
	data, err := encodeValue(v)
	if err != nil {
		return fmt.Errorf("write cache: %w", err)
	}
	var until *int64
	if !expires.IsZero() {
		until = new(expires.UnixMilli())
	}
	return s.write(ctx, "write cache", func(t *tx) error {
		owner, err := t.dataKey(cacheUser(key))
		if err == nil {
			t.queue(upsertCached, text(key), s.encode(owner, data), until)
		}
		return err
	})
}

// cacheLock is the first key of the advisory locks under which entries are updated.
const cacheLock = 0x77656963

// CacheUpdate changes the value of a key, which nothing else changes meanwhile; see
// store.CacheStore.
func (s *Store) CacheUpdate(ctx context.Context, key string, now time.Time, change func(engine.Value, bool) (engine.Value, bool)) error {
	return s.write(ctx, "change cache", func(t *tx) error {
		// A row lock would not hold back a transaction that inserts the key.
		t.queue("SELECT pg_advisory_xact_lock($1, hashtext($2))", cacheLock, text(key))
		v, there, err := cached(t, key, now)
		if err != nil {
			return err
		}
		to, put := change(v, there)
		if !put {
			return nil
		}
		data, err := encodeValue(to)
		if err != nil {
			return err
		}
		owner, err := t.dataKey(cacheUser(key))
		if err == nil {
			t.queue(upsertCached, text(key), s.encode(owner, data), nil)
		}
		return err
	})
}

// CacheList returns the entries whose keys begin with prefix, sorted by key.
func (s *Store) CacheList(ctx context.Context, prefix string, now time.Time) ([]store.CacheEntry, error) {
	out := []store.CacheEntry{}
	err := s.query(ctx, func(row pgx.Row) error {
		var c store.CacheEntry
		var data []byte
		var expires *int64
		err := row.Scan(into(&c.Key), &data, &expires)
		if expires != nil {
			c.Expires = time.UnixMilli(*expires)
		}
		if err == nil {
			if c.Value, err = engine.DecodeValue(data); err != nil {
				err = fmt.Errorf("%s: %w: %w", c.Key, store.ErrCorrupt, err)
			}
		}
		out = append(out, c)
		return err
	}, "SELECT key, value, expires FROM cache WHERE key LIKE $1 AND (expires IS NULL OR expires > $2) ORDER BY key", likePrefix(prefix), now.UnixMilli())
	if err != nil {
		return nil, s.wrap("list cache", err)
	}
	return out, nil
}

// CacheDelete deletes entries and returns how many there were.
func (s *Store) CacheDelete(ctx context.Context, keys []string) (int, error) {
	var n int64
	err := s.write(ctx, "delete from cache", func(t *tx) (err error) {
		if n, err = t.exec("DELETE FROM cache WHERE key = ANY($1)", escapeTexts(keys)); n > 0 {
			t.markDeletion()
		}
		return err
	})
	return int(n), err
}

// CacheDeleteExpired deletes expired entries and returns how many there were.
func (s *Store) CacheDeleteExpired(ctx context.Context, now time.Time) (int64, error) {
	return s.exec(ctx, "sweep cache", "DELETE FROM cache WHERE expires IS NOT NULL AND expires <= $1", now.UnixMilli())
}

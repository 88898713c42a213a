package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

const selectCached = "SELECT value FROM cache WHERE key = ? AND (expires IS NULL OR expires > ?)"

// CacheUpdate calls change with the unexpired value under key, and stores the value that change
// returns with true, without expiry. No caller in any process changes the entry in the
// meantime.
func (s *Store) CacheUpdate(ctx context.Context, key string, now time.Time, change func(engine.Value, bool) (engine.Value, bool)) error {
	return s.write(ctx, "change cache", func(ctx context.Context) error {
		var v engine.Value
		var data string
		err := s.conn.QueryRowContext(ctx, selectCached, key, now.UnixMilli()).Scan(&data)
		there := err == nil
		if there {
			v, err = engine.DecodeValue([]byte(data))
		} else if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		if err != nil {
			return err
		}
		to, put := change(v, there)
		if !put {
			return nil
		}
		if data, err = encodeValue(to); err != nil {
			return err
		}
		_, err = s.conn.ExecContext(ctx, "INSERT OR REPLACE INTO cache (key, value, expires) VALUES (?, ?, NULL)", key, data)
		return err
	})
}

// CacheList lists the entries that have not expired at now and whose keys begin with prefix, by
// key.
func (s *Store) CacheList(ctx context.Context, prefix string, now time.Time) ([]store.CacheEntry, error) {
	out := []store.CacheEntry{}
	err := s.query(ctx, func(row scanner) error {
		var c store.CacheEntry
		var data string
		var expires sql.NullInt64
		err := row.Scan(&c.Key, &data, &expires)
		if expires.Valid {
			c.Expires = time.UnixMilli(expires.Int64)
		}
		if err == nil {
			if c.Value, err = engine.DecodeValue([]byte(data)); err != nil {
				err = fmt.Errorf("%s: %w", c.Key, err)
			}
		}
		out = append(out, c)
		return err
	}, "SELECT key, value, expires FROM cache WHERE key >= ?1 AND substr(key, 1, length(?1)) = ?1 AND (expires IS NULL OR expires > ?2) ORDER BY key",
		prefix, now.UnixMilli())
	if err != nil {
		return nil, s.wrap("list cache", err)
	}
	return out, nil
}

// CacheDelete removes entries and returns their number. No byte of them remains in the file or
// its log.
func (s *Store) CacheDelete(ctx context.Context, keys []string) (n int, err error) {
	const op = "delete from cache"
	list, err := json.Marshal(keys)
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	err = s.secureWrite(ctx, op, func(ctx context.Context) error {
		n, err = s.deleteCached(ctx, "key IN (SELECT value FROM json_each(?))", string(list))
		return err
	})
	_, err = s.compactAfter(ctx, op, store.DeleteResult{}, err, false)
	return n, err
}

// deleteCached deletes entries in a transaction that overwrites what it deletes.
func (s *Store) deleteCached(ctx context.Context, where string, args ...any) (int, error) {
	res, err := s.conn.ExecContext(ctx, "DELETE FROM cache WHERE "+where, args...) //nolint:gosec // where is a constant of this package
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	if err == nil && n > 0 {
		err = memoryWriter{ctx, s.conn}.markTraces()
	}
	return int(n), err
}

// learnedToDelete takes the code that was learned for a user, ?1 with its end ?2, or in a
// run of the trees ?3.
const learnedToDelete = `key >= '` + store.LearnedCodePrefix + `' AND key < 'learned0' AND (key >= ?1 AND key < ?2
	OR value ->> '$.run' IN (SELECT id FROM run WHERE root IN (SELECT value FROM json_each(?3)))
	OR value ->> '$.confirmed' IN (SELECT id FROM run WHERE root IN (SELECT value FROM json_each(?3))))`

// learnedArgs returns the arguments of doomedLearned.
func (x deleter) learnedArgs(roots string) []any {
	if x.user == "" {
		return []any{"", "", roots}
	}
	prefix := store.LearnedCodePrefixOf(x.user)
	return []any{prefix, prefix[:len(prefix)-1] + "0", roots} // "0" follows "/"
}

func (x deleter) countLearned(roots string) (n int, err error) {
	err = x.q.QueryRowContext(x.ctx, "SELECT count(*) FROM cache WHERE "+learnedToDelete, x.learnedArgs(roots)...).Scan(&n)
	return n, err
}

func (x deleter) deleteLearned(roots string) (int, error) {
	return x.s.deleteCached(x.ctx, learnedToDelete, x.learnedArgs(roots)...)
}

// deleteCachedOf deletes what is kept for the users of the trees' runs, and what all users
// share. Learned code is deleted by itself.
func (x deleter) deleteCachedOf(roots string) error {
	users := []string{}
	err := x.query(func(row scanner) error {
		var user string
		err := row.Scan(&user)
		users = append(users, store.CachePrefixOf(user))
		return err
	}, "SELECT DISTINCT coalesce(user, '') FROM run WHERE root IN (SELECT value FROM json_each(?))", roots)
	if err != nil {
		return err
	}
	list, err := json.Marshal(users)
	if err != nil {
		return err
	}
	_, err = x.s.deleteCached(x.ctx, `(key < 'learned/' OR key >= 'learned0') AND (substr(key, 1, length(?1)) <> ?1
		OR EXISTS (SELECT 1 FROM json_each(?2) j WHERE substr(cache.key, 1, length(j.value)) = j.value))`, store.CachePrefix, string(list))
	return err
}

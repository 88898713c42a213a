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

// SaveCheckpoint stores c in place of an older checkpoint of the run.
func (s *Store) SaveCheckpoint(ctx context.Context, c store.Checkpoint) error {
	num, err := s.number(ctx, c.Run)
	if err != nil {
		return fmt.Errorf("save checkpoint: %w", err)
	}
	_, err = s.exec(ctx, "save checkpoint of run "+c.Run, `INSERT INTO checkpoint (run, seq, body) VALUES (?, ?, ?)
		ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, body = excluded.body WHERE excluded.seq > seq`,
		num, c.Seq, notNil(c.Body))
	return err
}

const selectCheckpoint = "SELECT c.seq, c.body FROM checkpoint c JOIN run r ON r.num = c.run WHERE r.id = ?"

// Checkpoint returns the newest checkpoint of a run, store.ErrNotFound where
// there is none.
func (s *Store) Checkpoint(ctx context.Context, id string) (store.Checkpoint, error) {
	c := store.Checkpoint{Run: id}
	err := s.reader.QueryRowContext(ctx, selectCheckpoint, id).Scan(&c.Seq, &c.Body)
	if err != nil {
		return store.Checkpoint{}, s.wrap("checkpoint of run "+id, err)
	}
	return c, nil
}

// notNil keeps nothing apart from NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// PutFlow stores the normal form of a flow under its fingerprint.
func (s *Store) PutFlow(ctx context.Context, fingerprint string, normal []byte) error {
	there, err := s.hasFlow(ctx, fingerprint)
	if err != nil || there {
		return s.wrap("put flow "+fingerprint, err)
	}
	_, err = s.exec(ctx, "put flow "+fingerprint,
		"INSERT INTO flow (fingerprint, normal) VALUES (?, ?) ON CONFLICT DO NOTHING", fingerprint, notNil(normal))
	return err
}

// hasFlow asks over the writer's connection, which a run needs in any case: a process that only starts one opens no other.
func (s *Store) hasFlow(ctx context.Context, fingerprint string) (there bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.prepared().QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM flow WHERE fingerprint = ?)", fingerprint).Scan(&there)
	return there, err
}

const selectFlow = "SELECT normal FROM flow WHERE fingerprint = ?"

// Flow returns what PutFlow kept, store.ErrNotFound if there is none.
func (s *Store) Flow(ctx context.Context, fingerprint string) ([]byte, error) {
	var normal []byte
	err := s.reader.QueryRowContext(ctx, selectFlow, fingerprint).Scan(&normal)
	return normal, s.wrap("flow "+fingerprint, err)
}

// Post puts a message into a run's inbox, whichever process owns the run; its ID is
// given by the store. store.ErrNotFound if there is no such run.
func (s *Store) Post(ctx context.Context, p store.Post) error {
	num, err := s.number(ctx, p.Run)
	if err != nil {
		return fmt.Errorf("post: %w", err)
	}
	value, err := encodeValue(p.Value)
	if err != nil {
		return fmt.Errorf("post to run %s: %w", p.Run, err)
	}
	_, err = s.exec(ctx, "post to run "+p.Run,
		"INSERT INTO inbox (run, kind, name, value, sender, at) VALUES (?, ?, ?, ?, ?, ?)",
		num, p.Kind, p.Name, value, p.By, p.At.UnixMilli())
	return err
}

// encodeValue writes a value whole, with nothing referred to.
func encodeValue(v engine.Value) (string, error) {
	b, err := engine.EncodeValue(nil, v)
	return string(b), err
}

// Inbox returns the messages of a run, oldest first, without removing them.
func (s *Store) Inbox(ctx context.Context, id string) ([]store.Post, error) {
	return s.posts(ctx, "inbox of run "+id, selectPosts+"r.id = ? ORDER BY i.id", id)
}

// PostsForOwner returns the messages to all runs that owner has, oldest first, and takes
// none.
func (s *Store) PostsForOwner(ctx context.Context, owner string) ([]store.Post, error) {
	return s.posts(ctx, "inbox of "+owner, selectOwnerPosts, owner, s.clock().UnixMilli())
}

const (
	selectPosts = "SELECT i.id, r.id, i.kind, i.name, i.value, i.sender, i.at FROM inbox i JOIN run_row r ON r.num = i.run WHERE "
	// The requests for live text are read by the same statement, so that they cost nothing while there are none.
	selectOwnerPosts = selectPosts + `r.owner = ?1 UNION ALL
		SELECT 0, r.id, '` + store.PostLiveText + `', CAST(q.number AS TEXT), 'null', '', q.until FROM live_reader q JOIN run_row r ON r.num = q.run
		WHERE r.owner = ?1 AND q.until > ?2 ORDER BY 1`
)

func (s *Store) posts(ctx context.Context, op, query string, args ...any) ([]store.Post, error) {
	out := []store.Post{}
	err := s.query(ctx, func(row scanner) error {
		var p store.Post
		var value string
		var at int64
		err := row.Scan(&p.ID, &p.Run, &p.Kind, &p.Name, &value, &p.By, &at)
		if err == nil {
			p.At = time.UnixMilli(at)
			p.Value, err = engine.DecodeValue([]byte(value))
		}
		out = append(out, p)
		return err
	}, query, args...)
	if err != nil {
		return nil, s.wrap(op, err)
	}
	return out, nil
}

// RemovePosts removes messages from inboxes. A message that does not exist is no error.
func (s *Store) RemovePosts(ctx context.Context, ids []int64) error {
	list, err := json.Marshal(ids)
	if err != nil || len(ids) == 0 {
		return err
	}
	_, err = s.exec(ctx, "empty inbox", "DELETE FROM inbox WHERE id IN (SELECT value FROM json_each(?))", string(list))
	return err
}

// CacheGet returns the value that CachePut stored under key, unless it has expired at now.
func (s *Store) CacheGet(ctx context.Context, key string, now time.Time) (engine.Value, bool, error) {
	var data string
	err := s.reader.QueryRowContext(ctx, selectCached, key, now.UnixMilli()).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, s.wrap("read cache", err)
	}
	v, err := engine.DecodeValue([]byte(data))
	return v, err == nil, s.wrap("read cache", err)
}

// CachePut stores v under key until expires; zero means without expiry.
func (s *Store) CachePut(ctx context.Context, key string, v engine.Value, expires time.Time) error {
	data, err := encodeValue(v)
	if err != nil {
		return fmt.Errorf("write cache: %w", err)
	}
	var until any
	if !expires.IsZero() {
		until = expires.UnixMilli()
	}
	_, err = s.exec(ctx, "write cache", "INSERT OR REPLACE INTO cache (key, value, expires) VALUES (?, ?, ?)", key, data, until)
	return err
}

// CacheDeleteExpired deletes the entries that have expired at now and returns their number. It
// writes nothing if there are none.
func (s *Store) CacheDeleteExpired(ctx context.Context, now time.Time) (int64, error) {
	var expired bool
	err := s.reader.QueryRowContext(ctx,
		"SELECT EXISTS (SELECT 1 FROM cache WHERE expires IS NOT NULL AND expires <= ?)", now.UnixMilli()).Scan(&expired)
	if err != nil || !expired {
		return 0, s.wrap("sweep cache", err)
	}
	return s.exec(ctx, "sweep cache", "DELETE FROM cache WHERE expires IS NOT NULL AND expires <= ?", now.UnixMilli())
}

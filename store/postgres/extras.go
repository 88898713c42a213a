package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// SaveCheckpoint keeps a snapshot in place of an earlier one; see store.CheckpointStore.
func (s *Store) SaveCheckpoint(ctx context.Context, c store.Checkpoint) error {
	num, err := s.number(ctx, c.Run)
	if err != nil {
		return fmt.Errorf("save checkpoint: %w", err)
	}
	return s.write(ctx, "save checkpoint of run "+c.Run, func(t *tx) error {
		key, err := t.dataKeyOfRun(c.Run)
		if err == nil {
			t.queue(`INSERT INTO checkpoint (run, seq, body) SELECT num, $2, $3 FROM run WHERE num = $1
				ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, body = excluded.body WHERE excluded.seq > checkpoint.seq`, num, c.Seq, s.encode(key, notNil(c.Body)))
		}
		return err
	})
}

// Checkpoint returns the snapshot of a run; store.ErrNotFound.
func (s *Store) Checkpoint(ctx context.Context, id string) (store.Checkpoint, error) {
	c := store.Checkpoint{Run: id}
	err := s.queryRow(ctx, []any{&c.Seq, &c.Body}, "SELECT c.seq, c.body FROM checkpoint c JOIN run r ON r.num = c.run WHERE r.id = $1", text(id))
	if err != nil {
		return store.Checkpoint{}, s.wrap("checkpoint of run "+id, err)
	}
	return c, nil
}

// notNil returns a slice that is not stored as NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// PutFlow keeps a document under its digest; see store.Flows.
func (s *Store) PutFlow(ctx context.Context, fingerprint string, normal []byte) error {
	var there bool
	err := s.queryRow(ctx, []any{&there}, "SELECT EXISTS (SELECT 1 FROM flow WHERE fingerprint = $1)", text(fingerprint))
	if err != nil || there {
		return s.wrap("put flow "+fingerprint, err)
	}
	_, err = s.exec(ctx, "put flow "+fingerprint, "INSERT INTO flow (fingerprint, normal) VALUES ($1, $2) ON CONFLICT DO NOTHING", text(fingerprint), notNil(normal))
	return err
}

// Flow returns a document; store.ErrNotFound.
func (s *Store) Flow(ctx context.Context, fingerprint string) (normal []byte, err error) {
	err = s.queryRow(ctx, []any{&normal}, "SELECT normal FROM flow WHERE fingerprint = $1", text(fingerprint))
	return normal, s.wrap("flow "+fingerprint, err)
}

// Post adds a message to the inbox of a run; see store.Inbox.
func (s *Store) Post(ctx context.Context, p store.Post) error {
	value, err := encodeValue(p.Value)
	if err != nil {
		return fmt.Errorf("post to run %s: %w", p.Run, err)
	}
	var n int64
	err = s.write(ctx, "post to run "+p.Run, func(t *tx) error {
		key, err := t.dataKeyOfRun(p.Run)
		if err != nil {
			return err
		}
		n, err = t.exec(`INSERT INTO inbox (run, kind, name, value, sender, at) SELECT num, $2, $3, $4, $5, $6 FROM run WHERE id = $1`,
			text(p.Run), text(p.Kind), text(p.Name), s.encode(key, value), text(p.By), p.At.UnixMilli())
		return err
	})
	if err == nil && n > 0 {
		s.notices.report(store.TopicInbox, p.Run)
	}
	return requireRow("post: run "+p.Run, n, err)
}

// Inbox returns the messages to a run, oldest first; see store.Inbox.
func (s *Store) Inbox(ctx context.Context, id string) ([]store.Post, error) {
	return s.posts(ctx, "inbox of run "+id, selectPosts+"r.id = $1 ORDER BY i.id", text(id))
}

// PostsForOwner returns the messages to all runs of an owner, oldest first.
func (s *Store) PostsForOwner(ctx context.Context, owner string) ([]store.Post, error) {
	return s.posts(ctx, "inbox of "+owner, selectOwnerPosts, text(owner), s.nowArg())
}

const (
	selectPosts = "SELECT i.id, r.id, i.kind, i.name, i.value, i.sender, i.at FROM inbox i JOIN run r ON r.num = i.run WHERE "
	// The requests for live text are read by the same statement, so that they cost nothing while there are none.
	selectOwnerPosts = selectPosts + `r.owner = $1 UNION ALL
		SELECT 0, r.id, '` + store.PostLiveText + `', q.number::text, 'null'::bytea, '', q.until FROM live_reader q JOIN run r ON r.num = q.run
		WHERE r.owner = $1 AND q.until > coalesce($2::bigint, weir_now()) ORDER BY 1`
)

func (s *Store) posts(ctx context.Context, op, query string, args ...any) ([]store.Post, error) {
	out := []store.Post{}
	err := s.query(ctx, func(row pgx.Row) error {
		var p store.Post
		var value []byte
		var at int64
		err := row.Scan(&p.ID, into(&p.Run), into(&p.Kind), into(&p.Name), &value, into(&p.By), &at)
		if err == nil {
			p.At = time.UnixMilli(at)
			p.Value, err = engine.DecodeValue(value)
		}
		out = append(out, p)
		return err
	}, query, args...)
	if err != nil {
		return nil, s.wrap(op, err)
	}
	return out, nil
}

// RemovePosts removes messages from inboxes; see store.Inbox.
func (s *Store) RemovePosts(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return s.check(ctx)
	}
	_, err := s.exec(ctx, "empty inbox", "DELETE FROM inbox WHERE id = ANY($1)", ids)
	return err
}

func activityOf(n int16) engine.Activity { return engine.Activity(n) }

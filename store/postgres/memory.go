package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/codec"
)

// Remember keeps an item, or a new version of one; see memory.Store.
func (s *Store) Remember(ctx context.Context, w memory.Write) (out memory.WriteResult, err error) {
	const op = "remember"
	if w, err = w.Normalized(); err != nil {
		return out, fmt.Errorf("%s: %w", op, err)
	}
	err = s.write(ctx, op, func(t *tx) error {
		scope, err := t.lockScope(w.Scope)
		if err != nil {
			return err
		}
		known, err := t.findCall(w.Call, &out)
		if known || err != nil {
			return err
		}
		if out, err = t.remember(scope, &w); err != nil {
			return err
		}
		t.recordCall(w.Call, scope, out)
		return nil
	})
	if err != nil {
		return memory.WriteResult{}, err
	}
	return out, nil
}

// Forget deletes an item of a scope with its versions; see memory.Store.
func (s *Store) Forget(ctx context.Context, scope memory.Scope, id, call string) (done bool, err error) {
	if err := scope.Check(); err != nil {
		return false, fmt.Errorf("forget %s: %w", id, err)
	}
	err = s.write(ctx, "forget "+id, func(t *tx) error {
		var num, item int64
		err := t.queryRow([]any{&num}, selectScope+" FOR UPDATE", scopeArgs(scope)...)
		if errors.Is(err, pgx.ErrNoRows) {
			done = false
			return nil // nothing was ever remembered
		}
		if err != nil {
			return err
		}
		var was memory.WriteResult
		known, err := t.findCall(call, &was)
		if known || err != nil {
			done = !was.Known
			return err
		}
		err = t.queryRow([]any{&item}, "SELECT num FROM recall_item WHERE id = $1 AND scope = $2", text(id), num)
		if done = err == nil; done {
			t.deleteItems([]int64{item})
			t.markDeletion()
		} else if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		t.recordCall(call, num, memory.WriteResult{ID: id, Known: !done})
		return nil
	})
	return done && err == nil, err
}

const selectScope = "SELECT num FROM recall_scope WHERE namespace = $1 AND user_id = $2 AND session = $3"

func scopeArgs(s memory.Scope) []any { return []any{text(s.Namespace), text(s.User), text(s.Session)} }

// lockScope locks a scope, which it makes if there is none.
func (t *tx) lockScope(s memory.Scope) (num int64, err error) {
	t.queue("INSERT INTO recall_scope (namespace, user_id, session) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", scopeArgs(s)...)
	err = t.queryRow([]any{&num}, selectScope+" FOR UPDATE", scopeArgs(s)...)
	if errors.Is(err, pgx.ErrNoRows) { // another transaction deleted it
		err = errVanished
	}
	return num, err
}

// findCall reports whether a call is known, and its result.
func (t *tx) findCall(call string, was *memory.WriteResult) (bool, error) {
	if call == "" {
		return false, nil
	}
	digest := memory.CallDigest(call)
	err := t.queryRow([]any{into(&was.ID), &was.Version, &was.Known}, "SELECT item, version, known FROM recall_call WHERE digest = $1", digest[:])
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// recordCall queues the result of a call.
func (t *tx) recordCall(call string, scope int64, r memory.WriteResult) {
	if call == "" {
		return
	}
	digest := memory.CallDigest(call)
	t.queue("INSERT INTO recall_call (digest, scope, item, version, known) VALUES ($1, $2, $3, $4, $5)", digest[:], scope, text(r.ID), r.Version, r.Known)
}

// remember finds the item of which a write is a new version, and writes.
func (t *tx) remember(scope int64, w *memory.Write) (memory.WriteResult, error) {
	num, was, err := t.findItem(scope, w)
	switch {
	case err != nil:
		return memory.WriteResult{}, err
	case num == 0:
		return t.insertItem(scope, w)
	case w.SameContent(&was):
		return memory.WriteResult{ID: was.ID, Version: was.Number, Known: true}, nil
	}
	item := w.Item(was.Number + 1)
	return memory.WriteResult{ID: was.ID, Version: item.Number}, t.replaceItem(scope, num, &item)
}

// findItem finds the item with the key of a write, or with its text; the number is 0 if there is none.
func (t *tx) findItem(scope int64, w *memory.Write) (num int64, was memory.Item, err error) {
	if w.Key == "" && t.s.keys.codec.HasKeys() {
		return t.findEncodedItem(scope, w)
	}
	where, args := "i.key = $3 AND i.key <> ''", []any{scope, string(w.Kind), text(w.Key)}
	if w.Key == "" {
		where, args = "i.key = '' AND md5(i.text) = md5($3) AND i.text = $3 AND (i.kind <> 'episode' OR i.at = $4)",
			[]any{scope, string(w.Kind), text(w.Text), w.At.UnixMilli()}
	}
	err = t.query(func(row pgx.Row) (err error) {
		was, err = scanItem(rowPrefix{&num}.of(row))
		return err
	}, "SELECT i.num, "+itemColumns+fromItems+" WHERE i.scope = $1 AND i.kind = $2 AND "+where+" LIMIT 1", args...)
	return num, was, err
}

// insertItem inserts a new item.
func (t *tx) insertItem(scope int64, w *memory.Write) (memory.WriteResult, error) {
	if w.MaxItems > 0 {
		var n int
		if err := t.queryRow([]any{&n}, "SELECT count(*) FROM recall_item WHERE scope = $1", scope); err != nil {
			return memory.WriteResult{}, err
		}
		if n >= w.MaxItems {
			return memory.WriteResult{}, fmt.Errorf("%w: it holds %d items, and may hold %d", memory.ErrFull, n, w.MaxItems)
		}
	}
	item := w.Item(1)
	key, err := t.dataKey(item.User)
	if err != nil {
		return memory.WriteResult{}, err
	}
	terms := storedTerms(key, &item)
	args := append([]any{text(item.ID), scope, string(item.Kind), text(item.Key), item.Created.UnixMilli(), terms}, t.versionArgs(key, &item.Version)...)
	var num int64
	err = t.queryRow([]any{&num}, `INSERT INTO recall_item (id, scope, kind, key, created, terms, version, text, tags, at, written, run_id, flow, session, round, author)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT (id) DO NOTHING RETURNING num`, args...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("item %s: %w", item.ID, store.ErrExists)
	}
	if err != nil {
		return memory.WriteResult{}, err
	}
	t.insertTerms(scope, num, terms)
	return memory.WriteResult{ID: item.ID, Version: 1}, nil
}

func (t *tx) versionArgs(key *codec.DataKey, v *memory.Version) []any {
	x := &v.Source
	return []any{
		v.Number, t.s.encodeText(key, v.Text), t.s.encodeText(key, tagsText(v.Tags)), v.At.UnixMilli(), v.Written.UnixMilli(),
		text(x.Run), text(x.Flow), text(x.Session), x.Round, text(x.By),
	}
}

func (t *tx) insertTerms(scope, num int64, terms []string) {
	if len(terms) == 0 {
		return
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(terms)))
	t.queue("INSERT INTO recall_term (scope, term, item) SELECT $1, u.term, $2 FROM unnest($3::text[]) AS u (term)", scope, num, distinct)
}

const versionColumns = "version, text, tags, at, written, run_id, flow, session, round, author"

// replaceItem queues the next version of an item.
func (t *tx) replaceItem(scope, num int64, item *memory.Item) error {
	key, err := t.dataKey(item.User)
	if err != nil {
		return err
	}
	terms := storedTerms(key, item)
	t.queue("INSERT INTO recall_past (item, "+versionColumns+") SELECT num, "+versionColumns+" FROM recall_item WHERE num = $1", num)
	t.queue("DELETE FROM recall_past WHERE item = $1 AND version <= $2", num, item.Number-memory.MaxVersions)
	t.queue(`UPDATE recall_item SET terms = $2, version = $3, text = $4, tags = $5, at = $6, written = $7, run_id = $8, flow = $9, session = $10,
		round = $11, author = $12 WHERE num = $1`, append([]any{num, terms}, t.versionArgs(key, &item.Version)...)...)
	t.queue("DELETE FROM recall_term WHERE item = $1", num)
	t.insertTerms(scope, num, terms)
	return nil
}

// deleteItems queues the deletion of items.
func (t *tx) deleteItems(nums []int64) {
	t.queue("DELETE FROM recall_term WHERE item = ANY($1)", nums)
	t.queue("DELETE FROM recall_past WHERE item = ANY($1)", nums)
	t.queue("DELETE FROM recall_item WHERE num = ANY($1)", nums)
}

// tagsText encodes tags; none are "".
func tagsText(tags []string) string {
	if len(tags) == 0 {
		return ""
	}
	b, _ := json.Marshal(tags) // a list of strings
	return string(b)
}

// ForgetMemories implements store.MemoryStore.
func (s *Store) ForgetMemories(ctx context.Context, f memory.Filter) (out store.DeleteResult, err error) {
	err = s.write(ctx, "forget memories", func(t *tx) (err error) {
		out = store.DeleteResult{}
		condition, args := itemCondition(f)
		scopes, scopeArgs := scopeCondition(f)
		out.Memories, err = t.forget("SELECT i.num FROM recall_item i JOIN recall_scope s ON s.num = i.scope WHERE "+condition, args,
			"SELECT s.num FROM recall_scope s WHERE "+scopes, scopeArgs)
		return err
	})
	return s.afterDeletion(ctx, out, err, false)
}

// forget deletes the items that one query lists and, of the scopes that another lists, those that are empty
// then. It returns the number of items.
func (t *tx) forget(items string, itemArgs []any, scopes string, scopeArgs []any) (int, error) {
	owners, err := t.numbers(scopes+" ORDER BY s.num FOR UPDATE", scopeArgs...)
	if err != nil {
		return 0, err
	}
	nums, err := t.numbers(items, itemArgs...)
	if err != nil || len(nums)+len(owners) == 0 {
		return 0, err
	}
	t.deleteItems(nums)
	for _, q := range []string{
		"DELETE FROM recall_call c WHERE c.scope = ANY($1) AND NOT EXISTS (SELECT 1 FROM recall_item i WHERE i.scope = c.scope)",
		"DELETE FROM recall_scope s WHERE s.num = ANY($1) AND NOT EXISTS (SELECT 1 FROM recall_item i WHERE i.scope = s.num)",
	} {
		t.queue(q, owners)
	}
	t.markDeletion()
	return len(nums), nil
}

// numbers reads a column of numbers.
func (t *tx) numbers(query string, args ...any) (out []int64, err error) {
	err = t.query(func(row pgx.Row) error {
		var n int64
		err := row.Scan(&n)
		out = append(out, n)
		return err
	}, query, args...)
	return out, err
}

// scopeCondition is memory.Filter.MatchesScope in SQL, and itemCondition is memory.Filter.Matches.
func scopeCondition(f memory.Filter) (where string, args []any) {
	return "($1 = '' OR s.namespace = $1) AND ($2 = '' OR s.user_id = $2) AND ($3 = '' OR s.session = $3)",
		[]any{text(f.Namespace), text(f.User), text(f.Session)}
}

func itemCondition(f memory.Filter) (where string, args []any) {
	where, args = scopeCondition(f)
	return where + ` AND ($4 = '' OR i.kind = $4) AND ($5 = '' OR i.id = $5) AND i.id LIKE $6 AND ($7 = '' OR i.run_id = $7 OR i.session = $7)`,
		append(args, text(f.Kind), text(f.ID), likePrefix(f.Prefix), text(f.From))
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/codec"
)

// Contents are encoded where a statement gets them as an argument, and decoded where a row is scanned. What is encoded
// says so itself, so that a database may have both forms. All else is stored as it is: ids, names, states, times,
// counts, flows, tags and digests. Digests are of the contents and not of their stored form.

// keyring has the data keys that a process has used.
type keyring struct {
	codec  *codec.Codec
	config *pgxpool.Config

	mu   sync.Mutex // guards the following fields
	keys map[int64]*codec.DataKey
	// pool has a connection of its own: keys are read while rows are scanned, when all others may be in use.
	pool *pgxpool.Pool
}

// maxKeys is the number of data keys that a process remembers.
const maxKeys = 10_000

func newKeyring(c *codec.Codec, config *pgxpool.Config) *keyring {
	if c == nil {
		c = &codec.Codec{}
	}
	config = config.Copy()
	config.MaxConns, config.MinConns = 1, 0
	return &keyring{codec: c, config: config, keys: map[int64]*codec.DataKey{}}
}

func (k *keyring) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pool != nil {
		k.pool.Close()
	}
}

func (k *keyring) known(number int64) *codec.DataKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys[number]
}

func (k *keyring) remember(key *codec.DataKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.keys) >= maxKeys {
		clear(k.keys)
	}
	k.keys[key.Number] = key
}

// forget has keys read again.
func (k *keyring) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.keys)
}

// connections returns the pool for keys.
func (k *keyring) connections(ctx context.Context) (*pgxpool.Pool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pool != nil {
		return k.pool, nil
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), k.config)
	k.pool = pool
	return pool, err
}

// find returns the data key with a number.
func (s *Store) findKey(ctx context.Context, number int64) (*codec.DataKey, error) {
	if key := s.keys.known(number); key != nil {
		return key, nil
	}
	pool, err := s.keys.connections(ctx)
	if err != nil {
		return nil, err
	}
	var user string
	var w codec.WrappedKey
	err = s.repeat(ctx, func(ctx context.Context) error {
		return pool.QueryRow(ctx, "SELECT user_id, master, wrapped FROM data_key WHERE num = $1", number).Scan(into(&user), &w.Master, &w.Data)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("%w: data key %d was destroyed, because its user was erased, or it is of another database", codec.ErrMissingKey, number)
	}
	if err != nil {
		return nil, fmt.Errorf("read data key %d: %w", number, err)
	}
	key, err := s.keys.codec.Unwrap(number, user, w)
	if err == nil {
		s.keys.remember(key)
	}
	return key, err
}

// decodingRow decodes the columns that it scans.
type decodingRow struct {
	row pgx.Row
	s   *Store
	ctx context.Context //nolint:containedctx // lives as long as one call
	tx  *tx             // whose keys may be visible to it alone; nil outside of a transaction
}

// Scan implements pgx.Row.
func (r decodingRow) Scan(dest ...any) error {
	if err := r.row.Scan(dest...); err != nil {
		return err
	}
	for _, d := range dest {
		err := r.decode(d)
		if errors.Is(err, codec.ErrDamaged) { // see dataKey
			r.s.keys.forget()
			err = r.decode(d)
		}
		if errors.Is(err, codec.ErrDamaged) {
			err = fmt.Errorf("%w: %w", store.ErrCorrupt, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decode decodes what was scanned if it is encoded. It changes nothing if it fails.
func (r decodingRow) decode(dest any) error {
	switch p := dest.(type) {
	case *[]byte:
		if !codec.IsEncoded(*p) {
			return nil
		}
		plain, err := r.s.keys.codec.Decode(r.find, *p)
		if err == nil {
			*p = plain
		}
		return err
	case *text:
		if !codec.IsEncodedText(string(*p)) {
			return nil
		}
		plain, err := r.s.keys.codec.DecodeText(r.find, string(*p))
		if err == nil {
			*p = text(plain)
		}
		return err
	}
	return nil
}

func (r decodingRow) find(number int64) (*codec.DataKey, error) {
	if r.tx != nil {
		for _, key := range r.tx.keys { // order: at most one has the number
			if key.Number == number {
				return key, nil
			}
		}
	}
	return r.s.findKey(r.ctx, number)
}

// eachRow calls scan for each row; t is nil outside of a transaction.
func (s *Store) eachRow(ctx context.Context, t *tx, rows pgx.Rows, scan func(row pgx.Row) error) error {
	defer rows.Close()
	row := decodingRow{rows, s, ctx, t}
	for rows.Next() {
		if err := scan(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// dataKey returns the key that encrypts the contents of a user, "" for contents of no user, and makes it if there is
// none; nil if contents are not encrypted. It is locked until the transaction ends, so that an erasure does not
// destroy it meanwhile.
func (t *tx) dataKey(user string) (*codec.DataKey, error) {
	if !t.s.keys.codec.Encrypts() {
		return nil, nil
	}
	if key := t.keys[user]; key != nil {
		return key, nil
	}
	const locked = "SELECT num, master, wrapped FROM data_key WHERE user_id = $1 FOR KEY SHARE"
	var number int64
	var w codec.WrappedKey
	err := t.queryRow([]any{&number, &w.Master, &w.Data}, locked, text(user))
	if errors.Is(err, pgx.ErrNoRows) {
		w = t.s.keys.codec.NewKey(user)
		err = t.queryRow([]any{&number}, `INSERT INTO data_key (user_id, master, wrapped, created) VALUES ($1, $2, $3, coalesce($4::bigint, weir_now()))
			ON CONFLICT (user_id) DO NOTHING RETURNING num`, text(user), w.Master, w.Data, t.s.nowArg())
		if errors.Is(err, pgx.ErrNoRows) { // another transaction has made it meanwhile
			err = t.queryRow([]any{&number, &w.Master, &w.Data}, locked, text(user))
		}
		if errors.Is(err, pgx.ErrNoRows) { // and a third has destroyed it
			err = errVanished
		}
	}
	if err != nil {
		return nil, fmt.Errorf("data key of a user: %w", err)
	}
	// A key that is remembered under the number may be that of a transaction that a failover has lost.
	key, err := t.s.keys.codec.Unwrap(number, user, w)
	if err != nil {
		return nil, err
	}
	if t.keys == nil {
		t.keys = map[string]*codec.DataKey{}
	}
	t.keys[user] = key
	return key, nil
}

// dataKeyOfRun is dataKey of the user of a run.
func (t *tx) dataKeyOfRun(id string) (*codec.DataKey, error) {
	return t.dataKeyOf("SELECT user_id FROM run WHERE id = $1", text(id))
}

func (t *tx) dataKeyOf(query string, args ...any) (*codec.DataKey, error) {
	if !t.s.keys.codec.Encrypts() {
		return nil, nil
	}
	var user string
	if err := t.queryRow([]any{into(&user)}, query, args...); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	return t.dataKey(user)
}

// encode returns contents as they are stored.
func (s *Store) encode(key *codec.DataKey, plain []byte) []byte {
	return s.keys.codec.Encode(key, plain)
}

// encodeText is encode for a column of text.
func (s *Store) encodeText(key *codec.DataKey, plain string) string {
	if key == nil {
		return escapeText(plain)
	}
	return s.keys.codec.EncodeText(key, plain)
}

// checkKeys fails with codec.ErrMissingKey unless there is a master key for each data key. A process that lacks one
// could neither read the contents of some users, nor keep what it writes secret.
func (s *Store) checkKeys(ctx context.Context) error {
	var ids []string
	err := s.queryRow(ctx, []any{&ids}, "SELECT coalesce(array_agg(DISTINCT master ORDER BY master), '{}') FROM data_key")
	if s.opts.ReadOnly && codeOf(err) == codeNoRights { // contents that are not encrypted can be read
		return nil
	}
	if err != nil {
		return err
	}
	return s.keys.codec.MissingMaster(ids)
}

// RewrapKeys wraps every data key that another master key wraps with the current one, and returns how many these were.
// Contents stay as they are. It fails with codec.ErrMissingKey if no master key is configured for writing.
func (s *Store) RewrapKeys(ctx context.Context) (n int, err error) {
	const op = "wrap data keys"
	if !s.keys.codec.Encrypts() {
		return 0, fmt.Errorf("%s: %w: set storage.encryption.key to the new key", op, codec.ErrMissingKey)
	}
	err = s.write(ctx, op, func(t *tx) error {
		n = 0
		type row struct {
			number int64
			user   string
			codec.WrappedKey
		}
		var rows []row
		err := t.query(func(pr pgx.Row) error {
			var r row
			err := pr.Scan(&r.number, into(&r.user), &r.Master, &r.Data)
			rows = append(rows, r)
			return err
		}, "SELECT num, user_id, master, wrapped FROM data_key WHERE master <> $1 ORDER BY num FOR NO KEY UPDATE", s.keys.codec.Current())
		for i := 0; i < len(rows) && err == nil; i++ {
			var w codec.WrappedKey
			if w, err = s.keys.codec.Rewrap(rows[i].user, rows[i].WrappedKey); err == nil {
				t.queue("UPDATE data_key SET master = $2, wrapped = $3 WHERE num = $1", rows[i].number, w.Master, w.Data)
				n++
			}
		}
		return err
	})
	if err == nil && n > 0 { // the old forms go with the space of the rows
		_, err = s.pool.Exec(ctx, "VACUUM data_key")
	}
	return n, s.wrap(op, err)
}

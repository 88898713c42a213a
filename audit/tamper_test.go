package audit_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// recordTable is a table whose rows are the record, with the columns that say it.
type recordTable struct {
	table, key string
	columns    []string
	// again is an insertion of a copy of a row.
	again string
}

func recordTables() []recordTable {
	return []recordTable{
		{
			"run_commit", "id",
			[]string{"at", "last", "base", "messages", "events", "events", "events", "tag"},
			`INSERT INTO run_commit SELECT (SELECT max(id) + 1 FROM run_commit n WHERE n.id >> 32 = c.id >> 32),
				at, last, base, messages, events, tag FROM run_commit c WHERE id = ?`,
		},
		{
			"message", "id",
			[]string{"role", "content", "content", "value", "key", "rest", "seq"},
			`INSERT INTO message SELECT (SELECT max(id) + 1 FROM message n WHERE n.id >> 32 = m.id >> 32),
				role, content, value, key || 'x', rest, seq, tokens FROM message m WHERE id = ?`,
		},
		{
			"value", "id",
			[]string{"root", "digest", "body"},
			"INSERT INTO value SELECT (SELECT max(id) + 1 FROM value), root, NULL, coalesce(body, 'null') FROM value WHERE id = ?",
		},
		{
			"value_part", "id",
			[]string{"id", "body"},
			"INSERT INTO value_part SELECT (SELECT max(id) + 1 FROM value_part n WHERE n.id >> 20 = p.id >> 20), body FROM value_part p WHERE id = ?",
		},
		{
			"context", "id",
			[]string{"run", "name", "start", "source", "kind"},
			"INSERT INTO context SELECT (SELECT max(id) + 1 FROM context), run, name || 'x', start, source, kind FROM context WHERE id = ?",
		},
		{
			"run_row", "num",
			[]string{
				"id", "root", "salt", "program", "user", "parent", "origin", "created", "status", "error",
				"session", "round", "first", "base", "base_seq", "base_last",
			},
			`INSERT INTO run_row (num, id, root, salt, flow, fingerprint, program, user, parent, origin, created, status, session, round, first)
				SELECT (SELECT max(num) + 1 FROM (SELECT num FROM run_row UNION SELECT num FROM tombstone)), id || 'x', root, salt, flow, fingerprint,
				program, user, parent, origin, created, status, session, round, first FROM run_row WHERE num = ?`,
		},
		{"program", "num", []string{"flow", "fingerprint"}, ""},
		{"session", "num", []string{"id", "user", "salt", "context", "rounds", "changes"}, ""},
		{
			"session_change", "id",
			[]string{"id", "key", "value", "reducer", "round", "run", "sender", "at", "seal"},
			`INSERT INTO session_change SELECT (SELECT max(id) + 1 FROM session_change n WHERE n.id >> 32 = c.id >> 32), key, value, reducer, round,
				run, sender, at, seal FROM session_change c WHERE id = ?`,
		},
		{
			"tombstone", "num",
			[]string{"num", "origin", "links"},
			`INSERT INTO tombstone SELECT (SELECT max(num) + 1 FROM (SELECT num FROM run_row UNION SELECT num FROM tombstone)),
				origin, base, base_seq, base_last, unchained, links FROM tombstone WHERE num = ?`,
		},
		{"flow", "rowid", []string{"fingerprint", "normal"}, "INSERT INTO flow SELECT fingerprint || '0', normal FROM flow WHERE fingerprint = ?"},
	}
}

// corruptor changes a database in one place.
type corruptor struct {
	*rand.Rand
	db *sql.DB
}

// corrupt does one thing and says what; "" where it could not.
func (v *corruptor) corrupt(ctx context.Context) (string, error) {
	all := recordTables()
	x := all[v.IntN(len(all))]
	if x.key == "rowid" {
		x.key = "fingerprint"
	}
	key, err := v.pick(ctx, x.table, x.key, "TRUE")
	if key == nil || err != nil {
		return "", err
	}
	switch n := v.IntN(10); {
	case n < 6:
		return v.flip(ctx, x, x.columns[v.IntN(len(x.columns))])
	case n < 7 && x.table != "program" && x.table != "session":
		return v.exec(ctx, fmt.Sprintf("remove %s %v", x.table, key), "DELETE FROM "+x.table+" WHERE "+x.key+" = ?", key)
	case n < 8 && x.again != "":
		return v.exec(ctx, fmt.Sprintf("copy %s %v", x.table, key), x.again, key)
	case x.table == "run_commit" || x.table == "message" || x.table == "value":
		return v.swap(ctx, x, key)
	}
	return "", nil
}

func (v *corruptor) pick(ctx context.Context, table, column, where string) (key any, err error) {
	var n int
	if err := v.db.QueryRowContext(ctx, "SELECT count(*) FROM "+table+" WHERE "+where).Scan(&n); err != nil || n == 0 {
		return nil, err
	}
	err = v.db.QueryRowContext(ctx, "SELECT "+column+" FROM "+table+" WHERE "+where+" ORDER BY 1 LIMIT 1 OFFSET ?", v.IntN(n)).Scan(&key)
	return key, err
}

// exec counts a change that the schema forbids as none.
func (v *corruptor) exec(ctx context.Context, what, query string, args ...any) (string, error) {
	res, err := v.db.ExecContext(ctx, query, args...)
	if err != nil {
		return "", nil //nolint:nilerr // another place is tried
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return "", err
	}
	return what, nil
}

// flip turns one bit of a column around.
func (v *corruptor) flip(ctx context.Context, x recordTable, column string) (string, error) {
	key, err := v.pick(ctx, x.table, x.key, column+" IS NOT NULL")
	if err != nil || key == nil {
		return "", err
	}
	var kind string
	var blob []byte
	var number int64
	err = v.db.QueryRowContext(ctx, fmt.Sprintf("SELECT typeof(%[1]s), CAST(%[1]s AS BLOB), iif(typeof(%[1]s) = 'integer', %[1]s, 0) FROM %[2]s WHERE %[3]s = ?",
		column, x.table, x.key), key).Scan(&kind, &blob, &number)
	if err != nil || kind != "integer" && len(blob) == 0 {
		return "", err
	}
	to := any(number ^ 1<<v.IntN(8))
	set := "?"
	if kind != "integer" {
		i := v.IntN(len(blob))
		blob[i] ^= 1 << v.IntN(7)
		to = blob
		if kind == "text" {
			set = "CAST(? AS TEXT)"
		}
	}
	return v.exec(ctx, fmt.Sprintf("flip %s.%s of %v", x.table, column, key),
		"UPDATE "+x.table+" SET "+column+" = "+set+" WHERE "+x.key+" = ?", to, key)
}

// swap has two rows change places, with all that they hold.
func (v *corruptor) swap(ctx context.Context, x recordTable, key any) (string, error) {
	other, err := v.pick(ctx, x.table, x.key, "TRUE")
	if err != nil || other == key {
		return "", err
	}
	same := map[string]string{
		"run_commit": "events = (SELECT events FROM run_commit WHERE id = ?2) AND at = (SELECT at FROM run_commit WHERE id = ?2) AND tag = (SELECT tag FROM run_commit WHERE id = ?2)",
		"message":    "content IS (SELECT content FROM message WHERE id = ?2) AND key IS (SELECT key FROM message WHERE id = ?2)",
		"value":      "body IS (SELECT body FROM value WHERE id = ?2)",
	}
	var equal bool
	if err := v.db.QueryRowContext(ctx, "SELECT "+same[x.table]+" FROM "+x.table+" WHERE id = ?1", key, other).Scan(&equal); err != nil || equal {
		return "", err
	}
	for _, step := range [][2]any{{key, -1}, {other, key}, {-1, other}} {
		if _, err := v.db.ExecContext(ctx, "UPDATE "+x.table+" SET id = ? WHERE id = ?", step[1], step[0]); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("swap %s %v and %v", x.table, key, other), nil
}

// copied returns a copy of a closed database.
func copied(t *testing.T, data []byte) (path string, db *sql.DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "weir.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return path, db
}

// tampered returns how many journals are tampered with: WEIR_TAMPERED, or n.
func tampered(n int) int {
	if more, err := strconv.Atoi(os.Getenv("WEIR_TAMPERED")); err == nil {
		return more
	}
	if testing.Short() {
		return n / 5
	}
	return n
}

func TestVerifyFindsEveryRecordChange(t *testing.T) {
	t.Parallel()
	data := archiveData(t)
	done := map[string]int{}
	for seed, n := uint64(1), tampered(60); n > 0; seed++ {
		path, db := copied(t, data)
		v := &corruptor{rand.New(rand.NewPCG(seed, 5)), db}
		what, err := v.corrupt(t.Context())
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(seed, err)
		}
		if what == "" {
			continue
		}
		n--
		words := strings.Fields(what)
		done[words[0]+" "+words[1]]++
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			continue // found at once
		}
		out, err := audit.Verify(t.Context(), s, audit.Options{})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err == nil && out.OK {
			t.Errorf("seed %d: %s: not found", seed, what)
		}
		if err != nil {
			t.Errorf("seed %d: %s: %v", seed, what, err)
		}
		_ = os.Remove(path)
	}
	j, _ := json.Marshal(done)
	t.Logf("found: %s", j)
}

// longRuns returns the numbers of runs with at least that many commits that rewrite can change: they are
// no fork and not the base of one, and no commit of another run is stored as a difference from theirs.
func longRuns(t *testing.T, db *sql.DB, least int) (nums []int64, ids []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT r.num, r.id FROM run_row r JOIN run_commit c ON c.id > r.num << 32 AND c.id < (r.num + 1) << 32
		WHERE r.base IS NULL AND r.num NOT IN (SELECT base FROM run_row WHERE base IS NOT NULL)
		AND NOT EXISTS (SELECT 1 FROM run_commit d WHERE d.id >> 32 <> r.num AND r.num =
			CASE WHEN d.base < 0 THEN (d.id >> 32) - (-d.base) / 16 WHEN d.base >= 1 << 32 THEN d.base >> 32 END)
		GROUP BY 1 HAVING count(*) >= ? AND sum(c.base IS NULL AND instr(c.events, '"us":')) > 0 ORDER BY 1`, least)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var num int64
		var id string
		if err := rows.Scan(&num, &id); err != nil {
			t.Fatal(err)
		}
		nums, ids = append(nums, num), append(ids, id)
	}
	if err := rows.Err(); err != nil || len(nums) == 0 {
		t.Fatal(len(nums), err)
	}
	return nums, ids
}

// recompute gives the commits of a run the tags that go with what they are now.
func recompute(t *testing.T, path string, run string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	c, err := s.Chain(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tag := store.FirstTag(0, c.Origin)
	for l, err := range s.Links(t.Context(), c) {
		if err != nil || l.Err != nil {
			t.Fatal(err, l.Err)
		}
		tag = tag.Next(l.Header, l.Digest)
		if _, err := db.ExecContext(t.Context(), "UPDATE run_commit SET tag = ? WHERE id = ?", int64(tag), c.Number<<32+l.Seq); err != nil {
			t.Fatal(err)
		}
	}
}

// cutTail removes the last commit of a run, and sets its status to running.
func cutTail(t *testing.T, db *sql.DB, num int64) {
	t.Helper()
	for _, q := range []string{
		"DELETE FROM run_commit WHERE id = (SELECT max(id) FROM run_commit WHERE id >> 32 = ?)",
		"UPDATE run_row SET status = 'running', error = NULL WHERE num = ?",
	} {
		if _, err := db.ExecContext(t.Context(), q, num); err != nil {
			t.Fatal(err)
		}
	}
}

// rewrite changes a run so that nothing is found.
func rewrite(t *testing.T, db *sql.DB, path string, num int64, id string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), "UPDATE run_commit SET events = replace(events, '\"us\":', '\"us\":1') WHERE id >> 32 = ? AND base IS NULL", num)
	if err != nil {
		t.Fatal(err)
	}
	recompute(t, path, id)
	if out := verifyDatabase(t, path, audit.Options{}); !out.OK {
		t.Errorf("a recomputed chain is found without heads: %+v", out.Findings)
	}
}

// Somebody who can write the database can have it be consistent: what is then found is
// found by the heads that were kept elsewhere.
func TestKeptHeadsRevealTruncatedAndRecomputedChains(t *testing.T) {
	t.Parallel()
	original := archiveDatabase(t)
	heads := verifyDatabase(t, original, audit.Options{})
	var kept []audit.KeptHead
	for _, r := range heads.Runs {
		kept = append(kept, r.KeptHead)
	}
	data := archiveData(t)
	for seed := range uint64(tampered(60) / 10) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		path, db := copied(t, data)
		nums, ids := longRuns(t, db, 3)
		i := rnd.IntN(len(nums))
		what := "cut tail"
		if seed%2 == 0 {
			cutTail(t, db, nums[i])
		} else {
			what = "recomputed chain"
			rewrite(t, db, path, nums[i], ids[i])
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if out := verifyDatabase(t, path, audit.Options{Heads: kept}); out.OK {
			t.Errorf("seed %d: a %s of run %s is not found", seed, what, ids[i])
		}
		if out := verifyDatabase(t, path, audit.Options{Head: heads.Digest}); out.OK {
			t.Errorf("seed %d: a %s of run %s is not found by the digest", seed, what, ids[i])
		}
		_ = os.Remove(path)
	}
	if out := verifyDatabase(t, original, audit.Options{Heads: kept, Head: heads.Digest}); !out.OK {
		t.Errorf("what was not changed: %+v", out.Findings)
	}
}

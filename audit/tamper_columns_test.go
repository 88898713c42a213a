package audit_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/store/sqlite"
)

// forgery is another value for a cell.
type forgery struct {
	how string
	to  any
}

// text is a value that is kept with the storage class TEXT.
type text string

// forgeries are other values for one: of other content, of other types, and JSON that
// two readers read differently.
func forgeries(r *rand.Rand, v any) []forgery {
	switch v := v.(type) {
	case nil:
		return []forgery{{"null to 0", int64(0)}, {"null to 1", int64(1)}, {"null to text", text("x")}, {"null to blob", []byte("x")}}
	case int64:
		return []forgery{
			{"plus 1", v + 1},
			{"minus 1", v - 1},
			{"a bit", v ^ 1<<r.IntN(16)},
			{"negative", -v - 1},
			{"zero", int64(0)},
			{"null", nil},
			{"real", float64(v) + 0.5},
			{"text", text(fmt.Sprint(v))},
			{"text that is no number", text(fmt.Sprint(v) + "x")},
			{"blob", []byte(fmt.Sprint(v))},
		}
	case []byte:
		return []forgery{
			{"a bit", flipped(r, v)},
			{"longer", append(bytes.Clone(v), 0)},
			{"shorter", v[:max(len(v)-1, 0)]},
			{"null", nil},
			{"text", text(v)},
			{"empty", []byte{}},
		}
	case string:
		return append(texts(r, v), documents(r, v)...)
	}
	return nil
}

func flipped(r *rand.Rand, b []byte) []byte {
	if b = bytes.Clone(b); len(b) > 0 {
		b[r.IntN(len(b))] ^= 1 << r.IntN(7)
	}
	return b
}

func texts(r *rand.Rand, v string) []forgery {
	return []forgery{
		{"a bit", text(flipped(r, []byte(v)))},
		{"NUL behind", text(v + "\x00x")},
		{"NUL in front", text("\x00" + v)},
		{"space behind", text(v + " ")},
		{"upper case", text(strings.ToUpper(v))},
		{"lower case", text(strings.ToLower(v))},
		{"an accent that is apart", text(v + "\u0301")},
		{"letters of full width", text(strings.ReplaceAll(v, "a", "\uff41"))},
		{"empty", text("")},
		{"null", nil},
		{"blob", []byte(v)},
		{"a number", int64(7)},
	}
}

// documents are JSON documents that some reader may take for the one that is there.
func documents(r *rand.Rand, v string) []forgery {
	if v == "" || !strings.ContainsAny(v[:1], `[{"`) || !json.Valid([]byte(v)) {
		return nil
	}
	out := []forgery{{"space before", text(" " + v)}, {"a new line behind", text(v + "\n")}}
	for _, at := range members(v) {
		name, value, end := v[at[0]:at[1]], v[at[1]+1:at[2]], at[2]
		other := "null"
		if value == other {
			other = "1"
		}
		upper := strings.ToUpper(name[:2]) + name[2:]
		in := func(how string, from, to int, what string) {
			out = append(out, forgery{how, text(v[:from] + what + v[to:])})
		}
		in("a member twice, the first is another", at[0], at[0], name+":"+other+",")
		in("a member twice, the last is another", end, end, ","+name+":"+other)
		in("a member twice, the same", end, end, ","+name+":"+value)
		in("a member in another case as well", end, end, ","+upper+":"+other)
		in("a member in another case", at[0], at[1], upper)
		in("a member more", end, end, `,"zzz":1`)
		in("space in an object", at[1]+1, at[1]+1, " ")
		if c := name[1]; c < 0x80 {
			in("a letter as its code", at[0]+1, at[0]+2, fmt.Sprintf(`\u%04x`, c))
		}
		if value[0] >= '0' && value[0] <= '9' {
			in("a whole number as another", end, end, ".0")
			in("a number with an exponent", end, end, "e0")
		}
		if value == "null" || value == "false" || value == "0" {
			continue
		}
		in("an explicit default", end, end, `,"attempt":0`)
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// members returns the places of all members of objects in a JSON text: where the name
// begins, where it ends, where the value ends.
func members(s string) (out [][3]int) {
	type open struct{ name [2]int }
	var stack []open
	var name [2]int
	closes := func(end int) {
		if n := len(stack); n > 0 && stack[n-1].name[1] > 0 {
			out = append(out, [3]int{stack[n-1].name[0], stack[n-1].name[1], end})
			stack[n-1].name = [2]int{}
		}
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			from := i
			for i++; s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
			name = [2]int{from, i + 1}
		case ':':
			stack[len(stack)-1].name = name
		case '{', '[':
			stack = append(stack, open{})
		case ',':
			closes(i)
		case '}', ']':
			closes(i)
			stack = stack[:len(stack)-1]
		}
	}
	return out
}

// schemaOf returns the tables of a database with their columns, generated ones too.
func schemaOf(ctx context.Context, t *testing.T, db *sql.DB) map[string][]string {
	t.Helper()
	rows, err := db.QueryContext(ctx, "SELECT s.name, c.name FROM sqlite_schema s JOIN pragma_table_xinfo(s.name) c WHERE s.type = 'table'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	out := map[string][]string{}
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		out[table] = append(out[table], column)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryColumnIsClassified(t *testing.T) {
	t.Parallel()
	data := archiveData(t)
	_, db := copied(t, data)
	defer func() { _ = db.Close() }()
	has := schemaOf(t.Context(), t, db)
	for _, table := range sqlite.Tables() {
		columns, there := has[table.Name]
		delete(has, table.Name)
		if !table.IsRecord() {
			if table.Reason == "" {
				t.Errorf("nothing says why table %s is not of record", table.Name)
			}
			continue
		}
		var listed []string
		for _, c := range table.Columns {
			listed = append(listed, c.Name)
		}
		slices.Sort(listed)
		slices.Sort(columns)
		if !there || !slices.Equal(listed, columns) {
			t.Errorf("table %s has the columns %v, and %v are listed", table.Name, columns, listed)
		}
	}
	for name := range has {
		t.Errorf("table %s is in no list: see sqlite.Tables", name)
	}
}

// cell is one place in a database.
type cell struct {
	table, key, column string
	row                any
}

func keysOf(ctx context.Context, t *testing.T, db *sql.DB, table *sqlite.Table) (keys []any) {
	t.Helper()
	rows, err := db.QueryContext(ctx, "SELECT "+table.Key+" FROM "+table.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var key any
		if err := rows.Scan(&key); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return keys
}

// cells are up to n rows of each column of record.
func cells(ctx context.Context, t *testing.T, db *sql.DB, r *rand.Rand, n int) (out []cell) {
	t.Helper()
	for _, table := range sqlite.Tables() {
		if !table.IsRecord() {
			continue
		}
		keys := keysOf(ctx, t, db, &table)
		for _, c := range table.Columns {
			if c.Verification != sqlite.Chained {
				continue
			}
			r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			for _, key := range keys[:min(n, len(keys))] {
				out = append(out, cell{table.Name, table.Key, c.Name, key})
			}
		}
	}
	return out
}

// verdict says whether verifying a database finds something. One that cannot be opened
// is found as well.
func verdict(t *testing.T, path string) (found bool, err error) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Untrusted: true})
	if err != nil {
		return true, nil
	}
	defer func() { _ = s.Close() }()
	out, err := audit.Verify(t.Context(), s, audit.Options{})
	return err != nil || !out.OK, err
}

// forge sets a cell, and reports whether that made a difference.
func forge(ctx context.Context, db *sql.DB, c cell, to any) (bool, error) {
	set := "?1"
	if s, ok := to.(text); ok {
		set, to = "CAST(?1 AS TEXT)", []byte(s)
	}
	const was = "quote(%[1]s) || typeof(%[1]s) || hex(CAST(%[1]s AS BLOB))"
	var before, after string
	where := " FROM " + c.table + " WHERE " + c.key + " = ?"
	if err := db.QueryRowContext(ctx, "SELECT "+fmt.Sprintf(was, c.column)+where, c.row).Scan(&before); err != nil {
		return false, err
	}
	res, err := db.ExecContext(ctx, "UPDATE "+c.table+" SET "+c.column+" = "+set+" WHERE "+c.key+" = ?2", to, c.row)
	if err != nil {
		return false, nil //nolint:nilerr // the schema forbids it
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	if c.column == c.key {
		var same bool
		err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1"+where+" AND quote(?1) IS NOT quote(CAST(?1 AS BLOB)))", c.row).Scan(&same)
		return !same, err
	}
	err = db.QueryRowContext(ctx, "SELECT "+fmt.Sprintf(was, c.column)+where, c.row).Scan(&after)
	return before != after, err
}

// value returns what is in a cell.
func (c *cell) value(ctx context.Context, db *sql.DB) (v any, err error) {
	err = db.QueryRowContext(ctx, "SELECT "+c.column+" FROM "+c.table+" WHERE "+c.key+" = ?", c.row).Scan(&v)
	return v, err
}

// TestVerifyEndsWhereAForkedContextBeginsBelowZero sets the first position of each context that
// a fork shares to -1, with which the search for the end of the shared part did not end.
func TestVerifyEndsWhereAForkedContextBeginsBelowZero(t *testing.T) {
	t.Parallel()
	data := archiveData(t)
	path, db := copied(t, data)
	rows, err := db.QueryContext(t.Context(), "SELECT id FROM context WHERE run IN (SELECT base FROM run WHERE base IS NOT NULL) AND start = 0 ORDER BY id LIMIT 8")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var ids []any
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil || len(ids) == 0 {
		t.Fatal(ids, err)
	}
	for _, id := range ids {
		c := cell{"context", "id", "start", id}
		forged := filepath.Join(filepath.Dir(path), "forged.db")
		if !forgedCopy(t, forged, data, c, forgery{"below zero", int64(-1)}) {
			t.Fatal("not changed")
		}
		if found, err := verdict(t, forged); !found || err != nil {
			t.Errorf("context %v: found %v (%v)", id, found, err)
		}
	}
}

func TestVerifyCoversEveryRecordColumn(t *testing.T) {
	if testing.Short() {
		t.Skip("sequential and long: the race detector finds nothing in it")
	}
	t.Parallel()
	data := archiveData(t)
	rows, most := 1, 2
	if n := tampered(0); n > 0 {
		rows, most = 8, n
	}
	r := rand.New(rand.NewPCG(11, 7))
	path, db := copied(t, data)
	all := cells(t.Context(), t, db, r, rows)
	tried := map[string]int{}
	for _, c := range all {
		v, err := c.value(t.Context(), db)
		if err != nil {
			t.Fatal(c, err)
		}
		list := forgeries(r, v)
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, f := range list[:min(most, len(list))] {
			path := filepath.Join(filepath.Dir(path), "forged.db")
			if !forgedCopy(t, path, data, c, f) {
				continue
			}
			tried[c.table+"."+c.column]++
			found, err := verdict(t, path)
			if !found || err != nil {
				t.Errorf("%s.%s of %v, %s (%.60v for %.60v): found %v (%v)", c.table, c.column, c.row, f.how, f.to, v, found, err)
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	j, _ := json.Marshal(tried)
	t.Logf("found: %s", j)
}

func forgedCopy(t *testing.T, path string, data []byte, c cell, f forgery) bool {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	differs, err := forge(t.Context(), db, c, f.to)
	if e := db.Close(); err != nil || e != nil {
		t.Fatal(c, f, err, e)
	}
	return differs
}

func TestVerifyFindsEverySchemaChange(t *testing.T) {
	t.Parallel()
	data := archiveData(t)
	for what, queries := range map[string]struct {
		sql     string
		refused bool // when it is opened
	}{
		"a trigger that deletes":    {"CREATE TRIGGER t AFTER INSERT ON run_commit BEGIN DELETE FROM run_commit WHERE id = new.id; END", true},
		"a trigger on a table":      {"CREATE TRIGGER t BEFORE DELETE ON message BEGIN SELECT raise(IGNORE); END", true},
		"a trigger on a view":       {"CREATE TRIGGER t INSTEAD OF INSERT ON run BEGIN SELECT 1; END", true},
		"the view run":              {"DROP VIEW run; CREATE VIEW run AS SELECT num, id, root, salt, flow, fingerprint, 'eve' AS user, parent, origin, created, owner, until, fence, status, waiting, due, usage, error, session, round, first, base, base_seq, base_last FROM run_row", true},
		"the view value_json":       {"DROP VIEW value_json; CREATE VIEW value_json (id, body) AS SELECT id, body FROM value", true},
		"the view journal":          {"DROP VIEW journal; CREATE VIEW journal (run, seq, at, events) AS SELECT 1, 2, 3, 4", true},
		"the view chain_of_work":    {"DROP VIEW chain_of_work; CREATE VIEW chain_of_work AS SELECT 1 AS execution_id", true},
		"a view fewer":              {"DROP VIEW journal", true},
		"a table instead of a view": {"DROP VIEW journal; CREATE TABLE journal (run, seq, at, events)", true},
		"a view instead of a table": {"ALTER TABLE flow RENAME TO flow_of_old; CREATE VIEW flow AS SELECT * FROM flow_of_old", true},
		"a view more":               {"CREATE VIEW mine AS SELECT 1", false},
		"a table more":              {"CREATE TABLE mine (x)", false},
		"a column more":             {"ALTER TABLE run_row ADD COLUMN mine TEXT", false},
		"a generated column":        {"ALTER TABLE run_row ADD COLUMN mine TEXT GENERATED ALWAYS AS (id || 'x') VIRTUAL", false},
		"an index more":             {"CREATE UNIQUE INDEX mine ON run_row (created, id)", false},
		"an index fewer":            {"DROP INDEX run_parent", false},
		"another index":             {"DROP INDEX run_parent; CREATE INDEX run_parent ON run_row (parent) WHERE parent > 'm'", false},
		"user_version":              {"PRAGMA user_version = 7", false},
		"application_id":            {"PRAGMA application_id = 7", true},
	} {
		path, db := copied(t, data)
		_, err := db.ExecContext(t.Context(), queries.sql)
		if e := db.Close(); err != nil || e != nil {
			t.Fatal(what, err, e)
		}
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err == nil {
			err = s.Close()
			if queries.refused {
				t.Errorf("%s: opening does not refuse it (%v)", what, err)
			}
		} else if !queries.refused {
			t.Errorf("%s: opening refuses it: %v", what, err)
		}
		if found, err := verdict(t, path); !found || err != nil {
			t.Errorf("%s: found %v (%v)", what, found, err)
		}
	}
}

// TestVerifyOfCyclesOfBasesEnds: each run with a base becomes the base of its base, and each run its own.
func TestVerifyOfCyclesOfBasesEnds(t *testing.T) {
	t.Parallel()
	data := archiveData(t)
	for _, forged := range []string{
		"UPDATE run_row SET base = (SELECT max(f.num) FROM run_row f WHERE f.base = run_row.num) WHERE num IN (SELECT base FROM run_row)",
		"UPDATE run_row SET base = num",
		"UPDATE context SET source = id WHERE source IS NOT NULL",
		"UPDATE context SET source = id, start = 1 << 40 WHERE source IS NOT NULL",
	} {
		path, db := copied(t, data)
		r, err := db.ExecContext(t.Context(), forged)
		if err != nil {
			t.Fatal(forged, err)
		}
		if n, _ := r.RowsAffected(); n == 0 {
			t.Fatalf("%s changed nothing", forged)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if found, err := verdict(t, path); !found || err != nil {
			t.Errorf("%s: found %v (%v)", forged, found, err)
		}
	}
}

// TestVerifyFindsUnknownMembersOfStoredStructs: JSON that is decoded into a struct must say nothing
// that the struct does not: Go ignores unknown members, and SQL does not.
func TestVerifyFindsUnknownMembersOfStoredStructs(t *testing.T) {
	t.Parallel()
	data := archiveData(t)
	tried := 0
	for _, place := range []struct{ table, column, object string }{
		{"run_commit", "events", `"marks":{`},
		{"run_commit", "events", `"settings":{`},
		{"run_commit", "events", `"set":{`},
		{"message", "rest", `"calls":[{`},
		{"message", "rest", `"parts":[{`},
	} {
		path, db := copied(t, data)
		var id int64
		err := db.QueryRowContext(t.Context(), "SELECT coalesce(max(id), 0) FROM "+place.table+" WHERE instr("+place.column+", ?)", place.object).Scan(&id)
		if err != nil {
			t.Fatal(err)
		}
		if id > 0 {
			tried++
			if _, err := db.ExecContext(t.Context(), "UPDATE "+place.table+" SET "+place.column+" = replace("+place.column+", ?1, ?1 || '\"a\":1,') WHERE id = ?2", place.object, id); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if found, err := verdict(t, path); id > 0 && (!found || err != nil) {
			t.Errorf("%v: found %v (%v)", place, found, err)
		}
	}
	if tried < 2 {
		t.Errorf("only %d of the structs are in the data", tried)
	}
}

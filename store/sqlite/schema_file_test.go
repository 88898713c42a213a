package sqlite

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var update = flag.Bool("update", false, "write schema.sql")

// dumpRows returns the rows of all tables as insertions; the time at which a migration ran,
// which a new row gets by itself, is left out.
func dumpRows(ctx context.Context, t *testing.T, db querier, wanted func(table string) bool) []string {
	t.Helper()
	var out []string
	objects, err := schemaObjects(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if objects[name].kind != "table" || !wanted(name) {
			continue
		}
		var columns []string
		read(ctx, t, db, &columns, "SELECT name FROM pragma_table_info(?) WHERE name <> 'tstamp'", name)
		var values []string
		for _, c := range columns {
			values = append(values, fmt.Sprintf("quote(%q)", c))
		}
		read(ctx, t, db, &out, fmt.Sprintf("SELECT 'INSERT INTO %s (%s) VALUES (' || %s || ');' FROM %s ORDER BY 1",
			name, strings.Join(columns, ", "), strings.Join(values, " || ', ' || "), name))
	}
	return out
}

// read appends the rows of a query with one column of text.
func read(ctx context.Context, t *testing.T, db querier, out *[]string, query string, args ...any) {
	t.Helper()
	err := lineage{ctx, db}.query(func(row scanner) error {
		var text string
		err := row.Scan(&text)
		*out = append(*out, text)
		return err
	}, query, args...)
	if err != nil {
		t.Fatal(query, err)
	}
}

// virtualTable is the one table whose content its module keeps in tables of its own.
const virtualTable = "recall_index"

func ownedByModule(table string) bool { return strings.HasPrefix(table, virtualTable) }

// scriptOf returns the script that makes a database: its objects in the order in which they
// were made, then its rows.
func scriptOf(ctx context.Context, t *testing.T, db querier) []byte {
	t.Helper()
	digest, err := migrationsDigest(migrations())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, schemaFileHeader+digest)
	var statements []string
	read(ctx, t, db, &statements, `SELECT sql FROM sqlite_schema
		WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE ? || '\_%' ESCAPE '\' ORDER BY rowid`, virtualTable)
	for _, s := range statements {
		fmt.Fprintf(&b, "%s;\n", s)
	}
	for _, row := range dumpRows(ctx, t, db, func(table string) bool { return !ownedByModule(table) }) {
		fmt.Fprintln(&b, row)
	}
	for _, line := range moduleSettings(t) {
		fmt.Fprintln(&b, line)
	}
	return b.Bytes()
}

// moduleSettings returns the lines of the migrations that set an option of the virtual table:
// insertions into the column that is called like it.
func moduleSettings(t *testing.T) (out []string) {
	t.Helper()
	files, err := fs.Glob(migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	for _, name := range files {
		data, err := fs.ReadFile(migrations(), name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.HasPrefix(line, "INSERT INTO "+virtualTable+" ("+virtualTable+",") {
				out = append(out, strings.TrimSpace(line))
			}
		}
	}
	return out
}

// withoutScript returns the migrations under another digest, so that they run one by one.
func withoutScript(t *testing.T) fs.FS {
	t.Helper()
	out := fstest.MapFS{}
	files, err := fs.Glob(migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		data, err := fs.ReadFile(migrations(), name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = &fstest.MapFile{Data: append(data, '\n')}
	}
	return out
}

// TestSchemaFileMakesWhatTheMigrationsMake compares objects and rows of a database that the
// script made with those of one that the migrations made.
func TestSchemaFileMakesWhatTheMigrationsMake(t *testing.T) {
	migrated, err := open(t.Context(), filepath.Join(t.TempDir(), "migrated.db"), Options{}, withoutScript(t))
	if err != nil {
		t.Fatal(err)
	}
	defer closedSize(t, migrated)
	want := scriptOf(t.Context(), t, migrated.reader)
	if *update {
		if err := os.WriteFile("schema.sql", want, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(want) != schemaFile {
		t.Fatal("schema.sql is not what the migrations make: run 'make generate'")
	}
	made := openAt(t, filepath.Join(t.TempDir(), "made.db"), Options{})
	objects, rows := contentOf(t, made.reader)
	wantObjects, wantRows := contentOf(t, migrated.reader)
	if !slices.Equal(objects, wantObjects) {
		t.Errorf("objects:\n%s\nwant:\n%s", strings.Join(objects, "\n"), strings.Join(wantObjects, "\n"))
	}
	if !slices.Equal(rows, wantRows) {
		t.Errorf("rows:\n%s\nwant:\n%s", strings.Join(rows, "\n"), strings.Join(wantRows, "\n"))
	}
	if len(wantObjects) < 40 || len(wantRows) < 10 {
		t.Errorf("%d objects and %d rows: the test reads nothing", len(wantObjects), len(wantRows))
	}
}

func contentOf(t *testing.T, db querier) (objects, rows []string) {
	t.Helper()
	read(t.Context(), t, db, &objects, "SELECT type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY rowid")
	return objects, dumpRows(t.Context(), t, db, func(string) bool { return true })
}

// TestChangedMigrationsRunInsteadOfTheSchemaFile opens a new database with one migration more,
// which the script does not have.
func TestChangedMigrationsRunInsteadOfTheSchemaFile(t *testing.T) {
	more := withoutScript(t).(fstest.MapFS)
	more[fmt.Sprintf("%05d_more.sql", newest(t)+1)] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE more (a);\n")}
	if script, err := schemaScript(more); script != "" || err != nil {
		t.Errorf("a script of %d bytes (%v)", len(script), err)
	}
	s, err := open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), Options{}, more)
	if err != nil {
		t.Fatal(err)
	}
	defer closedSize(t, s)
	var n int
	if err := s.reader.QueryRowContext(t.Context(), "SELECT count(*) FROM more").Scan(&n); err != nil {
		t.Error(err)
	}
}

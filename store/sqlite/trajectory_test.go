package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/files"
	"github.com/weir-run/weir/trajectory/tables"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

// openWithTrajectories returns an empty store that does not wait for the disk.
func openWithTrajectories(tb testing.TB) *Store {
	tb.Helper()
	s := openAt(tb, filepath.Join(tb.TempDir(), "weir.db"), Options{})
	if _, err := s.conn.ExecContext(tb.Context(), "PRAGMA synchronous = OFF"); err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestTrajectoriesAreStoredInTables(t *testing.T) {
	trajectorytest.Run(t, func(t *testing.T) trajectory.Storage {
		t.Helper()
		return tables.New(openWithTrajectories(t).Trajectories())
	})
	trajectorytest.RunTables(t, func(t *testing.T) tables.Tables {
		t.Helper()
		var h tables.Provider = openWithTrajectories(t)
		return h.Trajectories()
	})
}

func TestTrajectoriesAreStoredInFilesAndTables(t *testing.T) {
	if testing.Short() {
		t.Skip("either is tested alone")
	}
	trajectorytest.Run(t, func(t *testing.T) trajectory.Storage {
		t.Helper()
		return trajectory.Mirrored{First: files.New(t.TempDir(), files.Options{NoSync: true}), Second: tables.New(openWithTrajectories(t).Trajectories())}
	})
}

// tablesOfTrajectories returns the tables of trajectories in a file.
func tablesOfTrajectories(t *testing.T, s *Store) []string {
	t.Helper()
	names, err := s.queryTexts(t.Context(), "list tables", "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'trajectory%' ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestTrajectoryTablesAreCreatedOnFirstUse(t *testing.T) {
	ctx := t.Context()
	s := openWithTrajectories(t)
	other := openAt(t, s.path, Options{})
	k := trajectory.Key{User: "ann", Session: "s", Round: 1}
	in := s.Trajectories()
	_, err := in.Rounds(ctx, trajectory.Filter{})
	_, _, near := in.Adjacent(ctx, k)
	_, gone := in.Delete(ctx, trajectory.Filter{})
	_, user := s.DeleteUser(ctx, "ann", store.DeleteOptions{})
	if err := errors.Join(err, near, gone, user); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Rows(ctx, k); !errors.Is(err, trajectory.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	bad := trajectorytest.Sample(t, k, 1)
	rows, err := tables.RowsOf(bad)
	if err != nil {
		t.Fatal(err)
	}
	rows.Edges = append(rows.Edges, rows.Edges[0])
	if err := in.Replace(ctx, rows); err == nil {
		t.Error("an edge was stored twice")
	}
	if names := tablesOfTrajectories(t, s); len(names) > 0 {
		t.Errorf("there are %v", names)
	}
	if err := tables.New(in).Save(ctx, bad); err != nil {
		t.Fatal(err)
	}
	var want []string
	for name := range trajectoryTables() { // order: they are sorted
		want = append(want, name)
	}
	if names := tablesOfTrajectories(t, s); len(names) != 12 || !slices.Equal(names, slices.Sorted(slices.Values(want))) {
		t.Errorf("there are %v", names)
	}
	if keys, err := other.Trajectories().Rounds(ctx, trajectory.Filter{}); err != nil || len(keys) != 1 {
		t.Errorf("a process that looked before they were made sees %v, %v", keys, err)
	}
}

func TestConcurrentTrajectoryTableCreation(t *testing.T) {
	const processes, each = 4, 6
	path := filepath.Join(t.TempDir(), "weir.db")
	openAt(t, path, Options{})
	var wg sync.WaitGroup
	for p := range processes {
		s := openAt(t, path, Options{})
		wg.Go(func() {
			in := tables.New(s.Trajectories())
			for i := range each {
				k := trajectory.Key{User: "ann", Session: fmt.Sprint("s", p), Round: i + 1}
				if err := in.Save(t.Context(), trajectorytest.Sample(t, k, i)); err != nil {
					t.Errorf("process %d: %v", p, err)
				}
				if _, err := in.Load(t.Context(), k); err != nil {
					t.Errorf("process %d: %v", p, err)
				}
			}
		})
	}
	wg.Wait()
	s := openAt(t, path, Options{})
	keys, err := s.Trajectories().Rounds(t.Context(), trajectory.Filter{})
	if err != nil || len(keys) != processes*each {
		t.Errorf("%d rounds are stored, %v", len(keys), err)
	}
	for _, k := range keys {
		r, err := tables.New(s.Trajectories()).Load(t.Context(), k)
		if want := trajectorytest.Sample(t, k, k.Round-1); err != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("%s is not as it was saved: %v", k, err)
		}
	}
}

func TestCloseLeavesNoLogFile(t *testing.T) {
	s := openWithTrajectories(t)
	in := tables.New(s.Trajectories())
	k := trajectory.Key{User: "ann", Session: "s", Round: 1}
	for range 2 {
		if err := in.Save(t.Context(), trajectorytest.Sample(t, k, 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Load(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	closedSize(t, s)
}

func TestTrajectoriesFailAfterClose(t *testing.T) {
	ctx := t.Context()
	for _, stored := range []bool{false, true} {
		s := openWithTrajectories(t)
		in := s.Trajectories()
		rows, err := tables.RowsOf(trajectorytest.Sample(t, trajectory.Key{Session: "s", Round: 1}, 0))
		if err != nil {
			t.Fatal(err)
		}
		if stored {
			err = in.Replace(ctx, rows)
		}
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		_, ofRows := in.Rows(ctx, rows.Key())
		_, rounds := in.Rounds(ctx, trajectory.Filter{})
		_, nodes := in.Nodes(ctx, trajectory.Query, trajectory.Filter{})
		_, edges := in.Edges(ctx, trajectory.Filter{})
		_, _, near := in.Adjacent(ctx, rows.Key())
		_, gone := in.Delete(ctx, trajectory.Filter{})
		for i, err := range []error{in.Replace(ctx, rows), ofRows, rounds, nodes, edges, near, gone} {
			if !errors.Is(err, store.ErrClosed) {
				t.Errorf("call %d: got %v, want ErrClosed", i, err)
			}
		}
	}
}

// plan returns how SQLite finds rows, a step a line.
func plan(t *testing.T, s *Store, query string, args ...any) []string {
	t.Helper()
	var out []string
	err := lineage{t.Context(), s.conn}.query(func(row scanner) error {
		var id, parent, unused int
		var step string
		err := row.Scan(&id, &parent, &unused, &step)
		out = append(out, step)
		return err
	}, "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return out
}

// byIndex fails the test where a query reads a table from its beginning to its end.
func byIndex(t *testing.T, s *Store, query string, args ...any) {
	t.Helper()
	steps := plan(t, s, query, args...)
	for _, step := range steps {
		if strings.HasPrefix(step, "SCAN") && !slices.Contains([]string{"SCAN d", "SCAN CONSTANT ROW"}, step) {
			t.Errorf("%s\nis done by %q", query, steps)
			return
		}
	}
}

// allFilters returns those that say anything: 15 of the 16 choices of what they say.
func allFilters(k trajectory.Key) (out []trajectory.Filter) {
	for bits := range 15 {
		f := trajectory.Filter{User: &k.User, Session: &k.Session, Round: &k.Round, Sub: &k.Sub}
		for i, prepareDatabase := range []func(){func() { f.User = nil }, func() { f.Session = nil }, func() { f.Round = nil }, func() { f.Sub = nil }} {
			if bits&(1<<i) != 0 {
				prepareDatabase()
			}
		}
		out = append(out, f)
	}
	return out
}

func TestRowsOfTrajectoriesAreFoundByIndexes(t *testing.T) {
	s := openWithTrajectories(t)
	k := trajectory.Key{User: "ann", Session: "s", Round: 1}
	if err := tables.New(s.Trajectories()).Save(t.Context(), trajectorytest.Sample(t, k, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.conn.ExecContext(t.Context(), "CREATE TEMP TABLE doomed_round (num INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	parts := trajectoryTables()
	delete(parts, tables.RoundTable)
	for _, f := range allFilters(k) {
		query, args := roundsQuery(f)
		byIndex(t, s, query, args...)
		for table, columns := range parts { // order: each is tried
			query, args := rowsOfRoundsQuery(table, columns, f)
			byIndex(t, s, query, args...)
		}
		where, args := whereRound(f)
		byIndex(t, s, ofRounds("rowid", where), args...)
	}
	for table := range parts { // order: each is tried
		byIndex(t, s, deleteOfRounds(table))
	}
	byIndex(t, s, rowsQuery(), "ann", "s", 0, 1)
	byIndex(t, s, selectNear, "ann", "s", 0, 1)
	for table := range trajectoryTables() { // order: each is tried
		for _, where := range []string{
			"user = 'ann'", "session = 's'", "user = 'ann' AND session = 's'",
			"session = 's' AND user = 'ann' AND round = 1 AND sub = 0",
		} {
			byIndex(t, s, "SELECT * FROM "+table+" WHERE "+where)
			byIndex(t, s, "DELETE FROM "+table+" WHERE "+where)
		}
	}
}

func TestConversationsGoFromFilesToSQLiteAndBackUnchanged(t *testing.T) {
	all := trajectorytest.Airline(t)
	if testing.Short() {
		all = all[:10]
	}
	root, second := t.TempDir(), t.TempDir()
	quick := files.Options{NoSync: true}
	one, rows, two := files.New(root, quick), tables.New(openWithTrajectories(t).Trajectories()), files.New(second, quick)
	for _, c := range all {
		trajectorytest.Record(t, one, c.ID, c.Messages, nil)
	}
	for _, step := range []struct{ to, from trajectory.Storage }{{rows, one}, {two, rows}} {
		if n, err := trajectory.CopyRounds(t.Context(), step.to, step.from, trajectory.Filter{}); err != nil || n < len(all) {
			t.Fatalf("copied %d rounds, %v", n, err)
		}
	}
	if n := sameFiles(t, root, second) + sameFiles(t, second, root); n < 4*len(all) {
		t.Errorf("only %d files were compared", n)
	}
}

// sameFiles compares each file below one folder with that below the other.
func sameFiles(t *testing.T, one, two string) (n int) {
	t.Helper()
	err := filepath.WalkDir(one, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(one, path)
		if err != nil {
			return err
		}
		a, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(two, rel))
		if err != nil {
			return err
		}
		if n++; !bytes.Equal(a, b) {
			t.Errorf("%s changed on its way", rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// holds fails the test where a storage does not have these rounds, and no others.
func holds(t *testing.T, s trajectory.Storage, all []trajectory.Record) {
	t.Helper()
	keys, err := s.List(t.Context(), trajectory.Filter{})
	if err != nil || len(keys) != len(all) {
		t.Errorf("there are %v, %v", keys, err)
	}
	for _, r := range all {
		if got, err := s.Load(t.Context(), r.Key); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%s is not as it was: %v", r.Key, err)
		}
	}
}

func TestFilesAndSQLiteRestoreEachOther(t *testing.T) {
	ctx := t.Context()
	root := t.TempDir()
	inFiles, inTables := files.New(root, files.Options{NoSync: true}), tables.New(openWithTrajectories(t).Trajectories())
	both := trajectory.Mirrored{First: inFiles, Second: inTables}
	var all []trajectory.Record
	for i := range 6 {
		r := trajectorytest.Sample(t, trajectory.Key{User: "ann", Session: "s", Round: i + 1, Sub: i % 2}, i)
		all = append(all, r)
		if err := both.Save(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct{ lost, from trajectory.Storage }{{inFiles, inTables}, {inTables, inFiles}} {
		if n, err := step.lost.Delete(ctx, trajectory.Filter{}); err != nil || n != len(all) {
			t.Fatalf("deleted %d, %v", n, err)
		}
		holds(t, both, all) // the other is enough
		if n, err := trajectory.CopyRounds(ctx, step.lost, step.from, trajectory.Filter{}); err != nil || n != len(all) {
			t.Fatalf("copied %d, %v", n, err)
		}
		holds(t, step.lost, all)
		holds(t, both, all)
	}
	if n, err := both.Delete(ctx, trajectory.Filter{}); err != nil || n != len(all) {
		t.Errorf("deleted %d from both, %v", n, err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("of the files there are left %v, %v", left, err)
	}
}

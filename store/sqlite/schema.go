package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/store"
)

// Weir reads through views, and SQLite runs triggers whenever Weir writes. Both are in
// the file, where others can change them. Opening refuses a database with a trigger,
// or with a view that is not Weir's under a name of Weir's; verifying compares every
// object with what the migrations make.

// schemaObject is a row of sqlite_schema.
type schemaObject struct {
	kind, name, table, sql string
}

// schemaObjects lists those of a database, without SQLite's own.
func schemaObjects(ctx context.Context, q querier) (map[string]schemaObject, error) {
	out := map[string]schemaObject{}
	err := lineage{ctx, q}.query(func(row scanner) error {
		var o schemaObject
		err := row.Scan(&o.kind, &o.name, &o.table, &o.sql)
		out[o.name] = o
		return err
	}, `SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\'`)
	return out, err
}

// normalizeSQL returns the SQL of an object without what does not change its meaning and may
// differ between files: space, and the quotes that renaming puts around names.
func normalizeSQL(query string) string {
	query = strings.Replace(query, "IF NOT EXISTS ", "", 1)
	return strings.Join(strings.Fields(strings.ReplaceAll(query, `"`, "")), " ")
}

// viewsIn returns the views that migrations make, by name, in their last form.
func viewsIn(migrations fs.FS) (map[string]string, error) {
	files, err := fs.Glob(migrations, "*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	views := map[string]string{}
	for _, name := range files {
		data, err := fs.ReadFile(migrations, name)
		if err != nil {
			return nil, err
		}
		for text := "\n" + string(data); ; {
			_, rest, found := strings.Cut(text, "\nCREATE VIEW ")
			if !found {
				break
			}
			query, after, _ := strings.Cut(rest, ";\n")
			name := query[:max(strings.IndexAny(query, " (\n"), 0)]
			views[name] = "CREATE VIEW " + strings.TrimSuffix(query, ";")
			text = "\n" + after
		}
	}
	return views, nil
}

// checkTriggers refuses a database with a trigger: Weir has none.
func checkTriggers(ctx context.Context, db querier) error {
	var name, table string
	err := db.QueryRowContext(ctx, "SELECT coalesce(min(name), ''), coalesce(min(tbl_name), '') FROM sqlite_schema WHERE type = 'trigger'").Scan(&name, &table)
	if err != nil || name == "" {
		return err
	}
	return fmt.Errorf("%w: trigger %s on %s is not Weir's and would act on what Weir writes; remove it with the sqlite3 shell (DROP TRIGGER %s), then run `weir verify --all`",
		store.ErrForeignSchema, name, table, name)
}

// checkViews refuses a database in which what Weir reads through is not Weir's.
func (s *Store) checkViews(ctx context.Context, migrations fs.FS) error {
	want, err := viewsIn(migrations)
	if err != nil {
		return err
	}
	has, err := schemaObjects(ctx, s.conn)
	if err != nil {
		return err
	}
	for name, query := range want {
		if o := has[name]; o.kind != "view" || o.sql != query && normalizeSQL(o.sql) != normalizeSQL(query) {
			return fmt.Errorf("%w: view %s is not Weir's; `weir verify --all` lists what else was changed. Restore a copy of the file", store.ErrForeignSchema, name)
		}
	}
	for _, t := range Tables() {
		o, there := has[t.Name]
		if there && (o.kind != "table" || strings.HasPrefix(o.sql, "CREATE VIRTUAL") && t.Name != "recall_index") {
			return fmt.Errorf("%w: table %s is not Weir's; `weir verify --all` lists what else was changed. Restore a copy of the file", store.ErrForeignSchema, t.Name)
		}
	}
	return nil
}

// AuditSchema compares the tables, columns, indexes, views and triggers of the
// database with those that Weir makes, and then finds columns of record that hold
// what Weir never writes there: in all tables, or in the small ones only.
func (s *Store) AuditSchema(ctx context.Context, all bool) ([]store.Finding, error) {
	out, err := s.auditObjects(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.auditTypes(ctx, all)
	if err != nil && len(out) > 0 && ctx.Err() == nil {
		return out, nil // the schema says why
	}
	return append(out, found...), err
}

func (s *Store) auditObjects(ctx context.Context) ([]store.Finding, error) {
	s.expectedOnce.Do(func() {
		s.expectedObjects, s.optionalObjects, s.expectedErr = expectedSchema(context.WithoutCancel(ctx))
	})
	want, optional, err := s.expectedObjects, s.optionalObjects, s.expectedErr
	if err != nil {
		return nil, fmt.Errorf("audit schema: %w", err)
	}
	has, err := schemaObjects(ctx, s.reader)
	if err != nil {
		return nil, s.wrap("audit schema", err)
	}
	var out []store.Finding
	find := func(what, format string, args ...any) {
		out = append(out, store.Finding{What: what, Message: fmt.Sprintf(format, args...)})
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w := want[name]
		o, there := has[name]
		switch {
		case !there && optional[name]:
		case !there:
			find(store.FoundMissing, "%s %s is not in the schema", w.kind, name)
		case o.kind != w.kind || o.table != w.table || normalizeSQL(o.sql) != normalizeSQL(w.sql):
			find(store.FoundChanged, "%s %s in the schema is not the %s that Weir makes", o.kind, name, w.kind)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if _, known := want[name]; !known {
			find(store.FoundAdded, "%s %s in the schema is not Weir's", has[name].kind, name)
		}
	}
	var version int64
	if err := s.reader.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return nil, s.wrap("audit schema", err)
	}
	if version != 0 {
		find(store.FoundChanged, "user_version is %d, and Weir leaves it 0", version)
	}
	return out, nil
}

// expectedSchema returns what the migrations make, by name, with the tables of
// trajectories, which are made when they are needed: those are optional.
func expectedSchema(ctx context.Context) (all map[string]schemaObject, optional map[string]bool, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = db.Close() }() // in memory
	db.SetMaxOpenConns(1)
	if err := makeSchema(ctx, db, migrations()); err != nil {
		return nil, nil, err
	}
	needed, err := schemaObjects(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	for _, query := range trajectorySchema() {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return nil, nil, err
		}
	}
	all, err = schemaObjects(ctx, db)
	optional = map[string]bool{}
	for name := range all {
		if _, ok := needed[name]; !ok {
			optional[name] = true
		}
	}
	return all, optional, err
}

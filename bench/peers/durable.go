package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // also the driver of rawCommits
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store/postgres"
)

// together runs one in as many goroutines as the shape has runs.
func together(s shape, one func() error) error {
	var wg sync.WaitGroup
	errs := make([]error, s.runs)
	for i := range s.runs {
		wg.Go(func() { errs[i] = one() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// rawCommits writes one row a transaction at synchronous=FULL, one connection:
// the least that a durable step can cost without grouping.
func rawCommits(dir string) func(context.Context, shape) (job, error) {
	return func(ctx context.Context, s shape) (job, error) {
		db, err := sql.Open("sqlite", filepath.Join(dir, fmt.Sprintf("raw%d.db", s.runs))+
			"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		if _, err := db.ExecContext(ctx, "CREATE TABLE row (id INTEGER PRIMARY KEY, body TEXT)"); err != nil {
			return nil, err
		}
		insert, err := db.PrepareContext(ctx, "INSERT INTO row (body) VALUES (?)")
		if err != nil {
			return nil, err
		}
		one := func() error {
			for range s.depth {
				if _, err := insert.ExecContext(ctx, `[{"kind":"node.completed","node":"n17","outputs":{"value":18}}]`); err != nil {
					return err
				}
			}
			return nil
		}
		return func() error { return together(s, one) }, nil
	}
}

// rawPostgres writes one row a transaction to PostgreSQL, each run on a connection of its own.
func rawPostgres(url string) func(context.Context, shape) (job, error) {
	return func(ctx context.Context, s shape) (job, error) {
		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			return nil, err
		}
		if _, err := pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS raw_row (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea)"); err != nil {
			return nil, err
		}
		body := []byte(`[{"kind":"node.completed","node":"n17","outputs":{"value":18}}]`)
		one := func() error {
			for range s.depth {
				if _, err := pool.Exec(ctx, "INSERT INTO raw_row (body) VALUES ($1)", body); err != nil {
					return err
				}
			}
			return nil
		}
		return func() error { return together(s, one) }, nil
	}
}

// onPostgres opens a store in a new schema.
func onPostgres(url, schema string) func(context.Context) (runner.Store, error) {
	return func(ctx context.Context) (runner.Store, error) {
		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			return nil, err
		}
		defer pool.Close()
		if _, err := pool.Exec(ctx, "CREATE SCHEMA "+schema); err != nil { // a name of ours
			return nil, err
		}
		separator := "?"
		if strings.Contains(url, "?") {
			separator = "&"
		}
		return postgres.Open(ctx, url+separator+"search_path="+schema, postgres.Options{})
	}
}

// dbosChains runs DBOS Transact with the settings it chooses itself. On SQLite, where the place is the beginning of the
// name of a file, that is synchronous=NORMAL.
func dbosChains(place string) func(context.Context, shape) (job, error) {
	return func(ctx context.Context, s shape) (job, error) {
		url, schema := place, ""
		if strings.HasPrefix(place, "sqlite:") {
			url += fmt.Sprintf("%d.db", s.runs)
		} else {
			schema = fmt.Sprintf("dbos%d", s.runs)
		}
		d, err := dbos.NewContext(ctx, dbos.Config{
			AppName:        "peers",
			DatabaseURL:    url,
			DatabaseSchema: schema,
			Logger:         slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			return nil, err
		}
		flow := func(c dbos.Context, in int) (int, error) {
			for range s.depth {
				out, err := dbos.RunAsStep(c, func(context.Context) (int, error) { return in + 1, nil })
				if err != nil {
					return 0, err
				}
				in = out
			}
			return in, nil
		}
		dbos.RegisterWorkflow(d, flow)
		if err := dbos.Launch(d); err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = dbos.Shutdown(d, time.Second) })
		one := func() error {
			h, err := dbos.RunWorkflow(d, flow, 0)
			if err != nil {
				return err
			}
			out, err := h.GetResult()
			if err == nil && out != s.depth {
				err = fmt.Errorf("dbos returned %d, not %d", out, s.depth)
			}
			return err
		}
		return func() error { return together(s, one) }, nil
	}
}

//go:build unix

package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/storetest"
)

func openAt(tb testing.TB, url string, opts Options) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), url, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func TestPostgreSQLStore(t *testing.T) {
	server := pgtest.Start(t)
	urls := map[store.Store]string{}
	open := func(tb testing.TB, url string, clock func() time.Time) store.Store {
		tb.Helper()
		s := openAt(tb, url, Options{Clock: clock, MaxConnections: 4})
		urls[s] = url
		return s
	}
	storetest.Run(t, storetest.Subject{
		Open: func(tb testing.TB, clock func() time.Time) store.Store {
			tb.Helper()
			return open(tb, server.Schema(tb), clock)
		},
		Reopen: func(tb testing.TB, s store.Store, clock func() time.Time) store.Store {
			tb.Helper()
			if err := s.Close(); err != nil {
				tb.Fatal(err)
			}
			return open(tb, urls[s], clock)
		},
		OpenSecond: func(tb testing.TB, s store.Store, clock func() time.Time) store.Store {
			tb.Helper()
			return open(tb, urls[s], clock)
		},
	})
}

func TestOpenExistingMakesNoTablesAndReadsWhereItCannotWrite(t *testing.T) {
	server := pgtest.Start(t)
	url := server.Schema(t)
	if _, err := OpenExisting(t.Context(), url, Options{}); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("an empty database: %v", err)
	}
	if got := server.SQL(t, "SELECT count(*) FROM pg_class WHERE relnamespace = 's1'::regnamespace"); got != "0" {
		t.Errorf("%s tables were made", got)
	}
	w, err := newTestWriter(openAt(t, url, Options{}), "r")
	if err == nil {
		err = w.append(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	existing := func(url string) *Store {
		s, err := OpenExisting(t.Context(), url, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	if s := existing(url); s.Note() != "" || s.PutFlow(t.Context(), "f", []byte("{}")) != nil {
		t.Errorf("the database can be written; note %q", s.Note())
	}
	server.SQL(t, "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA s1 TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA s1 TO reader; REVOKE SELECT ON s1.data_key FROM reader")
	s := existing(strings.Replace(url, "weir@", "reader@", 1))
	if s.Note() == "" {
		t.Error("no note says that the database cannot be written")
	}
	if err := s.PutFlow(t.Context(), "g", []byte("{}")); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("a write: %v", err)
	}
	checkCommits(t, s, "r", 1)
}

func TestAServerThatLosesCommitsIsRefused(t *testing.T) {
	for _, setting := range []string{"synchronous_commit=off", "fsync=off"} {
		server := pgtest.Start(t, setting)
		name, _, _ := strings.Cut(setting, "=")
		_, err := Open(t.Context(), server.Schema(t), Options{})
		if !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

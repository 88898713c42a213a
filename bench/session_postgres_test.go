//go:build unix

package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/store/postgres"
	"github.com/weir-run/weir/store/sqlite"
)

// BenchmarkTurnOfStores is a round of a session of 10 and of 10,000 messages on SQLite and on PostgreSQL, in turns, so
// that what else the machine does is the same for all.
func BenchmarkTurnOfStores(b *testing.B) {
	server := pgtest.Start(b)
	lengths := []int{10, 10_000}
	var sessions []*sessionBench
	var names []string
	for _, n := range lengths {
		for name, open := range map[string]func() (weir.Store, error){
			"sqlite": func() (weir.Store, error) {
				return sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "weir.db"), sqlite.Options{})
			},
			"postgres": func() (weir.Store, error) {
				return postgres.Open(b.Context(), server.Schema(b), postgres.Options{})
			},
		} {
			st, err := open()
			if err != nil {
				b.Fatal(err)
			}
			sessions = append(sessions, &sessionBench{})
			sessions[len(sessions)-1].fillOn(b, st, n)
			names = append(names, fmt.Sprintf("ms/%s-%d", name, n))
		}
	}
	before := tableSizes(b, server)
	for n := 0; b.Loop(); n++ {
		for i, t := range sessions {
			if n%5 == 0 && i < len(sessions)/2 {
				t.reopen(b) // 10 messages at most
			}
			t.round(b)
		}
	}
	for i, t := range sessions {
		if err := t.w.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(t.medianRound(), names[i])
	}
	for table, size := range tableSizes(b, server) { // order: a log
		if more := size - before[table]; more > 0 {
			b.Logf("%s: %d bytes a round, indexes included", table, more/int64(b.N*len(lengths)))
		}
	}
}

// tableSizes returns the bytes of the tables of all schemas of a server, by name.
func tableSizes(b *testing.B, server *pgtest.Server) map[string]int64 {
	b.Helper()
	out := map[string]int64{}
	rows := server.SQL(b, "SELECT relname || ' ' || sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace::regnamespace::text LIKE 's%' GROUP BY relname")
	for line := range strings.SplitSeq(rows, "\n") {
		name, size, _ := strings.Cut(line, " ")
		out[name], _ = strconv.ParseInt(size, 10, 64)
	}
	return out
}

// fillOn has a session of about so many messages in a store, and stays open for more rounds.
func (t *sessionBench) fillOn(b *testing.B, st weir.Store, messages int) {
	b.Helper()
	var err error
	if t.w, err = weir.Open(weir.Options{Store: st, Providers: map[string]weir.Provider{"answering": &answerModel{}}}); err != nil {
		b.Fatal(err)
	}
	parse := func(more string) *weir.Flow {
		f, err := t.w.Parse("talk.yaml", fmt.Appendf(nil, sessionFlow, more))
		if err != nil {
			b.Fatal(err)
		}
		return f
	}
	t.f = parse("")
	if messages >= 1000 {
		t.open(b, parse(fillNode()))
		for n := 0; n < messages; {
			sendMessage(b, t.s)
			info, err := t.s.Info(b.Context())
			if err != nil || info.Length == n {
				b.Fatalf("%+v %v", info, err)
			}
			n = info.Length
		}
	}
	t.open(b, t.f)
}

func (t *sessionBench) open(b *testing.B, f *weir.Flow) {
	b.Helper()
	s, err := t.w.Session(b.Context(), f, weir.SessionOptions{User: "u", Thread: "t"})
	if err != nil {
		b.Fatal(err)
	}
	t.s = s
}

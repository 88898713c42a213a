package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store/sqlite"
)

// parsedAgain counts the statements that a connection parsed which it had parsed before.
var parsedAgain atomic.Int64

const countingDriver = "sqlite-counting"

var registerCounting = sync.OnceFunc(func() {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	sql.Register(countingDriver, parsingDriver{db.Driver()})
})

// parsingDriver counts what its connections parse.
type parsingDriver struct{ driver.Driver }

func (d parsingDriver) Open(name string) (driver.Conn, error) {
	c, err := d.Driver.Open(name)
	if err != nil {
		return nil, err
	}
	return &parsingConn{sqliteConn: c.(sqliteConn), known: map[string]bool{}}, nil
}

// sqliteConn is what connections of the driver can do.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type parsingConn struct {
	sqliteConn
	known map[string]bool // a connection is used by one goroutine at a time
}

func (c *parsingConn) parse(query string) {
	if c.known[query] {
		parsedAgain.Add(1)
	}
	c.known[query] = true
}

func (c *parsingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.parse(query)
	return c.sqliteConn.PrepareContext(ctx, query)
}

func (c *parsingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.parse(query)
	return c.sqliteConn.ExecContext(ctx, query, args)
}

func (c *parsingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.parse(query)
	return c.sqliteConn.QueryContext(ctx, query, args)
}

// openCounted opens a Weir whose statements are counted.
func openCounted(t *testing.T, path string, o weir.Options) *weir.Weir {
	t.Helper()
	registerCounting()
	s, err := sqlite.Open(t.Context(), path, sqlite.WithDriver(sqlite.Options{Readers: 1}, countingDriver))
	if err != nil {
		t.Fatal(err)
	}
	o.Store = s
	return weirkit.Open(t, o)
}

// cost is what a process has done to a database.
type cost struct {
	parsedAgain, commits int64
	allocations, bytes   uint64
	systemCalls          int64  // that read or write a file; 0 where the system does not count them
	log                  uint64 // salts of the write-ahead log, which change when it starts again
}

func measure(t *testing.T, path string) cost {
	t.Helper()
	c := cost{parsedAgain: parsedAgain.Load()}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c.allocations, c.bytes = m.Mallocs, m.TotalAlloc
	c.systemCalls = fileCalls()
	c.commits, c.log = commitFrames(t, path)
	return c
}

// fileCalls returns how many system calls of this process have read or written, by what Linux counts.
func fileCalls() (n int64) {
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		name, count, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name == "syscr" || name == "syscw" {
			calls, _ := strconv.ParseInt(count, 10, 64)
			n += calls
		}
	}
	return n
}

// commitFrames counts the transactions in the write-ahead log of a database, each of which is
// one fsync at synchronous=FULL: the frames that say how large the database is after them. See
// https://sqlite.org/fileformat2.html#walformat.
func commitFrames(t *testing.T, path string) (n int64, salts uint64) {
	t.Helper()
	b, err := os.ReadFile(path + "-wal")
	if err != nil || len(b) < 32 {
		t.Fatalf("log of %d bytes: %v", len(b), err)
	}
	page, salts := int(binary.BigEndian.Uint32(b[8:])), binary.BigEndian.Uint64(b[16:])
	for b = b[32:]; len(b) >= 24+page && binary.BigEndian.Uint64(b[8:]) == salts; b = b[24+page:] {
		if binary.BigEndian.Uint32(b[4:]) > 0 {
			n++
		}
	}
	return n, salts
}

// perUnit returns the cost of one of n units between two measurements.
func perUnit(t *testing.T, before, after cost, n int) (parsed, commits, allocations float64) {
	t.Helper()
	if before.log != after.log {
		t.Fatal("the log started anew meanwhile")
	}
	return float64(after.parsedAgain-before.parsedAgain) / float64(n), float64(after.commits-before.commits) / float64(n),
		float64(after.allocations-before.allocations) / float64(n)
}

// fillingFlow returns a flow for sessions whose rounds also append this many messages.
func fillingFlow(messages int) string {
	text := "weir: 1\nname: talk\ncontext: {model: echo/m, budget: {window: 8000, reserve: 1000}}\n" +
		"inputs: {message: {type: text, required: true}}\nnodes:\n" +
		"  answer: {type: llmRequest, in: {message: '{{ run.inputs.message }}'}}\n"
	if messages == 0 {
		return text
	}
	return text + "  fill: {type: injectMessages, after: answer, with: {messages: [" +
		strings.Repeat("{role: user, text: When does the harbour office open}, {role: assistant, text: At eight in the morning}, ", messages/2) + "]}}\n"
}

// background is what the work of a process besides its rounds may add to the counts of one,
// such as the renewal of leases every few seconds. One statement or commit more in each
// round is more than that.
const background = 0.5

// TestRoundParsesNothingAgainAndTakesThreeCommits counts what a round of a session does: in a
// short session and in one of more messages than its view takes.
func TestRoundParsesNothingAgainAndTakesThreeCommits(t *testing.T) {
	const rounds, maxAllocations, maxBytes, maxCalls = 20, 1800, 240_000, 80
	for _, filled := range []int{0, 3000} {
		t.Run(fmt.Sprint(filled), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "weir.db")
			w := openCounted(t, path, weir.Options{Providers: map[string]weir.Provider{"echo": &weirkit.RepeatingModel{}}})
			s := weirkit.OpenSession(t, w, weirkit.Parse(t, w, fillingFlow(filled)))
			weirkit.SendAndWait(t, s, "hello", weir.SendOptions{})
			s = weirkit.OpenSession(t, w, weirkit.Parse(t, w, fillingFlow(0)))
			for range 5 {
				weirkit.SendAndWait(t, s, "hello", weir.SendOptions{})
			}
			before := measure(t, path)
			for range rounds {
				turn, err := s.Send(t.Context(), "hello again", weir.SendOptions{})
				if err != nil {
					t.Fatal(err)
				}
				<-turn.Done()
			}
			after := measure(t, path)
			parsed, commits, allocations := perUnit(t, before, after, rounds)
			bytes := (after.bytes - before.bytes) / rounds
			calls := (after.systemCalls - before.systemCalls) / rounds
			t.Logf("a round: %.2f statements parsed again, %.2f commits, %.0f allocations of %d bytes, %d system calls", parsed, commits, allocations, bytes, calls)
			if parsed > background || commits > 3+background || allocations > maxAllocations || bytes > maxBytes || calls > maxCalls {
				t.Errorf("none, at most 3, at most %d of %d bytes, and at most %d are allowed", maxAllocations, maxBytes, maxCalls)
			}
		})
	}
}

// chainOf is n nodes, each after the one before; the first is after a0.
func chainOf(n int, node string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ", a%d: {%s, after: a%d}", i+1, node, i)
	}
	return b.String()
}

// TestShortRunTakesTwoCommitsOrOne counts what a run does that completes without waiting: with
// a node whose start must be durable before it runs, and without one.
func TestShortRunTakesTwoCommitsOrOne(t *testing.T) {
	const runs = 20
	for _, c := range []struct {
		name, nodes    string
		commits        float64
		maxAllocations float64
	}{
		{"nothing outside", "a: {type: pure}, b: {type: pure, after: a}, c: {type: pure, after: b}", 1, 700},
		{"transforms, one of which writes the state", `a: {type: transform, with: {expr: "1 + 1"}}, b: {type: transform, after: a, with: {state: {n: "3 + 4"}}}, ` +
			`c: {type: transform, after: b, with: {expr: "state.n + 1"}}`, 1, 900},
		{"a model call between", "a: {type: pure}, b: {type: llmRequest, after: a, in: {message: hello}}, c: {type: pure, after: b}", 2, 1400},
		// The start of a node joins the commit that completes the node before it.
		{"ten nodes that may have effects", "a0: {type: spawn}" + chainOf(9, "type: spawn"), 11, 1400},
		{"three model calls", "a0: {type: llmRequest, in: {message: hello}}" + chainOf(2, "type: llmRequest, in: {message: again}"), 4, 2600},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "weir.db")
			w := openCounted(t, path, weir.Options{
				Providers: map[string]weir.Provider{"echo": &weirkit.RepeatingModel{}},
				Types: []weir.Type{weir.Func("pure", func(weir.Ctx, struct{}) (struct{}, error) {
					return struct{}{}, nil
				}).Inline().Pure(), weir.Func("spawn", func(weir.Ctx, struct{}) (struct{}, error) {
					return struct{}{}, nil
				})},
			})
			f := weirkit.Parse(t, w, "weir: 1\nname: short\ncontext: {model: echo/m}\nnodes: {"+c.nodes+"}\n")
			run := func(n int) {
				for i := range n {
					r, err := w.Start(t.Context(), f, weir.Start{ID: fmt.Sprint("run", n, "-", i)})
					if err == nil {
						_, err = r.Wait(t.Context())
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			run(5)
			before := measure(t, path)
			run(runs)
			parsed, commits, allocations := perUnit(t, before, measure(t, path), runs)
			t.Logf("a run: %.2f statements parsed again, %.2f commits, %.0f allocations", parsed, commits, allocations)
			if parsed > background || commits < c.commits || commits > c.commits+background || allocations > c.maxAllocations {
				t.Errorf("none, %v and at most %v are expected", c.commits, c.maxAllocations)
			}
		})
	}
}

package bench

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store/sqlite"
)

// BenchmarkLargeValue passes one text of 20 MB through the ports of ten nodes, each of which
// writes a commit, and reports what that takes in multiples of the text: bytes stored and
// bytes allocated. Storing the text alone, in one raw commit, is the measure of time.
func BenchmarkLargeValue(b *testing.B) {
	const size = 20 << 20
	text := strings.Repeat("All of the harbour's ledgers. ", size/30)
	for _, c := range []struct {
		name, in string
		value    any
	}{
		{"text", "text", text},
		{"object", "object", map[string]any{"kind": "ledger", "text": text}},
		{"list", "list", strings.SplitAfter(text, ".")},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				passValueOnce(b, c.in, c.value, size)
			}
		})
	}
}

// relayFlow passes its input through ten nodes to its output.
func relayFlow(typ string) []byte {
	var nodes strings.Builder
	from := "run.inputs.given"
	for i := range 10 {
		fmt.Fprintf(&nodes, "  n%d: {type: spawn, in: {in: '{{ %s }}'}}\n", i, from)
		from = fmt.Sprintf("n%d.out", i)
	}
	return fmt.Appendf(nil, "weir: 1\nname: relay\ninputs: {given: {type: %s, required: true}}\nnodes:\n%soutputs: {out: '{{ n9.out }}'}\n", typ, nodes.String())
}

func passValueOnce(b *testing.B, typ string, value any, size int) {
	b.Helper()
	b.StopTimer()
	path := filepath.Join(b.TempDir(), "weir.db")
	s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w := open(b, weir.Options{Store: s})
	f, err := w.Parse("relay.yaml", relayFlow(typ))
	if err != nil {
		b.Fatal(err)
	}
	raw := openRaw(b, sqlite.SyncFull)
	body := strings.Repeat("x", size)
	rawStart := cpuTime()
	if _, err := raw.db.ExecContext(b.Context(), "INSERT INTO t VALUES (0, ?)", body); err != nil {
		b.Fatal(err)
	}
	rawTook := cpuTime() - rawStart
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpuTime()
	b.StartTimer()
	run, err := w.Start(b.Context(), f, weir.Start{Inputs: map[string]any{"given": value}})
	if err != nil {
		b.Fatal(err)
	}
	if r, err := run.Wait(b.Context()); err != nil || r.Status != engine.Completed {
		b.Fatalf("%v %v", r, err)
	}
	b.StopTimer()
	took := cpuTime() - start
	runtime.ReadMemStats(&after)
	b.ReportMetric(storedBytes(b, path)/float64(size), "x-stored")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(size), "x-allocated")
	b.ReportMetric(took.Seconds()*1e3, "cpu-ms")
	b.ReportMetric(float64(took)/float64(rawTook), "x/raw")
	b.StartTimer()
}

// storedBytes returns the size of all values and commits of a database.
func storedBytes(b *testing.B, path string) (n float64) {
	b.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.QueryRowContext(b.Context(), `SELECT (SELECT total(length(CAST(body AS BLOB))) FROM value)
		+ (SELECT total(length(CAST(body AS BLOB))) FROM value_part) + (SELECT total(length(CAST(events AS BLOB))) FROM run_commit)`).Scan(&n)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

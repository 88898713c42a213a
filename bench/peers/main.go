// Command peers runs the same graphs in Weir and in other engines, in one
// process and in turns, and prints what a node costs in each with the ratio to
// Weir. It is a module of its own so that the product depends on none of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-run/weir/store/sqlite"
)

func main() {
	rounds := flag.Int("rounds", 7, "rounds; the table shows medians")
	each := flag.Duration("each", 300*time.Millisecond, "time for each contender in a round")
	only := flag.String("only", "", "only tables whose name contains this")
	postgres := flag.String("postgres", "", "URL of an empty PostgreSQL database, for the durable chains on it")
	flag.Parse()
	if err := run(os.Stdout, *rounds, *each, *only, *postgres); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(w io.Writer, rounds int, each time.Duration, only, postgres string) error {
	fmt.Fprintf(w, "%s, %d cores, medians of %d rounds\n", runtime.Version(), runtime.GOMAXPROCS(0), rounds)
	versions(w)
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	mergeEino()
	for _, t := range tables(dir, postgres) {
		if !strings.Contains(t.shape.name, only) {
			continue
		}
		results, err := measure(ctx, t.shape, t.contenders, rounds, each)
		if err != nil {
			return err
		}
		print(w, t.shape.name, results)
	}
	if !strings.Contains("conversation", only) {
		return nil
	}
	return conversations(ctx, w, []int{10, 100, 300})
}

// table is one shape and who runs it.
type table struct {
	shape      shape
	contenders []contender
}

// tables lists what is measured, with files in dir, and in a PostgreSQL database unless its URL is "".
func tables(dir, postgres string) []table {
	var all []table
	for _, s := range []shape{chain(10), chain(1000), fan(1000), lattice(30)} {
		runs := int64(200_000 / s.nodes)
		all = append(all, table{s, slices.Concat([]contender{
			{"weir, inline nodes", weirOn(true, true, runs, inMemory)},
			{"weir, a goroutine a node", weirOn(true, false, runs, inMemory)},
		}, einoModes(), []contender{{"adk workflow", adk}, {"trpc-agent-go graph", trpc}})})
	}
	for _, runs := range []int{1, 64} {
		all = append(all, table{durable(100, runs), []contender{
			{"weir, SQLite FULL", weirOn(false, false, 1<<40, onDisk(dir, sqlite.SyncFull))},
			{"raw one-row commits, FULL", rawCommits(dir)},
			{"weir, SQLite NORMAL", weirOn(false, false, 1<<40, onDisk(dir, sqlite.SyncNormal))},
			{"dbos, SQLite as it comes (NORMAL)", dbosChains("sqlite:" + filepath.Join(dir, "dbos"))},
		}})
		if postgres != "" {
			s := durable(100, runs)
			s.name += ", PostgreSQL"
			all = append(all, table{s, []contender{
				{"weir, PostgreSQL", weirOn(false, false, 1<<40, onPostgres(postgres, fmt.Sprint("weir", runs)))},
				{"raw one-row commits, PostgreSQL", rawPostgres(postgres)},
				{"dbos, PostgreSQL", dbosChains(postgres)},
			}})
		}
	}
	return all
}

// versions prints the versions of the peers this binary is built with.
func versions(w io.Writer) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return
	}
	for _, m := range info.Deps {
		switch m.Path {
		case "github.com/cloudwego/eino", "google.golang.org/adk/v2", "github.com/dbos-inc/dbos-transact-golang", "trpc.group/trpc-go/trpc-agent-go":
			fmt.Fprintf(w, "%s %s\n", m.Path, m.Version)
		}
	}
}

// print writes one table; ratios are to its first row.
func print(w io.Writer, name string, results []result) {
	fmt.Fprintf(w, "\n%s\n", name)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tus/node\tallocs/node\tB/node\tratio\t")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%.2f\t%.1f\t%.0f\t%.1fx\t\n", r.name, r.nanos/1e3, r.allocs, r.bytes, r.nanos/results[0].nanos)
	}
	t.Flush()
}

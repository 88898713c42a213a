package files_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir/internal/shareddata"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/files"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

// pythons lists interpreters that have networkx: the first on the path, and
// Debian's, whose package is older.
func pythons(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, p := range []string{"python3", "/usr/bin/python3"} {
		path, err := exec.LookPath(p)
		if err != nil {
			continue
		}
		if exec.Command(path, "-c", "import networkx").Run() == nil {
			out = append(out, path)
		}
	}
	if len(out) == 0 {
		t.Skip("no python3 here has networkx (Debian: apt-get install python3-networkx)")
	}
	return out
}

// TestNetworkxReadsTheFiles holds the files to node_link_graph with nothing but
// its defaults, and reads back what node_link_data makes of them.
func TestNetworkxReadsTheFiles(t *testing.T) {
	t.Parallel()
	for _, python := range pythons(t) {
		t.Run(strings.ReplaceAll(python, "/", "_"), func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			s := files.New(root, files.Options{NoSync: true})
			want := store(t, s)
			out, err := exec.Command(python, "testdata/check_networkx.py", root).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			version, seen, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
			if seen != want {
				t.Errorf("networkx %s saw %s files, nodes and edges, want %s", version, seen, want)
			}
			t.Logf("networkx %s: %s files, nodes, edges", version, seen)
			readBack(t, root, s)
		})
	}
}

// store fills a storage with real conversations where they are there, and with
// a sample, and returns how many files, nodes and edges that are.
func store(t *testing.T, s trajectory.Storage) string {
	t.Helper()
	n := []int{0, 0, 0}
	count := func(r trajectory.Record) {
		n[0], n[1], n[2] = n[0]+1, n[1]+len(r.Nodes), n[2]+len(r.Edges)
	}
	for _, r := range []trajectory.Record{
		trajectorytest.Sample(t, trajectory.Key{User: "ann/bob", Session: "s 1", Round: 12, Sub: 3}, 3),
		trajectory.Record{Key: trajectory.Key{Session: "empty", Round: 1}}.Clone(),
	} {
		if err := s.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		count(r)
	}
	if _, err := os.Stat(shareddata.Path(t, shareddata.Airline)); errors.Is(err, fs.ErrNotExist) && os.Getenv("CI") == "" {
		t.Log("the shared data is missing: without the airline conversations")
		return fmt.Sprint(n[0], n[1], n[2])
	}
	for _, c := range trajectorytest.Airline(t)[:20] {
		trajectorytest.Record(t, s, c.ID, c.Messages, func(r *trajectory.Recorder) { count(r.Record()) })
	}
	return fmt.Sprint(n[0], n[1], n[2])
}

// readBack puts what networkx wrote in the place of what we wrote: nodes and
// edges are the same, in whatever order.
func readBack(t *testing.T, root string, s *files.Storage) {
	t.Helper()
	keys, err := s.List(t.Context(), trajectory.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		before, err := s.Load(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(s.Path(k)+".again", s.Path(k)); err != nil {
			t.Fatal(err)
		}
		after, err := s.Load(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		edges := map[trajectory.Edge]bool{}
		for _, e := range after.Edges {
			edges[e] = true
		}
		for _, e := range before.Edges {
			if !edges[e] {
				t.Errorf("%s: %v was lost", k, e)
			}
		}
		after.Edges = before.Edges
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%s changed on its way through networkx", k)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(root, "*", "*", "*.again")); len(left) > 0 {
		t.Errorf("networkx read files that are not listed: %v", left)
	}
}

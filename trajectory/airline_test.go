package trajectory_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/files"
	"github.com/weir-run/weir/trajectory/tables"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

// counts are taken straight from the published JSON, without any code of ours.
type counts struct {
	queries, texts, answers, calls int
	tools                          int // distinct names in each round
}

func count(t *testing.T, raw []byte) counts {
	t.Helper()
	var messages []map[string]any
	if err := json.Unmarshal(raw, &messages); err != nil {
		t.Fatal(err)
	}
	var c counts
	var tools map[any]bool
	for _, m := range messages {
		calls, _ := m["tool_calls"].([]any)
		switch {
		case m["role"] == "user":
			c.queries++
			tools = map[any]bool{}
		case m["role"] == "assistant" && len(calls) == 0:
			c.texts++
		case m["role"] == "assistant":
			c.answers++
		}
		for _, call := range calls {
			c.calls++
			name := call.(map[string]any)["function"].(map[string]any)["name"]
			if !tools[name] {
				tools[name] = true
				c.tools++
			}
		}
	}
	return c
}

func TestAllAirlineConversationsAsSessionsOfRounds(t *testing.T) {
	t.Parallel()
	root, second := t.TempDir(), t.TempDir()
	quick := files.Options{NoSync: true}
	one, rows, two := files.New(root, quick), tables.New(tables.NewMemory()), files.New(second, quick)
	all := trajectorytest.Airline(t)
	for _, c := range all {
		trajectorytest.Record(t, one, c.ID, c.Messages, func(r *trajectory.Recorder) {
			if connected(r.Graph()) != 1 {
				t.Errorf("%s: a round is not joined to the one before it while it is recorded", r.Key())
			}
		})
		checkGraph(t, one, c)
		checkReplay(t, one, c)
	}
	for _, step := range []struct{ to, from trajectory.Storage }{{rows, one}, {two, rows}} {
		n, err := trajectory.CopyRounds(t.Context(), step.to, step.from, trajectory.Filter{})
		if err != nil || n < len(all) {
			t.Fatalf("copied %d rounds, %v", n, err)
		}
	}
	if n := equalFolders(t, root, second) + equalFolders(t, second, root); n < 4*len(all) {
		t.Errorf("only %d files were compared", n)
	}
	checkReplay(t, two, all[7])
}

func checkGraph(t *testing.T, s trajectory.Storage, c trajectorytest.Conversation) {
	t.Helper()
	g, err := trajectory.LoadGraph(t.Context(), s, "customer", c.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !g.Acyclic() || !sortable(g) {
		t.Errorf("%s: there is a cycle", c.ID)
	}
	if n := connected(g); n != 1 {
		t.Errorf("%s: the graph is in %d pieces", c.ID, n)
	}
	if n := unreached(g); n > 0 {
		t.Errorf("%s: %d nodes cannot be reached from the first query", c.ID, n)
	}
	counted := count(t, c.Raw)
	types, relations := map[trajectory.Type]int{}, map[trajectory.Relation]int{}
	for _, n := range g.Nodes {
		types[n.Type]++
	}
	for _, e := range g.Edges {
		relations[e.Relationship]++
	}
	want := map[trajectory.Type]int{
		trajectory.Query: counted.queries, trajectory.State: counted.texts,
		trajectory.Action: counted.answers + counted.calls, trajectory.Tool: counted.tools,
	}
	for _, typ := range trajectory.Types() {
		if types[typ] != want[typ] {
			t.Errorf("%s: %d nodes of the type %s, want %d", c.ID, types[typ], typ, want[typ])
		}
	}
	// Each answer of these conversations makes one call, so that each answer and
	// each conclusion follows from one node.
	if relations[trajectory.Triggers] != counted.answers || relations[trajectory.HasConclusion] != counted.texts ||
		relations[trajectory.Generates] != counted.calls || relations[trajectory.RefersTo] != counted.calls ||
		relations[trajectory.ContinuesTo] < counted.queries-1 {
		t.Errorf("%s: the edges are %v, counted were %+v", c.ID, relations, counted)
	}
	if active := g.Active(); connected(active) != 1 || len(active.Nodes) != counted.queries+counted.texts+counted.answers+counted.calls {
		t.Errorf("%s: the active branches have %d nodes in %d pieces", c.ID, len(active.Nodes), connected(active))
	}
}

func checkReplay(t *testing.T, s trajectory.Storage, c trajectorytest.Conversation) {
	t.Helper()
	var kept []convo.Message
	rounds := count(t, c.Raw).queries
	keys, err := s.List(t.Context(), trajectory.AgentFilter("customer", c.ID, 0))
	if err != nil || len(keys) != rounds {
		t.Errorf("%s: %d rounds are stored, %v, want %d", c.ID, len(keys), err, rounds)
	}
	for _, k := range keys {
		r, err := s.Load(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, r.Messages...)
	}
	if !reflect.DeepEqual(kept, c.Messages) {
		t.Errorf("%s: the messages that are stored differ from those that were said", c.ID)
	}
	g, err := trajectory.LoadGraph(t.Context(), s, "customer", c.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	said := c.Messages[1:] // without the system's
	if got := g.Replay(); !reflect.DeepEqual(got, said) {
		t.Errorf("%s: %d messages are replayed from the graph, %d were said, and they differ", c.ID, len(got), len(said))
	}
}

// equalFolders compares each file below one folder with that below the other.
func equalFolders(t *testing.T, one, two string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(one, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		below, _ := filepath.Rel(one, path)
		a, err := os.ReadFile(path)
		b, err2 := os.ReadFile(filepath.Join(two, below))
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs", below)
		}
		return errors.Join(err, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

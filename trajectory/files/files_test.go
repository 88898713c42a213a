package files_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/files"
	"github.com/weir-run/weir/trajectory/tables"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	trajectorytest.Run(t, func(t *testing.T) trajectory.Storage {
		t.Helper()
		return files.New(filepath.Join(t.TempDir(), "made", "on", "use"), files.Options{})
	})
}

func TestFilesAndTablesTogether(t *testing.T) {
	t.Parallel()
	trajectorytest.Run(t, func(t *testing.T) trajectory.Storage {
		t.Helper()
		return trajectory.Mirrored{First: tables.New(tables.NewMemory()), Second: files.New(t.TempDir(), files.Options{NoSync: true})}
	})
}

var ann = trajectory.Key{User: "ann", Session: "s1", Round: 2, Sub: 3}

// saved returns a storage in a folder of its own with one round, and its two files.
func saved(t *testing.T) (s *files.Storage, graph, meta string) {
	t.Helper()
	root := t.TempDir()
	s = files.New(root, files.Options{})
	if err := s.Save(t.Context(), trajectorytest.Sample(t, ann, 1)); err != nil {
		t.Fatal(err)
	}
	return s, filepath.Join(root, "ann", "s1", "Run2_Sub3.json"), filepath.Join(root, "ann", "s1", "Run2_Sub3.meta.json")
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheFilesHaveTheNamesAndKeysThatAreDocumented(t *testing.T) {
	t.Parallel()
	_, graph, meta := saved(t)
	var g struct {
		Directed, Multigraph bool
		Graph                map[string]any
		Nodes, Links, Edges  []map[string]any
	}
	if err := json.Unmarshal(read(t, graph), &g); err != nil {
		t.Fatal(err)
	}
	if !g.Directed || g.Multigraph || g.Graph["session"] != "s1" || len(g.Nodes) == 0 || len(g.Links) != len(g.Edges) {
		t.Errorf("the graph is %+v", g)
	}
	if g.Nodes[0]["id"] != "Query(query00000)" || g.Nodes[0]["type"] != "Query" {
		t.Errorf("the first node is %v", g.Nodes[0])
	}
	if e := g.Links[0]; e["source"] != "Query(query00000)" || e["target"] != "Action(action00000)" || e["relationship"] != "triggers" {
		t.Errorf("the first edge is %v", e)
	}
	var m map[string]any
	if err := json.Unmarshal(read(t, meta), &m); err != nil {
		t.Fatal(err)
	}
	if m["initial_pt"] != "Query(query00000)" || len(m["current_pt"].([]any)) != 1 || len(m["messages"].([]any)) != 7 {
		t.Errorf("the metadata are %v", m)
	}
}

func TestFilesArePrivateAndLeaveNothingBeside(t *testing.T) {
	t.Parallel()
	_, graph, _ := saved(t)
	entries, err := os.ReadDir(filepath.Dir(graph))
	if err != nil || len(entries) != 2 {
		t.Errorf("the session's folder holds %v, %v", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
}

func TestANameThatJSONCannotHoldIsRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := files.New(root, files.Options{})
	for _, k := range []trajectory.Key{{User: "a\xff", Session: "s", Round: 1}, {Session: "s\xff", Round: 1}} {
		if err := s.Save(t.Context(), trajectory.Record{Key: k}); !errors.Is(err, trajectory.ErrKey) || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("got %v, want ErrKey", err)
		}
	}
	if left := below(t, root); len(left) > 0 {
		t.Errorf("there are %v", left)
	}
}

func TestRoundWithoutMetadataIsIgnored(t *testing.T) {
	t.Parallel()
	s, _, meta := saved(t)
	if err := os.Remove(meta); err != nil {
		t.Fatal(err)
	}
	keys, err := s.List(t.Context(), trajectory.Filter{})
	if err != nil || len(keys) != 0 {
		t.Errorf("it is listed: %v, %v", keys, err)
	}
}

func TestGraphNewerThanItsMetadataLoads(t *testing.T) {
	t.Parallel()
	s, _, meta := saved(t)
	old := read(t, meta)
	newer := trajectorytest.Sample(t, ann, 4)
	if err := s.Save(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(meta, old, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := s.Load(t.Context(), ann)
	if err != nil || len(r.Nodes) != len(newer.Nodes) || len(r.Messages) >= len(newer.Messages) {
		t.Errorf("after a crash between the two files: %d nodes, %d messages, %v", len(r.Nodes), len(r.Messages), err)
	}
}

func TestDamagedFilesAreReportedWithTheirPath(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(string) string{
		"cut off":      func(s string) string { return s[:len(s)/2] },
		"empty":        func(string) string { return "" },
		"another type": func(s string) string { return strings.ReplaceAll(s, `"type":"Query"`, `"type":"Skill"`) },
		"an edge to nowhere": func(s string) string {
			return strings.ReplaceAll(s, "Action(action00002)\",\"rel", "Action(action00099)\",\"rel")
		},
		"another session":         func(s string) string { return strings.ReplaceAll(s, `"session":"s1"`, `"session":"s2"`) },
		"links and edges differ":  func(s string) string { return strings.Replace(s, "triggers", "generates", 1) },
		"edges of several graphs": func(s string) string { return strings.Replace(s, `"multigraph":false`, `"multigraph":true`, 1) },
		"a bridge":                func(s string) string { return strings.ReplaceAll(s, "has_conclusion", "continues_to") },
		"no graph attributes":     func(s string) string { return strings.Replace(s, `"graph":{"user"`, `"other":{"user"`, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, graph, _ := saved(t)
			before := string(read(t, graph))
			after := damage(before)
			if after == before {
				t.Fatal("the test damaged nothing")
			}
			if err := os.WriteFile(graph, []byte(after), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Load(t.Context(), ann); err == nil || !strings.Contains(err.Error(), graph) {
				t.Errorf("got %v, want an error with %s", err, graph)
			}
		})
	}
}

func TestEitherStorageRestoresTheOther(t *testing.T) {
	t.Parallel()
	one, graph, meta := saved(t)
	rows := tables.New(tables.NewMemory())
	other := files.New(t.TempDir(), files.Options{NoSync: true})
	for _, step := range []struct{ to, from trajectory.Storage }{{rows, one}, {other, rows}} {
		if n, err := trajectory.CopyRounds(t.Context(), step.to, step.from, trajectory.Filter{}); err != nil || n != 1 {
			t.Fatalf("copied %d, %v", n, err)
		}
	}
	again := other.Path(ann)
	if !bytes.Equal(read(t, graph), read(t, again)) {
		t.Errorf("the graph changed on its way:\n%s\n%s", read(t, graph), read(t, again))
	}
	if !bytes.Equal(read(t, meta), read(t, strings.TrimSuffix(again, ".json")+".meta.json")) {
		t.Error("the metadata changed on their way")
	}
}

package history_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// stateWriterType changes the state as its settings say, and fails the first time if they say so.
func stateWriterType() weir.Type {
	return weir.Func("scribble", func(ctx weir.Ctx, in struct{ Ops string }) (struct{ Text string }, error) {
		var ops []struct {
			Key   string
			Value any
			Op    string
		}
		if err := json.Unmarshal([]byte(in.Ops), &ops); err != nil {
			return struct{ Text string }{}, err
		}
		for _, o := range ops {
			switch o.Op {
			case "fail":
				if ctx.Info().Attempt == 1 {
					return struct{ Text string }{}, fmt.Errorf("not yet")
				}
			case "delete":
				ctx.State().Delete(o.Key)
			case "step":
				if err := ctx.Record(engine.Step{
					Number: 5, Name: "execution", Attempt: 1, Status: engine.StepSuccess, Code: "print(1)", Input: o.Value, Output: map[string]any{"is": o.Value},
					Model: "p/m", Usage: &engine.Usage{Input: 7, Output: 3, CostMicros: 1500}, Micros: 2500, Sandbox: "s1",
				}); err != nil {
					return struct{ Text string }{}, err
				}
			default:
				if err := ctx.State().Set(o.Key, o.Value); err != nil {
					return struct{ Text string }{}, err
				}
			}
		}
		return struct{ Text string }{"done"}, nil
	})
}

// randomWrites is a flow of nodes that write the state at random.
type randomWrites struct{ *rand.Rand }

func (s *randomWrites) value(depth int) any {
	switch s.IntN(9) {
	case 0:
		return nil
	case 1:
		return s.IntN(2) == 0
	case 2:
		return s.IntN(1000) - 500
	case 3:
		return float64(s.IntN(1000)) / 8
	case 4:
		return strings.Repeat("long {\"$v\":1} ", 1+s.IntN(300))
	case 5, 6:
		if depth > 0 {
			return map[string]any{"k": s.value(depth - 1), "a.b": s.value(depth - 1), "q\"uote": 1}
		}
	case 7:
		if depth > 0 {
			return []any{s.value(depth - 1), s.value(depth - 1)}
		}
	}
	return fmt.Sprint("t", s.IntN(100))
}

func (s *randomWrites) ops() string {
	var ops []map[string]any
	for range 1 + s.IntN(4) {
		switch s.IntN(10) {
		case 0:
			ops = append(ops, map[string]any{"op": "delete", "key": s.key()})
		case 1:
			ops = append(ops, map[string]any{"op": "step", "value": s.value(1)})
		case 2:
			ops = append(ops, map[string]any{"op": "fail"})
		case 3:
			ops = append(ops, map[string]any{"key": "list", "value": s.value(1)})
		case 4:
			ops = append(ops, map[string]any{"key": "sum", "value": s.IntN(50)}, map[string]any{"key": "low", "value": float64(s.IntN(99)) / 4})
		case 5:
			ops = append(ops, map[string]any{"key": "top", "value": s.IntN(50)}, map[string]any{"key": "all", "value": map[string]any{s.key(): s.value(1)}})
		default:
			ops = append(ops, map[string]any{"key": s.key(), "value": s.value(2)})
		}
	}
	data, _ := json.Marshal(ops)
	return string(data)
}

func (s *randomWrites) key() string {
	return []string{"a", "b", "a.b", "with \"quotes\"", "ключ", "$x"}[s.IntN(6)]
}

func (s *randomWrites) flow() string {
	nodes := map[string]any{}
	node := func() map[string]any {
		return map[string]any{"type": "scribble", "in": map[string]any{"ops": s.ops()}, "retry": map[string]any{"attempts": 2, "backoff": "1ms"}}
	}
	before := ""
	for i := range 3 + s.IntN(5) {
		id, n := fmt.Sprint("n", i), node()
		switch s.IntN(4) {
		case 0:
			body := map[string]any{"nodes": map[string]any{"do": node()}, "outputs": map[string]any{"result": "{{ do.text }}"}}
			n = map[string]any{"type": "forEach", "in": map[string]any{"items": []any{1, 2, 3}}, "with": map[string]any{"body": body}}
			if s.IntN(2) == 0 {
				n["isolation"] = "fork"
				body["nodes"] = map[string]any{"do": map[string]any{"type": "scribble", "in": map[string]any{
					"ops": `[{"key":"list","value":["x"]},{"key":"sum","value":1},{"op":"delete","key":"list"},{"key":"list","value":{"y":2}}]`,
				}}}
			}
		case 1:
			n = map[string]any{"type": "loop", "with": map[string]any{"max": 2, "body": map[string]any{
				"nodes": map[string]any{"do": node()}, "outputs": map[string]any{"v": "{{ do.text }}"},
			}}}
			if s.IntN(2) == 0 {
				n["isolation"] = "fork"
			}
		}
		if before != "" {
			n["after"] = before
		}
		nodes[id], before = n, id
	}
	f := map[string]any{
		"weir": 1, "name": "scribbles", "nodes": nodes, "state": map[string]any{
			"list": map[string]any{"reducer": "append", "initial": []any{}}, "all": map[string]any{"reducer": "merge"},
			"sum": map[string]any{"reducer": "sum"}, "top": map[string]any{"reducer": "max"}, "low": map[string]any{"reducer": "min"}, "a": map[string]any{"initial": 1},
		},
	}
	data, _ := json.Marshal(f)
	return string(data)
}

// viewRows returns the rows as the SQL views have them.
func viewRows(t *testing.T, db *sql.DB, run string) (rows []weirkit.WorkRow, steps int) {
	t.Helper()
	found, err := db.QueryContext(t.Context(), `SELECT node_id, coalesce(node_type, ''), status, coalesce(code_executed, ''), attempt,
		CAST(input_context AS TEXT), coalesce(CAST(output_result AS TEXT), '') FROM chain_of_work WHERE execution_id = $1 ORDER BY seq`, run)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		var r weirkit.WorkRow
		var before, after string
		if err := found.Scan(&r.Node, &r.Type, &r.Status, &r.Code, &r.Attempt, &before, &after); err != nil {
			t.Fatal(err)
		}
		r.Before = weirkit.PlainJSON(t, before)
		if after != "" {
			r.After = weirkit.PlainJSON(t, after)
		}
		rows = append(rows, r)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM chain_of_work_step WHERE execution_id = $1", run).Scan(&steps); err != nil {
		t.Fatal(err)
	}
	return rows, steps
}

func compareChains(t *testing.T, w *weir.Weir, db *sql.DB, run string) {
	t.Helper()
	want, steps := weirkit.ChainRows(t, w, run)
	got, n := viewRows(t, db, run)
	if len(got) != len(want) || n != steps {
		t.Fatalf("run %s: the view has %d rows and %d steps, want %d and %d", run, len(got), n, len(want), steps)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("run %s, row %d:\n view %.900v\n want %.900v", run, i+1, got[i], want[i])
		}
	}
}

func TestSQLViewsMatchChainOfWorkAPI(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	testSQLViews(t, s, db)
}

// testSQLViews compares the views of a database with the chains of random runs and of their forks.
func testSQLViews(t *testing.T, s store.Store, db *sql.DB) {
	t.Helper()
	w := weirkit.Open(t, weir.Options{Store: s, Types: []weir.Type{stateWriterType()}})
	seeds := uint64(25)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		x := &randomWrites{rand.New(rand.NewPCG(seed, 1))}
		f, err := w.Parse("f", []byte(x.flow()))
		if err != nil {
			t.Fatal(seed, err)
		}
		r := weirkit.RunToEnd(t, w, f)
		compareChains(t, w, db, r.Run)
		fork, _, err := w.Fork(t.Context(), r.Run, weir.ForkOptions{At: 3 + int64(x.IntN(20)), State: map[string]any{"b": "edited", "list": "more"}})
		if err != nil {
			continue
		}
		compareChains(t, w, db, weirkit.AnswerAll(t, w, fork).Run)
	}
}

package engine_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// scopedFlow has one key for each reducer in a scope, and one node that writes them.
func scopedFlow(scope string, reducers ...flow.Reducer) string {
	var keys strings.Builder
	for _, r := range reducers {
		fmt.Fprintf(&keys, "  %s: {scope: %s, reducer: %[1]s}\n", r, scope)
	}
	return "weir: 1\nname: counts\nstate:\n" + keys.String() + "nodes:\n  a: {type: step}\n  b: {type: step, after: a}\n"
}

// allReducers returns those that combine writes in any order.
func allReducers() []flow.Reducer {
	return []flow.Reducer{flow.ReduceSum, flow.ReduceMin, flow.ReduceMax, flow.ReduceAppend, flow.ReduceMerge}
}

const (
	startUser    = `run.started {"flow":"counts","fingerprint":"f","parallel":4,"user":"ada","userState":{"flow":"counts"},"state":{%s}}`
	startSession = `run.started {"flow":"counts","fingerprint":"f","parallel":4,"session":"s","state":{%s}}`
)

func TestUserOperationsReproduceTheValuesThatTheRunSaw(t *testing.T) {
	t.Parallel()
	const before = `"sum":2,"min":5,"max":5,"append":[1],"merge":{"a":1}`
	g := newGolden(t, "counts.yaml", scopedFlow("user", allReducers()...))
	g.send(fmt.Sprintf(startUser, before))
	none, err := g.run.UserChanges()
	expect(t, "operations of a run that wrote nothing", none, nil)
	expect(t, "error", err, nil)
	g.send(`node.completed {"node":"a","state":[{"key":"append","value":[2]},{"key":"max","value":9},{"key":"merge","value":{"b":{"c":[1]}}},{"key":"min","value":3},{"key":"sum","value":4}]}`)
	got, err := g.run.UserChanges()
	if err != nil || got == nil {
		t.Fatal(got, err)
	}
	expect(t, "owner", got.User+" "+got.Flow, "ada counts")
	expect(t, "operations", got.Changes, []engine.UserChange{
		{Key: "append", Value: []any{int64(2)}, Reducer: "append"},
		{Key: "max", Value: int64(9), Reducer: "max"},
		{Key: "merge", Value: map[string]any{"b": map[string]any{"c": []any{int64(1)}}}, Reducer: "merge"},
		{Key: "min", Value: int64(3), Reducer: "min"},
		{Key: "sum", Value: int64(4), Reducer: "sum"},
	})
	old := map[string]engine.Value{"sum": int64(2), "min": int64(5), "max": int64(5), "append": []any{int64(1)}, "merge": map[string]any{"a": int64(1)}}
	for i := range got.Changes {
		c := &got.Changes[i]
		v, there, err := engine.ApplyUserChange(old[c.Key], true, c.Reducer, c)
		want, _ := g.run.State().Get(c.Key)
		if err != nil || !there || !reflect.DeepEqual(v, want) {
			t.Errorf("%s: the store computes %v (%v), the run saw %v", c.Key, v, err, want)
		}
	}
	done := &engine.RunCompleted{UserState: got}
	expect(t, "operations of a commit", engine.CompletedUserState([]engine.Event{&engine.NodeStarted{}, done}), got)
	expect(t, "operations of a commit in which no run completes", engine.CompletedUserState([]engine.Event{&engine.NodeStarted{}}), nil)
}

func TestUserOperationsDeleteReplaceAndSetFirstValues(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		before, writes string
		want           []engine.UserChange
	}{
		"a first value": {``, `{"key":"sum","value":4}`, []engine.UserChange{{Key: "sum", Value: int64(4), Reducer: "sum"}}},
		"a removed value": {
			`"sum":4`, `{"key":"sum","delete":true}`,
			[]engine.UserChange{{Key: "sum", Delete: true, Reducer: "sum"}},
		},
		"a value removed that was not there": {``, `{"key":"sum","delete":true}`, nil},
		"a shorter list":                     {`"append":[1,2]`, `{"key":"append","delete":true},{"key":"append","value":[1]}`, []engine.UserChange{{Key: "append", Value: []any{int64(1)}, Replace: true, Reducer: "append"}}},
		"another list":                       {`"append":[1,{"a":1}]`, `{"key":"append","delete":true},{"key":"append","value":[1,{"a":2},3]}`, []engine.UserChange{{Key: "append", Value: []any{int64(1), map[string]any{"a": int64(2)}, int64(3)}, Replace: true, Reducer: "append"}}},
		"a member less":                      {`"merge":{"a":1,"b":2}`, `{"key":"merge","delete":true},{"key":"merge","value":{"a":1}}`, []engine.UserChange{{Key: "merge", Value: map[string]any{"a": int64(1)}, Replace: true, Reducer: "merge"}}},
		"a larger minimum":                   {`"min":1`, `{"key":"min","delete":true},{"key":"min","value":2}`, []engine.UserChange{{Key: "min", Value: int64(2), Replace: true, Reducer: "min"}}},
		"a fraction":                         {`"sum":1`, `{"key":"sum","value":0.5}`, []engine.UserChange{{Key: "sum", Value: 0.5, Reducer: "sum"}}},
		"the same value":                     {`"merge":{"a":[1]}`, `{"key":"merge","value":{"a":[1]}}`, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGolden(t, "counts.yaml", scopedFlow("user", allReducers()...))
			g.send(fmt.Sprintf(startUser, c.before))
			for i, write := range strings.Split(strings.ReplaceAll(c.writes, "},{\"key", "}|{\"key"), "|") {
				g.send(fmt.Sprintf(`node.completed {"node":"%c","state":[%s]}`, 'a'+i, write))
			}
			got, err := g.run.UserChanges()
			if err != nil {
				t.Fatal(err)
			}
			var changes []engine.UserChange
			if got != nil {
				changes = got.Changes
			}
			expect(t, "operations", changes, c.want)
		})
	}
}

func TestRunsWithoutUserStateAndForksWriteNone(t *testing.T) {
	t.Parallel()
	g := newGolden(t, "counts.yaml", scopedFlow("user", flow.ReduceSum))
	g.send(`run.started {"flow":"counts","fingerprint":"f","parallel":4}`, `node.completed {"node":"a","state":[{"key":"sum","value":4}]}`)
	got, err := g.run.UserChanges()
	expect(t, "operations", got, nil)
	expect(t, "error", err, nil)
}

func TestSumsOfAUserAreTheSameInEveryOrderOfRuns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.Int64Range(-1000, 1000), 1, 8).Draw(t, "numbers")
		order := rapid.Permutation(numbers).Draw(t, "order")
		total := func(list []int64) (v engine.Value) {
			known := false
			for _, n := range list {
				var err error
				c := &engine.UserChange{Key: "sum", Value: n, Initial: int64(7), Reducer: "sum"}
				if v, known, err = engine.ApplyUserChange(v, known, "sum", c); err != nil {
					t.Fatal(err)
				}
			}
			return v
		}
		if a, b := total(numbers), total(order); a != b {
			t.Fatalf("%v, and in another order %v", a, b)
		}
	})
}

func TestUserOperationsThatDoNotFitTheStoredValueAreRefused(t *testing.T) {
	t.Parallel()
	add := &engine.UserChange{Key: "k", Value: int64(1), Reducer: "sum"}
	_, _, err := engine.ApplyUserChange([]any{}, true, "append", add)
	if err == nil || !strings.Contains(err.Error(), "was written under the reducer append") {
		t.Errorf("another reducer: %v", err)
	}
	if _, _, err = engine.ApplyUserChange("text", true, "", add); err == nil || !strings.Contains(err.Error(), `state key "k"`) {
		t.Errorf("text: %v", err)
	}
	_, there, err := engine.ApplyUserChange(int64(3), true, "sum", &engine.UserChange{Key: "k", Delete: true})
	expect(t, "a deleted value", there || err != nil, false)
	v, there, err := engine.ApplyUserChange("any", true, "append", &engine.UserChange{Key: "k", Value: int64(8), Replace: true, Reducer: "sum"})
	expect(t, "a replaced value", fmt.Sprint(v, there, err), "8 true <nil>")
}

func TestRoundChangesOnlyTheSessionValuesThatItWrote(t *testing.T) {
	t.Parallel()
	g := newGolden(t, "counts.yaml", scopedFlow("session", flow.ReduceSum, flow.ReduceAppend, flow.ReduceMerge, flow.ReduceReplace))
	g.send(fmt.Sprintf(startSession, `"append":[1],"merge":{"a":[1]},"replace":"x","sum":2`))
	got, err := g.run.SessionChanges()
	expect(t, "changes of a round that wrote nothing", got, nil)
	expect(t, "error", err, nil)
	g.send(`node.completed {"node":"a","state":[{"key":"append","value":[2]},{"key":"merge","value":{"a":[1]}},{"key":"replace","delete":true},{"key":"sum","value":3}]}`)
	got, err = g.run.SessionChanges()
	expect(t, "error", err, nil)
	want := []engine.SessionChange{
		{Key: "append", Value: []any{int64(1), int64(2)}, Reducer: "append"},
		{Key: "replace", Delete: true},
		{Key: "sum", Value: int64(5), Reducer: "sum"},
	}
	expect(t, "changes", got, want)
	expect(t, "changes of a commit", engine.CompletedSessionState([]engine.Event{&engine.RunCompleted{Session: want}}), want)
	expect(t, "changes of another commit", engine.CompletedSessionState(nil), nil)

	alone := newGolden(t, "counts.yaml", scopedFlow("session", flow.ReduceSum))
	alone.send(`run.started {"flow":"counts","fingerprint":"f","parallel":4}`, `node.completed {"node":"a","state":[{"key":"sum","value":3}]}`)
	got, err = alone.run.SessionChanges()
	expect(t, "changes of a run without a session", got, nil)
	expect(t, "error", err, nil)
}

func TestScopedStateOverItsLimitIsRefused(t *testing.T) {
	t.Parallel()
	for scope, start := range map[string]string{"user": startUser, "session": startSession} {
		for _, size := range []int{flow.MaxScopedBytes / 2, flow.MaxScopedBytes + 1} {
			g := newGolden(t, "counts.yaml", scopedFlow(scope, flow.ReduceAppend))
			g.send(fmt.Sprintf(start, ""), fmt.Sprintf(`node.completed {"node":"a","state":[{"key":"append","value":[%q]}]}`, strings.Repeat("x", size)))
			_, err := g.run.UserChanges()
			if scope == "session" {
				_, err = g.run.SessionChanges()
			}
			if over := size > flow.MaxScopedBytes; (err != nil) != over || over && (err.Code != engine.CodeStateSize || !err.Permanent) {
				t.Errorf("%s: %d bytes: %v", scope, size, err)
			}
		}
	}
	values := map[string]engine.Value{"ab": "c", "d": int64(1)}
	if n := engine.StateBytes(values); n < len("ab")+len("c")+len("d")+1 {
		t.Errorf("%v has %d bytes", values, n)
	}
}

func TestSessionValuesMustFitTheReducerOfTheirKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		declared flow.Reducer
		wrote    string
		value    engine.Value
		want     string // part of the error, "" for none
	}{
		{flow.ReduceSum, "sum", int64(1), ""},
		{flow.ReduceSum, "", 1.5, ""},
		{flow.ReduceSum, "append", int64(1), "written under the reducer append"},
		{flow.ReduceSum, "sum", "text", "sum"},
		{flow.ReduceSum, "sum", nil, ""},
		{flow.ReduceAppend, "append", []any{}, ""},
		{flow.ReduceAppend, "append", nil, "append needs a list"},
		{flow.ReduceReplace, "none", "text", ""},
		{flow.ReduceNone, "none", map[string]any{}, ""},
		{flow.ReduceMerge, "merge", []any{}, "merge"},
	} {
		err := engine.CheckSessionValue(c.declared, c.wrote, c.value)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q holds %v, written under %q: %v, want %q", c.declared, c.value, c.wrote, err, c.want)
		}
	}
}

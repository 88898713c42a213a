package runner_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/memory"
)

// TestCachedValuesBelongToTheirUser runs flows whose cached value is the id of the run that computed it, under one key for
// all users: by the node key cache and by the node type cache.
func TestCachedValuesBelongToTheirUser(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nodes  string
		shared bool
	}{
		"the node key":             {`{v: {type: transform, with: {expr: run.id}, cache: {key: fixed, ttl: 24h}}}`, false},
		"the node key, shared":     {`{v: {type: transform, with: {expr: run.id}, cache: {key: fixed, ttl: 24h, shared: true}}}`, true},
		"the node type":            {`{id: {type: transform, with: {expr: run.id}}, v: {type: cache, in: {value: "{{ id.value }}"}, with: {key: fixed, ttl: 24h}}}`, false},
		"the node type, shared":    {`{id: {type: transform, with: {expr: run.id}}, v: {type: cache, in: {value: "{{ id.value }}"}, with: {key: fixed, ttl: 24h, shared: true}}}`, true},
		"the node type, in a body": {`{l: {type: loop, with: {max: 1, body: {nodes: {v: {type: transform, with: {expr: run.id}, cache: {key: fixed}}}, outputs: {id: "{{ v.value }}"}}}}, v: {type: transform, in: {id: "{{ l.id }}"}, with: {expr: inputs.id}}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkCachedValues(t, c.nodes, c.shared)
		})
	}
}

// checkCachedValues runs a flow for several users, before and after one of them is deleted.
func checkCachedValues(t *testing.T, nodes string, shared bool) {
	t.Helper()
	w, err := weir.Open(weir.Options{Store: weirkit.SharedMemory{Store: memory.New()}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("f.yaml", []byte(`{weir: 1, name: f, nodes: `+nodes+`, outputs: {id: "{{ v.value }}"}}`))
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]string{}
	for _, user := range []string{"ada", "bob", ""} {
		first[user] = cachedFor(t, w, f, user)
		if again := cachedFor(t, w, f, user); again != first[user] {
			t.Errorf("%q gets %s and then %s", user, first[user], again)
		}
	}
	want := 3
	if shared {
		want = 1
	}
	if values := slices.Compact(slices.Sorted(maps.Values(first))); len(values) != want {
		t.Errorf("the values of the users: %v", first)
	}
	if _, err := w.DeleteUser(t.Context(), "ada", store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if bob := cachedFor(t, w, f, "bob"); (bob == first["bob"]) == shared {
		t.Errorf("after the deletion of ada, bob gets %s; it was %s", bob, first["bob"])
	}
	if ada := cachedFor(t, w, f, "ada"); ada == first["ada"] {
		t.Errorf("after her deletion, ada gets the old value %s", ada)
	}
}

// cachedFor runs the flow for a user and returns its output id.
func cachedFor(t *testing.T, w *weir.Weir, f *weir.Flow, user string) string {
	t.Helper()
	run, err := w.Start(t.Context(), f, weir.Start{User: user})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil || r.Status != weir.Completed {
		t.Fatal(r, err)
	}
	id, err := weir.Output[string](r, "id")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

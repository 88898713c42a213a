package builtin_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
)

// sameNamesChild has the node ids of the flows of sameNamesRounds.
const sameNamesChild = `
weir: 1
name: child
context: {model: echo/m}
inputs: {text: {type: text, default: hi}}
nodes:
  say: {type: llmRequest, in: {message: "child {{ run.inputs.text }}"}}
  LAST
`

// sameNamesRounds returns the nodes of flows for sessions, which use the flow child.yaml
// with equal node ids, and how many messages a round adds to the history.
func sameNamesRounds() map[string]struct {
	nodes string
	adds  int
} {
	const say = `  say: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}` + "\n"
	return map[string]struct {
		nodes string
		adds  int
	}{
		"no child":          {say, 2},
		"child shares":      {say + `  child: {type: flow, isolation: share, after: say, with: {flow: child.yaml}}` + "\n", 4},
		"child forks":       {say + `  child: {type: flow, isolation: fork, after: say, with: {flow: child.yaml}}` + "\n", 2},
		"child is fresh":    {say + `  child: {type: flow, after: say, with: {flow: child.yaml}}` + "\n", 2},
		"two children":      {say + `  a: {type: flow, isolation: share, after: say, with: {flow: child.yaml}}` + "\n" + `  b: {type: flow, isolation: share, after: a, with: {flow: child.yaml}}` + "\n", 6},
		"child is retried":  {say + `  child: {type: flow, isolation: fork, after: say, retry: {attempts: 3, backoff: 1ms}, with: {flow: fails.yaml}}` + "\n", 2},
		"loop of children":  {say + `  each: {type: loop, after: say, with: {max: 3, until: "false", atMax: stop, body: {nodes: {say: {type: flow, isolation: share, with: {flow: child.yaml}}}, outputs: {x: 1}}}}` + "\n", 8},
		"lanes of children": {say + `  each: {type: forEach, isolation: fork, after: say, in: {items: [1, 2]}, with: {body: {nodes: {say: {type: flow, isolation: share, with: {flow: child.yaml}}}}}}` + "\n", 6},
	}
}

// TestMessageIDsOfSessionRoundsAreUnique sends messages to a session and to a fork of it:
// every message stays in the history, under an id of its own.
func TestMessageIDsOfSessionRoundsAreUnique(t *testing.T) {
	t.Parallel()
	for name, c := range sameNamesRounds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSameNames(t, c.nodes)
			for round := 1; round <= 3; round++ {
				weirkit.SendAndWait(t, s, fmt.Sprintf("round %d", round), weir.SendOptions{})
				uniqueSessionIDs(t, s, c.adds*round)
			}
			fork, err := s.Fork(t.Context(), 2*c.adds)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range []*weir.Session{fork, s, fork} {
				weirkit.SendAndWait(t, x, "another", weir.SendOptions{})
			}
			uniqueSessionIDs(t, fork, 4*c.adds)
			uniqueSessionIDs(t, s, 4*c.adds)
		})
	}
}

// openSameNames opens a session with a flow of these nodes, besides which child.yaml is,
// and fails.yaml, which fails every other time.
func openSameNames(t *testing.T, nodes string) *weir.Session {
	t.Helper()
	var calls atomic.Int64
	unsteady := weir.Func("unsteady", func(weir.Ctx, struct{}) (struct{}, error) {
		if calls.Add(1)%2 == 1 {
			return struct{}{}, errors.New("not this time")
		}
		return struct{}{}, nil
	})
	dir := t.TempDir()
	for file, text := range map[string]string{
		"child.yaml": strings.ReplaceAll(sameNamesChild, "LAST", ""),
		"fails.yaml": strings.ReplaceAll(sameNamesChild, "LAST", "after: {type: unsteady, after: say}"),
		"talk.yaml":  "weir: 1\nname: talk\ncontext: {model: echo/m}\ninputs: {message: {type: text, required: true}}\nnodes:\n" + nodes,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := weirkit.Open(t, weir.Options{
		Types: []weir.Type{unsteady}, Store: weirkit.OpenSQLite(t, filepath.Join(dir, "weir.db")),
		Providers: map[string]llm.Provider{"echo": &weirkit.RepeatingModel{}},
	})
	f, err := w.Load(filepath.Join(dir, "talk.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return weirkit.OpenSession(t, w, f)
}

func uniqueSessionIDs(t *testing.T, s *weir.Session, want int) {
	t.Helper()
	ms, err := s.Messages(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]store.SessionMessage{}
	for _, m := range ms {
		if m.Message.ID == "" {
			t.Errorf("message %q has no id", m.Message.Text)
		}
		if other, twice := seen[m.Message.ID]; twice {
			t.Errorf("%q and %q have the id %s", m.Message.Text, other.Message.Text, m.Message.ID)
		}
		seen[m.Message.ID] = m
	}
	if len(ms) != want {
		t.Errorf("the history has %d messages, expected %d", len(ms), want)
	}
}

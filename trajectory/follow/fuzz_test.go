package follow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/follow"
)

const strangeFlow = `
weir: 1
name: strange
context: {model: m/m}
inputs: {q: {type: text}}
nodes:
  a: {type: agent, in: {message: "a"}}
  b: {type: llmRequest, after: a, in: {message: "b"}}
  c: {type: template, in: {x: "{{ b.text }}"}, with: {text: "{{ inputs.x }}"}}
  d: {type: decision, after: c, with: {expr: "'left'", branches: [left, right]}}
  e:
    type: loop
    after: d.left
    with:
      max: 3
      body:
        nodes:
          f: {type: agent, in: {message: "f"}}
          g: {type: forEach, after: f, in: {items: [1, 2]}, with: {body: {nodes: {h: {type: userInput}}, outputs: {r: "{{ h.text }}"}}}}
        outputs: {text: "{{ f.text }}"}
  i: {type: action, after: e, with: {language: starlark, code: "x = 1"}}
`

func strange(tb testing.TB) (*flow.Flow, flow.Catalogue) {
	tb.Helper()
	types, err := node.NewCatalogue(builtin.Types()...)
	if err != nil {
		tb.Fatal(err)
	}
	f, err := flow.Parse("strange.yaml", []byte(strangeFlow), types)
	if err != nil {
		tb.Fatal(err)
	}
	return f, types
}

// strangers draws what a journal may say, and what none does.
type strangers struct{ draw func(n int) int }

func pick[T any](s strangers, of ...T) T { return of[s.draw(len(of))] }

func (s strangers) path() string {
	return pick(s, "a", "b", "c", "d", "e", "e#1/f", "e#2/f", "e#1/g", "e#1/g#1/h", "e#1/g#2/h", "i",
		"", "/", "#", "e/f", "e#/f", "z", "a/b/c", "e#1", ":", "a:child#1")
}

func (s strangers) id() trajectory.ID {
	return pick(s, trajectory.ID(""), "State(state00000)", "Action(action00001)", "Query(query00000)", "File(file00000)", "no", "State(state1)")
}

func (s strangers) value() engine.Value {
	return pick[engine.Value](s, nil, "text", int64(3), true, []any{}, map[string]any{}, []any{map[string]any{"role": "tool", "call": "c1"}},
		map[string]any{"message": map[string]any{"role": "assistant", "text": "t"}},
		map[string]any{"message": map[string]any{"role": "assistant", "calls": []any{map[string]any{"id": "c1", "name": "look", "arguments": "{}"}}}},
		map[string]any{"text": "r", "artifacts": []any{map[string]any{"type": "Table", "name": "t", "columns": []any{"x"}}, map[string]any{"type": "Nothing"}}, "error": pick(s, "", "why")},
		map[string]any{"type": "File", "name": "f"}, map[string]any{"type": "State", "name": "f"}, map[string]any{"type": "Tool", "name": ""},
		map[string]any{"add": map[string]any{"type": "State", "after": []any{string(s.id())}}},
		map[string]any{"add": map[string]any{"type": "File", "relation": "produces", "pointer": int64(s.draw(6))}},
		map[string]any{"link": map[string]any{"source": string(s.id()), "target": string(s.id()), "relationship": "x"}},
		map[string]any{"edit": map[string]any{"id": string(s.id()), "name": "n"}}, map[string]any{"point": []any{string(s.id())}},
		map[string]any{"sub": int64(s.draw(3)), "id": string(s.id()), "text": "t"}, map[string]any{"id": string(s.id()), "error": "e"})
}

func (s strangers) values() engine.Values {
	var out engine.Values
	for range s.draw(3) {
		out = append(out, engine.Named{Name: pick(s, "message", "text", "trace", "q", "x"), Value: s.value()})
	}
	return out
}

func (s strangers) fault() *engine.Error {
	return pick(s, nil, &engine.Error{}, &engine.Error{Code: "x", Message: "m"})
}

func (s strangers) contexts() []engine.ContextChange {
	call := convo.Call{ID: pick(s, "c1", "c2", ""), Name: pick(s, "look", "", "table")}
	m := pick(s, convo.Message{}, convo.Message{Role: "nobody"}, convo.Message{Role: convo.User, Text: "u", ID: "m1"},
		convo.Message{Role: convo.Assistant, Text: "t", ID: "m1"}, convo.Message{Role: convo.Assistant, Calls: []convo.Call{call, call}},
		convo.Message{Role: convo.Tool, CallID: call.ID}, convo.Message{Role: convo.System})
	return []engine.ContextChange{{ID: pick(s, "main", ""), Body: pick[any](s, nil, &convo.Change{Append: []convo.Message{m, m}}, convo.Change{Append: []convo.Message{m}}, 3)}}
}

func (s strangers) event() engine.Event {
	path := s.path()
	tail := pick(s, "#1", "#2", "#x", "", "#1.abcd", "#-1")
	switch s.draw(6) {
	case 0:
		return pick[engine.Event](s, &engine.NodeStarted{Path: path, Attempt: s.draw(4) - 1}, &engine.NodeStarted{Path: path})
	case 1:
		return &engine.EffectCompleted{Key: path + pick(s, "/", "") + pick(s, "model", "tool", "work", "queue.tool") + tail, Result: s.value(), Error: pick(s, nil, nil, s.fault())}
	case 2:
		return &engine.NoteRecorded{Path: pick(s, path, ""), Key: pick(s, path+"/", "") + pick(s, "artifact", "trajectory", "portrait", "artifacts") + tail, Value: s.value()}
	case 3:
		return &engine.NodeCompleted{Path: path, Outputs: s.values(), Contexts: s.contexts(), Metadata: s.values(), Cached: s.draw(5) == 0}
	}
	id := path + pick(s, ":", "") + pick(s, "ask", "child", "") + tail
	return pick[engine.Event](s,
		&engine.RunStarted{Flow: "strange", Inputs: s.values()}, &engine.RunForked{}, &engine.CancelRequested{}, &engine.TimerFired{},
		&engine.NodeExpanded{Path: path, Items: make([]engine.Values, s.draw(3))}, &engine.NodePulling{Path: path}, &engine.NodeResumed{Path: path},
		&engine.NodeWaiting{Path: path, Interrupts: []engine.Interrupt{{ID: id, Kind: engine.AwaitInput}, {ID: id, Kind: engine.AwaitChild}}},
		&engine.InterruptAnswered{ID: id, Value: s.value()}, &engine.ChildReported{ID: id, Run: "r", Status: engine.Completed, Error: s.fault()},
		&engine.StepRecorded{Path: path, Step: engine.Step{Code: "x", Status: engine.StepSuccess}},
		&engine.NodeFailed{Path: path, Error: s.fault(), Contexts: s.contexts()}, &engine.NodeRetrying{Path: path},
		&engine.NodeErrored{Path: path, Outputs: s.values()}, &engine.NodeSkipped{Path: path}, &engine.NodeCancelled{Path: path, Contexts: s.contexts()},
		&engine.NodeOverridden{Path: path, Op: pick(s, "retry", "skip", "complete"), Outputs: s.values()},
		&engine.IterationStarted{Path: path}, &engine.IterationCompleted{Path: path}, &engine.EffectStarted{Key: id},
		&engine.RunCompleted{Outputs: s.values()}, &engine.RunFailed{Error: s.fault()}, &engine.RunCancelled{},
	)
}

// heard has a follower read events, in commits of some, and returns what is wrong
// with what it made.
func heard(ctx context.Context, f *flow.Flow, types flow.Catalogue, events []engine.Event, per int) error {
	pool := trajectory.NewRecorderPool(nil, nil)
	fo, err := follow.New(ctx, follow.Options{
		Flow: f, Run: "r", Types: types, Recorders: pool, Key: trajectory.Key{Session: "s", Round: 1},
		Agents: follow.NewAgents(follow.AgentsOf(f, nil)), Describe: func(tool string) string { return tool },
	})
	if err != nil {
		return err
	}
	for i := 0; i < len(events); i += per {
		fo.Commit(ctx, &engine.Commit{Run: "r", Seq: int64(i/per + 1), First: int64(i + 1), At: int64(i), Events: events[i:min(i+per, len(events))]})
		for _, d := range fo.Undescribed() {
			fo.DescriptionInput(d)
		}
	}
	for range 2 {
		for _, r := range fo.Recorders() {
			record := r.Record()
			if err := record.Check(); err != nil {
				return err
			}
		}
		fo.RecordUnfinished(ctx)
	}
	_ = fo.Err() // impossible events are reported, and nothing else
	if err := fo.Close(ctx); err != nil {
		return err
	}
	if n := pool.OpenCount(); n > 0 {
		return fmt.Errorf("%d recorders are held", n)
	}
	return nil
}

func TestAnyJournalGivesATrajectory(t *testing.T) {
	f, types := strange(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := strangers{func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "n") }}
		var events []engine.Event
		if s.draw(4) > 0 {
			events = append(events, &engine.RunStarted{Flow: "strange"})
		}
		for range s.draw(60) {
			events = append(events, s.event())
		}
		if err := heard(t.Context(), f, types, events, 1+s.draw(3)); err != nil {
			rt.Fatal(err)
		}
	})
}

// FuzzFollow reads journals of the bytes of an encoding, as an archive from
// elsewhere would have them.
func FuzzFollow(f *testing.F) {
	fl, types := strange(f)
	for i := range 20 {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		s := strangers{rng.IntN}
		events := []engine.Event{&engine.RunStarted{Flow: "strange"}}
		for len(events) < 60 {
			if e := s.event(); encodes(e) {
				events = append(events, e)
			}
		}
		b, err := engine.EncodeEvents(nil, events)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		events, err := engine.DecodeEvents(data)
		if err != nil {
			return
		}
		if err := heard(t.Context(), fl, types, events, 2); err != nil {
			t.Fatal(err)
		}
	})
}

func encodes(e engine.Event) bool {
	_, err := engine.EncodeEvents(nil, []engine.Event{e})
	return err == nil
}

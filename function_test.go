package weir_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/weirtest"
)

type noPorts struct{}

func TestPortsAndSettingsComeFromStructs(t *testing.T) {
	t.Parallel()
	type in struct {
		Text   string   `doc:"What to cut."`
		Limit  *int     `weir:"limit,optional"`
		Later  string   `weir:",lazy,optional"`
		Parts  []string `weir:"parts,many,optional"`
		hidden int
	}
	type out struct {
		Cut  string
		Rest map[string]any `weir:"rest,optional"`
	}
	type settings struct {
		Unit string
		Wide bool `weir:"wide,optional"`
	}
	typ := weir.FuncWith("cut", func(_ weir.Ctx, i in, s settings) (out, error) {
		_ = i.hidden
		return out{Cut: i.Text + s.Unit + i.Later + strings.Join(i.Parts, "+")}, nil
	})
	want := []flow.Port{
		{Name: "text", Type: flow.TypeText, Required: true, Description: "What to cut."},
		{Name: "limit", Type: flow.TypeNumber},
		{Name: "later", Type: flow.TypeText, Lazy: true},
		{Name: "parts", Type: flow.TypeText, Many: true},
	}
	if got := typ.Spec().Ports.In; !reflect.DeepEqual(got, want) {
		t.Errorf("inputs are %+v", got)
	}
	if got := typ.Spec().Settings["required"]; !reflect.DeepEqual(got, []any{"unit"}) {
		t.Errorf("required settings are %v", got)
	}
	r := weirtest.Flow(t, `
weir: 1
name: cut
nodes:
  a: {type: template, with: {text: A}}
  b: {type: template, with: {text: B}}
  late: {type: template, with: {text: late}}
  cut: {type: cut, in: {text: x, later: "{{ late.text }}", parts: ["{{ a.text }}", "{{ b.text }}"]}, with: {unit: cm}}
outputs: {cut: "{{ cut.cut }}", rest: "{{ cut.rest }}"}
`, weirtest.Case{Types: []weir.Type{typ}})
	if got := weirtest.Output[string](t, r, "cut"); got != "xcmlateA+B" || r.Outputs["rest"] != nil {
		t.Errorf("outputs are %v", r.Outputs)
	}
}

func TestConversionErrorNamesThePort(t *testing.T) {
	t.Parallel()
	type in struct{ Sizes []int }
	typ := weir.Func("sum", func(weir.Ctx, in) (noPorts, error) { return noPorts{}, nil })
	r := weirtest.Node(t, typ, weirtest.Case{In: map[string]any{"sizes": []any{1, "two"}}})
	if r.Error == nil || r.Error.Code != engine.CodeValue || !strings.Contains(r.Error.Message, "input sizes") || r.Error.Node != "node" {
		t.Errorf("the error is %v", r.Error)
	}
}

func TestStateIsReadAndWrittenInNodeTransaction(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	type in struct {
		Fail bool `weir:"fail,optional"`
	}
	typ := weir.Func("write", func(ctx weir.Ctx, i in) (noPorts, error) {
		s := ctx.State()
		if err := s.Set("a", 2); err != nil {
			return noPorts{}, err
		}
		if err := s.Update(map[string]any{"b": []int{1}, "c": nil}); err != nil {
			return noPorts{}, err
		}
		s.Delete("gone")
		if v, ok := s.Snapshot().Get("a"); !ok || v != int64(1) {
			return noPorts{}, errors.New("the snapshot changed")
		}
		if v, ok := s.Get("a"); !ok || v != int64(2) {
			return noPorts{}, errors.New("the node does not read its own change")
		}
		if all := s.All(); len(all) != 3 || all["gone"] != nil {
			return noPorts{}, errors.New("all is wrong")
		}
		if i.Fail {
			return noPorts{}, boom
		}
		return noPorts{}, nil
	})
	before := map[string]any{"a": 1, "gone": true}
	r := weirtest.Node(t, typ, weirtest.Case{State: before})
	if want := map[string]any{"a": int64(2), "b": []any{int64(1)}, "c": nil}; !reflect.DeepEqual(r.State, want) {
		t.Errorf("the state is %v (%v)", r.State, r.Error)
	}
	r = weirtest.Node(t, typ, weirtest.Case{State: before, In: map[string]any{"fail": true}})
	if want := map[string]any{"a": int64(1), "gone": true}; !reflect.DeepEqual(r.State, want) || r.Error == nil {
		t.Errorf("after a failure the state is %v (%v)", r.State, r.Error)
	}
}

// requestOnceType returns a node that does an effect, waits for a person, and is then entered
// again from the top.
func requestOnceType(request func(entry int32) any, done *atomic.Int32, seen chan<- []any) weir.Type {
	var entries atomic.Int32
	type out struct{ Text string }
	return weir.Func("twice", func(ctx weir.Ctx, _ noPorts) (out, error) {
		entry := entries.Add(1)
		v, err := ctx.Do(node.Effect{
			Name: "send", Request: request(entry),
			Do: func(_ context.Context, key string) (node.Outcome, error) {
				done.Add(1)
				return node.Outcome{Value: "sent under " + key}, nil
			},
		})
		if err != nil {
			return out{}, err
		}
		seen <- []any{ctx.Now(), ctx.Rand().Uint64(), v}
		answer, _, err := ctx.Wait("ask", engine.Interrupt{Kind: engine.AwaitInput})
		if err != nil {
			return out{}, err
		}
		return out{v.(string) + ", " + answer.(string)}, nil
	})
}

func TestEffectsTimeAndRandomnessRepeatOnReentry(t *testing.T) {
	t.Parallel()
	var done atomic.Int32
	seen := make(chan []any, 4)
	typ := requestOnceType(func(int32) any { return "same" }, &done, seen)
	r := weirtest.Node(t, typ, weirtest.Case{Answers: map[string]any{"node": "ok"}})
	if got := weirtest.Output[string](t, r, "text"); got != "sent under run/node/send#1, ok" {
		t.Errorf("text is %q", got)
	}
	first, second := <-seen, <-seen
	if !reflect.DeepEqual(first, second) {
		t.Errorf("the entries saw %v and %v", first, second)
	}
	if n := done.Load(); n != 1 || len(r.Effects) != 1 {
		t.Errorf("the effect ran %d times, %d are recorded", n, len(r.Effects))
	}
}

func TestDifferentRequestUnderKnownKeyIsAnError(t *testing.T) {
	t.Parallel()
	var done atomic.Int32
	typ := requestOnceType(func(entry int32) any { return int64(entry) }, &done, make(chan []any, 4))
	r := weirtest.Node(t, typ, weirtest.Case{Answers: map[string]any{"node": "ok"}})
	if r.Error == nil || r.Error.Code != engine.CodeNondeterministic || done.Load() != 1 {
		t.Errorf("the error is %v after %d effects", r.Error, done.Load())
	}
}

func TestNodeCreatesAndUsesContexts(t *testing.T) {
	t.Parallel()
	type made struct{ Room weir.Handle }
	makes := weir.Func("makes", func(ctx weir.Ctx, _ noPorts) (made, error) {
		h, err := ctx.NewContext(convo.Change{Label: "room"})
		if err != nil {
			return made{}, err
		}
		m, err := ctx.ContextOf(h)
		if err == nil {
			_, err = m.Add(convo.Message{Role: convo.User, Text: "first"})
		}
		return made{h}, err
	})
	type in struct{ Room weir.Handle }
	uses := weir.Func("uses", func(ctx weir.Ctx, i in) (noPorts, error) {
		m, err := ctx.ContextOf(i.Room)
		if err == nil {
			_, err = m.Add(convo.Message{Role: convo.User, Text: "second"})
		}
		return noPorts{}, err
	}).WritesContext()
	r := weirtest.Flow(t, `
weir: 1
name: rooms
nodes:
  makes: {type: makes}
  uses: {type: uses, in: {room: "{{ makes.room }}"}}
`, weirtest.Case{Types: []weir.Type{makes, uses}})
	weirkit.CheckStatus(t, r, engine.Completed)
	weirkit.CheckLines(t, "the room", weirkit.MessagesIn(t, r, "makes"), "user: first", "user: second")
	weirkit.CheckLines(t, "main", r.Messages)
}

func TestPanicFailsOnlyTheNode(t *testing.T) {
	t.Parallel()
	typ := weir.Func("bad", func(weir.Ctx, noPorts) (noPorts, error) { panic("out of paper") })
	r := weirtest.Node(t, typ, weirtest.Case{})
	if r.Error == nil || r.Error.Code != engine.CodeNodePanic || !strings.Contains(r.Error.Message, "out of paper") {
		t.Errorf("the error is %v", r.Error)
	}
}

func TestStartingRunIDTwiceJoinsTheFirst(t *testing.T) {
	t.Parallel()
	var ran atomic.Int32
	type out struct{ N int }
	w := weirkit.Open(t, weir.Options{Types: []weir.Type{
		weir.Func("count", func(weir.Ctx, noPorts) (out, error) { return out{int(ran.Add(1))}, nil }),
	}})
	f := weirkit.Parse(t, w, `{weir: 1, name: once, nodes: {c: {type: count}}, outputs: {n: "{{ c.n }}"}}`)
	for range 3 {
		run, err := w.Start(t.Context(), f, weir.Start{ID: "order-7"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n, err := weir.Output[int](r, "n"); err != nil || n != 1 {
			t.Errorf("n is %d, %v", n, err)
		}
	}
	if n := ran.Load(); n != 1 {
		t.Errorf("the node ran %d times", n)
	}
}

func TestOutputChecksItsType(t *testing.T) {
	t.Parallel()
	type point struct{ X, Y int }
	type out struct {
		Where point
		Name  string
	}
	w := weirkit.Open(t, weir.Options{Types: []weir.Type{
		weir.Func("find", func(weir.Ctx, noPorts) (out, error) { return out{point{1, 2}, "a"}, nil }),
	}})
	f := weirkit.Parse(t, w, `{weir: 1, name: find, nodes: {f: {type: find}}, outputs: {where: "{{ f.where }}", name: "{{ f.name }}"}}`)
	run, err := w.Start(t.Context(), f, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p, err := weir.Output[point](r, "where"); err != nil || p != (point{1, 2}) {
		t.Errorf("where is %v, %v", p, err)
	}
	if _, err := weir.Output[int](r, "name"); err == nil || !strings.Contains(err.Error(), "output name") {
		t.Errorf("a text as a number: %v", err)
	}
	if _, err := weir.Output[int](r, "none"); err == nil {
		t.Error("an output that is not there was read")
	}
}

func TestEventsIterateFromFirstToLast(t *testing.T) {
	t.Parallel()
	w := weirkit.Open(t, weir.Options{})
	f := weirkit.Parse(t, w, `{weir: 1, name: e, nodes: {a: {type: template, with: {text: x}}}}`)
	run, err := w.Start(t.Context(), f, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for item, err := range run.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Event != nil {
			kinds = append(kinds, item.Event.Kind())
		}
	}
	if want := []string{"run.started", "node.started", "node.completed", "run.completed"}; !slices.Equal(kinds, want) {
		t.Errorf("the events are %q, expected %q", kinds, want)
	}
}

func TestCancelledContextEndsWaitButNotRun(t *testing.T) {
	t.Parallel()
	entered, release := make(chan noPorts), make(chan noPorts)
	w := weirkit.Open(t, weir.Options{Types: []weir.Type{weir.Func("hold", func(weir.Ctx, noPorts) (noPorts, error) {
		close(entered)
		<-release
		return noPorts{}, nil
	})}})
	f := weirkit.Parse(t, w, `{weir: 1, name: hold, nodes: {h: {type: hold}}}`)
	starting, stop := context.WithCancel(t.Context())
	run, err := w.Start(starting, f, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	waiting, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, err := run.Wait(waiting); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the wait ended with %v", err)
	}
	stop()
	close(release)
	if r, err := run.Wait(t.Context()); err != nil || r.Status != engine.Completed {
		t.Errorf("the run is %+v, %v", r, err)
	}
}

package sqlite

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// talk is a conversation as the runner journals it: a loop of a userInput and
// an llmRequest, two commits a turn.
type talk struct {
	*rand.Rand
	s     *Store
	fence int64
	seq   int64
	first int64
	turn  int
	text  int // bytes said
	wrote []engine.Commit
}

func newTalk(tb testing.TB, s *Store) *talk {
	tb.Helper()
	const run = "r"
	c := newChain(tb, s, run)
	t := &talk{Rand: rand.New(rand.NewPCG(1, 2)), s: s, fence: c.fence, first: 1, turn: 1}
	t.commit(tb, run, append([]engine.Event{&engine.RunStarted{
		Flow: "chat", Fingerprint: strings.Repeat("f", 64), Parallel: 8, Origin: "cli",
		Contexts: []engine.ContextChange{{ID: "main", Create: true, Body: &convo.Change{
			Create: true, Kind: convo.Main,
			Settings: &convo.Settings{Provider: "openai", Model: "gpt-5-mini", System: "You are kind."},
		}}},
	}, &engine.NodeStarted{Path: "chat"}, &engine.NodeExpanded{Path: "chat", Items: []engine.Values{nil}}}, t.ask()...)...)
	return t
}

func (t *talk) commit(tb testing.TB, run string, events ...engine.Event) {
	tb.Helper()
	t.seq++
	h := store.Head{Status: engine.Paused, Usage: engine.Usage{Calls: t.turn, Input: 100 * t.turn}}
	if w, ok := events[len(events)-1].(*engine.NodeWaiting); ok {
		h.Waiting = w.Interrupts
	}
	c := engine.Commit{Run: run, Seq: t.seq, First: t.first, At: 1_800_000_000_000 + 5000*t.seq, Events: events}
	if err := t.s.Append(tb.Context(), []store.Append{{Commit: c, Fence: t.fence, Head: h}})[0]; err != nil {
		tb.Fatal(err)
	}
	t.first += int64(len(events))
	t.wrote = append(t.wrote, c)
}

func (t *talk) at(node string) string { return fmt.Sprintf("chat#%d%s", t.turn, node) }

// ask begins an iteration and waits for the person.
func (t *talk) ask() []engine.Event {
	return []engine.Event{
		&engine.IterationStarted{Path: t.at("")},
		&engine.NodeStarted{Path: t.at("/ask"), Grants: []string{"main"}},
		&engine.NodeWaiting{Path: t.at("/ask"), Interrupts: []engine.Interrupt{{ID: t.at("/ask:ask#1"), Kind: engine.AwaitInput, Prompt: "You:"}}},
	}
}

func (t *talk) say(tb testing.TB, asked, answered string) {
	tb.Helper()
	const run = "r"
	t.text += len(asked) + len(answered)
	context := engine.Named{Name: "context", Value: engine.Handle{ID: "main"}}
	t.commit(tb, run,
		&engine.InterruptAnswered{ID: t.at("/ask:ask#1"), Value: asked},
		&engine.NodeResumed{Path: t.at("/ask"), Grants: []string{"main"}},
		&engine.NodeCompleted{
			Path: t.at("/ask"), Micros: int64(t.IntN(90)) + 10,
			Outputs:  engine.Values{{Name: "text", Value: asked}, {Name: "value", Value: asked}, context},
			Contexts: []engine.ContextChange{{ID: "main", Body: &convo.Change{Output: &asked}}},
		},
		&engine.NodeStarted{Path: t.at("/reply"), Grants: []string{"main"}})

	in, out := int64(t.IntN(9000))+1000, int64(t.IntN(900))+100
	events := []engine.Event{
		&engine.EffectCompleted{
			Key: t.at("/reply/model#1"), Digest: fmt.Sprintf("%016x", t.Uint64()), Micros: int64(t.IntN(900000)) + 100000,
			Result: map[string]any{
				"message": map[string]any{"role": "assistant", "text": answered},
				"usage":   map[string]any{"input": in, "output": out}, "stop": "end",
				"model": "gpt-5-mini-2026-08-07", "id": fmt.Sprintf("resp_%016x", t.Uint64()),
			},
			Usage: &engine.Usage{Calls: 1, Input: int(in), Output: int(out), CostMicros: in / 3},
		},
		&engine.NodeCompleted{
			Path: t.at("/reply"), Micros: int64(t.IntN(900000)) + 100000,
			Outputs: engine.Values{
				{Name: "text", Value: answered},
				{Name: "result", Value: answered},
				{Name: "usage", Value: map[string]any{"input": in, "output": out, "calls": int64(1)}},
				context,
			},
			Contexts: []engine.ContextChange{
				{ID: "main", Adds: 2, Body: &convo.Change{Append: []convo.Message{
					{ID: t.at("/ask.text"), Role: convo.User, Text: asked}, {ID: t.at("/reply.1"), Role: convo.Assistant, Text: answered},
				}}},
				{ID: "main", Body: &convo.Change{Output: new(string)}},
			},
		},
		&engine.IterationCompleted{Path: t.at(""), Outputs: engine.Values{{Name: "said", Value: answered}}},
	}
	t.turn++
	t.commit(tb, run, append(events, t.ask()...)...)
}

// words is n bytes of text unlike any other.
func (t *talk) words(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString([]string{"the ", "weir ", "holds ", "water ", "back ", "and "}[t.IntN(6)])
		fmt.Fprintf(&b, "%x ", t.Uint32())
	}
	return b.String()[:n]
}

func TestConversationSizeIsCloseToItsText(t *testing.T) {
	const turns = 700
	sizes := []int{40, 200, 500, 800, 900, 2000, 3600, 8000}
	if testing.Short() {
		sizes = sizes[4:5]
	}
	for _, bytes := range sizes {
		for _, page := range pageSizes() {
			used, text := converse(t, page, turns, bytes)
			over := float64(used-text) / turns
			t.Logf("%5d B a turn, pages of %5d: %.2fx the text, %.0f B a turn over it", bytes, page, float64(used)/float64(text), over)
			if page != defaultPageSize {
				continue
			}
			if bytes >= 900 && used > text*3/2 {
				t.Errorf("%d B a turn: %d bytes for %d of text", bytes, used, text)
			}
			if bytes < 900 && over > 350 {
				t.Errorf("%d B a turn: %.0f B a turn over the text", bytes, over)
			}
		}
	}
}

// converse returns the room that turns of so many bytes take, and their text.
func converse(t *testing.T, page, turns, bytes int) (used, text int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.db")
	s := openAt(t, path, Options{pageSize: page})
	if err := s.Create(t.Context(), store.NewRun{ID: "seed", At: time.UnixMilli(1)}); err != nil {
		t.Fatal(err)
	}
	empty := closedSize(t, s)
	s = openAt(t, path, Options{pageSize: page})
	if _, err := s.conn.ExecContext(t.Context(), "PRAGMA synchronous = OFF"); err != nil {
		t.Fatal(err)
	}
	talk := newTalk(t, s)
	for range turns {
		talk.say(t, talk.words(bytes*2/5), talk.words(bytes*3/5))
	}
	return closedSize(t, s) - empty, int64(talk.text)
}

// pageSizes returns those to measure; more than the default with
// WEIR_PAGE_SIZES=1.
func pageSizes() []int {
	if os.Getenv("WEIR_PAGE_SIZES") == "" {
		return []int{defaultPageSize}
	}
	return []int{1024, 2048, 4096, 8192, 16384}
}

// closedSize closes the store and returns the bytes its file takes.
func closedSize(tb testing.TB, s *Store) int64 {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
	if _, err := os.Stat(s.path + "-wal"); !os.IsNotExist(err) {
		tb.Fatalf("a log is left beside the closed file (%v)", err)
	}
	info, err := os.Stat(s.path)
	if err != nil {
		tb.Fatal(err)
	}
	return info.Size()
}

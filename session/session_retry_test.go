package session_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// pleaseModel refuses to answer what has "please" in it, until it is mollified.
type pleaseModel struct {
	weirkit.RepeatingModel
	willing atomic.Bool
}

func (s *pleaseModel) Generate(ctx context.Context, r *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	if !s.willing.Load() && strings.Contains(r.Messages[len(r.Messages)-1].Text, "please") {
		return nil, &llm.Error{Code: engine.CodeModelRequest, Message: "no"}
	}
	return s.RepeatingModel.Generate(ctx, r, emit)
}

func TestRetriedRoundReclaimsSessionUnlessItContinued(t *testing.T) {
	t.Parallel()
	stores(t, retryRounds)
}

func retryRounds(t *testing.T, path string) {
	t.Helper()
	p := &pleaseModel{}
	w, f := weirkit.OpenTalk(t, path, p, weirkit.TalkFlow)
	s := weirkit.OpenSession(t, w, f)
	weirkit.SendAndWait(t, s, "hello", weir.SendOptions{})
	failed := weirkit.SendAndWait(t, s, "please", weir.SendOptions{})
	if failed.Status != engine.Failed {
		t.Fatalf("%+v", failed)
	}
	p.willing.Store(true)
	again, err := w.OverrideNode(t.Context(), failed.Run, "retry", "answer", nil, "anna")
	if err != nil {
		t.Fatal(err)
	}
	if r := weirkit.Wait(t, again); r.Status != engine.Completed || !strings.HasSuffix(r.Outputs[0].Value.(string), ": please") {
		t.Fatalf("%+v", r)
	}
	if got := textsOf(t, s); len(got) != 4 || got[3] != "assistant 3: please" {
		t.Fatal(got)
	}
	if next := weirkit.SendAndWait(t, s, "and then?", weir.SendOptions{}); next.Round != 3 || next.Text != "5: and then?" {
		t.Fatalf("%+v", next)
	}

	p.willing.Store(false)
	failed = weirkit.SendAndWait(t, s, "please, once more", weir.SendOptions{})
	p.willing.Store(true)
	weirkit.SendAndWait(t, s, "never mind", weir.SendOptions{})
	before := textsOf(t, s)
	again, err = w.OverrideNode(t.Context(), failed.Run, "retry", "answer", nil, "anna")
	if err == nil {
		_, err = again.Wait(t.Context())
	}
	if !errors.Is(err, store.ErrSessionAdvanced) {
		t.Fatalf("a round whose session went on: %v", err)
	}
	if got := textsOf(t, s); !slices.Equal(got, before) {
		t.Errorf("%q, before %q", got, before)
	}
	row, err := w.Runs(t.Context(), store.Filter{Session: s.ID, Limit: 2})
	if err != nil || row[1].ID != failed.Run || row[1].Head.Status != engine.Failed {
		t.Errorf("%+v %v", row, err)
	}
	if next := weirkit.SendAndWait(t, s, "still here?", weir.SendOptions{}); next.Status != engine.Completed || next.Round != 6 {
		t.Errorf("%+v", next)
	}
}

// dyingStore is a store whose process dies when an answer is durable and before it is
// acknowledged.
type dyingStore struct {
	*sqlite.Store
	dead chan struct{}
	once sync.Once
}

// Capabilities has sessions use the methods of this store.
func (d *dyingStore) Capabilities() store.Capabilities {
	c := d.Store.Capabilities()
	c.Sessions = d
	return c
}

func (d *dyingStore) died() bool {
	select {
	case <-d.dead:
		return true
	default:
		return false
	}
}

func (d *dyingStore) Append(ctx context.Context, as []store.Append) []error {
	if d.died() {
		return slices.Repeat([]error{weirkit.ErrDied}, len(as))
	}
	errs := d.Store.Append(ctx, as)
	for i := range as {
		if len(as[i].ConsumedMessages) > 0 {
			d.once.Do(func() { close(d.dead) })
			errs[i] = weirkit.ErrDied
		}
	}
	return errs
}

func (d *dyingStore) Acquire(ctx context.Context, run, owner string, ttl time.Duration) (store.Lease, error) {
	if d.died() {
		return store.Lease{}, weirkit.ErrDied
	}
	return d.Store.Acquire(ctx, run, owner, ttl)
}

const agesFlow = `
weir: 1
name: ages
inputs: {message: {type: text, required: true}}
nodes:
  his: {type: userInput, with: {prompt: "His age?", schema: {type: integer, minimum: 0}}}
  hers: {type: userInput, after: his, with: {prompt: "Hers?", schema: {type: integer, minimum: 0}}}
  both: {type: transform, in: {his: "{{ his.value }}", hers: "{{ hers.value }}"}, with: {expr: inputs.his + inputs.hers}}
outputs: {both: "{{ both.value }}"}
`

func TestAnswerOfDyingProcessIsGivenOnce(t *testing.T) {
	t.Parallel()
	for name, resend := range map[string]bool{"and is not sent again": false, "and is sent again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "weir.db")
			id := dieAfterAnAnswer(t, path)
			w, f := weirkit.OpenTalk(t, path, &weirkit.RepeatingModel{}, agesFlow)
			s, err := w.Session(t.Context(), f, weir.SessionOptions{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			if resend {
				if state := weirkit.SendAndWait(t, s, "36", weir.SendOptions{ID: "m1"}); state.Status != engine.Paused || state.Interrupts[0].Prompt != "Hers?" {
					t.Fatalf("%+v", state)
				}
			}
			state := weirkit.SendAndWait(t, s, "40", weir.SendOptions{})
			if both, err := weir.Output[int](state.Result, "both"); err != nil || both != 76 || state.Round != 1 {
				t.Fatalf("%d %v: %+v", both, err, state)
			}
			if row, err := s.Info(t.Context()); err != nil || row.Queued != 0 || row.Holder != "" {
				t.Errorf("%+v %v", row, err)
			}
		})
	}
}

// dieAfterAnAnswer has a process die when the first question was answered with
// message m1, and returns the session's id.
func dieAfterAnAnswer(t *testing.T, path string) string {
	t.Helper()
	inner, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &dyingStore{Store: inner, dead: make(chan struct{})}
	w, err := weir.Open(weir.Options{Store: d})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Parse("ages.yaml", []byte(agesFlow))
	if err != nil {
		t.Fatal(err)
	}
	s := weirkit.OpenSession(t, w, f)
	weirkit.SendAndWait(t, s, "go", weir.SendOptions{})
	turn := send(t, s, "36", weir.SendOptions{ID: "m1"})
	<-d.dead
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := turn.Wait(t.Context()); !errors.Is(err, runner.ErrClosed) {
		t.Fatal(err)
	}
	return s.ID
}

func (d *dyingStore) NotQueued(ctx context.Context, ids []string) ([]string, error) {
	if d.died() {
		return nil, weirkit.ErrDied
	}
	return d.Store.NotQueued(ctx, ids)
}

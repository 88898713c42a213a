//go:build unix

package session_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/postgres"
)

// waitingModel answers when it may.
type waitingModel struct {
	weirkit.RepeatingModel
	called, goOn chan struct{}
}

func (m *waitingModel) Generate(ctx context.Context, r *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	select {
	case m.called <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-m.goOn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return m.RepeatingModel.Generate(ctx, r, emit)
}

// quietStore is a store whose reports of changes are dropped until armed is set.
type quietStore struct {
	*postgres.Store
	armed atomic.Bool
}

func (q *quietStore) Capabilities() store.Capabilities {
	c := q.Store.Capabilities()
	c.Watch = q
	return c
}

// Watch passes on what the store reports once armed is set: the beginning of a watch would wake a wait as well.
func (q *quietStore) Watch(topic store.Topic, matches func(id string) bool) (<-chan struct{}, func()) {
	from, stop := q.Store.Watch(topic, func(id string) bool { return q.armed.Load() && matches(id) })
	to, stopped := make(chan struct{}, 1), make(chan struct{})
	go func() {
		for {
			select {
			case <-stopped:
				return
			case <-from:
			}
			if q.armed.Load() {
				select {
				case to <- struct{}{}:
				default:
				}
			}
		}
	}()
	return to, sync.OnceFunc(func() {
		stop()
		close(stopped)
	})
}

// TestWaitsForARoundOfAnotherProcessAreWoken has one process execute a round, and another wait for its reply, which does
// not poll before the test ends.
func TestWaitsForARoundOfAnotherProcessAreWoken(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t).Schema(t)
	open := func(p weir.Provider) (*weir.Session, *quietStore) {
		st, err := postgres.Open(t.Context(), url, postgres.Options{MaxConnections: 3})
		if err != nil {
			t.Fatal(err)
		}
		quiet := &quietStore{Store: st}
		w, err := weir.Open(weir.Options{Store: quiet, Providers: map[string]weir.Provider{"echo": p}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Close(context.WithoutCancel(t.Context())) })
		s := weirkit.OpenSession(t, w, weirkit.Parse(t, w, weirkit.TalkFlow))
		s.SetPoll(time.Hour)
		return s, quiet
	}
	model := &waitingModel{called: make(chan struct{}), goOn: make(chan struct{})}
	executing, _ := open(model)
	waiting, reports := open(&weirkit.RepeatingModel{})
	first := send(t, executing, "one", weir.SendOptions{ID: "m1"})
	<-model.called
	same := send(t, waiting, "one", weir.SendOptions{ID: "m1"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events := 0
	for item, err := range same.Items(ctx) { // the process has read the round when there is an event of it
		if err != nil {
			t.Fatal(err)
		}
		if item.Event == nil {
			continue
		}
		if events++; events == 1 {
			reports.armed.Store(true)
			close(model.goOn)
		}
	}
	if events < 3 {
		t.Errorf("%d events of the round of the other process", events)
	}
	for _, reply := range []*weir.Reply{first, same, send(t, waiting, "two", weir.SendOptions{})} {
		r, err := reply.Wait(ctx)
		if err != nil || r.Status != engine.Completed {
			t.Errorf("message %s: %s %v", reply.Message, r.Status, err)
		}
	}
}

package trajectory_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

func memory() trajectory.Storage { return tables.New(tables.NewMemory()) }

// hold opens a round of a book and releases it with the test at the latest.
func hold(t *testing.T, b *trajectory.RecorderPool, number int) (*trajectory.Recorder, func()) {
	t.Helper()
	r, release, err := b.Open(t.Context(), round(number))
	if err != nil {
		t.Fatal(err)
	}
	return r, func() {
		t.Helper()
		if err := release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestRecorderIsSharedUntilLastRelease(t *testing.T) {
	t.Parallel()
	s := memory()
	b := trajectory.NewRecorderPool(s, clock)
	one, releaseOne := hold(t, b, 1)
	two, releaseTwo := hold(t, b, 1)
	if one != two {
		t.Error("two recorders for one key")
	}
	sub, releaseSub, err := b.Open(t.Context(), trajectory.Key{User: "ann", Session: "s", Round: 1, Sub: 1})
	if err != nil || sub == one || b.OpenCount() != 2 {
		t.Errorf("the sub-agent's recorder: %v, held %d", err, b.OpenCount())
	}
	if err := releaseSub(t.Context()); err != nil {
		t.Error(err)
	}
	say(t, one, user("Go."))
	releaseOne()
	releaseOne() // more calls do nothing
	if _, err := s.Load(t.Context(), round(1)); !errors.Is(err, trajectory.ErrNotFound) {
		t.Errorf("it was saved while somebody held it: %v", err)
	}
	if b.OpenCount() != 1 {
		t.Errorf("%d are held, want 1", b.OpenCount())
	}
	releaseTwo()
	if b.OpenCount() != 0 {
		t.Errorf("%d are held, want none", b.OpenCount())
	}
	again, release := hold(t, b, 1)
	defer release()
	if again == one {
		t.Error("the recorder was not let go")
	}
	if !reflect.DeepEqual(again.Record(), one.Record()) || again.Unsaved() {
		t.Error("what was saved is not what was recorded")
	}
}

func TestRoundContinuesFromStorage(t *testing.T) {
	t.Parallel()
	b := trajectory.NewRecorderPool(memory(), clock)
	r, release := hold(t, b, 1)
	say(t, r, user("Go."), said("", "1 look"))
	release()
	r, release = hold(t, b, 1)
	defer release()
	say(t, r, result("1", "look", "x"), said("Done."))
	if got := edges(r.Graph()); got != "qu0 triggers ac0, ac0 generates ac1, ac1 refers_to to0, ac1 has_conclusion st0" {
		t.Errorf("the edges are %s", got)
	}
}

func TestQueryIsBridgedToThePreviousRound(t *testing.T) {
	t.Parallel()
	s := memory()
	b := trajectory.NewRecorderPool(s, clock)
	one, release := hold(t, b, 1)
	say(t, one, user("First."), said("", "1 look"), result("1", "look", "x"), said("Done."))
	release()
	_, releaseEmpty := hold(t, b, 2)
	releaseEmpty()
	three, release := hold(t, b, 3)
	say(t, three, user("Second."))
	got := edges(three.Graph())
	if want := "to0 continues_to qu1, st0 continues_to qu1"; !strings.HasSuffix(got, want) {
		t.Errorf("the edges are %s, want them to end with %s", got, want)
	}
	if n := len(three.Record().Edges); n != 0 {
		t.Errorf("%d bridges would be stored", n)
	}
	for _, old := range []trajectory.ID{"State(state00000)", "Action(action00001)", "Query(query00000)"} {
		_, err := three.Add(trajectory.NewNode{Type: trajectory.State, After: []trajectory.ID{old}})
		if !errors.Is(err, trajectory.ErrOlderRound) {
			t.Errorf("a predecessor of an older round: got %v", err)
		}
	}
	say(t, three, said("Done."))
	release()
	g, err := trajectory.LoadGraph(t.Context(), s, "ann", "s", 0)
	if err != nil || connected(g) != 1 || unreached(g) != 0 || !strings.Contains(edges(g), "qu1 has_conclusion st1") {
		t.Errorf("loaded is %s, %v", edges(g), err)
	}
}

func TestALaterRoundEndsTheOnesBefore(t *testing.T) {
	t.Parallel()
	s := memory()
	b := trajectory.NewRecorderPool(s, clock)
	one, releaseOne := hold(t, b, 1)
	say(t, one, user("First."))
	two, releaseTwo := hold(t, b, 2)
	say(t, two, user("Second."))
	if got := edges(two.Graph()); got != "qu0 continues_to qu1" {
		t.Errorf("joined to a round that is not stored yet: %s", got)
	}
	refused := func(r *trajectory.Recorder) {
		t.Helper()
		if _, err := r.Add(trajectory.NewNode{Type: trajectory.State}); !errors.Is(err, trajectory.ErrLaterRound) || !strings.Contains(err.Error(), "round 2") {
			t.Errorf("a node of an older round: got %v", err)
		}
		text := "What was asked first."
		if err := r.Edit("Query(query00000)", trajectory.Edit{Description: &text}, trajectory.Attribution{}, now); err != nil {
			t.Errorf("a description of an older node: %v", err)
		}
	}
	refused(one)
	releaseTwo()
	releaseOne()
	again, release := hold(t, b, 1)
	refused(again)
	release()
	if _, err := trajectory.LoadGraph(t.Context(), s, "ann", "s", 0); err != nil {
		t.Error(err)
	}
}

func TestSubAgentsHaveGraphsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := memory()
	b := trajectory.NewRecorderPool(s, clock)
	for sub := range 3 {
		r, release, err := b.Open(t.Context(), trajectory.Key{User: "ann", Session: "s", Round: 1, Sub: sub})
		if err != nil {
			t.Fatal(err)
		}
		say(t, r, user(fmt.Sprint("Task ", sub)))
		if err := release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	g, err := trajectory.LoadGraph(t.Context(), s, "ann", "s", 2)
	if err != nil || len(g.Nodes) != 1 || g.Nodes[0].ID != "Query(query00000)" || g.Nodes[0].Sub != 2 {
		t.Errorf("the graph of sub-agent 2 is %+v, %v", g, err)
	}
}

// broken is a storage that fails while so configured.
type broken struct {
	trajectory.Storage
	err error
}

func (b *broken) Save(ctx context.Context, r trajectory.Record) error {
	if b.err != nil {
		return b.err
	}
	return b.Storage.Save(ctx, r)
}

func (b *broken) Adjacent(ctx context.Context, k trajectory.Key) (before, after int, err error) {
	if b.err != nil {
		return 0, 0, b.err
	}
	return b.Storage.Adjacent(ctx, k)
}

func (b *broken) Delete(ctx context.Context, f trajectory.Filter) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	return b.Storage.Delete(ctx, f)
}

func TestFailedStorageIsReportedAndReleased(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	s := &broken{Storage: memory()}
	b := trajectory.NewRecorderPool(s, clock)
	r, release, err := b.Open(t.Context(), round(1))
	if err != nil {
		t.Fatal(err)
	}
	say(t, r, user("Go."))
	s.err = full
	if err := r.Save(t.Context()); !errors.Is(err, full) || !r.Unsaved() {
		t.Errorf("save: got %v", err)
	}
	if err := release(t.Context()); !errors.Is(err, full) || b.OpenCount() != 0 {
		t.Errorf("release: got %v, %d held", err, b.OpenCount())
	}
	if _, _, err := b.Open(t.Context(), round(1)); !errors.Is(err, full) || b.OpenCount() != 0 {
		t.Errorf("open: got %v, %d held", err, b.OpenCount())
	}
	if _, _, err := b.Open(t.Context(), trajectory.Key{Session: "s"}); !errors.Is(err, trajectory.ErrKey) {
		t.Errorf("a key without a round: got %v", err)
	}
}

func TestWritersAtTheSameTimeLoseNothing(t *testing.T) {
	t.Parallel()
	const writers, each = 64, 4
	s := memory()
	b := trajectory.NewRecorderPool(s, clock)
	_, releaseMain := hold(t, b, 1)
	first, releaseFirst := hold(t, b, 1)
	say(t, first, user("Go."))
	releaseFirst()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			if err := write(t, b, w, each); err != nil {
				t.Errorf("writer %d: %v", w, err)
			}
		})
	}
	wg.Wait()
	releaseMain()
	if b.OpenCount() != 0 {
		t.Errorf("%d recorders are held", b.OpenCount())
	}
	g, err := trajectory.LoadGraph(t.Context(), s, "ann", "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + writers*each*2; len(g.Nodes) != want || !g.Acyclic() || connected(g) != 1 {
		t.Errorf("there are %d nodes, want %d", len(g.Nodes), want)
	}
	q := g.Nodes[0]
	if q.Version != 1+writers*each || len(q.History) != writers*each {
		t.Errorf("the query has version %d and %d old ones, want %d", q.Version, len(q.History), 1+writers*each)
	}
	seen := map[any]bool{q.Attributes["last"]: true}
	for _, c := range q.History {
		seen[c.Old["last"]] = true
	}
	if len(seen) != 1+writers*each { // with the nil of the first version
		t.Errorf("%d values were kept, want %d", len(seen), 1+writers*each)
	}
}

// write opens the round again and again, and does a little of everything.
func write(t *testing.T, b *trajectory.RecorderPool, w, each int) error {
	t.Helper()
	ctx := t.Context()
	for i := range each {
		r, release, err := b.Open(ctx, round(1))
		if err != nil {
			return err
		}
		query := trajectory.ID("Query(query00000)")
		a, err := r.Add(trajectory.NewNode{Type: trajectory.Action, After: []trajectory.ID{query}})
		if err != nil {
			return err
		}
		f, err := r.Add(trajectory.NewNode{Type: trajectory.File, After: []trajectory.ID{a}, Relation: trajectory.Produces})
		if err != nil {
			return err
		}
		err = errors.Join(
			r.Link(query, f, trajectory.RefersTo),
			r.Edit(query, trajectory.Edit{Set: map[string]any{"last": fmt.Sprint(w, "/", i)}}, trajectory.Attribution{}, now),
			r.SetPointers(a),
			r.Save(ctx),
		)
		if n, nodeErr := r.Node(f); nodeErr != nil || n.Type != trajectory.File {
			err = errors.Join(err, fmt.Errorf("%s is %+v: %w", f, n, nodeErr))
		}
		_, _, _ = r.Graph(), r.Current(), r.Unsaved()
		if err := errors.Join(err, release(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func TestManyOpenAndReleaseAtTheSameTime(t *testing.T) {
	t.Parallel()
	s := memory()
	b := trajectory.NewRecorderPool(s, clock)
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			k := trajectory.Key{Session: fmt.Sprint("s", w%4), Round: 1}
			r, release, err := b.Open(t.Context(), k)
			if err != nil {
				t.Error(err)
				return
			}
			m := user("x")
			m.ID = fmt.Sprint(w)
			_, err = r.AddMessages(trajectory.MessageOptions{At: now}, m)
			if err := errors.Join(err, release(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	for i := range 4 {
		r, err := s.Load(t.Context(), trajectory.Key{Session: fmt.Sprint("s", i), Round: 1})
		if err != nil {
			t.Fatal(err)
		}
		n += len(r.Messages)
	}
	if n != 64 || b.OpenCount() != 0 {
		t.Errorf("%d of 64 messages are stored, %d recorders held", n, b.OpenCount())
	}
}

// slow is a storage whose first look waits until its context is over.
type slow struct {
	trajectory.Storage
	once sync.Once
}

func (s *slow) Adjacent(ctx context.Context, k trajectory.Key) (before, after int, err error) {
	first := false
	s.once.Do(func() { first = true })
	if first {
		<-ctx.Done()
		return 0, 0, ctx.Err()
	}
	return s.Storage.Adjacent(ctx, k)
}

func TestWaiterLoadsAfterCancelledLoader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := trajectory.NewRecorderPool(&slow{Storage: memory()}, clock)
		ctx, cancel := context.WithCancel(t.Context())
		open := func(ctx context.Context) chan error {
			result := make(chan error, 1)
			go func() {
				_, release, err := b.Open(ctx, round(1))
				if err == nil {
					err = release(ctx)
				}
				result <- err
			}()
			return result
		}
		gaveUp := open(ctx)
		synctest.Wait() // it waits for the storage
		opened := open(t.Context())
		other, cancelOther := context.WithCancel(t.Context())
		gaveUpToo := open(other)
		synctest.Wait() // they wait for it
		cancelOther()
		if err := <-gaveUpToo; !errors.Is(err, context.Canceled) {
			t.Errorf("who waited and gave up got %v", err)
		}
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up got %v", err)
		}
		if err := <-opened; err != nil {
			t.Errorf("who did not got %v", err)
		}
		if b.OpenCount() != 0 {
			t.Errorf("%d recorders are held", b.OpenCount())
		}
	})
}

func TestMirroredReadsFromEitherStorage(t *testing.T) {
	t.Parallel()
	one, two := memory(), memory()
	both := trajectory.Mirrored{First: one, Second: two}
	a, b := trajectorytest.Sample(t, round(1), 0), trajectorytest.Sample(t, round(2), 0)
	b.Nodes, b.Edges, b.Current, b.Initial = nil, nil, nil, ""
	if err := errors.Join(one.Save(t.Context(), a), two.Save(t.Context(), b)); err != nil {
		t.Fatal(err)
	}
	keys, err := both.List(t.Context(), trajectory.Filter{})
	if err != nil || len(keys) != 2 {
		t.Errorf("listed are %v, %v", keys, err)
	}
	for _, k := range keys {
		if r, err := both.Load(t.Context(), k); err != nil || r.Key != k {
			t.Errorf("%s: %+v, %v", k, r.Key, err)
		}
	}
	full := errors.New("the disk is full")
	half := trajectory.Mirrored{First: &broken{Storage: one, err: full}, Second: two}
	if err := half.Save(t.Context(), a); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if _, err := two.Load(t.Context(), a.Key); err != nil {
		t.Errorf("the other was not tried: %v", err)
	}
}

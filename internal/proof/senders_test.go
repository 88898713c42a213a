package proof

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

var (
	messagesPerSender    = flag.Int("ahead.n", 40, "messages that each of four processes sends ahead")
	sendAheadRepetitions = flag.Int("ahead.times", 1, "how often they do")
)

// errStore is what a store reports that fails for a moment.
var errStore = errors.New("a store error that was injected")

// faulty is a store of which some calls fail, before they have done anything or after
// all of it.
type faulty struct {
	*sqlite.Store
	rate     float64 // of the calls that fail
	injected atomic.Int64
}

// Capabilities has sessions use the methods of this store.
func (f *faulty) Capabilities() store.Capabilities {
	c := f.Store.Capabilities()
	c.Sessions = f
	return c
}

// fails decides whether a call fails, and whether before it does anything.
func (f *faulty) fails() (before, after bool) {
	if rand.Float64() >= f.rate {
		return false, false
	}
	f.injected.Add(1)
	before = rand.IntN(2) == 0
	return before, !before
}

// call makes a call that may fail.
func call[T any](f *faulty, do func() (T, error)) (T, error) {
	before, after := f.fails()
	var none T
	if before {
		return none, errStore
	}
	v, err := do()
	if after && err == nil {
		return none, errStore
	}
	return v, err
}

func (f *faulty) Append(ctx context.Context, as []store.Append) []error {
	before, after := f.fails()
	errs := make([]error, len(as))
	if !before {
		errs = f.Store.Append(ctx, as)
	}
	for i := range errs {
		if before || after && errs[i] == nil {
			errs[i] = errStore
		}
	}
	return errs
}

func (f *faulty) Session(ctx context.Context, id string) (store.Session, error) {
	return call(f, func() (store.Session, error) { return f.Store.Session(ctx, id) })
}

func (f *faulty) Run(ctx context.Context, id string) (store.Run, error) {
	return call(f, func() (store.Run, error) { return f.Store.Run(ctx, id) })
}

func (f *faulty) Enqueue(ctx context.Context, q store.QueuedMessage) (store.QueuedMessage, error) {
	return call(f, func() (store.QueuedMessage, error) { return f.Store.Enqueue(ctx, q) })
}

func (f *faulty) NextQueued(ctx context.Context, id string) (store.QueuedMessage, error) {
	return call(f, func() (store.QueuedMessage, error) { return f.Store.NextQueued(ctx, id) })
}

func (f *faulty) FindQueued(ctx context.Context, id string) (store.QueuedMessage, error) {
	return call(f, func() (store.QueuedMessage, error) { return f.Store.FindQueued(ctx, id) })
}

func (f *faulty) Queue(ctx context.Context, id string) ([]store.QueuedMessage, error) {
	return call(f, func() ([]store.QueuedMessage, error) { return f.Store.Queue(ctx, id) })
}

func (f *faulty) NotQueued(ctx context.Context, ids []string) ([]string, error) {
	return call(f, func() ([]string, error) { return f.Store.NotQueued(ctx, ids) })
}

func (f *faulty) RoundMessage(ctx context.Context, run string) (store.QueuedMessage, error) {
	return call(f, func() (store.QueuedMessage, error) { return f.Store.RoundMessage(ctx, run) })
}

func (f *faulty) Acquire(ctx context.Context, run, owner string, ttl time.Duration) (store.Lease, error) {
	return call(f, func() (store.Lease, error) { return f.Store.Acquire(ctx, run, owner, ttl) })
}

func (f *faulty) Release(ctx context.Context, l store.Lease) error {
	_, err := call(f, func() (any, error) { return nil, f.Store.Release(ctx, l) })
	return err
}

// TestSenderProcess is what the test of messages sent ahead starts: it
// sends all its messages, prints each that was acknowledged, then waits for all turns.
func TestSenderProcess(t *testing.T) {
	path, who := os.Getenv("WEIR_SENDER_DB"), os.Getenv("WEIR_SENDER")
	if path == "" {
		t.Skip("started by the test of messages sent ahead")
	}
	n, _ := strconv.Atoi(os.Getenv("WEIR_SENDER_N"))
	rate, _ := strconv.ParseFloat(os.Getenv("WEIR_SENDER_FAULTS"), 64)
	inner, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{Store: inner}
	s := openSessionOn(t, f)
	f.rate = rate
	ended := make(chan error, n)
	for i := range n {
		text := fmt.Sprintf("%s-%d", who, i)
		turn, err := s.Send(t.Context(), text, weir.SendOptions{ID: text})
		for errors.Is(err, errStore) { // not acknowledged
			turn, err = s.Send(t.Context(), text, weir.SendOptions{ID: text})
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		fmt.Println("acknowledged", i)
		go func() { ended <- waitFor(turn, text) }()
	}
	for i := range n {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		fmt.Println("answered", i)
	}
	fmt.Println("injected", f.injected.Load())
}

// waitFor waits for a turn, which an error of the store must not end.
func waitFor(turn *weir.Reply, text string) error {
	for {
		state, err := turn.Wait(context.Background())
		if errors.Is(err, errStore) && turn.Run() != "" { // reading what it came to
			continue
		}
		if err != nil || state.Status != engine.Completed || state.Text != "re "+text {
			return fmt.Errorf("%s: %+v %w", text, state, err)
		}
		return nil
	}
}

// sendAhead is one run of four senders.
type sendAhead struct {
	path     string
	n        int
	kills    atomic.Int64
	injected atomic.Int64
}

// sender starts a sender over and over until it has had all its answers, and kills it
// a few times: as soon as it has sent some messages, or while it waits.
func (a *sendAhead) sender(t *testing.T, who string, kills int) {
	t.Helper()
	for ; ; kills-- {
		said, err := a.start(t, who, kills > 0)
		if kills > 0 && err != nil {
			a.kills.Add(1)
			continue
		}
		if err != nil {
			t.Errorf("sender %s: %v\n%s", who, err, said)
		}
		return
	}
}

// start starts a sender and returns what it has to say when it ends; with kill it is
// killed after so many lines.
func (a *sendAhead) start(t *testing.T, who string, kill bool) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSenderProcess$", "-test.v")
	c.Env = append(os.Environ(), "WEIR_SENDER_DB="+a.path, "WEIR_SENDER="+who, fmt.Sprint("WEIR_SENDER_N=", a.n), "WEIR_SENDER_FAULTS=0.01")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return "", err
	}
	at, lines, said := rand.IntN(2*a.n), 0, strings.Builder{}
	for in := bufio.NewScanner(out); in.Scan(); lines++ {
		what, n, _ := strings.Cut(in.Text(), " ")
		switch what {
		case "injected":
			i, _ := strconv.ParseInt(n, 10, 64)
			a.injected.Add(i)
		case "acknowledged", "answered":
		default:
			said.WriteString(in.Text() + "\n")
		}
		if kill && lines == at {
			_ = c.Process.Kill()
		}
	}
	return said.String(), c.Wait()
}

// TestQueuedMessagesOfFourProcessesAreAnsweredOnce has four processes send all
// their messages before the first is answered, into one session, while calls of their
// stores fail and they are killed: every message is answered once.
func TestQueuedMessagesOfFourProcessesAreAnsweredOnce(t *testing.T) {
	if *sendAheadRepetitions == 1 {
		t.Parallel()
	}
	for i := range *sendAheadRepetitions {
		began := time.Now()
		a := &sendAhead{path: filepath.Join(t.TempDir(), "weir.db"), n: *messagesPerSender}
		openSession(t, a.path)
		var wg sync.WaitGroup
		speakers := []string{"anna", "bert", "cleo", "dora"}
		for k, who := range speakers {
			wg.Go(func() { a.sender(t, who, k%3) }) // two are not killed
		}
		wg.Wait()
		checkSession(t, a.path, a.n, speakers...)
		if t.Failed() {
			t.Fatalf("try %d of %d", i+1, *sendAheadRepetitions)
		}
		t.Logf("try %d: %d messages of %d processes, %d kills, %d store errors in the processes that were not killed, %s",
			i+1, len(speakers)*a.n, len(speakers), a.kills.Load(), a.injected.Load(), time.Since(began).Round(time.Second))
	}
}

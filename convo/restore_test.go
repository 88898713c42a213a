package convo_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/weir-run/weir/convo"
)

// countingSource is a store of one context's messages that counts what it is asked for.
type countingSource struct {
	ms       []convo.Message
	mu       sync.Mutex
	requests []string
	err      error
}

func (k *countingSource) Load(_ string, from, to int) ([]convo.Message, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.requests = append(k.requests, fmt.Sprintf("%d-%d", from, to))
	return k.ms[from:to], k.err
}

// countingFinder can find as well.
type countingFinder struct {
	countingSource
	finds int
}

func (x *countingFinder) FindMessage(_, id string, n int) (int, error) {
	x.finds++
	for i := n - 1; i >= 0; i-- {
		if x.ms[i].ID == id {
			return i, nil
		}
	}
	return -1, nil
}

func numberedMessages(n int) []convo.Message {
	ms := make([]convo.Message, n)
	for i := range ms {
		ms[i] = userMessage("m"+strconv.Itoa(i), strconv.Itoa(i))
	}
	return ms
}

func TestRestoredHistoryEqualsTheSavedOne(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 255, 256, 257, 1000} {
		src := &countingSource{ms: numberedMessages(n)}
		c := convo.Restore(convo.Context{ID: "c"}, n, true, src)
		want := numberedMessages(n)
		if got := allMessages(c.History); !sameMessages(got, want) {
			t.Fatalf("%d messages read back as %d", n, len(got))
		}
		f := c.Fork("f")
		f, err := f.Apply(convo.Change{Append: []convo.Message{userMessage("m0", "again"), userMessage("new", "x")}})
		if err != nil {
			t.Fatal(err)
		}
		if got := allMessages(f.History); len(got) != n+2 || got[n].Text != "again" {
			t.Errorf("after an append to %d messages there are %d", n, len(got))
		}
		ms, err := f.Messages()
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 && (len(ms) != n+1 || ms[0].Text != "again") {
			t.Errorf("%d messages and a new version of the first give %d, the first is %q", n, len(ms), ms[0].Text)
		}
		if m, _, err := f.History.Lookup("m0"); err != nil || m.Text != "again" {
			t.Errorf("the newest version of m0 is %q, %v", m.Text, err)
		}
	}
}

func TestRestoredHistoryLoadsPagesLazilyAndOnce(t *testing.T) {
	t.Parallel()
	src := &countingFinder{countingSource: countingSource{ms: numberedMessages(10_000)}}
	c := convo.Restore(convo.Context{ID: "c", Epoch: 9_900}, 10_000, true, src)
	c, err := c.Apply(convo.Change{Append: []convo.Message{userMessage("new", "x")}})
	if err != nil || len(src.requests) != 0 {
		t.Fatalf("an append loads %v, %v", src.requests, err)
	}
	for range 2 {
		ms, err := c.Messages()
		if err != nil || len(ms) != 101 || ms[0].Text != "9900" || ms[100].Text != "x" {
			t.Fatalf("the epoch has %d messages, %v", len(ms), err)
		}
	}
	if m := c.History.At(9_990); m.Text != "9990" {
		t.Errorf("position 9990 holds %q", m.Text)
	}
	if got := fmt.Sprint(src.requests); got != "[9728-10000]" {
		t.Errorf("loaded %v", got)
	}
	if m, ok := c.History.Find("m5"); !ok || m.Text != "5" {
		t.Errorf("m5 is %q, %v", m.Text, ok)
	}
	if err := c.History.Load(0, c.History.Len()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(src.requests); got != "[9728-10000 0-256 256-9728]" {
		t.Errorf("loaded %v", got)
	}
}

func TestLookupWithoutFinderSearchesFromTheEnd(t *testing.T) {
	t.Parallel()
	src := &countingSource{ms: numberedMessages(1_000)}
	c := convo.Restore(convo.Context{ID: "c"}, 1_000, true, src)
	if m, ok := c.History.Find("m990"); !ok || m.Text != "990" || len(src.requests) != 1 {
		t.Errorf("found %v %q after loading %v", ok, m.Text, src.requests)
	}
	if _, ok := c.History.Find("nobody"); ok || len(src.requests) != 4 {
		t.Errorf("found %v after loading %v", ok, src.requests)
	}
}

func TestConcurrentReadersLoadEachPageOnce(t *testing.T) {
	t.Parallel()
	src := &countingSource{ms: numberedMessages(2_000)}
	c := convo.Restore(convo.Context{ID: "c"}, 2_000, true, src)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2_000 {
				at := (i*7 + g*251) % 2_000
				if m := c.History.At(at); m.Text != strconv.Itoa(at) {
					t.Errorf("position %d holds %q", at, m.Text)
				}
			}
		})
	}
	wg.Wait()
	if len(src.requests) != 8 {
		t.Errorf("8 pages were loaded by %d calls", len(src.requests))
	}
}

func TestSourceErrorIsReported(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	src := &countingSource{ms: numberedMessages(300), err: broken}
	c := convo.Restore(convo.Context{ID: "c"}, 300, true, src)
	if _, err := c.Messages(); !errors.Is(err, broken) {
		t.Errorf("Messages: %v", err)
	}
	if _, err := c.AddedSince(10); !errors.Is(err, broken) {
		t.Errorf("Own: %v", err)
	}
	if _, err := c.Apply(convo.Change{Append: []convo.Message{userMessage("x", "y")}}); !errors.Is(err, broken) {
		t.Errorf("Apply: %v", err)
	}
	if _, err := c.MarshalJSON(); !errors.Is(err, broken) {
		t.Errorf("MarshalJSON: %v", err)
	}
	if _, err := c.History.Read(3); !errors.Is(err, broken) {
		t.Errorf("Read: %v", err)
	}
	for range c.History.All() {
		t.Error("All yields a message that could not be read")
	}
	if err := c.History.Err(); !errors.Is(err, broken) {
		t.Errorf("Err: %v", err)
	}
	src.err = nil
	if ms, err := c.Messages(); err != nil || len(ms) != 300 {
		t.Errorf("once the store is back: %d messages, %v", len(ms), err)
	}
}

func TestTooFewLoadedMessagesIsAnError(t *testing.T) {
	t.Parallel()
	c := convo.Restore(convo.Context{ID: "c"}, 10, true, shortSource{})
	if _, err := c.Messages(); err == nil {
		t.Error("a gap in the history went unnoticed")
	}
}

type shortSource struct{}

func (shortSource) Load(string, int, int) ([]convo.Message, error) { return numberedMessages(3), nil }

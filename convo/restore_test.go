package convo_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/weir-run/weir/convo"
)

// kept is a store of one context's messages that counts what it is asked for.
type kept struct {
	ms     []convo.Message
	mu     sync.Mutex
	asked  []string
	broken error
}

func (k *kept) Load(_ string, from, to int) ([]convo.Message, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, fmt.Sprintf("%d-%d", from, to))
	return k.ms[from:to], k.broken
}

// indexed can find as well.
type indexed struct {
	kept
	finds int
}

func (x *indexed) FindMessage(_, id string, n int) (int, error) {
	x.finds++
	for i := n - 1; i >= 0; i-- {
		if x.ms[i].ID == id {
			return i, nil
		}
	}
	return -1, nil
}

func numbered(n int) []convo.Message {
	ms := make([]convo.Message, n)
	for i := range ms {
		ms[i] = user("m"+strconv.Itoa(i), strconv.Itoa(i))
	}
	return ms
}

func TestARestoredHistoryReadsAsTheOneThatWasSaved(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 255, 256, 257, 1000} {
		src := &kept{ms: numbered(n)}
		c := convo.Restore(convo.Context{ID: "c"}, n, true, src)
		want := numbered(n)
		if got := all(c.History); !sameMessages(got, want) {
			t.Fatalf("%d messages read back as %d", n, len(got))
		}
		f := c.Fork("f")
		f, err := f.Apply(convo.Change{Append: []convo.Message{user("m0", "again"), user("new", "x")}})
		if err != nil {
			t.Fatal(err)
		}
		if got := all(f.History); len(got) != n+2 || got[n].Text != "again" {
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

func TestOnlyWhatIsReadIsLoadedAndOnlyOnce(t *testing.T) {
	t.Parallel()
	src := &indexed{kept: kept{ms: numbered(10_000)}}
	c := convo.Restore(convo.Context{ID: "c", Epoch: 9_900}, 10_000, true, src)
	c, err := c.Apply(convo.Change{Append: []convo.Message{user("new", "x")}})
	if err != nil || len(src.asked) != 0 {
		t.Fatalf("an append loads %v, %v", src.asked, err)
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
	if got := fmt.Sprint(src.asked); got != "[9728-10000]" {
		t.Errorf("loaded %v", got)
	}
	if m, ok := c.History.Find("m5"); !ok || m.Text != "5" {
		t.Errorf("m5 is %q, %v", m.Text, ok)
	}
	if err := c.History.Load(0, c.History.Len()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(src.asked); got != "[9728-10000 0-256 256-9728]" {
		t.Errorf("loaded %v", got)
	}
}

func TestWithoutAFinderAnIDIsSoughtFromTheEnd(t *testing.T) {
	t.Parallel()
	src := &kept{ms: numbered(1_000)}
	c := convo.Restore(convo.Context{ID: "c"}, 1_000, true, src)
	if m, ok := c.History.Find("m990"); !ok || m.Text != "990" || len(src.asked) != 1 {
		t.Errorf("found %v %q after loading %v", ok, m.Text, src.asked)
	}
	if _, ok := c.History.Find("nobody"); ok || len(src.asked) != 4 {
		t.Errorf("found %v after loading %v", ok, src.asked)
	}
}

func TestManyReadersOfARestoredHistoryLoadEachPageOnce(t *testing.T) {
	t.Parallel()
	src := &kept{ms: numbered(2_000)}
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
	if len(src.asked) != 8 {
		t.Errorf("8 pages were loaded by %d calls", len(src.asked))
	}
}

func TestAStoreThatCannotBeReadIsTold(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	src := &kept{ms: numbered(300), broken: broken}
	c := convo.Restore(convo.Context{ID: "c"}, 300, true, src)
	if _, err := c.Messages(); !errors.Is(err, broken) {
		t.Errorf("Messages: %v", err)
	}
	if _, err := c.Own(10); !errors.Is(err, broken) {
		t.Errorf("Own: %v", err)
	}
	if _, err := c.Apply(convo.Change{Append: []convo.Message{user("x", "y")}}); !errors.Is(err, broken) {
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
	src.broken = nil
	if ms, err := c.Messages(); err != nil || len(ms) != 300 {
		t.Errorf("once the store is back: %d messages, %v", len(ms), err)
	}
}

func TestAStoreThatGivesTooFewMessagesIsTold(t *testing.T) {
	t.Parallel()
	c := convo.Restore(convo.Context{ID: "c"}, 10, true, short{})
	if _, err := c.Messages(); err == nil {
		t.Error("a gap in the history went unnoticed")
	}
}

type short struct{}

func (short) Load(string, int, int) ([]convo.Message, error) { return numbered(3), nil }

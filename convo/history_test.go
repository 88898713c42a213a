package convo_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/convo"
)

func userMessage(id, text string) convo.Message {
	return convo.Message{ID: id, Role: convo.User, Text: text}
}

func allMessages(h convo.History) []convo.Message {
	out := []convo.Message{}
	for i, m := range h.All() {
		if i != len(out) {
			panic(fmt.Sprintf("position %d came after %d", i, len(out)-1))
		}
		out = append(out, m)
	}
	return out
}

func sameMessages(a, b []convo.Message) bool {
	return slices.EqualFunc(a, b, convo.Message.Equal)
}

// TestHistoryMatchesCopiedSlices grows a tree of histories that
// share what they can and compares each with a slice of its own.
func TestHistoryMatchesCopiedSlices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hs := []convo.History{{}}
		model := [][]convo.Message{{}}
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				i := rapid.IntRange(0, len(hs)-1).Draw(t, "history")
				k := rapid.SampledFrom([]int{0, 1, 1, 2, 2, 30, 31, 32, 33, 1100}).Draw(t, "messages")
				ids := rapid.SampledFrom([][]string{{""}, {"a"}, {"a", "b", "m"}, {"m"}}).Draw(t, "ids")
				var ms []convo.Message
				for range k {
					n++
					id := ids[n%len(ids)]
					if id == "m" {
						id += strconv.Itoa(n)
					}
					ms = append(ms, userMessage(id, strconv.Itoa(n)))
				}
				hs = append(hs, hs[i].Append(ms...))
				model = append(model, append(slices.Clone(model[i]), ms...))
			},
		})
		for i := range hs {
			checkHistory(t, hs[i], model[i])
		}
	})
}

func checkHistory(t *rapid.T, h convo.History, want []convo.Message) {
	if h.Len() != len(want) {
		t.Fatalf("Len is %d, want %d", h.Len(), len(want))
	}
	if got := allMessages(h); !sameMessages(got, want) {
		t.Fatalf("All is %v, want %v", got, want)
	}
	for _, id := range []string{"a", "b", "", "nobody"} {
		var newest *convo.Message
		for i := range want {
			if want[i].ID == id && id != "" {
				newest = &want[i]
			}
		}
		got, ok := h.Find(id)
		if ok != (newest != nil) || ok && !got.Equal(*newest) {
			t.Fatalf("Find(%q) is %v %v, want %v", id, got, ok, newest)
		}
	}
	if len(want) > 0 {
		i := rapid.IntRange(0, len(want)-1).Draw(t, "position")
		if got := h.At(i); !got.Equal(want[i]) {
			t.Fatalf("At(%d) is %v, want %v", i, got, want[i])
		}
		rest := []convo.Message{}
		for _, m := range h.From(i) {
			rest = append(rest, m)
		}
		if !sameMessages(rest, want[i:]) {
			t.Fatalf("From(%d) is %v, want %v", i, rest, want[i:])
		}
	}
}

func TestLongHistoryAndItsForkHoldEveryMessage(t *testing.T) {
	t.Parallel()
	const n = 34_000 // past what two levels of the tree hold
	h := convo.History{}
	var middle convo.History
	for i := range n {
		if i == n/2 {
			middle = h
		}
		h = h.Append(userMessage("", strconv.Itoa(i)))
	}
	middle = middle.Append(userMessage("", "other"))
	for i, m := range h.All() {
		if m.Text != strconv.Itoa(i) {
			t.Fatalf("position %d holds %q", i, m.Text)
		}
	}
	if m := middle.At(n / 2); m.Text != "other" || middle.Len() != n/2+1 || middle.At(n/2-1).Text != h.At(n/2-1).Text {
		t.Errorf("the fork holds %q", m.Text)
	}
}

func TestPositionOutOfRangeIsTheZeroMessage(t *testing.T) {
	t.Parallel()
	h := convo.History{}.Append(userMessage("a", "x"))
	for _, i := range []int{-1, 1, 99} {
		if m := h.At(i); !m.Equal(convo.Message{}) {
			t.Errorf("At(%d) is %v", i, m)
		}
	}
}

func TestConcurrentAppendsToOneSnapshotAreIndependent(t *testing.T) {
	t.Parallel()
	shared := convo.History{}
	for i := range 40 {
		shared = shared.Append(userMessage("", strconv.Itoa(i)))
	}
	var wg sync.WaitGroup
	got := make([]convo.History, 16)
	for g := range got {
		wg.Go(func() {
			h := shared
			for i := range 100 {
				h = h.Append(userMessage(fmt.Sprintf("g%d.%d", g, i), strconv.Itoa(g)))
				if h.At(39).Text != "39" {
					t.Error("a shared message changed")
				}
			}
			got[g] = h
		})
	}
	wg.Wait()
	if shared.Len() != 40 {
		t.Fatalf("the snapshot grew to %d", shared.Len())
	}
	for g, h := range got {
		if h.Len() != 140 {
			t.Fatalf("history %d has %d messages", g, h.Len())
		}
		for i, m := range h.From(40) {
			if m.Text != strconv.Itoa(g) || m.ID != fmt.Sprintf("g%d.%d", g, i-40) {
				t.Fatalf("history %d holds %q at %d", g, m.ID, i)
			}
		}
	}
}

func TestHistoryDoesNotAliasCallerData(t *testing.T) {
	t.Parallel()
	full := func() convo.Message {
		return convo.Message{
			ID: "a", Role: convo.Assistant, Text: "t",
			Calls:    []convo.Call{{ID: "c", Name: "f", Arguments: "{}"}},
			Parts:    []convo.Part{{Kind: "image", URL: "u"}},
			Native:   []byte(`{"k":1}`),
			Metadata: convo.Metadata{"list": []any{int64(1), map[string]any{"x": "y"}}},
		}
	}
	spoil := func(m convo.Message) {
		m.Calls[0].Name = "spoiled"
		m.Parts[0].URL = "spoiled"
		m.Native[1] = 'X'
		m.Metadata["list"].([]any)[1].(map[string]any)["x"] = "spoiled"
	}
	given := full()
	h := convo.History{}.Append(given)
	m := convo.NewManager(convo.Context{ID: "ctx"}, true)
	back, err := m.Add(given)
	if err != nil {
		t.Fatal(err)
	}
	spoil(given)
	spoil(back)
	spoil(h.At(0))
	found, _ := h.Find("a")
	spoil(found)
	for _, msg := range h.All() {
		spoil(msg)
	}
	ms, err := m.Get().Messages()
	if err != nil {
		t.Fatal(err)
	}
	spoil(ms[0])
	ms[0].Text = "spoiled"
	want := full()
	for name, got := range map[string]convo.Message{
		"the history": h.At(0), "the manager": m.Get().History.At(0), "its change": m.Changes()[0].Append[0],
	} {
		if !got.Equal(want) {
			t.Errorf("%s now holds %+v", name, got)
		}
	}
}

package session_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/token"
)

// countedTalk answers each message.
const countedTalk = `
weir: 1
name: counted
context: {model: parrot/m}
inputs: {message: {type: text, required: true}}
nodes:
  answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
outputs: {answer: "{{ answer.text }}"}
`

// lastRequest has 24 rounds with a counter, nil for that of an encoding, and returns how many messages the last model call had.
func lastRequest(t *testing.T, flow string, count func(text string) int) int {
	t.Helper()
	var mu sync.Mutex
	sent := 0
	p := &weirkit.RepeatingModel{Sent: func(r *llm.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = len(r.Messages)
	}}
	m := llm.Model{Name: "parrot/m", Encoding: token.O200k}
	if count != nil {
		m.Count = token.NewTextCounter(count)
	}
	w := weirkit.Open(t, weir.Options{Providers: map[string]weir.Provider{"parrot": p}, Models: llm.NewCatalogue(m)})
	f := weirkit.Parse(t, w, flow)
	s, err := w.Session(t.Context(), f, weir.SessionOptions{User: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 24 {
		if st := weirkit.SendAndWait(t, s, fmt.Sprintf("message number %d of the talk", i), weir.SendOptions{}); st.Error != nil {
			t.Fatal(st.Error)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return sent
}

// TestAnOwnTokenCounterDecidesWhatFits compares what a model is sent under counters that count much
// and little, for the window of a call and for the history of a round.
func TestAnOwnTokenCounterDecidesWhatFits(t *testing.T) {
	t.Parallel()
	nothing, all := func(string) int { return 0 }, func(text string) int { return len(text) }
	for name, limited := range map[string]string{
		"window":  strings.Replace(countedTalk, "parrot/m", "parrot/m, budget: {window: 400, reserve: 50}", 1),
		"history": countedTalk + "session: {maxTokens: 250}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			few, some, many := lastRequest(t, limited, all), lastRequest(t, limited, nil), lastRequest(t, limited, nothing)
			if few < 1 || few >= some || some >= many {
				t.Errorf("the last call had %d messages where each byte counts, %d by the encoding, %d where only roles count", few, some, many)
			}
		})
	}
}

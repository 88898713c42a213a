package weir

import (
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/token"
)

// countMessages has the store keep how many tokens the messages of sessions
// have: by OpenAI's newest encoding, whatever model they were for.
func (w *Weir) countMessages() {
	s, ok := w.store.(store.Counting)
	if !ok {
		return
	}
	w.tally = sync.OnceValue(func() token.Counter {
		c, _ := token.For(token.O200k, "openai") // is embedded
		return c
	})
	s.CountTokens(func(m convo.Message) int {
		if len(m.Text) > longestCounted {
			return 0
		}
		return w.tally().Message(m)
	})
}

// longestCounted bounds the messages that are counted, in bytes: the store counts
// inside the transaction that keeps them, for which other writers wait.
const longestCounted = 1 << 20

// readyToCount reads the vocabulary, some 40 ms of work, beside what a session
// begins with.
func (w *Weir) readyToCount() {
	if w.tally != nil {
		go w.tally()
	}
}

package weir

import (
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/token"
)

// installMessageCounter has the store keep how many tokens the messages of sessions
// have: by OpenAI's newest encoding, whatever model they were for.
func (w *Weir) installMessageCounter() {
	countTokens := w.store.Capabilities().CountTokens
	if countTokens == nil {
		return
	}
	w.messageCounter = sync.OnceValue(func() token.Counter {
		c, _ := token.NewCounter(token.O200k, "openai") // is embedded
		return c
	})
	countTokens(func(m convo.Message) int {
		if len(m.Text) > maxCountedBytes {
			return 0
		}
		return w.messageCounter().Message(m)
	})
}

// maxCountedBytes bounds the messages that are counted, in bytes: the store counts
// inside the transaction that keeps them, for which other writers wait.
const maxCountedBytes = 1 << 20

// preloadMessageCounter reads the vocabulary, some 40 ms of work, beside what a session
// begins with.
func (w *Weir) preloadMessageCounter() {
	if w.messageCounter != nil {
		go w.messageCounter()
	}
}

package session

import (
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/token"
)

// installMessageCounter makes the store keep the token count of each session message, in
// OpenAI's newest encoding whatever model the message was for.
func (m *Manager) installMessageCounter(install func(count func(convo.Message) int)) {
	m.messageCounter = sync.OnceValue(func() token.Counter {
		c, _ := token.NewCounter(token.O200k, "openai") // the vocabulary is embedded
		return c
	})
	install(func(x convo.Message) int {
		if len(x.Text) > maxCountedBytes {
			return 0
		}
		return m.messageCounter().Message(x)
	})
}

// maxCountedBytes bounds the messages that are counted. The store counts inside the
// transaction that keeps the message, and other writers wait for it.
const maxCountedBytes = 1 << 20

// preloadMessageCounter loads the vocabulary, about 40 ms of work, in the background.
func (m *Manager) preloadMessageCounter() {
	if m.messageCounter != nil {
		go m.messageCounter()
	}
}

package store_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// BenchmarkLink is what a commit costs more for being chained: of a step of a chain, of
// a turn of a conversation, and of a value of a megabyte.
func BenchmarkLink(b *testing.B) {
	text := strings.Repeat("what is said in a turn ", 40)
	turn := &engine.NodeCompleted{
		Path: "talk#12/reply", Outputs: engine.Values{{Name: "text", Value: text}, {Name: "result", Value: text}}, Micros: 12345,
		Contexts: []engine.ContextChange{{ID: "main", Adds: 2, Body: &convo.Change{Append: []convo.Message{
			{ID: "talk#12/ask", Role: convo.User, Text: "and then?"}, {ID: "talk#12/reply.1", Role: convo.Assistant, Text: text},
		}}}},
	}
	for name, events := range map[string][]engine.Event{
		"step": {&engine.NodeCompleted{Path: "n1", Outputs: engine.Values{{Name: "value", Value: int64(1)}}, Micros: 12}, &engine.NodeStarted{Path: "n2", Attempt: 1}},
		"turn": {turn, &engine.NodeStarted{Path: "talk#13/ask", Attempt: 1}},
		"1MB":  {&engine.NodeCompleted{Path: "n1", Outputs: engine.Values{{Name: "value", Value: strings.Repeat("0123456789abcdef", 1<<16)}}}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var payload []byte
			tag, secret := store.Tag(0), []byte("0123456789abcdef")
			for b.Loop() {
				var err error
				if payload, err = store.AppendPayload(payload[:0], events); err != nil {
					b.Fatal(err)
				}
				tag = tag.Next(store.Header{Seq: 7, First: 13, At: 1}, store.CommitDigest(secret, "run", 7, payload))
			}
		})
	}
}

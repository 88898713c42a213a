package llmtest

import (
	"encoding/json"
	"strings"

	"github.com/weir-run/weir/convo"
)

// keep records that the vendor stores a conversation that ends in calls.
func (known issuedIDs) keep(id string, calls []convo.Call) {
	open := []string{}
	for _, c := range calls {
		open = append(open, c.ID)
	}
	known["session:"+id] = encode(open)
}

// holds reports whether the vendor stores a conversation; it always has the empty one.
func (known issuedIDs) holds(id string) bool {
	_, ok := known["session:"+id]
	return ok || id == ""
}

// open returns the calls without results in a stored conversation.
func (known issuedIDs) open(id string) map[string]bool {
	var calls []string
	if held, ok := known["session:"+id]; ok {
		_ = json.Unmarshal([]byte(held), &calls) // keep has encoded it
	}
	open := map[string]bool{}
	for _, call := range calls {
		open[call] = true
	}
	return open
}

// Forget makes the server lose all stored conversations, as vendors do after some days.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.issued {
		if strings.HasPrefix(id, "session:") {
			delete(s.issued, id)
		}
	}
}

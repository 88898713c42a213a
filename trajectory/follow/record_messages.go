package follow

import (
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/trajectory"
)

// recordedMessages is the number of a node's messages that are in the graph. A failed node may be retried by a
// person, and its messages must not be recorded twice.
type recordedMessages struct {
	answered  int             // answers
	results   map[int]bool    // results, by the ordinals of the calls
	declared  map[int]bool    // calls whose data is recorded
	calls     []trajectory.ID // the Actions of the calls, in order
	agentEnds []trajectory.ID // the last nodes of a sub-agent's own work
}

// unrecorded returns those of a node's messages, in order, that are not in the graph, and counts them as recorded.
func (s *recordedMessages) unrecorded(messages []convo.Message) []convo.Message {
	var out []convo.Message
	answers, calls := 0, 0
	open := map[string][]int{} // ordinals of calls without a result, by id
	for _, m := range messages {
		switch m.Role {
		case convo.Assistant:
			for _, c := range m.Calls {
				calls++
				open[c.ID] = append(open[c.ID], calls)
			}
			if answers++; answers <= s.answered {
				continue
			}
			s.answered = answers
		case convo.Tool:
			if of := open[m.CallID]; len(of) > 0 {
				open[m.CallID] = of[1:]
				if s.results[of[0]] {
					continue
				}
				if s.results == nil {
					s.results = map[int]bool{}
				}
				s.results[of[0]] = true
			}
		case convo.User, convo.System:
		}
		out = append(out, m)
	}
	return out
}

// recordMessages records a node's messages, and between them the failures of attempts, each after the answers that
// preceded it.
func (f *Follower) recordMessages(at time.Time, w *nodeWork, messages []convo.Message) error {
	slips := w.failures
	w.failures = nil
	for _, s := range slips {
		if err := f.addMessages(at, w, f.main, w.unrecorded(messagesUntil(messages, s.answers)), nil); err != nil {
			return err
		}
		if err := f.recordFailure(w, s); err != nil {
			return err
		}
	}
	if messages = w.unrecorded(messages); len(messages) == 0 {
		return nil
	}
	return f.addMessages(at, w, f.main, messages, nil)
}

// messagesUntil returns the messages before the answer with that number.
func messagesUntil(messages []convo.Message, answers int) []convo.Message {
	for i, m := range messages {
		if m.Role != convo.Assistant {
			continue
		}
		if answers--; answers < 0 {
			return messages[:i]
		}
	}
	return messages
}

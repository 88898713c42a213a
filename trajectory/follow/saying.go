package follow

import (
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/trajectory"
)

// saying is how much of what a node said is in the graph: it may have failed, and be
// tried again by a person, who does not say it twice.
type saying struct {
	answered int             // answers
	heard    map[int]bool    // results, by the ordinals of the calls
	declared map[int]bool    // calls whose data is there
	calls    []trajectory.ID // the Actions of the calls, in order
	within   []trajectory.ID // where a sub-agent's own work ends
}

// fresh are those of all messages of a node, in order, that are not in the graph; it
// takes it that they will be.
func (s *saying) fresh(messages []convo.Message) []convo.Message {
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
				if s.heard[of[0]] {
					continue
				}
				if s.heard == nil {
					s.heard = map[int]bool{}
				}
				s.heard[of[0]] = true
			}
		case convo.User, convo.System:
		}
		out = append(out, m)
	}
	return out
}

// tell records what a node said in the conversation, and between that the failures of
// attempts, each after the answers that it had.
func (f *Follower) tell(at time.Time, w *work, messages []convo.Message) error {
	slips := w.slips
	w.slips = nil
	for _, s := range slips {
		if err := f.say(at, w, f.main, w.fresh(until(messages, s.answers)), nil); err != nil {
			return err
		}
		if err := f.conclude(w, s); err != nil {
			return err
		}
	}
	if messages = w.fresh(messages); len(messages) == 0 {
		return nil
	}
	return f.say(at, w, f.main, messages, nil)
}

// until are the messages before the answer that comes after so many.
func until(messages []convo.Message, answers int) []convo.Message {
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

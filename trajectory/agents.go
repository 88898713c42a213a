package trajectory

import (
	"context"
	"fmt"
)

// Agent is an agent with rounds in a session.
type Agent struct {
	Sub int // 0 is the main agent
	// Name is the path of the sub-agent in the flow, from its latest round.
	Name string
	// Rounds are its rounds, in order.
	Rounds []int
}

// Agents lists the agents with rounds in a session, the main agent first; none if nothing is stored. It loads the
// latest round of each.
func Agents(ctx context.Context, s Storage, user, session string) ([]Agent, error) {
	keys, err := s.List(ctx, SessionFilter(user, session))
	if err != nil {
		return nil, fmt.Errorf("agents of session %s: %w", session, err)
	}
	var out []Agent
	for i, k := range keys {
		if i == 0 || keys[i-1].Sub != k.Sub {
			out = append(out, Agent{Sub: k.Sub})
		}
		a := &out[len(out)-1]
		a.Rounds = append(a.Rounds, k.Round)
		if i+1 < len(keys) && keys[i+1].Sub == k.Sub {
			continue
		}
		r, err := s.Load(ctx, k)
		if err != nil {
			return nil, fmt.Errorf("agents of session %s: %w", session, err)
		}
		a.Name = r.Agent
	}
	return out, nil
}

// SetAgent sets the path of the sub-agent in the flow.
func (r *Recorder) SetAgent(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.record.Agent != name {
		r.record.Agent = name
		r.revision++
	}
}

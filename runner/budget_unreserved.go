package runner

import (
	"maps"
	"slices"

	"github.com/weir-run/weir/engine"
)

// unreservedEffect is an effect in flight without a budget: nothing was reserved for it, and its start is not in the
// journal.
type unreservedEffect struct {
	digest   string
	maxUsage engine.Usage // its maximum usage
}

// trackUnreserved adds an effect that starts without a reservation.
func (a *attempt) trackUnreserved(key, digest string, may engine.Usage) {
	if may == (engine.Usage{}) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unreserved == nil {
		a.unreserved = make(map[string]unreservedEffect)
	}
	a.unreserved[key] = unreservedEffect{digest, may}
}

// untrackUnreserved removes an effect that did not start.
func (a *attempt) untrackUnreserved(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.unreserved, key)
}

// chargeUnreserved returns events that charge the effects in flight of an abandoned attempt with their maximum usage;
// a.mu is held.
func (a *attempt) chargeUnreserved() []engine.Event {
	var out []engine.Event
	for _, key := range slices.Sorted(maps.Keys(a.unreserved)) {
		u := a.unreserved[key]
		out = append(out, &engine.EffectStarted{Key: key, Digest: u.digest, Reserve: &u.maxUsage})
	}
	a.unreserved = nil
	return out
}

// uncommittedUsage returns the possible usage of a run's attempts besides what its journal has or reserves; called by
// the run's goroutine only.
func (m *machine) uncommittedUsage() engine.Usage {
	var sum engine.Usage
	for path, a := range m.active {
		begun := m.run.StartedEffects(path)
		a.mu.Lock()
		for _, u := range a.unreserved {
			sum = sum.Add(u.maxUsage)
		}
		for _, e := range a.pending {
			done, ok := e.(*engine.EffectCompleted)
			if !ok || done.Usage == nil || begun[done.Key] != nil && begun[done.Key].Reserve != nil {
				continue
			}
			sum = sum.Add(*done.Usage)
		}
		a.mu.Unlock()
	}
	return sum
}

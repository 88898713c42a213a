package runner

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
)

// unreservedEffect is an effect in flight without a budget: nothing was reserved for it, and its start is not in the
// journal.
type unreservedEffect struct {
	key, digest string
	maxUsage    engine.Usage // its maximum usage
}

// trackUnreserved adds an effect that starts without a reservation.
func (a *attempt) trackUnreserved(key, digest string, may engine.Usage) {
	if may == (engine.Usage{}) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.removeUnreserved(key)
	a.unreserved = append(a.unreserved, unreservedEffect{key, digest, may})
}

// untrackUnreserved removes an effect that did not start.
func (a *attempt) untrackUnreserved(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.removeUnreserved(key)
}

// removeUnreserved removes an effect; a.mu is held.
func (a *attempt) removeUnreserved(key string) {
	a.unreserved = slices.DeleteFunc(a.unreserved, func(u unreservedEffect) bool { return u.key == key })
}

// chargeUnreserved returns events that charge the effects in flight of an abandoned attempt with their maximum usage;
// a.mu is held.
func (a *attempt) chargeUnreserved() []engine.Event {
	var out []engine.Event
	slices.SortFunc(a.unreserved, func(x, y unreservedEffect) int { return strings.Compare(x.key, y.key) })
	for _, u := range a.unreserved {
		out = append(out, &engine.EffectStarted{Key: u.key, Digest: u.digest, Reserve: &u.maxUsage})
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

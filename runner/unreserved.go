package runner

import (
	"maps"
	"slices"

	"github.com/weir-run/weir/engine"
)

// unreserved is an effect in flight that no budget binds: nothing was reserved for it,
// and the journal does not have its start.
type unreserved struct {
	digest string
	may    engine.Usage // what it may take at most
}

// depart notes an effect that leaves without a reservation.
func (a *attempt) depart(key, digest string, may engine.Usage) {
	if may == (engine.Usage{}) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.flying == nil {
		a.flying = make(map[string]unreserved)
	}
	a.flying[key] = unreserved{digest, may}
}

// land forgets an effect that did not leave.
func (a *attempt) land(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.flying, key)
}

// chargeFlying returns events that charge the effects in flight of an attempt that is
// given up at what they may take; a.mu is held.
func (a *attempt) chargeFlying() []engine.Event {
	var out []engine.Event
	for _, key := range slices.Sorted(maps.Keys(a.flying)) {
		u := a.flying[key]
		out = append(out, &engine.EffectStarted{Key: key, Digest: u.digest, Reserve: &u.may})
	}
	a.flying = nil
	return out
}

// uncommitted is what the attempts of a run may have spent beyond what its journal says
// or reserves; the run's goroutine only.
func (m *machine) uncommitted() engine.Usage {
	var sum engine.Usage
	for path, a := range m.active {
		begun := m.run.BegunEffects(path)
		a.mu.Lock()
		for _, u := range a.flying {
			sum = sum.Add(u.may)
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

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

// expectLostCalls notes that the process which executed the run ended without releasing it: its attempts may have had calls
// in flight whose start is not in the journal.
func (m *machine) expectLostCalls() {
	for _, a := range m.active {
		a.mayHaveLost = a.interrupted
	}
}

// lostCall returns the event that charges a call that was in flight when the process ended, nil for none; a.mu is held. The
// attempt requests the same effects again as before, so the effects that it starts before the first one completes are those
// that it may have had in flight. The start that follows the event charges it for good.
func (a *attempt) lostCall(before *engine.EffectStarted, key, digest string) engine.Event {
	if !a.mayHaveLost || before != nil && before.Reserve != nil {
		return nil
	}
	i := slices.IndexFunc(a.unreserved, func(u unreservedEffect) bool { return u.key == key })
	if i < 0 {
		return nil
	}
	lost, may := nextStart(before, key, digest), a.unreserved[i].maxUsage
	lost.Reserve = &may
	return lost
}

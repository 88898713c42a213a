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

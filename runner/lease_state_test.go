package runner

import "testing"

func TestLeaseChangesStateOnlyAsTheProtocolSays(t *testing.T) {
	t.Parallel()
	legal := map[leaseState][]leaseState{
		leaseHeld:     {leaseHeld, leaseReleased},
		leasePending:  {leasePending, leaseHeld, leaseReleased},
		leaseReleased: {leaseReleased, leasePending},
	}
	for from, list := range legal {
		for _, to := range []leaseState{leaseHeld, leasePending, leaseReleased} {
			allowed := false
			for _, l := range list {
				allowed = allowed || l == to
			}
			if got := !changePanics(from, to); got != allowed {
				t.Errorf("%s to %s is allowed: %t, want %t", from, to, got, allowed)
			}
		}
	}
}

func changePanics(from, to leaseState) (panics bool) {
	defer func() { panics = recover() != nil }()
	x := &Execution{ID: "r", local: &Local{}, leaseState: from}
	x.setLeaseState(to)
	return false
}

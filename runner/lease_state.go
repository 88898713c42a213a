package runner

import "fmt"

// leaseState is how an execution stands to the lease of its run.
type leaseState uint8

const (
	// leaseHeld: this process owns the run and renews the lease.
	leaseHeld leaseState = iota
	// leasePending: the next commit acquires the lease. It is refused where another process
	// was faster.
	leasePending
	// leaseReleased: the last commit released the lease, or the run had ended and was loaded
	// without it.
	leaseReleased
)

// String returns the name of the state.
func (s leaseState) String() string { return [...]string{"held", "pending", "released"}[s] }

// mayBecome reports whether a transition is one of the protocol: a released lease is
// acquired again by a commit only, and a commit can acquire and release at once.
func (s leaseState) mayBecome(next leaseState) bool {
	switch s {
	case leaseHeld:
		return next == leaseReleased
	case leasePending:
		return next != leasePending
	case leaseReleased:
		return next == leasePending
	}
	return false
}

// setLeaseState changes the state of the lease; the driver only. A transition that the
// protocol does not have is a programmer's error.
func (x *Execution) setLeaseState(next leaseState) {
	if x.leaseState == next {
		return
	}
	if !x.leaseState.mayBecome(next) {
		panic(fmt.Sprintf("runner: the lease of run %s is %s and cannot become %s", x.ID, x.leaseState, next))
	}
	x.local.mu.Lock()
	defer x.local.mu.Unlock()
	x.leaseState = next
}

// reacquireWithCommit makes the next commit acquire the lease that the last one released.
// The release and the acquisition each raise the fence by one.
func (x *Execution) reacquireWithCommit() {
	x.setLeaseState(leasePending)
	x.local.mu.Lock()
	defer x.local.mu.Unlock()
	x.lease.Fence += 2
	x.lease.TTL = x.local.o.Lease
}

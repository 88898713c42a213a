package runner

import "sync/atomic"

// maxIdle is how many goroutines without work are kept.
const maxIdle = 32

// workers runs attempts on goroutines that are used again: a fresh goroutine
// would have to grow its stack for every node.
type workers struct {
	jobs chan job
	idle atomic.Int32
	quit <-chan struct{}
}

// job is an attempt of an execution, or nil to drive it.
type job struct {
	x *Execution
	a *attempt
}

func newWorkers(quit <-chan struct{}) *workers {
	return &workers{jobs: make(chan job), quit: quit}
}

// run has the job done and does not wait for it.
func (w *workers) run(j job) {
	select {
	case w.jobs <- j:
	default:
		go w.work(j)
	}
}

func (w *workers) work(j job) {
	for {
		j.do()
		if w.idle.Add(1) > maxIdle {
			w.idle.Add(-1)
			return
		}
		select {
		case j = <-w.jobs:
			w.idle.Add(-1)
		case <-w.quit:
			return
		}
	}
}

// perform runs the attempt and sends its end to the driver. If its function ends this goroutine, another one sends it.
func (j job) perform(a *attempt) (lead bool) {
	returned := false
	defer func() {
		if !returned {
			a.stopTimeouts()
			j.x.attemptReturned(a)
			j.x.send(driverMessage{attempt: a, ended: true, err: a.exitError()})
		}
	}()
	micros, err := a.runNode()
	returned = true
	a.stopTimeouts()
	j.x.attemptReturned(a)
	return j.x.messages.put(driverMessage{attempt: a, ended: true, err: err, micros: micros})
}

// do runs the attempt. If no other goroutine drives the execution afterwards, it drives,
// and continues with the next attempt.
func (j job) do() {
	a := j.a
	for {
		if a != nil {
			if !j.perform(a) {
				return
			}
		}
		if a = j.x.drive(); a == nil {
			return
		}
	}
}

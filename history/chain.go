package history

import (
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// Work is one row of a run's chain of work: an attempt of a node.
type Work struct {
	// Seq counts the attempts of a run in the order they started in, from 1.
	Seq  int
	Node string // path
	Type string
	// Code is the literal code of the node, else what was written for it.
	Code    string
	Attempt int
	// Status is "success", "failed", "cancelled" or "running".
	Status         string
	Started, Ended time.Time // Ended is zero for one that has not ended
	// Before and After are the state before and after the attempt; in a lane, the lane's
	// state. They share memory.
	Before, After engine.State
	// First and Last are the numbers of the events that started and ended it.
	First, Last int64
	Took        time.Duration
	// Metadata is the node's ai_metadata, nil for none.
	Metadata engine.Value
	Error    *engine.Error
	Usage    engine.Usage
	Steps    []WorkStep
}

// WorkRunning is the status of an attempt that has not ended.
const WorkRunning = "running"

// WorkStep is one step of a node that generates code.
type WorkStep struct {
	// Sequence counts the steps of a run, from 1.
	Sequence int // of the run's steps, from 1
	engine.Step
}

// chainBuilder builds the chain of work from the commits of a run.
type chainBuilder struct {
	run     *engine.Run
	running map[string]*Work // attempts that have not ended, by path
	seq     int
	steps   int
	yield   func(Work, error) bool
	stopped bool
}

func (c *chainBuilder) applyCommit(commit *engine.Commit) error {
	c.run.Tick(commit.At)
	at := time.UnixMilli(commit.At)
	for i, e := range commit.Events {
		if c.stopped {
			return nil
		}
		number := commit.First + int64(i)
		if s, ok := e.(*engine.NodeStarted); ok {
			c.yieldAttempt(s.Path, "cancelled") // a fork has restarted it
			c.startAttempt(s, number, at)
		}
		before := c.run.Usage()
		if err := c.run.Apply(e); err != nil {
			return fmt.Errorf("commit %d: %w", commit.Seq, err)
		}
		c.addUnknown(e, before)
		c.applyEvent(e, number, at)
	}
	return nil
}

func (c *chainBuilder) startAttempt(e *engine.NodeStarted, number int64, at time.Time) {
	c.seq++
	w := &Work{Seq: c.seq, Node: e.Path, Attempt: max(1, e.Attempt), Status: WorkRunning, Started: at, First: number}
	w.Before, _ = c.run.StateOf(e.Path)
	if d, _ := c.run.Plan().Flow.NodeAt(e.Path); d != nil {
		w.Type = d.Type
		w.Code, _ = d.With["code"].(string)
	}
	c.running[e.Path] = w
}

// addUnknown adds to an attempt what it is charged for calls without a result, when they start again or the attempt ends.
func (c *chainBuilder) addUnknown(e engine.Event, before engine.Usage) {
	var path string
	switch e := e.(type) {
	case *engine.EffectStarted:
		path, _ = engine.SplitEffectKey(e.Key)
	case *engine.NodeCompleted:
		path = e.Path
	case *engine.NodeFailed:
		path = e.Path
	case *engine.NodeCancelled:
		path = e.Path
	default:
		return
	}
	if w := c.running[path]; w != nil {
		w.Usage = w.Usage.Add(c.run.Usage().Less(before))
	}
}

// applyEvent adds an event to the attempt that it belongs to.
func (c *chainBuilder) applyEvent(e engine.Event, number int64, at time.Time) {
	switch e := e.(type) {
	case *engine.StepRecorded:
		w := c.running[e.Path]
		if c.steps++; w == nil {
			return
		}
		w.Steps = append(w.Steps, WorkStep{Sequence: c.steps, Step: e.Step})
		if e.Number == executionStep && e.Status == engine.StepSuccess && codeInFlow(c.run.Plan().Flow, e.Path) == "" {
			w.Code = e.Code
		}
	case *engine.EffectCompleted:
		path, _ := engine.SplitEffectKey(e.Key)
		if w := c.running[path]; w != nil && e.Usage != nil {
			w.Usage = w.Usage.Add(*e.Usage)
		}
	case *engine.NodeCompleted:
		c.completeAttempt(e.Path, "success", e.Micros, e.Metadata, nil, number, at)
	case *engine.NodeFailed:
		c.completeAttempt(e.Path, "failed", e.Micros, e.Metadata, e.Error, number, at)
	case *engine.NodeCancelled:
		c.completeAttempt(e.Path, "cancelled", 0, nil, nil, number, at)
	}
}

// executionStep is the number of the step that runs a node's code.
const executionStep = 5

// codeInFlow returns the code of a node in the flow, "" if it has none.
func codeInFlow(f *flow.Flow, path string) string {
	d, _ := f.NodeAt(path)
	if d == nil {
		return ""
	}
	code, _ := d.With["code"].(string)
	return code
}

func (c *chainBuilder) completeAttempt(path, status string, micros int64, metadata engine.Values, failed *engine.Error, number int64, at time.Time) {
	w := c.running[path]
	if w == nil {
		return
	}
	w.Ended, w.Last, w.Error = at, number, failed
	w.After, _ = c.run.StateOf(path)
	w.Metadata, _ = metadata.Get("ai_metadata")
	if w.Took = time.Duration(micros) * time.Microsecond; micros == 0 {
		w.Took = at.Sub(w.Started)
	}
	c.yieldAttempt(path, status)
}

// yieldAttempt yields an attempt that has ended.
func (c *chainBuilder) yieldAttempt(path, status string) {
	w := c.running[path]
	if w == nil {
		return
	}
	delete(c.running, path)
	w.Status = status
	c.stopped = c.stopped || !c.yield(*w, nil)
}

// yieldRunning yields the attempts that have not ended, in the order in which they
// started.
func (c *chainBuilder) yieldRunning() {
	for len(c.running) > 0 && !c.stopped {
		var first *Work
		for _, w := range c.running {
			if first == nil || w.Seq < first.Seq {
				first = w
			}
		}
		c.yieldAttempt(first.Node, first.Status)
	}
}

package temporal

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/weir-run/weir/runner"
)

// The codes of obstacles.
const (
	noWorkflow       = "no_workflow"        // the run has no open workflow
	workflowFailed   = "workflow_failed"    // a person must look at the run first
	noWorker         = "no_worker"          // no worker polls the task queue
	activityFailing  = "activity_failing"   // workers take the run and cannot execute it
	waitsForCapacity = "waits_for_capacity" // all workers execute as many runs as they may
)

// Obstacle implements runner.Scheduler.
func (c *Client) Obstacle(ctx context.Context, r runner.RunRef) (*runner.Obstacle, error) {
	restart := fmt.Sprintf("a worker starts it within 30 seconds; `weir-temporal resume %s` starts it at once", r.ID)
	d, err := c.c.DescribeWorkflowExecution(ctx, r.ID, "")
	if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
		return c.orNoWorker(ctx, r, &runner.Obstacle{Code: noWorkflow, Detail: "Temporal has no workflow of the run", Next: restart})
	}
	if err != nil {
		return nil, fmt.Errorf("describe the workflow of run %s: %w", r.ID, err)
	}
	switch s := d.GetWorkflowExecutionInfo().GetStatus(); s {
	case enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return c.orNoWorker(ctx, r, c.obstacleOfOpen(d, r.ID))
	case enums.WORKFLOW_EXECUTION_STATUS_FAILED:
		code, err := c.failureCode(ctx, r.ID)
		return &runner.Obstacle{
			Code: workflowFailed, Detail: fmt.Sprintf("its workflow failed with %q", code),
			Next: fmt.Sprintf("look at the run with `weir show %s`; `weir-temporal resume %s` continues it", r.ID, r.ID),
		}, err
	default:
		return c.orNoWorker(ctx, r, &runner.Obstacle{Code: noWorkflow, Detail: fmt.Sprintf("its workflow has ended (%s) and the run has not", s), Next: restart})
	}
}

// orNoWorker returns an obstacle, or the greater one that no worker polls the queue.
func (c *Client) orNoWorker(ctx context.Context, r runner.RunRef, o *runner.Obstacle) (*runner.Obstacle, error) {
	ok, err := c.hasWorker(ctx, r.Flow)
	if err != nil {
		return nil, fmt.Errorf("describe the task queue of run %s: %w", r.ID, err)
	}
	if !ok {
		return &runner.Obstacle{Code: noWorker, Detail: fmt.Sprintf("no worker polls the task queue %q", c.o.queueOf(r.Flow)), Next: c.missingWorker(r.Flow)}, nil
	}
	return o, nil
}

// obstacleOfOpen returns the obstacle of an open workflow by its activities.
func (c *Client) obstacleOfOpen(d *workflowservice.DescribeWorkflowExecutionResponse, run string) *runner.Obstacle {
	for _, a := range d.GetPendingActivities() {
		if a.GetActivityType().GetName() == outcomeActivity { // it waits for an execution
			continue
		}
		switch {
		case a.GetLastFailure() != nil:
			return &runner.Obstacle{
				Code: activityFailing, Detail: fmt.Sprintf("workers have tried %d times to execute it and failed, the last time with %q", a.GetAttempt()-1, codeOf(a.GetLastFailure())),
				Next: fmt.Sprintf("the logs of the workers say more; `weir-temporal runs --blocked` lists what this program lacks for run %s", run),
			}
		case a.GetState() == enums.PENDING_ACTIVITY_STATE_SCHEDULED:
			return &runner.Obstacle{Code: waitsForCapacity, Detail: "it waits for a worker that has room for a run", Next: "start more workers, or workers with a larger --runs"}
		}
	}
	return nil
}

// failureCode returns the code with which the newest workflow of a run failed.
func (c *Client) failureCode(ctx context.Context, run string) (string, error) {
	it := c.c.GetWorkflowHistory(ctx, run, "", false, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			return "", fmt.Errorf("read the end of the workflow of run %s: %w", run, err)
		}
		if f := e.GetWorkflowExecutionFailedEventAttributes().GetFailure(); f != nil {
			return codeOf(f), nil
		}
	}
	return "", nil
}

// codeOf returns the code of the innermost error of an activity or workflow.
func codeOf(f *failure.Failure) string {
	for f.GetCause() != nil {
		f = f.GetCause()
	}
	if code := f.GetApplicationFailureInfo().GetType(); code != "" {
		return code
	}
	if t := f.GetTimeoutFailureInfo(); t != nil {
		return "timeout of type " + t.GetTimeoutType().String()
	}
	return "interrupted"
}

package temporal

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// The names in histories, which later versions must keep.
const (
	workflowType    = "weir.run"
	executeActivity = "weir.execute"
	outcomeActivity = "weir.outcome"
	cancelActivity  = "weir.cancel"
	deliverUpdate   = "deliver"
	wakeSignal      = "wake"
	statusQuery     = "status"
	// pendingMessage is the code of an attempt that ended before the message was settled.
	pendingMessage = "pending"
)

// workflowInput is all that a workflow knows of its run.
type workflowInput struct {
	Run  string `json:"run"`
	Flow string `json:"flow"`
	// Heartbeat is Options.Heartbeat of the process that started the workflow.
	Heartbeat  time.Duration `json:"heartbeat"`
	Attributes bool          `json:"attributes,omitempty"`
	// Resume: a person has asked for the workflow.
	Resume bool `json:"resume,omitempty"`
	// State is carried over by continue-as-new; nil in the first workflow of a run.
	State *status `json:"state,omitempty"`
}

// status is what the last execution left; it is the answer of the query "status" too.
type status struct {
	Status  string `json:"status"`
	Commits int64  `json:"commits"`
	// Due is when a timer fires, Unix milliseconds, 0 for none.
	Due int64 `json:"due,omitempty"`
}

// executeInput is the argument of an execution.
type executeInput struct {
	Run     string `json:"run"`
	Commits int64  `json:"commits,omitempty"`
	// Resume: a person asked for it.
	Resume bool `json:"resume,omitempty"`
}

// message refers to a message in the inbox of the run. Its value, what it answers and who sent it stay in the store: names of
// events and of people may be personal.
type message struct {
	ID   int64  `json:"id"`
	Kind string `json:"kind"`
}

// outcome says whether a message was applied. Its sender reads the reason from the store.
type outcome struct {
	Refused bool `json:"refused,omitempty"`
}

// run is one workflow. The goroutines of a workflow take turns, so that it needs no lock.
type run struct {
	in     workflowInput
	status status
	woken  bool
	resume bool
}

// workflowOf is the workflow of every run: it has the run executed until it rests, and waits for a message, a timer or a
// cancellation to have it executed again.
func workflowOf(ctx workflow.Context, in workflowInput) (status, error) {
	r := &run{in: in, woken: in.State == nil, resume: in.Resume}
	if in.State != nil {
		r.status = *in.State
	}
	if err := r.listen(ctx); err != nil {
		return r.status, err
	}
	if workflow.GetVersion(ctx, listensFirst, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		err := r.advance(ctx)
		return r.status, err
	}
	end, setEnd := workflow.NewFuture(ctx)
	// Goroutines run in the order in which they were started: what was asked for is known before an execution that ends with it is judged.
	workflow.Go(ctx, func(ctx workflow.Context) { setEnd.SetError(r.advance(ctx)) })
	err := end.Get(ctx, nil)
	return r.status, err
}

// listensFirst is the change with which signals of the same workflow task are received before an execution that ended in it is judged.
const listensFirst = "listens-first"

// advance has the run executed until it has ended.
func (r *run) advance(ctx workflow.Context) error {
	for {
		if err := r.execute(ctx); err != nil {
			return err
		}
		done, err := r.wait(ctx)
		if done || err != nil {
			return err
		}
	}
}

// listen sets the handlers of queries, signals, updates and of the cancellation of the workflow.
func (r *run) listen(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, statusQuery, func() (status, error) { return r.status, nil }); err != nil {
		return err
	}
	if err := workflow.SetUpdateHandler(ctx, deliverUpdate, r.deliver); err != nil {
		return err
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var resume bool
			workflow.GetSignalChannel(ctx, wakeSignal).Receive(ctx, &resume)
			r.woken, r.resume = true, r.resume || resume
		}
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		ctx.Done().Receive(ctx, nil)
		background, _ := workflow.NewDisconnectedContext(ctx)
		_ = workflow.ExecuteActivity(r.shortActivity(background), cancelActivity, r.in.Run).Get(background, nil)
		r.woken = true
	})
	return nil
}

// deliver is the handler of the update: it returns when a message is durable or refused.
func (r *run) deliver(ctx workflow.Context, m message) (out outcome, err error) {
	r.woken = true
	background, _ := workflow.NewDisconnectedContext(ctx)
	err = workflow.ExecuteActivity(r.shortActivity(background), outcomeActivity, r.in.Run, m).Get(background, &out)
	return out, err
}

// maxExecution bounds one execution. A run that takes longer is executed again and continues.
const maxExecution = 30 * 24 * time.Hour

// retries are those of activities that fail because a worker ends, a store is away or another process has the run.
func retries() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 1.5, MaximumInterval: 5 * time.Second}
}

// shortActivity returns a context for activities that only read and write the store.
func (r *run) shortActivity(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Hour, HeartbeatTimeout: r.in.Heartbeat, RetryPolicy: retries(),
	})
}

// execute has the run executed until nothing is to be done at once. The cancellation of the workflow becomes one of the
// run, which ends it by itself.
func (r *run) execute(ctx workflow.Context) error {
	background, _ := workflow.NewDisconnectedContext(ctx)
	background = workflow.WithActivityOptions(background, workflow.ActivityOptions{
		StartToCloseTimeout: maxExecution, HeartbeatTimeout: r.in.Heartbeat, RetryPolicy: retries(), Summary: r.in.Flow,
	})
	for r.woken {
		in := executeInput{Run: r.in.Run, Commits: r.status.Commits, Resume: r.resume}
		r.woken, r.resume = false, false
		err := workflow.ExecuteActivity(background, executeActivity, in).Get(background, &r.status)
		if err != nil && !r.resume { // otherwise a person has asked meanwhile to try again
			return err
		}
		if r.in.Attributes {
			if err := workflow.UpsertTypedSearchAttributes(ctx, statusAttribute().ValueSet(r.status.Status)); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait returns when the run is to be executed again, or done.
func (r *run) wait(ctx workflow.Context) (done bool, err error) {
	background, _ := workflow.NewDisconnectedContext(ctx)
	if r.status.ended() || r.isLong(ctx) {
		// What arrives meanwhile is handled first, so that no update is lost.
		if err := workflow.Await(background, func() bool { return r.woken || workflow.AllHandlersFinished(ctx) }); err != nil || r.woken {
			return false, err
		}
		if r.status.ended() {
			return true, r.status.result()
		}
		next := r.in
		next.State, next.Resume = &r.status, false
		return false, workflow.NewContinueAsNewError(ctx, workflowType, next)
	}
	woken := func() bool { return r.woken }
	if r.status.Due == 0 {
		return false, workflow.Await(background, woken)
	}
	if pause := time.UnixMilli(r.status.Due).Sub(workflow.Now(ctx)); pause > 0 {
		if _, err := workflow.AwaitWithTimeout(background, pause, woken); err != nil {
			return false, err
		}
	}
	r.woken = true
	return false, nil
}

// The size of a history at which a workflow is continued as a new one; Temporal warns at 10,240 events or 10 MB.
const (
	maxEvents  = 8000
	maxHistory = 8 << 20
)

func (r *run) isLong(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() > maxEvents || info.GetCurrentHistorySize() > maxHistory
}

// The words for how a run has ended, as in listings of runs.
const (
	completed = "completed"
	failed    = "failed"
	cancelled = "cancelled"
)

func (s *status) ended() bool {
	return s.Status == completed || s.Status == failed || s.Status == cancelled
}

// result is how the workflow of an ended run ends.
func (s *status) result() error {
	switch s.Status {
	case failed:
		return temporal.NewNonRetryableApplicationError("the run failed; weir show says why", "run_failed", nil)
	case cancelled:
		return temporal.NewCanceledError()
	}
	return nil
}

// The search attributes, all keywords.
func flowAttribute() temporal.SearchAttributeKeyKeyword {
	return temporal.NewSearchAttributeKeyKeyword("WeirFlow")
}

func statusAttribute() temporal.SearchAttributeKeyKeyword {
	return temporal.NewSearchAttributeKeyKeyword("WeirStatus")
}

func sessionAttribute() temporal.SearchAttributeKeyKeyword {
	return temporal.NewSearchAttributeKeyKeyword("WeirSession")
}

func userAttribute() temporal.SearchAttributeKeyKeyword {
	return temporal.NewSearchAttributeKeyKeyword("WeirUser")
}

// activityError is the error of an activity in the history: a code, and no text of the run.
func activityError(code string, final bool, delay time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf("%s; the log of the worker says more", code), code, temporal.ApplicationErrorOptions{
		NonRetryable: final, NextRetryDelay: delay,
	})
}

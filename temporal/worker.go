package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// WorkerOptions are options of a Worker; the zero value has defaults.
type WorkerOptions struct {
	// TaskQueue is polled; "" is Options.TaskQueue of the client.
	TaskQueue string
	// Runs is the largest number of runs that are executed at once; 0 is 100.
	Runs int
	// Drain is how long effects in flight may take to end once the worker stops; 0 cancels them at once.
	Drain time.Duration
	// Deployment and BuildID make the worker a version of a deployment, to which Temporal gives runs only while the version is the
	// current one, or a ramping one, of the deployment. Runs move to the version that becomes current. Set both or neither.
	Deployment, BuildID string
	// Sweep is the interval at which runs without a workflow are looked for; 0 is 30 seconds.
	Sweep time.Duration
}

// Executor executes runs: a weir.Weir whose Options.Executes is Name, or a runner.Local whose Options.Runner is. It is all
// that stands between Temporal and the engine.
type Executor interface {
	Execute(ctx context.Context, run string, o runner.ExecuteOptions) (runner.Rest, error)
	SettlePost(ctx context.Context, run string, post int64) (pending, refused bool, err error)
	RequestCancel(ctx context.Context, run, by string) error
	Unscheduled(ctx context.Context) ([]runner.Unscheduled, error)
}

// Worker executes runs for a cluster.
type Worker struct {
	w    Executor
	c    *Client
	o    WorkerOptions
	sdk  worker.Worker
	stop context.CancelFunc
	// stopSessions ends the recovery of sessions; nil if there is none.
	stopSessions func()
	done         sync.WaitGroup
}

// NewWorker returns a worker, which Start starts.
func NewWorker(w Executor, c *Client, o WorkerOptions) *Worker {
	o.TaskQueue = cmp.Or(o.TaskQueue, c.o.TaskQueue)
	o.Runs = cmp.Or(o.Runs, 100)
	o.Sweep = cmp.Or(o.Sweep, 30*time.Second)
	k := &Worker{w: w, c: c, o: o}
	k.sdk = worker.New(c.c, o.TaskQueue, worker.Options{
		DeploymentOptions: o.deployment(),
		Identity:          workerIdentity(o.TaskQueue), MaxConcurrentActivityExecutionSize: o.Runs, WorkerStopTimeout: o.Drain + stopTime,
		MaxHeartbeatThrottleInterval: c.o.Heartbeat / 2, DefaultHeartbeatThrottleInterval: c.o.Heartbeat / 2,
	})
	k.sdk.RegisterWorkflowWithOptions(workflowOf, workflow.RegisterOptions{Name: workflowType})
	k.sdk.RegisterActivityWithOptions(k.execute, activity.RegisterOptions{Name: executeActivity})
	k.sdk.RegisterActivityWithOptions(k.outcome, activity.RegisterOptions{Name: outcomeActivity})
	k.sdk.RegisterActivityWithOptions(k.cancel, activity.RegisterOptions{Name: cancelActivity})
	return k
}

// deployment returns the options of a versioned worker. Its workflows upgrade by themselves: they decide nothing, and the
// recorded histories of all versions replay.
func (o *WorkerOptions) deployment() worker.DeploymentOptions {
	if o.Deployment == "" {
		return worker.DeploymentOptions{}
	}
	return worker.DeploymentOptions{
		UseVersioning: true, Version: worker.WorkerDeploymentVersion{DeploymentName: o.Deployment, BuildID: o.BuildID},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}
}

// workerIdentity names a worker process, as the SDK does.
func workerIdentity(queue string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%d@%s@%s", os.Getpid(), host, queue)
}

// TaskQueue returns the queue that the worker polls.
func (k *Worker) TaskQueue() string { return k.o.TaskQueue }

// stopTime is how long runs have to be left where they are, beyond WorkerOptions.Drain.
const stopTime = 10 * time.Second

// Start polls the task queue until Stop.
func (k *Worker) Start() error {
	if (k.o.Deployment == "") != (k.o.BuildID == "") {
		return fmt.Errorf("poll the task queue %s: a version has the name of a deployment and a build id: %q, %q", k.o.TaskQueue, k.o.Deployment, k.o.BuildID)
	}
	if err := k.sdk.Start(); err != nil {
		return fmt.Errorf("poll the task queue %s: %w", k.o.TaskQueue, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	k.stop = stop
	if w, ok := k.w.(*weir.Weir); ok { // a runner.Local has no sessions
		k.stopSessions = w.RecoverSessions(k.c)
	}
	k.done.Go(func() { k.sweep(ctx) })
	return nil
}

// Stop leaves all runs where they are, so that another worker continues them.
func (k *Worker) Stop() {
	k.stop()
	if k.stopSessions != nil {
		k.stopSessions()
	}
	k.done.Wait()
	k.sdk.Stop()
}

// resumeAttempts is how many attempts of the activity execute a run that is set aside, after a person has asked for it: some may go to a worker
// that has ended, or find the lease of one. Later ones set the run aside again if it still crashes workers.
const resumeAttempts = 10

// execute is the activity that executes a run until it rests.
func (k *Worker) execute(ctx context.Context, in executeInput) (status, error) {
	ctx, stop := k.startHeartbeat(ctx)
	defer stop()
	resume := in.Resume && activity.GetInfo(ctx).Attempt <= resumeAttempts
	rest, err := k.w.Execute(ctx, in.Run, runner.ExecuteOptions{Resume: resume, Commits: in.Commits, Drain: k.o.Drain})
	if err != nil {
		return status{}, k.failure(ctx, in.Run, err)
	}
	out := status{Status: rest.Status.String(), Commits: rest.Commits}
	if !rest.Due.IsZero() {
		out.Due = rest.Due.UnixMilli()
	}
	return out, nil
}

// startHeartbeat tells the cluster that the worker lives until stop is called. The context ends with the activity's, and
// when the worker stops.
func (k *Worker) startHeartbeat(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.heartbeat(parent, ctx, cancel)
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// heartbeat reports with the context of the activity, so that stopping interrupts no report.
func (k *Worker) heartbeat(parent, ctx context.Context, cancel context.CancelCauseFunc) {
	t := time.NewTicker(k.c.o.Heartbeat / 4)
	defer t.Stop()
	for {
		activity.RecordHeartbeat(parent)
		select {
		case <-t.C:
		case <-activity.GetWorkerStopChannel(parent):
			cancel(errStopping)
			return
		case <-ctx.Done():
			return
		}
	}
}

var errStopping = errors.New("the worker stops")

// missingDelay is how long a run waits that no worker so far has had everything for.
const missingDelay = 10 * time.Second

// failure returns the error of an activity, and logs what it leaves out.
func (k *Worker) failure(ctx context.Context, run string, err error) error {
	code, final, delay := "interrupted", false, time.Duration(0)
	switch {
	case errors.Is(err, runner.ErrJournalBehind):
		code, final = "journal_behind", true
	case errors.Is(err, runner.ErrPoisoned):
		code, final = "poisoned", true
	case errors.Is(err, runner.ErrOtherRunner):
		code, final = "other_runner", true
	case errors.Is(err, runner.ErrNoRun):
		code, final = "not_found", true
		k.forget(ctx, run)
	case errors.Is(err, store.ErrNotFound):
		code, final = "not_found", true
	case errors.Is(err, runner.ErrDependenciesChanged):
		code, delay = "missing", missingDelay
	case errors.Is(err, store.ErrOwned), errors.Is(err, store.ErrFenced):
		code = "owned"
	}
	k.c.o.Logger.Warn("execute run", "run", run, "code", code, "error", err)
	return activityError(code, final, delay)
}

// forget deletes the workflow of a run that was deleted from the store while another process woke it.
func (k *Worker) forget(ctx context.Context, run string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTimeout)
	defer cancel()
	if err := k.c.forgetOpen(ctx, run); err != nil {
		k.c.o.Logger.Warn("delete the workflow of a deleted run", "run", run, "error", err)
	}
}

// The interval at which a message is looked at, at first and later.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 100 * time.Millisecond
)

// How long an attempt of the activity that waits for a message may take, the first and the later ones. Between attempts it leaves its
// place to runs: otherwise as many messages as the worker has places would wait for an execution that gets none.
const (
	firstWait = 500 * time.Millisecond
	laterWait = 50 * time.Millisecond
)

// outcome is the activity that waits until a message has been applied or refused.
func (k *Worker) outcome(ctx context.Context, run string, m message) (outcome, error) {
	ctx, stop := k.startHeartbeat(ctx)
	defer stop()
	wait := firstWait
	if activity.GetInfo(ctx).Attempt > 1 {
		wait = laterWait
	}
	end := time.Now().Add(wait)
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		pending, refused, err := k.w.SettlePost(ctx, run, m.ID)
		switch {
		case err != nil:
			return outcome{}, k.failure(ctx, run, err)
		case !pending:
			return outcome{Refused: refused}, nil
		case time.Now().After(end):
			return outcome{}, activityError(pendingMessage, false, 0)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return outcome{}, k.failure(ctx, run, context.Cause(ctx))
		}
	}
}

// cancel is the activity that cancels a run whose workflow was cancelled.
func (k *Worker) cancel(ctx context.Context, run string) error {
	if err := k.w.RequestCancel(ctx, run, Name); err != nil {
		return k.failure(ctx, run, err)
	}
	return nil
}

// sweep restarts workflows that were lost, until ctx ends.
func (k *Worker) sweep(ctx context.Context) {
	t := time.NewTicker(k.o.Sweep)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		runs, err := k.w.Unscheduled(ctx)
		if err != nil {
			k.c.o.Logger.Warn("list unfinished runs", "error", err)
		}
		for _, r := range runs {
			if k.c.o.queueOf(r.Flow) != k.o.TaskQueue {
				continue
			}
			if err := k.c.restart(ctx, r); err != nil && ctx.Err() == nil {
				k.c.o.Logger.Warn("restart workflow", "run", r.ID, "error", err)
			}
		}
	}
}

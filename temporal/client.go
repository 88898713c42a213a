package temporal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"

	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// Client has a Temporal cluster schedule runs. It implements runner.Scheduler.
type Client struct {
	o Options
	c client.Client
}

// ErrNoWorker: no worker polls the task queue of the run.
var ErrNoWorker = errors.New("no worker polls the task queue")

// clientIdentity is what histories say about processes that start runs and send messages.
const clientIdentity = "weir"

// dialTimeout bounds the first connection.
const dialTimeout = 10 * time.Second

// Dial connects to a cluster. Close the client; weir.Weir.Close closes that of weir.Options.Runner.
func Dial(ctx context.Context, o Options) (*Client, error) {
	o = o.withDefaults()
	co := client.Options{
		HostPort: o.Address, Namespace: o.Namespace, Logger: log.NewStructuredLogger(o.Logger),
		Identity: clientIdentity, // the default names the machine, which may be that of a person
	}
	co.ConnectionOptions.TLS = o.TLS
	if o.APIKey != "" {
		co.Credentials = client.NewAPIKeyStaticCredentials(o.APIKey)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := client.DialContext(ctx, co)
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal at %s: %w", o.Address, err)
	}
	return &Client{o: o, c: c}, nil
}

// Name implements runner.Scheduler.
func (*Client) Name() string { return Name }

// Namespace returns the namespace with which the client works.
func (c *Client) Namespace() string { return c.o.Namespace }

// Address returns the frontend with which the client works.
func (c *Client) Address() string { return c.o.Address }

// Close implements runner.Scheduler.
func (c *Client) Close() error {
	c.c.Close()
	return nil
}

// Wake implements runner.Scheduler. It starts the workflow of the run, or signals the one that is open.
func (c *Client) Wake(ctx context.Context, r runner.RunRef, resume bool) error {
	c.noteMissingWorker(ctx, r.Flow)
	_, err := c.c.SignalWithStartWorkflow(ctx, r.ID, wakeSignal, resume, c.start(r), workflowType, workflowInput{
		Run: r.ID, Flow: r.Flow, Heartbeat: c.o.Heartbeat, Attributes: c.o.SearchAttributes, Resume: resume,
	})
	if err != nil {
		return fmt.Errorf("have Temporal execute run %s: %w", r.ID, err)
	}
	return nil
}

// start returns the options of the workflow of a run.
func (c *Client) start(r runner.RunRef) client.StartWorkflowOptions {
	o := client.StartWorkflowOptions{
		ID: r.ID, TaskQueue: c.o.queueOf(r.Flow), StaticSummary: r.Flow,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}
	if c.o.SearchAttributes {
		o.TypedSearchAttributes = temporal.NewSearchAttributes(c.attributes(r)...)
	}
	return o
}

// attributes are the search attributes that a workflow starts with.
func (c *Client) attributes(r runner.RunRef) []temporal.SearchAttributeUpdate {
	out := []temporal.SearchAttributeUpdate{flowAttribute().ValueSet(r.Flow)}
	if r.Session != "" {
		out = append(out, sessionAttribute().ValueSet(r.Session))
	}
	if r.User != "" && c.o.UserKey != "" {
		out = append(out, userAttribute().ValueSet(HashUser(c.o.UserKey, r.User)))
	}
	return out
}

// Deliver implements runner.Scheduler. The message is an update of the workflow, whose id is that of the message. Without a
// worker the message stays in the inbox, and the error is ErrNoWorker.
func (c *Client) Deliver(ctx context.Context, r runner.RunRef, p store.Post) error {
	if ok, err := c.hasWorker(ctx, r.Flow); err == nil && !ok {
		return fmt.Errorf("%s; the message to run %s is kept and applied when one starts: %w", c.missingWorker(r.Flow), r.ID, ErrNoWorker)
	}
	handle, err := c.c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: c.c.NewWithStartWorkflowOperation(c.start(r), workflowType, workflowInput{
			Run: r.ID, Flow: r.Flow, Heartbeat: c.o.Heartbeat, Attributes: c.o.SearchAttributes,
		}),
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateID: "message-" + strconv.FormatInt(p.ID, 10), UpdateName: deliverUpdate,
			Args: []any{message{ID: p.ID, Kind: p.Kind}}, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	var out outcome
	if err == nil {
		err = handle.Get(ctx, &out) // what was refused is in the store
	}
	if err != nil {
		return fmt.Errorf("have Temporal deliver a message to run %s: %w", r.ID, err)
	}
	return nil
}

// pollerAge is the age up to which a poll says that a worker is there: a poll lasts for a minute.
const pollerAge = 70 * time.Second

// hasWorker reports whether a worker polls the queue of a flow.
func (c *Client) hasWorker(ctx context.Context, flow string) (bool, error) {
	d, err := c.c.DescribeTaskQueue(ctx, c.o.queueOf(flow), enums.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return false, err
	}
	for _, p := range d.GetPollers() {
		if time.Since(p.GetLastAccessTime().AsTime()) < pollerAge {
			return true, nil
		}
	}
	return false, nil
}

func (c *Client) missingWorker(flow string) string {
	return fmt.Sprintf("no worker polls the task queue %q of namespace %q at %s; start one with `weir-temporal worker`",
		c.o.queueOf(flow), c.o.Namespace, c.o.Address)
}

// noteMissingWorker says that a run waits for a worker.
func (c *Client) noteMissingWorker(ctx context.Context, flow string) {
	if ok, err := c.hasWorker(ctx, flow); err == nil && !ok {
		c.o.Notify(c.missingWorker(flow))
	}
}

// restart starts the workflow of a run that has none, or whose workflow ended before the run did. It leaves alone a
// workflow that works, and one that failed, which a person must look at.
func (c *Client) restart(ctx context.Context, r runner.Unscheduled) error {
	d, err := c.c.DescribeWorkflowExecution(ctx, r.ID, "")
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		return c.Wake(ctx, r.RunRef, false)
	case err != nil:
		return fmt.Errorf("describe the workflow of run %s: %w", r.ID, err)
	}
	switch d.GetWorkflowExecutionInfo().GetStatus() {
	case enums.WORKFLOW_EXECUTION_STATUS_FAILED:
		return nil
	case enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		if !r.Messages || len(d.GetPendingActivities()) > 0 {
			return nil
		}
	default:
	}
	return c.Wake(ctx, r.RunRef, false)
}

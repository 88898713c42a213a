package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
)

const (
	// forgetTimeout bounds the deletion of the workflow of one run by a worker.
	forgetTimeout = time.Minute
	// forgetBatch is how many runs one query names.
	forgetBatch = 50
)

// Forget implements runner.Scheduler: it has every workflow execution deleted whose id is that of a run, with its history and
// search attributes. Temporal terminates those that are open. It has recorded the deletions when Forget returns and carries
// them out within seconds.
func (c *Client) Forget(ctx context.Context, runs []string) error {
	for batch := range slices.Chunk(runs, forgetBatch) {
		if err := c.forgetBatch(ctx, batch); err != nil {
			return fmt.Errorf("delete the workflows of runs from Temporal at %s: %w", c.o.Address, err)
		}
	}
	return nil
}

// forgetBatch finds the newest execution of each workflow at once, and the others by queries, whose index lags behind.
func (c *Client) forgetBatch(ctx context.Context, runs []string) error {
	for _, id := range runs {
		if err := c.deleteExecution(ctx, &common.WorkflowExecution{WorkflowId: id}); err != nil {
			return err
		}
	}
	for _, query := range queriesFor(runs) {
		if err := c.deleteFound(ctx, query, runs); err != nil {
			return err
		}
	}
	return nil
}

// deleteFound deletes the executions that a query finds and whose ids are among those of some runs.
func (c *Client) deleteFound(ctx context.Context, query string, runs []string) error {
	var token []byte
	for {
		page, err := c.c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: c.o.Namespace, Query: query, NextPageToken: token})
		if err != nil {
			return fmt.Errorf("list workflows: %w", err)
		}
		for _, x := range page.GetExecutions() {
			if !slices.Contains(runs, x.GetExecution().GetWorkflowId()) {
				continue
			}
			if err := c.deleteExecution(ctx, x.GetExecution()); err != nil {
				return err
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return nil
		}
	}
}

// queriesFor returns queries that find the workflows of some runs, and perhaps others. A text of the query language cannot
// have quotes, backslashes and control characters; ids with these are found by what is before the first of them.
func queriesFor(runs []string) (out []string) {
	var plain []string
	for _, id := range runs {
		i := strings.IndexFunc(id, func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune("'\"`\\", r) })
		switch {
		case i < 0:
			plain = append(plain, "'"+id+"'")
		case i == 0:
			out = append(out, "") // all workflows
		default:
			out = append(out, "WorkflowId STARTS_WITH '"+id[:i]+"'")
		}
	}
	if len(plain) > 0 {
		out = append(out, "WorkflowId IN ("+strings.Join(plain, ", ")+")")
	}
	return out
}

// deleteExecution has one execution deleted, the newest one if x has no run id. One that is not there is no error.
func (c *Client) deleteExecution(ctx context.Context, x *common.WorkflowExecution) error {
	_, err := c.c.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{Namespace: c.o.Namespace, WorkflowExecution: x})
	if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
		return nil
	}
	if err != nil {
		return fmt.Errorf("workflow %s: %w", x.GetWorkflowId(), err)
	}
	return nil
}

// forgetOpen deletes the open workflow of a run. The activity that calls it belongs to that workflow.
func (c *Client) forgetOpen(ctx context.Context, run string) error {
	d, err := c.c.DescribeWorkflowExecution(ctx, run, "")
	if err != nil {
		return err
	}
	if i := d.GetWorkflowExecutionInfo(); i.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return c.deleteExecution(ctx, i.GetExecution())
	}
	return nil
}

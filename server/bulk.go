package server

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/store"
)

// maxBulk is how many runs one request acts on.
const maxBulk = 500

type bulkInput struct {
	Body struct {
		Action  string   `json:"action" enum:"cancel,delete"`
		Flow    string   `json:"flow,omitempty" doc:"Only runs of the flow with this name"`
		Status  []string `json:"status,omitempty" doc:"Only runs with one of these statuses"`
		User    string   `json:"user,omitempty" doc:"Only runs of this user; without the scope admin, of your own"`
		Before  string   `json:"before,omitempty" format:"date-time" doc:"Only runs created before this time"`
		Confirm string   `json:"confirm,omitempty" doc:"The member confirmation of the answer that lists what would be done"`
	}
}

// bulkResult says what a request does, or has done, with several runs.
type bulkResult struct {
	Confirmation string   `json:"confirmation" doc:"Send it as the member confirm to carry this out; empty once it was carried out"`
	Done         bool     `json:"done"`
	Runs         []string `json:"runs" doc:"On which runs it acts"`
	More         bool     `json:"more" doc:"There are more than 500; send the request again for those"`
	Kept         []kept   `json:"kept" doc:"Runs that the filter selects and on which it does not act"`
}

type kept struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

func (s *Server) registerBulk() {
	register(s, operation{
		id: "bulkRuns", method: http.MethodPost, path: "/v1/runs/bulk", scope: Start, tags: []string{"runs"},
		summary:     "Cancel or delete several runs",
		description: "Without a confirmation it lists the runs and does nothing. With the confirmation of that list it acts on them; if the list is another by then, it lists them again.",
	}, bulkRuns)
}

func bulkRuns(c *call, in *bulkInput) (*body[bulkResult], error) {
	out, err := c.selectRuns(in)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(out.Runs)
	if err != nil {
		return nil, err
	}
	out.Confirmation = hex.EncodeToString(c.digest("bulk "+in.Body.Action, c.who.user, string(text))[:16])
	if !hmac.Equal([]byte(out.Confirmation), []byte(in.Body.Confirm)) {
		return bodyOf(*out), nil
	}
	out.Confirmation, out.Done = "", true
	done := []string{}
	ctx := context.WithoutCancel(c)
	for _, id := range out.Runs {
		if in.Body.Action == "cancel" {
			_, err = c.app.Cancel(ctx, id, c.by(), "several runs were cancelled")
		} else {
			_, err = c.app.DeleteRun(ctx, id, store.DeleteOptions{DeferCompaction: true})
		}
		if err != nil {
			out.Kept = append(out.Kept, kept{id, problemOf(err).Detail})
			continue
		}
		done = append(done, id)
	}
	out.Runs = done
	if in.Body.Action == "delete" && len(done) > 0 {
		if _, err := c.app.Compact(ctx); err != nil {
			return nil, err
		}
	}
	return bodyOf(*out), nil
}

// selectRuns finds the runs that a filter selects and the action is for.
func (c *call) selectRuns(in *bulkInput) (*bulkResult, error) {
	f := store.Filter{Flow: in.Body.Flow, User: c.userOr(in.Body.User), Roots: true, Limit: 200}
	for _, name := range in.Body.Status {
		status, err := app.StatusNamed(name)
		if err != nil {
			return nil, invalidRequest("body.status", err.Error())
		}
		f.Status = append(f.Status, status)
	}
	before := time.Now()
	if in.Body.Before != "" {
		var err error
		if before, err = time.Parse(time.RFC3339, in.Body.Before); err != nil {
			return nil, invalidRequest("body.before", "expected a time such as 2026-11-23T10:00:00Z")
		}
	}
	out := &bulkResult{Runs: []string{}, Kept: []kept{}}
	for {
		list, err := c.app.Runs(c, f)
		if err != nil {
			return nil, err
		}
		for i := range list {
			r := &list[i]
			if !r.Created.Before(before) {
				continue
			}
			switch why := c.whyKept(in.Body.Action, r); {
			case why == alreadyEnded:
			case why != "":
				out.Kept = append(out.Kept, kept{r.ID, why})
			case len(out.Runs) == maxBulk:
				out.More = true
				return out, nil
			default:
				out.Runs = append(out.Runs, r.ID)
			}
		}
		if len(list) < f.Limit {
			return out, nil
		}
		f.Before = list[len(list)-1].ID
	}
}

// alreadyEnded: there is nothing to cancel.
const alreadyEnded = "it has ended"

// whyKept says why an action is not for a run, "" if it is.
func (c *call) whyKept(action string, r *store.Run) string {
	if action == "cancel" {
		if r.Head.Status.Ended() {
			return alreadyEnded
		}
		return ""
	}
	switch {
	case r.Session != "":
		return "it is a round of session " + r.Session + " and is deleted with it"
	case !r.Head.Status.Ended():
		return "it has not ended"
	}
	plan, err := c.app.DeleteRun(c, r.ID, store.DeleteOptions{DryRun: true})
	if err != nil {
		return problemOf(err).Detail
	}
	if len(plan.Forks) > 0 {
		return "runs or sessions share its past"
	}
	return ""
}

package server

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/store"
)

// maxBulk is how many runs one request acts on.
const maxBulk = 500

type bulkInput struct {
	Body struct {
		Action  string   `json:"action" enum:"cancel,retry,delete" doc:"To retry runs again the node with which each failed"`
		Flow    string   `json:"flow,omitempty" doc:"Only runs of the flow with this name"`
		Status  []string `json:"status,omitempty" doc:"Only runs with one of these statuses"`
		User    string   `json:"user,omitempty" doc:"Only runs of this user; of another user only with the scope admin"`
		Before  string   `json:"before,omitempty" format:"date-time" doc:"Only runs created before this time"`
		Confirm string   `json:"confirm,omitempty" doc:"The member confirmation of the answer that lists what would be done"`
	}
}

// bulkResult says what a request does, or has done, with several runs.
type bulkResult struct {
	Confirmation string        `json:"confirmation" doc:"Send it as the member confirm to carry this out; empty once it was carried out"`
	Done         bool          `json:"done"`
	Runs         []string      `json:"runs" doc:"On which runs it acts"`
	More         bool          `json:"more" doc:"There are more than 500; send the request again for those"`
	Kept         []app.KeptRun `json:"kept" doc:"Runs that the filter selects and on which it does not act"`
}

func (s *Server) registerBulk() {
	register(s, operation{
		id: "bulkRuns", method: http.MethodPost, path: "/v1/runs/bulk", scope: Start, tags: []string{"runs"},
		summary:     "Cancel, retry or delete several runs",
		description: "Without a confirmation it lists the runs and does nothing. With the confirmation of that list it acts on them; if the list is another by then, it lists them again.",
	}, bulkRuns)
}

func bulkRuns(c *call, in *bulkInput) (*body[bulkResult], error) {
	selected, err := c.selectRuns(in)
	if err != nil {
		return nil, err
	}
	out := bulkResult{Runs: make([]string, 0, len(selected.Runs)), More: selected.More, Kept: selected.Kept}
	for i := range selected.Runs {
		out.Runs = append(out.Runs, selected.Runs[i].ID)
	}
	text, err := json.Marshal(out.Runs)
	if err != nil {
		return nil, err
	}
	out.Confirmation = hex.EncodeToString(c.digest("bulk "+in.Body.Action, c.who.user, string(text))[:16])
	if !hmac.Equal([]byte(out.Confirmation), []byte(in.Body.Confirm)) {
		return bodyOf(out), nil
	}
	if err := errors.Join(c.about("bulk", in.Body.Action), c.about("runs", itoa(int64(len(selected.Runs))))); err != nil {
		return nil, err
	}
	out.Confirmation, out.Done, out.Runs = "", true, []string{}
	ctx := context.WithoutCancel(c)
	for i := range selected.Runs {
		r := &selected.Runs[i]
		if _, err := c.app.ActOn(ctx, app.BulkAction(in.Body.Action), r, c.by()); err != nil {
			out.Kept = append(out.Kept, app.KeptRun{Run: r.ID, Why: problemOf(err).Detail})
			continue
		}
		out.Runs = append(out.Runs, r.ID)
	}
	if in.Body.Action == string(app.BulkDelete) && len(out.Runs) > 0 {
		if _, err := c.app.Compact(ctx); err != nil {
			return nil, err
		}
	}
	return bodyOf(out), nil
}

// selectRuns finds the runs that a request is about.
func (c *call) selectRuns(in *bulkInput) (*app.BulkSelection, error) {
	user, err := c.filterUser(in.Body.User)
	if err != nil {
		return nil, err
	}
	f := store.Filter{Flow: in.Body.Flow, User: user}
	for _, name := range in.Body.Status {
		status, err := app.StatusNamed(name)
		if err != nil {
			return nil, invalidRequest("body.status", err.Error())
		}
		f.Status = append(f.Status, status)
	}
	var before time.Time
	if in.Body.Before != "" {
		if before, err = time.Parse(time.RFC3339, in.Body.Before); err != nil {
			return nil, invalidRequest("body.before", "expected a time such as 2026-11-23T10:00:00Z")
		}
	}
	return c.app.SelectRuns(c, app.BulkAction(in.Body.Action), f, before, maxBulk)
}

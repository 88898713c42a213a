package server

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/store"
)

// RunFilter selects runs of a list.
type RunFilter struct {
	Flow    string    `query:"flow" doc:"Only runs of the flow with this name"`
	Status  []string  `query:"status" doc:"Only runs with one of these statuses"`
	User    string    `query:"user" doc:"Only runs of this user; of another user only with the scope admin"`
	Parent  string    `query:"parent" doc:"Only children of this run"`
	Session string    `query:"session" doc:"Only rounds of this session"`
	Label   string    `query:"label" doc:"Only runs with this label; at most the 10,000 first labelled ones are looked at"`
	All     bool      `query:"all" doc:"Include child runs"`
	Since   time.Time `query:"since" doc:"Only runs created at this time or later"`
	Until   time.Time `query:"until" doc:"Only runs created before this time"`
	MinCost float64   `query:"minCost" minimum:"0" maximum:"1000000000" doc:"Only runs that cost at least so many US dollars"`
	Text    string    `query:"text" maxLength:"200" doc:"Only runs with this text in their id, flow, user, origin, error or questions; upper and lower case are the same"`
}

type listRunsInput struct {
	RunFilter
	Cursor string `query:"cursor" doc:"The member next of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

type runList struct {
	Runs []app.RunRow `json:"runs"`
	Next string       `json:"next" doc:"The cursor of the next page; empty on the last one. A page of a rare text or cost may have fewer runs than its limit, or none, and a cursor."`
}

const (
	// listTime bounds how long a list reads rows to fill a page, and listPage how many it
	// reads at once.
	listTime = 3 * time.Second
	listPage = 500
)

func (s *Server) registerRunList() {
	register(s, operation{
		id: "listRuns", method: http.MethodGet, path: "/v1/runs", scope: Read, tags: []string{"runs"}, summary: "List runs, newest first",
	}, listRuns)
}

func listRuns(c *call, in *listRunsInput) (*body[runList], error) {
	if in.Cursor != "" {
		if _, err := c.run(in.Cursor); err != nil {
			return nil, invalidRequest("query.cursor", "the cursor is not one of a page of runs; start with the first page")
		}
	}
	out, err := c.runsOf(&in.RunFilter, in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	return bodyOf(*out), nil
}

// runsOf is the page behind a run of the runs that a filter selects, newest first.
func (c *call) runsOf(in *RunFilter, before string, limit int) (*runList, error) {
	user, err := c.filterUser(in.User)
	if err != nil {
		return nil, err
	}
	s := runSelection{
		f: store.Filter{
			Flow: in.Flow, User: user, Parent: in.Parent, Session: in.Session, Roots: !in.All && in.Parent == "", Before: before,
		},
		since: in.Since, until: in.Until, cost: int64(math.Ceil(in.MinCost * 1e6)), text: strings.ToLower(in.Text),
	}
	for _, name := range in.Status {
		status, err := app.StatusNamed(name)
		if err != nil {
			return nil, invalidRequest("query.status", err.Error())
		}
		s.f.Status = append(s.f.Status, status)
	}
	if in.Label != "" {
		return c.labelledRuns(in.Label, &s, limit)
	}
	return c.scanRuns(&s, limit)
}

// runSelection selects runs: a filter of the store, and what the store does not filter.
type runSelection struct {
	f            store.Filter
	since, until time.Time // zero is no bound
	cost         int64     // millionths of a US dollar
	text         string    // in lower case
}

// isPlain reports whether the store alone selects the runs.
func (s *runSelection) isPlain() bool {
	return s.since.IsZero() && s.until.IsZero() && s.cost == 0 && s.text == ""
}

// selects reports whether the selection has a run, whatever the store has filtered.
func (s *runSelection) selects(r *store.Run) bool {
	f := &s.f
	return (f.Flow == "" || f.Flow == r.Flow) && (f.User == "" || f.User == r.User) && (f.Parent == "" || f.Parent == r.Parent) &&
		(f.Session == "" || f.Session == r.Session) && (!f.Roots || r.Parent == "") && (len(f.Status) == 0 || slices.Contains(f.Status, r.Head.Status)) &&
		s.narrows(r)
}

// narrows reports whether the selection has a run that the filter of the store has selected.
func (s *runSelection) narrows(r *store.Run) bool {
	return !r.Created.Before(s.since) && (s.until.IsZero() || r.Created.Before(s.until)) && r.Head.Usage.CostMicros >= s.cost && (s.text == "" || s.isNamed(r))
}

// isNamed reports whether the row of a run has the text.
func (s *runSelection) isNamed(r *store.Run) bool {
	texts := []string{r.ID, r.Flow, r.User, r.Origin}
	if e := r.Head.Error; e != nil {
		texts = append(texts, e.Code, e.Message)
	}
	for i := range r.Head.Waiting {
		texts = append(texts, r.Head.Waiting[i].Prompt)
	}
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(strings.ToLower(t), s.text) })
}

// scanRuns reads rows of runs until a page is full, all were read, or listTime is over.
func (c *call) scanRuns(s *runSelection, limit int) (*runList, error) {
	out, f := &runList{Runs: []app.RunRow{}}, s.f
	end := time.Now().Add(listTime)
	for {
		f.Limit = listPage
		if s.isPlain() {
			f.Limit = limit + 1
		}
		page, err := c.app.Runs(c, f)
		if err != nil {
			return nil, err
		}
		older := len(page) > 0
		for i := range page {
			r := &page[i]
			older = older && r.Created.Before(s.since)
			if !s.narrows(r) {
				continue
			}
			if len(out.Runs) == limit {
				out.Next = out.Runs[limit-1].Run
				return out, nil
			}
			out.Runs = append(out.Runs, app.RunRowOf(r))
		}
		// Runs are in the order in which this database got them: imported ones may be older.
		if len(page) < f.Limit || older {
			return out, nil
		}
		f.Before = page[len(page)-1].ID
		if time.Now().After(end) {
			out.Next = f.Before
			return out, nil
		}
	}
}

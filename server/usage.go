package server

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

type usageInput struct {
	By    string `query:"by" enum:"day,flow,user,key" default:"day" doc:"What to add up for; key is the token that started the runs"`
	Days  int    `query:"days" minimum:"1" maximum:"366" default:"30" doc:"Runs created in this many days"`
	User  string `query:"user" doc:"Only runs of this user; of another user only with the scope admin"`
	Flow  string `query:"flow" doc:"Only runs of the flow with this name"`
	Limit int    `query:"limit" minimum:"1" maximum:"100000" default:"10000" doc:"Add up at most this many runs, newest first"`
}

type usageRow struct {
	Name  string    `json:"name" doc:"A UTC day as 2006-01-02, a flow, a user or the id of a token; empty for runs that no token started"`
	Runs  int       `json:"runs"`
	Usage app.Usage `json:"usage"`
}

type usageList struct {
	Rows     []usageRow `json:"rows"`
	Complete bool       `json:"complete" doc:"False if the limit left out older runs"`
}

func (s *Server) registerUsage() {
	register(s, operation{
		id: "getUsage", method: http.MethodGet, path: "/v1/usage", scope: Read, tags: []string{"usage"},
		summary: "Add up what runs have spent", description: "The usage of child runs is part of that of their root.",
	}, getUsage)
}

func getUsage(c *call, in *usageInput) (*body[usageList], error) {
	user, err := c.filterUser(in.User)
	if err != nil {
		return nil, err
	}
	since := time.Now().AddDate(0, 0, -in.Days)
	sums, counts := make(map[string]*engine.Usage), make(map[string]int)
	f := store.Filter{User: user, Flow: in.Flow, Roots: true}
	complete, left := true, in.Limit
	for done := false; !done; {
		f.Limit = min(usagePage, left+1)
		page, err := c.app.Runs(c, f)
		if err != nil {
			return nil, err
		}
		done = len(page) < f.Limit
		for i := range page {
			r := &page[i]
			if r.Created.Before(since) {
				done = true
				break
			}
			if left == 0 {
				complete, done = false, true
				break
			}
			left--
			name := usageName(in.By, r)
			if sums[name] == nil {
				sums[name] = &engine.Usage{}
			}
			*sums[name] = sums[name].Add(r.Head.Usage)
			counts[name]++
		}
		if len(page) > 0 {
			f.Before = page[len(page)-1].ID
		}
	}
	out := usageList{Rows: []usageRow{}, Complete: complete}
	for name, u := range sums {
		out.Rows = append(out.Rows, usageRow{name, counts[name], app.UsageOf(*u)})
	}
	slices.SortFunc(out.Rows, func(a, b usageRow) int { return cmp.Compare(a.Name, b.Name) })
	return bodyOf(out), nil
}

// usagePage is how many runs are read at once.
const usagePage = 500

func usageName(by string, r *store.Run) string {
	switch by {
	case "flow":
		return r.Flow
	case "user":
		return r.User
	case "key":
		return tokenOf(r.Origin)
	}
	return r.Created.UTC().Format(time.DateOnly)
}

// tokenOf is the token in the origin of a run, "" if none started it.
func tokenOf(origin string) string {
	kind, name, _ := strings.Cut(origin, ":")
	if slices.Contains([]string{"schedule", "webhook", "file", "session"}, kind) {
		return ""
	}
	return name
}

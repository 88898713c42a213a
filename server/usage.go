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
	By    string `query:"by" enum:"day,flow,user,key,model" default:"day" doc:"What to add up for; key is the token that started the runs. For model the journals are read, for at most 3 seconds"`
	Days  int    `query:"days" minimum:"1" maximum:"366" default:"30" doc:"Runs created in this many days"`
	User  string `query:"user" doc:"Only runs of this user; of another user only with the scope admin"`
	Flow  string `query:"flow" doc:"Only runs of the flow with this name"`
	Limit int    `query:"limit" minimum:"1" maximum:"100000" default:"10000" doc:"Add up at most this many runs, newest first"`
}

type usageRow struct {
	Name  string    `json:"name" doc:"A UTC day as 2006-01-02, a flow, a user, the id of a token, or a model as its vendor reported it; empty for runs that no token started, and for usage of which no model is known"`
	Runs  int       `json:"runs" doc:"For a model, the runs that called it, child runs included"`
	Usage app.Usage `json:"usage"`
}

type usageList struct {
	Rows     []usageRow `json:"rows"`
	Complete bool       `json:"complete" doc:"False if the limit, or the time for reading, left out older runs"`
}

func (s *Server) registerUsage() {
	register(s, operation{
		id: "getUsage", method: http.MethodGet, path: "/v1/usage", scope: Read, tags: []string{"usage"},
		summary: "Add up what runs have spent", description: "The usage of child runs is part of that of their root.",
	}, getUsage)
}

// usageSums adds up usage by name.
type usageSums struct {
	sums   map[string]*engine.Usage
	counts map[string]int
}

func (s *usageSums) add(name string, u engine.Usage, runs int) {
	if s.sums[name] == nil {
		s.sums[name] = &engine.Usage{}
	}
	*s.sums[name] = s.sums[name].Add(u)
	s.counts[name] += runs
}

func getUsage(c *call, in *usageInput) (*body[usageList], error) {
	user, err := c.filterUser(in.User)
	if err != nil {
		return nil, err
	}
	s := usageSums{make(map[string]*engine.Usage), make(map[string]int)}
	f := store.Filter{User: user, Flow: in.Flow, Roots: true}
	add := func(r *store.Run) (more bool, err error) {
		s.add(usageName(in.By, r), r.Head.Usage, 1)
		return true, nil
	}
	if in.By == "model" {
		m := modelUsage{call: c, sums: &s, end: time.Now().Add(usageTime)}
		add = m.addRun
	}
	complete, err := c.eachRecent(f, time.Now().AddDate(0, 0, -in.Days), in.Limit, add)
	if err != nil {
		return nil, err
	}
	out := usageList{Rows: []usageRow{}, Complete: complete}
	for name, u := range s.sums {
		out.Rows = append(out.Rows, usageRow{name, s.counts[name], app.UsageOf(*u)})
	}
	slices.SortFunc(out.Rows, func(a, b usageRow) int { return cmp.Compare(a.Name, b.Name) })
	return bodyOf(out), nil
}

// eachRecent calls do for runs that were created since a time, the newest first, and reports
// whether it was called for all of them. It ends early after so many runs, or when do wants
// no more.
func (c *call) eachRecent(f store.Filter, since time.Time, limit int, do func(r *store.Run) (more bool, err error)) (complete bool, err error) {
	for left := limit; ; {
		f.Limit = min(usagePage, left+1)
		page, err := c.app.Runs(c, f)
		if err != nil {
			return false, err
		}
		for i := range page {
			r := &page[i]
			if r.Created.Before(since) {
				return true, nil
			}
			if left == 0 {
				return false, nil
			}
			left--
			if more, err := do(r); err != nil || !more {
				return false, err
			}
		}
		if len(page) < f.Limit {
			return true, nil
		}
		f.Before = page[len(page)-1].ID
	}
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

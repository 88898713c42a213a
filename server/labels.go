package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/store"
)

// labelKind are documents by LABEL/RUN, which are deleted with the run and the user.
const labelKind = store.LabelKind

const (
	// maxLabels bounds the labels of a run, and maxLabelled the runs with a label that a list
	// looks at.
	maxLabels   = 20
	maxLabelled = 10_000
	// documentPage is how many documents are read at once.
	documentPage = 1000
)

// labelledRun is the body of a label.
type labelledRun struct {
	Created time.Time `json:"created"` // when the run was
	By      string    `json:"by"`
}

type labelsInput struct {
	RunPath
	Body struct {
		Labels []string `json:"labels" nullable:"false" maxItems:"20" doc:"All labels of the run: lower case letters, digits, dots, hyphens and underscores, at most 64"`
	}
}

type runLabels struct {
	Labels []string `json:"labels"`
}

type labelCount struct {
	Label string `json:"label"`
	Runs  int    `json:"runs"`
}

type labelList struct {
	Labels   []labelCount `json:"labels"`
	Complete bool         `json:"complete" doc:"False if there are more than were counted"`
}

func (s *Server) registerLabels() {
	tags := []string{"runs"}
	register(s, operation{id: "getLabels", method: http.MethodGet, path: "/v1/runs/{run}/labels", scope: Read, tags: tags, summary: "Get the labels of a run"}, getLabels)
	register(s, operation{id: "setLabels", method: http.MethodPut, path: "/v1/runs/{run}/labels", scope: Start, tags: tags, summary: "Set the labels of a run"}, setLabels)
	register(s, operation{id: "listLabels", method: http.MethodGet, path: "/v1/labels", scope: Read, tags: tags, summary: "List the labels of runs"}, listLabels)
}

// labelDocuments yields the labels whose ids begin with prefix, at most maxLabelled. Complete
// reports whether these are all.
func (c *call) labelDocuments(prefix, run string) (list []store.Document, complete bool, err error) {
	for after := ""; len(list) < maxLabelled; {
		page, err := c.app.Store.Documents(c, store.DocumentFilter{
			Kind: labelKind, Prefix: prefix, Run: run, User: c.reachableUser(), After: after, Limit: documentPage,
		})
		if err != nil {
			return nil, false, err
		}
		list = append(list, page...)
		if len(page) < documentPage {
			return list, true, nil
		}
		after = page[len(page)-1].ID
	}
	return list, false, nil
}

func labelOf(d *store.Document) string {
	label, _, _ := strings.Cut(d.ID, "/")
	return label
}

// labelsOf lists the labels of a run of the caller.
func (c *call) labelsOf(run string) ([]string, error) {
	out := []string{}
	if c.app.Store.Capabilities().Documents == nil {
		return out, nil
	}
	list, _, err := c.labelDocuments("", run)
	for i := range list {
		out = append(out, labelOf(&list[i]))
	}
	return out, err
}

func getLabels(c *call, in *RunPath) (*body[runLabels], error) {
	if _, err := c.run(in.Run); err != nil {
		return nil, err
	}
	labels, err := c.labelsOf(in.Run)
	return bodyOf(runLabels{labels}), err
}

func setLabels(c *call, in *labelsInput) (*body[runLabels], error) {
	row, err := c.run(in.Run)
	if err != nil {
		return nil, err
	}
	form := regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	for _, label := range in.Body.Labels {
		if !form.MatchString(label) {
			return nil, invalidRequest("body.labels", "the label "+quoted(label)+" has other characters than lower case letters, digits, dots, hyphens and underscores, or more than 64")
		}
	}
	have, err := c.labelsOf(in.Run)
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(labelledRun{row.Created.UTC(), c.by()})
	if err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(c)
	for _, label := range in.Body.Labels {
		_, err := c.app.Store.PutDocument(ctx, store.Document{Kind: labelKind, ID: label + "/" + row.ID, User: row.User, Run: row.ID, Body: content})
		if err != nil && !errors.Is(err, store.ErrExists) {
			return nil, err
		}
	}
	for _, label := range have {
		if slices.Contains(in.Body.Labels, label) {
			continue
		}
		if err := c.app.Store.DeleteDocument(ctx, labelKind, label+"/"+row.ID, 0); err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	labels, err := c.labelsOf(in.Run)
	return bodyOf(runLabels{labels}), err
}

func listLabels(c *call, _ *struct{}) (*body[labelList], error) {
	list, complete, err := c.labelDocuments("", "")
	if err != nil {
		return nil, err
	}
	out := labelList{Labels: []labelCount{}, Complete: complete}
	for i := range list { // they are sorted by label
		label, n := labelOf(&list[i]), len(out.Labels)
		if n == 0 || out.Labels[n-1].Label != label {
			out.Labels = append(out.Labels, labelCount{Label: label})
			n++
		}
		out.Labels[n-1].Runs++
	}
	return bodyOf(out), nil
}

// labelledRuns is a page of the runs with a label that are selected, newest first.
func (c *call) labelledRuns(label string, s *runSelection, limit int) (*runList, error) {
	type entry struct {
		run string
		at  time.Time
	}
	docs, _, err := c.labelDocuments(label+"/", "")
	if err != nil {
		return nil, err
	}
	entries := make([]entry, len(docs))
	for i := range docs {
		var x labelledRun
		if err := json.Unmarshal(docs[i].Body, &x); err != nil {
			return nil, err
		}
		entries[i] = entry{docs[i].Run, x.Created}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if d := b.at.Compare(a.at); d != 0 {
			return d
		}
		return strings.Compare(b.run, a.run)
	})
	if s.f.Before != "" {
		i := slices.IndexFunc(entries, func(e entry) bool { return e.run == s.f.Before })
		entries = entries[i+1:]
	}
	out := &runList{Runs: []app.RunRow{}}
	for _, e := range entries {
		row, err := c.app.Store.Run(c, e.run)
		if errors.Is(err, store.ErrNotFound) || err == nil && !s.selects(&row) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(out.Runs) == limit {
			out.Next = out.Runs[limit-1].Run
			break
		}
		out.Runs = append(out.Runs, app.RunRowOf(&row))
	}
	return out, nil
}

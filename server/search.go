package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/store"
)

const (
	// searchTime bounds how long a request reads journals, and searchRuns how many it reads.
	searchTime = 3 * time.Second
	searchRuns = 2000
	// maxHits bounds the places that are shown of a run, and hitContext what is shown before
	// and behind a match, in bytes.
	maxHits    = 3
	hitContext = 60
)

type searchInput struct {
	Text   string   `query:"text" required:"true" minLength:"2" maxLength:"200" doc:"What to find; upper and lower case are the same"`
	Flow   string   `query:"flow" doc:"Only runs of the flow with this name"`
	Status []string `query:"status" doc:"Only runs with one of these statuses"`
	User   string   `query:"user" doc:"Only runs of this user; of another user only with the scope admin"`
	Cursor string   `query:"cursor" doc:"The member next of the answer before"`
	Limit  int      `query:"limit" minimum:"1" maximum:"100" default:"20"`
}

// searchHit is a place of a run that has the text.
type searchHit struct {
	Event   int64  `json:"event" doc:"The number of the event"`
	Type    string `json:"type" doc:"Its type"`
	Node    string `json:"node" doc:"The path of the node; empty if the event is of none"`
	Excerpt string `json:"excerpt"`
}

type foundRun struct {
	Run  app.RunRow  `json:"run"`
	Hits []searchHit `json:"hits" doc:"The first three places"`
}

type searchResult struct {
	Runs    []foundRun `json:"runs"`
	Scanned int        `json:"scanned" doc:"How many runs were read for this answer"`
	Next    string     `json:"next" doc:"Continue with this cursor; empty if all runs were read. An answer may have no runs and a cursor."`
}

func (s *Server) registerSearch() {
	register(s, operation{
		id: "searchRuns", method: http.MethodGet, path: "/v1/search", scope: Read, tags: []string{"runs"}, summary: "Find runs whose record has a text, newest first",
		description: "Reads the journals of the runs: inputs, messages, outputs, state, answers and errors. There is no index; a request reads for at most 3 seconds and returns a cursor.",
	}, searchHandler)
}

func searchHandler(c *call, in *searchInput) (*body[searchResult], error) {
	user, err := c.filterUser(in.User)
	if err != nil {
		return nil, err
	}
	f := store.Filter{Flow: in.Flow, User: user, Before: in.Cursor, Limit: searchPage}
	for _, name := range in.Status {
		status, err := app.StatusNamed(name)
		if err != nil {
			return nil, invalidRequest("query.status", err.Error())
		}
		f.Status = append(f.Status, status)
	}
	if in.Cursor != "" {
		if _, err := c.run(in.Cursor); err != nil {
			return nil, invalidRequest("query.cursor", "the cursor is not one of a search; start without it")
		}
	}
	s := search{call: c, want: strings.ToLower(in.Text), most: in.Limit, end: time.Now().Add(searchTime), out: searchResult{Runs: []foundRun{}}}
	for {
		page, err := c.app.Runs(c, f)
		if err != nil {
			return nil, err
		}
		last := len(page) < f.Limit
		if done, err := s.page(page, last); err != nil || done || last {
			return bodyOf(s.out), err
		}
		f.Before = page[len(page)-1].ID
	}
}

// search is one request.
type search struct {
	*call
	want string
	most int
	end  time.Time
	out  searchResult
}

// searchPage is how many runs are listed at once.
const searchPage = 100

// page searches runs in their order, the last ones or not, and reports whether the answer is
// to be sent.
func (s *search) page(list []store.Run, last bool) (done bool, err error) {
	for i := range list {
		hits, err := s.searchRun(list[i].ID, s.want)
		if err != nil {
			return false, err
		}
		s.out.Scanned++
		if len(hits) > 0 {
			s.out.Runs = append(s.out.Runs, foundRun{app.RunRowOf(&list[i]), hits})
		}
		enough := len(s.out.Runs) == s.most || s.out.Scanned == searchRuns || time.Now().After(s.end)
		if enough && (!last || i < len(list)-1) {
			s.out.Next = list[i].ID
			return true, nil
		}
	}
	return false, nil
}

// searchRun returns the first places of a run whose texts contain a text in lower case.
func (c *call) searchRun(run, want string) (hits []searchHit, err error) {
	for commit, err := range c.app.Store.Commits(c, run, 0) {
		if err != nil {
			return nil, fmt.Errorf("search run %s: %w", run, err)
		}
		for i, e := range commit.Events {
			data, err := json.Marshal(weir.Item{Run: run, Number: commit.First + int64(i), At: commit.When(i), Event: e})
			if err != nil {
				return nil, fmt.Errorf("search run %s: %w", run, err)
			}
			var event map[string]any
			if err := json.Unmarshal(data, &event); err != nil {
				return nil, fmt.Errorf("search run %s: %w", run, err)
			}
			text := findText(withoutNames(event), want)
			if text == "" {
				continue
			}
			kind, _ := event["type"].(string)
			path, _ := event["node"].(string)
			if hits = append(hits, searchHit{commit.First + int64(i), kind, path, text}); len(hits) == maxHits {
				return hits, nil
			}
		}
	}
	return hits, nil
}

// withoutNames is an event without the members that name and order it.
func withoutNames(event map[string]any) map[string]any {
	out := make(map[string]any, len(event))
	for k, v := range event { // order: it is a map again
		switch k {
		case "run", "number", "at", "type", "node", "cursor", "fingerprint", "specs", "digest":
		default:
			out[k] = v
		}
	}
	return out
}

// findText returns the first text of a value that contains want, with what stands around it.
func findText(v any, want string) string {
	switch x := v.(type) {
	case string:
		return around(x, want)
	case []any:
		for _, item := range x {
			if text := findText(item, want); text != "" {
				return text
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			if text := findText(x[k], want); text != "" {
				return text
			}
		}
	}
	return ""
}

// around is the part of a text around the first place that equals want in lower case, "" for
// none.
func around(text, want string) string {
	lower := strings.ToLower(text)
	i := strings.Index(lower, want)
	if i < 0 {
		return ""
	}
	if len(lower) != len(text) { // a letter has another length in lower case: positions differ
		text = lower
	}
	from, to := max(0, i-hitContext), min(len(text), i+len(want)+hitContext)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	return strings.ToValidUTF8(text[from:to], "?")
}

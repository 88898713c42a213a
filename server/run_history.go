package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/trajectory/draw"
)

type eventsInput struct {
	RunPath
	After  int64  `query:"after" minimum:"0" doc:"Only events with a greater number"`
	Cursor string `query:"cursor" doc:"The member next of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"200"`
}

type eventList struct {
	Events []weir.Item `json:"events" doc:"Objects with run, number, at (Unix milliseconds), type and the members of the type"`
	Next   string      `json:"next" doc:"The cursor of the next page; empty at the end of the journal"`
}

type diffInput struct {
	RunPath
	Other string `path:"other" maxLength:"400" doc:"The id of the run to compare with"`
}

type chainInput struct {
	RunPath
	Node string `query:"node" doc:"Only attempts of the node with this path"`
}

type chainList struct {
	Work []app.WorkRow `json:"work"`
}

type contextInput struct {
	RunPath
	Context string `path:"context" maxLength:"400" doc:"The id of the context, for example main"`
	At      int64  `query:"at" minimum:"0" doc:"As it was after this event; 0 is now"`
	From    int    `query:"from" minimum:"0" doc:"The first position"`
	Limit   int    `query:"limit" minimum:"1" maximum:"1000" default:"200"`
	ValueBound
}

type contextPage struct {
	ContextRow
	From int             `json:"from"`
	List []convo.Message `json:"list" doc:"The messages from position from on"`
	Last *contextCall    `json:"last" doc:"The last model call whose answer it has; null if there is none"`
	// Truncated is nil if the answer has all values.
	Truncated []app.TruncatedValue `json:"truncated,omitempty" doc:"The texts and data that are larger than maxValue"`
}

type callsInput struct {
	RunPath
	Node string `query:"node" required:"true" doc:"The path of the node, for example refine#2/draft"`
}

type callList struct {
	Calls []app.CallReport `json:"calls"`
}

type graphInput struct {
	RunPath
	Sub int `query:"sub" minimum:"0" doc:"The number of a sub-agent; 0 is the main agent"`
}

func (s *Server) registerHistory() {
	read := func(id, path, summary string) operation {
		return operation{id: id, method: http.MethodGet, path: "/v1/runs/{run}" + path, scope: Read, summary: summary, tags: []string{"history"}}
	}
	register(s, read("listEvents", "/events", "List the events of a run's journal"), listEvents)
	register(s, read("diffRuns", "/diff/{other}", "Compare two runs"), diffRuns)
	register(s, read("verifyRun", "/verify", "Verify the record of a run"), verifyRun)
	register(s, read("exportRun", "/export", "Export a run as JSON lines, as `weir export` does"), exportRun)
	register(s, read("getChain", "/chain", "Get the chain of work"), getChain)
	register(s, read("getContext", "/contexts/{context}", "Get the messages of a context, now or as it was at an event"), getContext)
	register(s, read("getCalls", "/calls", "Get what each model call of a node was sent"), getCalls)
	register(s, read("getTrajectory", "/trajectory", "Get the trajectory of an agent"), getTrajectory)
}

// eventsCursor is a place in a journal: after the event with the number, which is in the
// commit after commit.
type eventsCursor struct{ commit, number int64 }

func parseEventsCursor(in *eventsInput) (at eventsCursor, err error) {
	at.number = in.After
	if in.Cursor == "" {
		return at, nil
	}
	commit, number, ok := strings.Cut(in.Cursor, "-")
	at.commit, err = strconv.ParseInt(commit, 10, 64)
	if err == nil {
		at.number, err = strconv.ParseInt(number, 10, 64)
	}
	if !ok || err != nil || at.commit < 0 || at.number < 0 || in.After != 0 {
		return at, invalidRequest("query.cursor", "the cursor is not one of a page of events; start with after")
	}
	return at, nil
}

func listEvents(c *call, in *eventsInput) (*body[eventList], error) {
	if _, err := c.run(in.Run); err != nil {
		return nil, err
	}
	at, err := parseEventsCursor(in)
	if err != nil {
		return nil, err
	}
	out := eventList{Events: []weir.Item{}}
	for commit, err := range c.app.Store.Commits(c, in.Run, at.commit) {
		if err != nil {
			return nil, err
		}
		for i, e := range commit.Events {
			n := commit.First + int64(i)
			if n <= at.number {
				continue
			}
			if len(out.Events) == in.Limit {
				out.Next = fmt.Sprintf("%d-%d", commit.Seq-1, n-1)
				return bodyOf(out), nil
			}
			out.Events = append(out.Events, weir.Item{Run: in.Run, Number: n, At: commit.When(i), Event: e})
		}
	}
	return bodyOf(out), nil
}

func diffRuns(c *call, in *diffInput) (*body[*app.DiffReport], error) {
	for _, id := range []string{in.Run, in.Other} {
		if _, err := c.run(id); err != nil {
			return nil, err
		}
	}
	d, err := c.app.Diff(c, in.Run, in.Other)
	if err != nil {
		return nil, err
	}
	return bodyOf(app.DiffReportOf(d)), nil
}

func verifyRun(c *call, in *RunPath) (*body[*audit.Report], error) {
	if _, err := c.run(in.Run); err != nil {
		return nil, err
	}
	r, err := audit.Verify(c, c.app.Store, audit.Options{Run: in.Run})
	return bodyOf(r), err
}

// download is an answer of another type than JSON.
type download struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Body        func(huma.Context)
}

func exportRun(c *call, in *RunPath) (*download, error) {
	row, err := c.run(in.Run)
	if err != nil {
		return nil, err
	}
	if err := c.ownsExport(row.ID); err != nil {
		return nil, err
	}
	return &download{"application/x-ndjson", `attachment; filename="run.weir"`, func(h huma.Context) {
		_, w := humago.Unwrap(h)
		if err := audit.WriteExport(c, c.app.Store, row.ID, newLongAnswer(w)); err != nil {
			// The status is sent: cutting the connection is the only way to say so.
			c.logger.ErrorContext(c, "export failed", "run", row.ID, "error", err)
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

// ownsExport refuses an export that contains runs of another user: those whose past the run
// shares.
func (c *call) ownsExport(run string) error {
	runs, _, err := c.app.Store.Archive(c, run)
	if err != nil {
		return err
	}
	for i := range runs {
		if !c.who.owns(runs[i].User) {
			return newProblem(http.StatusForbidden, "forbidden", "run "+run+" shares the past of a run of another user; only a token with the scope admin can export it")
		}
	}
	return nil
}

func getChain(c *call, in *chainInput) (*body[chainList], error) {
	if _, err := c.run(in.Run); err != nil {
		return nil, err
	}
	var work []history.Work
	for w, err := range c.app.Chain(c, in.Run) {
		if err != nil {
			return nil, err
		}
		if in.Node == "" || w.Node == in.Node {
			work = append(work, w)
		}
	}
	slices.SortFunc(work, func(a, b history.Work) int { return a.Seq - b.Seq })
	out := chainList{Work: []app.WorkRow{}}
	for i := range work {
		row, err := app.WorkRowOf(in.Run, &work[i])
		if err != nil {
			return nil, err
		}
		out.Work = append(out.Work, row)
	}
	return bodyOf(out), nil
}

// inspect returns a run of the caller at an event.
func (c *call) inspect(run string, at int64) (*runner.RunView, error) {
	if _, err := c.run(run); err != nil {
		return nil, err
	}
	v, err := c.app.Inspect(c, run, at)
	if err == nil && (v.Run.Start == nil || at > v.Run.Events()) {
		err = notFound("event of run "+run+" with the number", itoa(at))
	}
	return v, err
}

func getContext(c *call, in *contextInput) (*body[contextPage], error) {
	v, err := c.inspect(in.Run, in.At)
	if err != nil {
		return nil, err
	}
	x, ok := v.Contexts[in.Context]
	if !ok {
		return nil, notFound("context", in.Context)
	}
	r := app.ContextReportOf(x)
	out := contextPage{
		ContextRow: ContextRow{ID: r.ID, Kind: r.Kind, Label: r.Label, Parent: r.Parent, Model: r.Model, Messages: len(r.Messages), At: x.At},
		From:       min(in.From, len(r.Messages)),
	}
	out.List = slices.Clone(r.Messages[out.From:min(out.From+in.Limit, len(r.Messages))])
	for i := range out.List {
		m, cut := boundMessage(out.List[i], "/list/"+itoa(int64(i)), c.contextMessageURL(in.Run, in.Context, out.From+i, in.At), in.MaxValue)
		out.List[i], out.Truncated = m, append(out.Truncated, cut...)
	}
	if out.Last = lastCalls(v.Commits, history.NewTimeline(v))[in.Context]; out.Last != nil {
		out.Last.Window = c.windowOf(x.Settings)
	}
	return bodyOf(out), err
}

func getCalls(c *call, in *callsInput) (*body[callList], error) {
	v, err := c.inspect(in.Run, 0)
	if err != nil {
		return nil, err
	}
	if history.NewTimeline(v).Nodes[in.Node] == nil {
		return nil, notFound("node", in.Node)
	}
	calls, err := c.app.InspectPrompts(c, in.Run, in.Node)
	if err != nil {
		return nil, err
	}
	out := callList{Calls: []app.CallReport{}}
	for _, x := range calls {
		out.Calls = append(out.Calls, app.CallReport{
			Call: x.Key, Digest: x.Digest, Verified: x.Proven, Sent: x.Request, Manifest: x.Manifest, Answer: x.Result, Error: x.Error,
		})
	}
	return bodyOf(out), nil
}

func getTrajectory(c *call, in *graphInput) (*body[json.RawMessage], error) {
	if _, err := c.run(in.Run); err != nil {
		return nil, err
	}
	g, err := c.app.Trajectory(c, in.Run, in.Sub)
	if err != nil {
		return nil, err
	}
	text, err := draw.Render(g, "json")
	return bodyOf(json.RawMessage(bytes.TrimSpace(text))), err
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
	"github.com/weir-run/weir/server/servertest"
)

// TestRunsAreSelectedByTextTimeAndCost lists runs with each filter, one run a page, and with
// all that apply together.
func TestRunsAreSelectedByTextTimeAndCost(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada := p.anyone("ada")
	var runs []string
	for _, flow := range []string{"fails", "ask", "ask"} {
		run, err := ada.StartRun(t.Context(), client.Start{Flow: flow, Inputs: map[string]any{"name": "Ada"}, Wait: 60})
		if flow == "fails" {
			run, err = ada.StartRun(t.Context(), client.Start{Flow: flow, Wait: 60})
		}
		if err != nil {
			t.Fatal(err)
		}
		runs = append([]string{run.ID}, runs...)
	}
	decode[any](p, ada, http.MethodPut, "/v1/runs/"+runs[0]+"/labels", `{"labels":["harbour"]}`)
	asks, fails := runs[:2], runs[2:]
	past, future := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for query, want := range map[string][]string{
		"text=ApProVe":                              asks,
		"text=no+berth":                             fails,
		"text=nothing+has+it":                       nil,
		"text=" + runs[1]:                           runs[1:2],
		"text=fails&status=failed":                  fails,
		"text=fails&status=paused":                  nil,
		"since=" + past:                             runs,
		"since=" + future:                           nil,
		"until=" + past:                             nil,
		"until=" + future:                           runs,
		"since=" + past + "&until=" + future:        runs,
		"minCost=0":                                 runs,
		"minCost=0.000001":                          nil,
		"label=harbour&text=approve":                runs[:1],
		"label=harbour&text=berth":                  nil,
		"label=harbour&since=" + future:             nil,
		"label=harbour&minCost=1":                   nil,
		"text=approve&since=" + past + "&minCost=0": asks,
	} {
		if got := p.allRuns(ada, query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, expected %v", query, got, want)
		}
	}
	for _, bad := range []string{"since=yesterday", "minCost=-1", "until=1", "text=" + strings.Repeat("a", 201)} {
		if got := p.send(http.MethodGet, "/v1/runs?"+bad, "", withToken(ada.Token)); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", bad, got.status, got.body)
		}
	}
}

// allRuns lists runs, one a page.
func (p *process) allRuns(c *client.Client, query string) (out []string) {
	p.t.Helper()
	for next := ""; ; {
		page := decode[struct {
			Runs []struct{ Run string }
			Next string
		}](p, c, http.MethodGet, "/v1/runs?limit=1&"+query+"&cursor="+url.QueryEscape(next), "")
		for _, r := range page.Runs {
			out = append(out, r.Run)
		}
		if next = page.Next; next == "" {
			return out
		}
	}
}

// listReader reads the stream of a list.
type listReader struct {
	t     *testing.T
	lines *bufio.Scanner
}

type listEvent struct {
	IDs  []string
	Runs []struct{ Run, Status string }
}

// next returns the next event of the list.
func (r *listReader) next() (e listEvent) {
	r.t.Helper()
	for r.lines.Scan() {
		if text, ok := strings.CutPrefix(r.lines.Text(), "data: {\"ids\""); ok {
			if err := json.Unmarshal([]byte(`{"ids"`+text), &e); err != nil {
				r.t.Fatal(err)
			}
			return e
		}
	}
	r.t.Fatal("the stream has ended", r.lines.Err())
	return e
}

// waitFor reads events of a page of runs until the first run has a status. Each event must have
// that run alone: the others do not change.
func (r *listReader) waitFor(page []string, status string) {
	r.t.Helper()
	for {
		e := r.next()
		if !slices.Equal(e.IDs, page) || len(e.Runs) != 1 || e.Runs[0].Run != page[0] {
			r.t.Fatalf("%+v", e)
		}
		if e.Runs[0].Status == status {
			return
		}
	}
}

func (p *process) streamList(c *client.Client, query string) *listReader {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+"/v1/stream?"+query, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	withToken(c.Token)(r)
	a, err := (&http.Client{}).Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = a.Body.Close() })
	if a.StatusCode != http.StatusOK {
		p.t.Fatal(a.Status)
	}
	return &listReader{p.t, bufio.NewScanner(a.Body)}
}

func TestTheStreamOfAListHasWhatChanged(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada, bob := p.anyone("ada"), p.anyone("bob")
	first := p.start(ada.Token, "one")
	all, paused := p.streamList(ada, "limit=2"), p.streamList(ada, "status=paused")
	foreign := p.streamList(bob, "")
	for _, r := range []*listReader{all, paused} {
		if e := r.next(); !slices.Equal(e.IDs, []string{first}) || len(e.Runs) != 1 || e.Runs[0].Status != "paused" {
			t.Errorf("%+v", e)
		}
	}
	if e := foreign.next(); len(e.IDs) != 0 {
		t.Errorf("of another user: %+v", e)
	}
	if _, err := ada.Answer(t.Context(), first, "ask:ask#1", "approve", 60); err != nil {
		t.Fatal(err)
	}
	if e := paused.next(); len(e.IDs) != 0 || len(e.Runs) != 0 {
		t.Errorf("an answered run still waits: %+v", e)
	}
	all.waitFor([]string{first}, "completed")
	second := p.start(ada.Token, "two")
	all.waitFor([]string{second, first}, "paused")
	p.start(bob.Token, "three")
	if e := foreign.next(); len(e.IDs) != 1 || slices.Contains([]string{first, second}, e.IDs[0]) {
		t.Errorf("of another user: %+v", e)
	}
}

func TestAStreamOfAListEndsWithItsToken(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, Heartbeat: 20 * time.Millisecond})
	ada := p.anyone("ada")
	r := p.streamList(ada, "")
	r.next()
	p.setUser("ada", func(u *server.User) { u.Disabled = true })
	for r.lines.Scan() { // until the server has closed it
		if strings.HasPrefix(r.lines.Text(), "event") {
			t.Error(r.lines.Text())
		}
	}
}

// TestAStreamOfAListEndsWithTheRole demotes an owner, whose stream has the runs of all users.
func TestAStreamOfAListEndsWithTheRole(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true, Heartbeat: 20 * time.Millisecond})
	root := p.client("root", server.Admin, server.Read, server.Start)
	p.setUser("root", func(u *server.User) { u.Role = server.OwnerRole })
	r := p.streamList(root, "")
	r.next()
	p.setUser("root", func(u *server.User) { u.Note = "with the same rights" })
	p.start(root.Token, "one")
	r.next()
	p.setUser("root", func(u *server.User) { u.Role = server.OperatorRole })
	for r.lines.Scan() { // until the server has closed it
		continue
	}
	if got := p.send(http.MethodGet, "/v1/runs", "", withToken(root.Token)); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestAnswersAreListedWithWhoGaveThem(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada, bob, root := p.anyone("ada"), p.anyone("bob"), p.client("root", server.Admin)
	type page struct {
		Answers []struct {
			Run, Flow, User, Node, Interrupt, Kind, Prompt, By string
			At, Event                                          int64
			Value                                              struct{ Value any }
		}
		Next string
	}
	if x := decode[page](p, ada, http.MethodGet, "/v1/answers", ""); len(x.Answers) != 0 || x.Next != "" {
		t.Errorf("%+v", x)
	}
	var runs []string
	for _, name := range []string{"one", "two", "three"} {
		runs = append([]string{p.start(ada.Token, name)}, runs...)
	}
	for i, c := range []*client.Client{ada, root} {
		if _, err := c.Answer(t.Context(), runs[i], "ask:ask#1", []string{"approve", "reject"}[i], 60); err != nil {
			t.Fatal(err)
		}
	}
	all := decode[page](p, ada, http.MethodGet, "/v1/answers", "")
	fork := decode[struct{ Run string }](p, ada, http.MethodPost, "/v1/runs/"+runs[1]+"/fork", fmt.Sprintf(`{"at":%d}`, all.Answers[0].Event))
	p.start(bob.Token, "of bob")
	var got []string
	for next, pages := "", 0; ; pages++ {
		x := decode[page](p, ada, http.MethodGet, "/v1/answers?limit=1&cursor="+next, "")
		for _, a := range x.Answers {
			got = append(got, a.Run+" "+a.By)
			if a.Flow != "ask" || a.User != "ada" || a.Node != "ask" || a.Interrupt != "ask:ask#1" || a.Kind != "input" || a.Prompt != "Approve?" || a.At == 0 || a.Event == 0 || a.Value.Value == nil {
				t.Errorf("%+v", a)
			}
		}
		if next = x.Next; next == "" {
			break
		}
		if pages > 10 {
			t.Fatal("the pages do not end")
		}
	}
	if want := []string{runs[0] + " ada", runs[1] + " root"}; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v, and not the fork %s, which shares an answer", got, want, fork.Run)
	}
	if x := decode[page](p, bob, http.MethodGet, "/v1/answers", ""); len(x.Answers) != 0 {
		t.Errorf("answers of another user: %+v", x)
	}
	if x := decode[page](p, root, http.MethodGet, "/v1/answers?flow=talk", ""); len(x.Answers) != 0 {
		t.Errorf("answers of another flow: %+v", x)
	}
}

// TestUsageOfModelsIsThatOfTheirCalls adds up calls of a run, of a child run, and of a fork,
// which shares the call of its original.
func TestUsageOfModelsIsThatOfTheirCalls(t *testing.T) {
	t.Parallel()
	p := servertest.Open(t, servertest.Options{
		Flows: map[string]string{
			"talk.yaml":   "weir: 1\nname: talk\ncontext: {model: fake/m}\nnodes:\n  answer: {type: llmRequest, in: {message: x}}\n  ask: {type: userInput, after: answer}\n  again: {type: llmRequest, after: ask, in: {message: y}}\n",
			"up.yaml":     "weir: 1\nname: up\nnodes:\n  one: {type: flow, with: {flow: one.yaml}}\n",
			"one.yaml":    "weir: 1\nname: one\ncontext: {model: fake/m}\nnodes:\n  answer: {type: llmRequest, in: {message: x}}\n",
			"mute.yaml":   "weir: 1\nname: mute\ncontext: {model: script/script.yaml}\nnodes:\n  answer: {type: llmRequest, in: {message: x}}\n",
			"script.yaml": "answer: Yes.\n",
		},
		Answer: func(*llmtest.Request) llmtest.Turn {
			return llmtest.Turn{Text: "yes", Usage: llm.Usage{Input: 10, Output: 2}}
		},
	})
	x, c := &process{t: t, url: p.URL}, &client.Client{URL: p.URL}
	type usage struct {
		Rows []struct {
			Name  string
			Runs  int
			Usage struct{ Calls, Input, Output int }
		}
		Complete bool
	}
	by := func(query string) string {
		u := decode[usage](x, c, http.MethodGet, "/v1/usage?by=model"+query, "")
		return fmt.Sprint(u.Rows, u.Complete)
	}
	for _, flow := range []string{"up", "mute", "talk"} {
		if _, err := c.StartRun(t.Context(), client.Start{Flow: flow, Wait: 60}); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{
		"":           "[{ 1 {1 0 0}} {m 2 {2 20 4}}] true",
		"&flow=up":   "[{m 1 {1 10 2}}] true",
		"&flow=mute": "[{ 1 {1 0 0}}] true",
		"&flow=none": "[] true",
		"&limit=1":   "[{m 1 {1 10 2}}] false",
	} {
		if got := by(query); got != want {
			t.Errorf("%s: %s, expected %s", query, got, want)
		}
	}
	talk := decode[struct{ Runs []struct{ Run string } }](x, c, http.MethodGet, "/v1/runs?flow=talk", "").Runs[0].Run
	fork := decode[struct{ Run string }](x, c, http.MethodPost, "/v1/runs/"+talk+"/fork?wait=60", `{"from":"ask"}`)
	if _, err := c.Answer(t.Context(), fork.Run, "ask:ask#1", "go", 60); err != nil {
		t.Fatal(err)
	}
	if got, want := by("&flow=talk"), "[{m 2 {2 20 4}}] true"; got != want {
		t.Errorf("with a fork: %s, expected %s", got, want)
	}
}

// TestAFlowIsReadAsItsFileUnlessThatNamesOthers reads flows of files and one that was put.
func TestAFlowIsReadAsItsFileUnlessThatNamesOthers(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	c := p.client("")
	put := "# put by hand\n{weir: 1, name: put, nodes: {say: {type: manualInput, with: {text: Hello}}}}"
	body, err := json.Marshal(map[string]any{"flow": put, "promote": true})
	if err != nil {
		t.Fatal(err)
	}
	decode[any](p, c, http.MethodPut, "/v1/flows/put", string(body))
	for name, want := range map[string]string{"ask": flows()["ask.yaml"], "fails": flows()["fails.yaml"], "put": put} {
		if got := decode[struct{ Text string }](p, c, http.MethodGet, "/v1/flows/"+name, "").Text; got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	up := servertest.Open(t, servertest.Options{Flows: map[string]string{
		"up.yaml":   "weir: 1\nname: up\nnodes:\n  one: {type: flow, with: {flow: down.yaml}}\n",
		"down.yaml": "weir: 1\nname: down\nnodes:\n  say: {type: manualInput, with: {text: Hello}}\n",
	}, Answer: func(*llmtest.Request) llmtest.Turn { return llmtest.Turn{} }})
	got := decode[struct {
		Text string
		Flow map[string]any
	}](&process{t: t, url: up.URL}, &client.Client{}, http.MethodGet, "/v1/flows/up", "")
	if got.Text != "" || got.Flow["name"] != "up" {
		t.Errorf("a file that names another: %+v", got)
	}
}

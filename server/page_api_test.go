package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/client"
)

// start starts a run of the flow ask and returns its id.
func (p *process) start(token, name string) string {
	p.t.Helper()
	got := p.send(http.MethodPost, "/v1/runs?wait=60", `{"flow":"ask","inputs":{"name":"`+name+`"}}`, withToken(token))
	run, _, _ := strings.Cut(strings.TrimPrefix(got.body, `{"run":"`), `"`)
	if got.status != http.StatusCreated {
		p.t.Fatal(got)
	}
	return run
}

func TestRunsAreFoundByLabel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := openProcess(t, dir, server.Options{RequireToken: true})
	ada := p.anyone("ada")
	type page struct {
		Runs []struct{ Run string }
		Next string
	}
	var runs []string
	for i := range 5 {
		run := p.start(ada.Token, fmt.Sprint("n", i))
		runs = append([]string{run}, runs...)
		decode[any](p, ada, http.MethodPut, "/v1/runs/"+run+"/labels", `{"labels":["all","n`+fmt.Sprint(i)+`"]}`)
	}
	p.start(ada.Token, "without")
	list := func(query string) (out []string) {
		for next := ""; ; {
			x := decode[page](p, ada, http.MethodGet, "/v1/runs?limit=2&label="+query+"&cursor="+next, "")
			for _, r := range x.Runs {
				out = append(out, r.Run)
			}
			if next = x.Next; next == "" {
				return out
			}
		}
	}
	if got := list("all"); !slices.Equal(got, runs) {
		t.Errorf("%v, expected %v", got, runs)
	}
	if got := list("n3"); !slices.Equal(got, runs[1:2]) {
		t.Errorf("%v", got)
	}
	for query, want := range map[string]int{"al": 0, "all&flow=ask": 5, "all&flow=talk": 0, "all&status=paused": 5, "all&status=failed": 0, "all&user=ada": 5} {
		if got := list(query); len(got) != want {
			t.Errorf("%s: %v", query, got)
		}
	}
	decode[any](p, ada, http.MethodPut, "/v1/runs/"+runs[0]+"/labels", `{"labels":["other"]}`)
	if got := decode[struct{ Labels []string }](p, ada, http.MethodGet, "/v1/runs/"+runs[0], ""); !slices.Equal(got.Labels, []string{"other"}) {
		t.Errorf("%v", got)
	}
	checkLabels(p, ada, runs)
	// With a run its labels go.
	refused := p.send(http.MethodDelete, "/v1/runs/"+runs[4], "", withToken(ada.Token))
	_, rest, _ := strings.Cut(refused.body, `"confirmation":"`)
	confirm, _, _ := strings.Cut(rest, `"`)
	decode[any](p, ada, http.MethodDelete, "/v1/runs/"+runs[4]+"?confirm="+confirm, "")
	if got := list("all"); len(got) != 3 {
		t.Errorf("%v", got)
	}
	if got := decode[struct{ Labels []struct{ Label string } }](p, ada, http.MethodGet, "/v1/labels", ""); fmt.Sprint(got.Labels) != "[{all} {n1} {n2} {n3} {other}]" {
		t.Error(got)
	}
}

// checkLabels checks the labels of five runs, and tries ones of a wrong form.
func checkLabels(p *process, ada *client.Client, runs []string) {
	t := p.t
	t.Helper()
	labels := decode[struct {
		Labels []struct {
			Label string
			Runs  int
		}
	}](p, ada, http.MethodGet, "/v1/labels", "")
	if got := fmt.Sprint(labels.Labels); got != "[{all 4} {n0 1} {n1 1} {n2 1} {n3 1} {other 1}]" {
		t.Error(got)
	}
	for _, bad := range []string{"A", "", "a b", "a/b", strings.Repeat("a", 65), "ä"} {
		if got := p.send(http.MethodPut, "/v1/runs/"+runs[0]+"/labels", `{"labels":["`+bad+`"]}`, withToken(ada.Token)); got.status != http.StatusUnprocessableEntity {
			t.Errorf("label %q: %d", bad, got.status)
		}
	}
	if got := p.send(http.MethodPut, "/v1/runs/"+runs[0]+"/labels", `{"labels":null}`, withToken(ada.Token)); got.status != http.StatusUnprocessableEntity {
		t.Errorf("no list of labels: %d", got.status)
	}
}

func TestSessionsAreFoundByLabel(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada, bob := p.anyone("ada"), p.anyone("bob")
	type row struct {
		Session, Title string
		Labels         []string
	}
	type page struct {
		Sessions []row
		Next     string
	}
	var ids []string
	for range 3 {
		id, err := ada.OpenSession(t.Context(), "talk", "")
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		decode[any](p, ada, http.MethodPut, "/v1/sessions/"+id+"/labels", `{"labels":["harbour"]}`)
	}
	of := "/v1/sessions/" + ids[0]
	decode[any](p, ada, http.MethodPut, of+"/title", `{"title":"A berth"}`)
	for _, got := range []row{decode[row](p, ada, http.MethodPut, of+"/labels", `{"labels":["urgent","harbour"]}`), decode[row](p, ada, http.MethodGet, of, "")} {
		if want := (row{ids[0], "A berth", []string{"harbour", "urgent"}}); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, expected %v", got, want)
		}
	}
	var seen []string
	for next := ""; ; {
		x := decode[page](p, ada, http.MethodGet, "/v1/sessions?limit=1&label=harbour&cursor="+next, "")
		for _, r := range x.Sessions {
			seen = append(seen, r.Session)
		}
		if next = x.Next; next == "" {
			break
		}
	}
	slices.Sort(seen)
	if slices.Sort(ids); !slices.Equal(seen, ids) {
		t.Errorf("%v, expected %v", seen, ids)
	}
	for who, want := range map[*client.Client]int{ada: 1, bob: 0} {
		if x := decode[page](p, who, http.MethodGet, "/v1/sessions?label=urgent", ""); len(x.Sessions) != want {
			t.Errorf("%v", x)
		}
	}
	for bad, path := range map[string]string{`{"labels":["A"]}`: "/labels", `{"labels":null}`: "/labels", `{}`: "/labels", `{"title":"a\nb"}`: "/title"} {
		if got := p.send(http.MethodPut, of+path, bad, withToken(ada.Token)); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %v", bad, got)
		}
	}
}

func TestRatingsBelongToWhoRates(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada, root := p.anyone("ada"), p.client("root", server.Admin)
	run := p.start(ada.Token, "Ada")
	type list struct {
		Ratings []server.Rating
		Next    string
	}
	decode[any](p, ada, http.MethodPut, "/v1/runs/"+run+"/ratings", `{"rating":"down","note":"too short"}`)
	decode[any](p, ada, http.MethodPut, "/v1/runs/"+run+"/ratings", `{"rating":"up","node":"greet"}`)
	decode[any](p, ada, http.MethodPut, "/v1/runs/"+run+"/ratings", `{"rating":"up"}`)
	decode[any](p, root, http.MethodPut, "/v1/runs/"+run+"/ratings", `{"rating":"down"}`)
	if got := decode[list](p, ada, http.MethodGet, "/v1/runs/"+run+"/ratings", ""); len(got.Ratings) != 3 {
		t.Errorf("%+v", got)
	}
	for query, want := range map[string]int{"": 2, "?rating=up": 2, "?rating=down": 0, "?flow=ask": 2, "?flow=talk": 0} {
		if got := decode[list](p, ada, http.MethodGet, "/v1/ratings"+query, ""); len(got.Ratings) != want {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if got := decode[list](p, root, http.MethodGet, "/v1/ratings", ""); len(got.Ratings) != 3 {
		t.Errorf("of all: %+v", got)
	}
	decode[any](p, ada, http.MethodPut, "/v1/runs/"+run+"/ratings", `{"rating":"none"}`)
	decode[any](p, ada, http.MethodPut, "/v1/runs/"+run+"/ratings", `{"rating":"none"}`)
	if got := decode[list](p, ada, http.MethodGet, "/v1/runs/"+run+"/ratings", ""); len(got.Ratings) != 2 {
		t.Errorf("%+v", got)
	}
	if got := p.send(http.MethodPut, "/v1/runs/"+run+"/ratings", `{"rating":"up","node":"gone"}`, withToken(ada.Token)); got.status != http.StatusNotFound {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestSavedFiltersAreOnesOwn(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada, bob := p.anyone("ada"), p.anyone("bob")
	type list struct{ Filters []struct{ Name, Of string } }
	decode[any](p, ada, http.MethodPut, "/v1/filters/failed%20ones", `{"of":"runs","query":{"status":"failed"}}`)
	decode[any](p, ada, http.MethodPut, "/v1/filters/failed%20ones", `{"of":"sessions","query":{}}`)
	decode[any](p, bob, http.MethodPut, "/v1/filters/mine", `{"of":"runs","query":{}}`)
	if got := decode[list](p, ada, http.MethodGet, "/v1/filters", ""); fmt.Sprint(got) != "{[{failed ones sessions}]}" {
		t.Error(got)
	}
	if got := p.send(http.MethodDelete, "/v1/filters/mine", "", withToken(ada.Token)); got.status != http.StatusNotFound {
		t.Errorf("of another user: %d", got.status)
	}
	for _, bad := range []string{`{"of":"runs","query":[]}`, `{"of":"runs","query":{"a":"` + strings.Repeat("a", 9000) + `"}}`, `{"query":{}}`} {
		if got := p.send(http.MethodPut, "/v1/filters/x", bad, withToken(ada.Token)); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%.50s: %d", bad, got.status)
		}
	}
	for i := range 199 {
		decode[any](p, ada, http.MethodPut, fmt.Sprint("/v1/filters/f", i), `{"of":"runs","query":{}}`)
	}
	if got := p.send(http.MethodPut, "/v1/filters/more", `{"of":"runs","query":{}}`, withToken(ada.Token)); got.status != http.StatusConflict {
		t.Errorf("beyond the bound: %d", got.status)
	}
	decode[any](p, ada, http.MethodDelete, "/v1/filters/f1", "")
	decode[any](p, ada, http.MethodPut, "/v1/filters/more", `{"of":"runs","query":{}}`)
}

// searchAnswer is the answer to a search.
type searchAnswer struct {
	Runs []struct {
		Run  struct{ Run, Flow string }
		Hits []struct {
			Event   int64
			Excerpt string
		}
	}
	Scanned int
	Next    string
}

// ids are the runs that were found, each with an excerpt that has the text.
func (r *searchAnswer) ids(t *testing.T, text string) (ids string) {
	t.Helper()
	for _, x := range r.Runs {
		ids += x.Run.Run
		if len(x.Hits) == 0 || x.Hits[0].Event == 0 || !strings.Contains(strings.ToLower(x.Hits[0].Excerpt), strings.ToLower(text)) {
			t.Errorf("%s: %+v", text, x.Hits)
		}
	}
	return ids
}

func TestTextIsFoundInRuns(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada := p.anyone("ada")
	o := makeObjects(t, ada)
	odd := p.start(ada.Token, `Zoë \"quoted\"\n<b>`)
	find := func(text, more string) searchAnswer {
		return decode[searchAnswer](p, ada, http.MethodGet, "/v1/search?text="+url.QueryEscape(text)+more, "")
	}
	for text, want := range map[string]string{
		"HELLO ada": o.run, "zoË": odd, `"quoted"`: odd, "\n<B>": odd, "berth 4 is": "", "approve?": odd + o.run,
	} {
		r := find(text, "")
		got := r.ids(t, text)
		if r.Scanned != 3 || r.Next != "" || want != "" && got != want || text == "berth 4 is" && (len(r.Runs) != 1 || r.Runs[0].Run.Flow != "talk") {
			t.Errorf("%s: %+v, expected %s", text, r, want)
		}
	}
	for _, never := range []string{"not in any run", o.run} {
		if r := find(never, ""); len(r.Runs) != 0 {
			t.Errorf("%s: %+v", never, r)
		}
	}
	if r := find("approve?", "&flow=talk"); len(r.Runs) != 0 || r.Scanned != 1 {
		t.Errorf("%+v", r)
	}
	first := find("approve?", "&limit=1")
	second := find("approve?", "&limit=1&cursor="+first.Next)
	if first.Next == "" || len(first.Runs) != 1 || len(second.Runs) != 1 || second.Runs[0].Run.Run == first.Runs[0].Run.Run {
		t.Errorf("%+v then %+v", first, second)
	}
}

func TestVersionsOfAFlowAreCompared(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	ada := p.anyone("ada")
	one := putFlow(t, ada, "hello", "one", "", true)
	two := putFlow(t, ada, "hello", "two", etag(t, ada, "hello"), true)
	type diff struct {
		Same    bool
		Changes []struct {
			Node, Name string
			A, B       any
		}
	}
	if got := decode[diff](p, ada, http.MethodGet, "/v1/flows/hello/diff?from="+one, ""); fmt.Sprint(got) != "{false [{say with.text one two}]}" {
		t.Error(got)
	}
	if got := decode[diff](p, ada, http.MethodGet, "/v1/flows/hello/diff?from="+two, ""); !got.Same {
		t.Error(got)
	}
	f := decode[struct {
		Deployed struct {
			Promotions []struct{ Fingerprint, By string }
		}
	}](p, ada, http.MethodGet, "/v1/flows/hello", "")
	if got := fmt.Sprint(f.Deployed.Promotions); got != "[{"+two+" ada} {"+one+" ada}]" {
		t.Error(got)
	}
	ask := decode[struct{ Fingerprint string }](p, ada, http.MethodGet, "/v1/flows/ask", "").Fingerprint
	if got := decode[diff](p, ada, http.MethodGet, "/v1/flows/ask/diff?from="+ask, ""); !got.Same {
		t.Error(got)
	}
	for _, from := range []string{"x", one} {
		if got := p.send(http.MethodGet, "/v1/flows/ask/diff?from="+from, "", withToken(ada.Token)); got.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", from, got.status, got.body)
		}
	}
}

func TestTestsOfAFlowRunByRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ask.test.yaml":  "flow: ask.yaml\ntests:\n  - {name: approved, inputs: {name: Ada}, answers: {ask: approve}, expect: {outputs: {decision: approve, greeting: Hello Ada}}}\n  - {name: wrong, inputs: {name: Ada}, answers: {ask: approve}, expect: {outputs: {decision: reject, greeting: Hello Ada}}}\n",
		"talk.test.yaml": "flow: talk.yaml\ntests:\n  - {name: other, skip: not here}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := openProcess(t, dir, server.Options{RequireToken: true})
	ada := p.anyone("ada")
	if got := p.send(http.MethodGet, "/v1/flows/ask/tests", "", withToken(ada.Token)); !strings.Contains(got.body, `"approved"`) || strings.Contains(got.body, "other") || strings.Contains(got.body, dir) {
		t.Error(got.body)
	}
	type report struct {
		Passed, Failed int
		Tests          []struct {
			Name, Status string
			Failures     []struct{ Where, Message string }
		}
	}
	all := decode[report](p, ada, http.MethodPost, "/v1/flows/ask/tests/run", `{}`)
	if all.Passed != 1 || all.Failed != 1 || len(all.Tests) != 2 || all.Tests[1].Failures[0].Where != "outputs.decision" {
		t.Errorf("%+v", all)
	}
	if one := decode[report](p, ada, http.MethodPost, "/v1/flows/ask/tests/run", `{"test":"approved"}`); one.Passed != 1 || one.Failed != 0 {
		t.Errorf("%+v", one)
	}
	for range 20 {
		decode[report](p, ada, http.MethodPost, "/v1/flows/fails/tests/run", `{}`)
	}
	if got := decode[struct{ Results []report }](p, ada, http.MethodGet, "/v1/flows/ask/tests/results", ""); len(got.Results) != 2 || got.Results[0].Failed != 0 || got.Results[1].Failed != 1 {
		t.Errorf("%+v", got)
	}
	if got := p.send(http.MethodPost, "/v1/flows/ask/tests/run", `{"test":"none"}`, withToken(ada.Token)); got.status != http.StatusNotFound {
		t.Errorf("%d %s", got.status, got.body)
	}
}

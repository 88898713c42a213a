package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
)

func TestAForkPlanSaysWhatIsReusedAndStartsNothing(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	id := startAsk(t, p, "Ada")
	got := p.send(http.MethodPost, "/v1/runs/"+id+"/fork/plan", `{"from":"ask"}`, nil)
	for _, want := range []string{`"node":"greet","type":"manualInput","use":"reused"`, `"node":"ask","type":"userInput","use":"again"`} {
		if got.status != http.StatusOK || !strings.Contains(got.body, want) {
			t.Errorf("%d %s has no %s", got.status, got.body, want)
		}
	}
	edited := p.send(http.MethodPost, "/v1/runs/"+id+"/fork/plan", `{"inputs":{"name":"Bob"}}`, nil)
	if !strings.Contains(edited.body, `"node":"greet","type":"manualInput","use":"again"`) {
		t.Errorf("with another input: %d %s", edited.status, edited.body)
	}
	if bad := p.send(http.MethodPost, "/v1/runs/"+id+"/fork/plan", `{"from":"none"}`, nil); bad.status != http.StatusUnprocessableEntity || bad.problem() != "fork_point" {
		t.Errorf("from a node that there is not: %d %s", bad.status, bad.body)
	}
	if list := p.send(http.MethodGet, "/v1/runs", "", nil); strings.Count(list.body, `"run":`) != 1 {
		t.Errorf("a plan made a run: %s", list.body)
	}
}

func TestAValidFlowIsDrawnWhenItIsValidated(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	valid := p.send(http.MethodPost, "/v1/flows/validate", `{"flow":"{weir: 1, name: x, nodes: {a: {type: start}}}"}`, nil)
	if !strings.Contains(valid.body, `"layout":{"width":`) || !strings.Contains(valid.body, `"id":"a"`) {
		t.Errorf("a valid flow: %s", valid.body)
	}
	if invalid := p.send(http.MethodPost, "/v1/flows/validate", `{"flow":"{weir: 1, name: x, nodes: {a: {type: none}}}"}`, nil); strings.Contains(invalid.body, "layout") {
		t.Errorf("a flow that is not valid: %s", invalid.body)
	}
}

func TestATrajectoryIsAnImageToo(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	id := startAsk(t, p, "Ada")
	got := p.send(http.MethodGet, "/v1/runs/"+id+"/trajectory.svg", "", nil)
	if got.status != http.StatusOK || got.header.Get("Content-Type") != "image/svg+xml" || !strings.HasPrefix(got.body, "<svg") {
		t.Errorf("%d %s %.80s", got.status, got.header.Get("Content-Type"), got.body)
	}
}

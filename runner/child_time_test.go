package runner_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

func TestNodeTimeoutCancelsItsChildAndRetryStartsAnother(t *testing.T) {
	tr := newTree(t)
	tr.add("l0", "nodes:\n  rest: {type: wait, with: {for: 10m}}\noutputs: {out: 1}\n")
	tr.add("l1", wrapFlow("l0"))
	p := tr.add("l2", `
nodes:
  down: {type: sub, with: {flow: l1}, timeout: 100ms, retry: {attempts: 2, backoff: 1ms}}
outputs: {out: "{{ down.out }}"}
`)
	r := tr.wait(tr.start(p))
	equal(t, "status", r.Status, engine.Failed)
	equal(t, "code", r.Error.Code, engine.CodeTimeout)
	runs := tr.runs()
	equal(t, "runs", len(runs), 5)
	for _, run := range runs[1:] {
		equal(t, run.ID, run.Head.Status, engine.Cancelled)
	}
}

func TestNodeTimeoutAppliesWhileAChildWaitsInAnotherProcess(t *testing.T) {
	tr := newTree(t)
	tr.add("l0", askFlow)
	p := tr.add("l1", `
nodes:
  down: {type: sub, with: {flow: l0}, timeout: 300ms}
outputs: {out: "{{ down.out }}"}
`)
	x := tr.start(p)
	eventually(t, func() bool { r := tr.runs(); return len(r) == 2 && r[1].Head.Status == engine.Paused })
	if err := tr.local.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-x.Done()
	tr.open()
	x, err := tr.local.Resume(t.Context(), p, "r")
	if err != nil {
		t.Fatal(err)
	}
	r := tr.wait(x)
	equal(t, "status", r.Status, engine.Failed)
	equal(t, "code", r.Error.Code, engine.CodeTimeout)
	equal(t, "child", tr.runs()[1].Head.Status, engine.Cancelled)
}

func TestOverridingANodeThatWaitsForAChildNamesTheAlternative(t *testing.T) {
	tr := newTree(t)
	tr.add("l0", askFlow)
	p := tr.add("l1", wrapFlow("l0"))
	tr.wait(tr.start(p))
	_, err := tr.local.Do(t.Context(), p, "r", runner.OverrideNode("skip", "down", nil, "me"))
	if child := tr.runs()[1].ID; err == nil || !strings.Contains(err.Error(), "child run "+child) {
		t.Errorf("forcing it says %v", err)
	}
}
